"""Files that hold something else than a user believes: what tests of mistakes name."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from made import sentences, tiny_encoder


def write_wrong_files(folder: Path) -> None:
    """Write them into a folder that has pairs.tsv, tiny, and runs in ``kept``; and models, texts and
    folders that suggestions name.
    """
    good = (folder / "pairs.tsv").read_text(encoding="utf-8").splitlines()

    def pairs(name: str, row: str) -> None:
        (folder / name).write_text("\n".join([*good[:5], row, *good[5:], ""]), encoding="utf-8")

    pairs("short-row.tsv", "only one cell")
    pairs("nan.tsv", "a man\ta dog\tnan")
    pairs("inf.tsv", "a man\ta dog\tinf")
    pairs("word.tsv", "a man\ta dog\tmuch")
    (folder / "columns.tsv").write_text("\n".join(["one\ttwo\tthree", *good[1:], ""]))
    (folder / "head.tsv").write_text(good[0] + "\n")
    for name in ("empty.tsv", "empty.txt", "file"):
        (folder / name).write_text("")
    (folder / "latin.txt").write_bytes(b"a good line\n" * 9 + b"caf\xe9\n")
    (folder / "three.csv").write_text("a,b,c\n1,2,3\n")
    (folder / "cut.txt.gz").write_bytes(b"\x1f\x8b\x08\x00")
    (folder / "cut.jsonl").write_text('{"sentence": "a"}\n{"sentence": \n')
    (folder / "not-python.py").write_text("def (:\n")
    (folder / "no-method.py").write_text("x = 1\n")
    (folder / "bad.toml").write_text("= =\n")
    (folder / "odd.toml").write_text("[recipe]\ntemprature = 1\n")
    (folder / "plan.toml").write_text('[[run]]\nmethods = ["simcse"]\n')
    (folder / "empty").mkdir()
    (folder / "no-weights").mkdir()
    shutil.copy(folder / "tiny" / "config.json", folder / "no-weights")
    np.savez(folder / "nan.npz", sentences=np.array(["a"]), vectors=np.full((1, 3), np.nan))
    np.savez(folder / "few.npz", sentences=np.array(["a"]), vectors=np.ones((1, 3)))
    np.savez(folder / "unequal.npz", sentences=np.array(["a", "b"]), vectors=np.ones((1, 3)))
    (folder / "damaged" / "simcse-tiny-s1-00000000").mkdir(parents=True)
    (folder / "damaged" / "simcse-tiny-s1-00000000" / "run.json").write_text('{"schema": "ben')
    tiny_encoder(folder / "llama", "llama")
    tiny_encoder(folder / "dry", dropout=0.0)
    (folder / "few.txt").write_text("\n".join(sentences(20)) + "\n")
    (folder / "one.txt").write_text("one sentence\n")
    (folder / "two.csv").write_text("a,b\n1,2\n")
    (folder / "mixed.tsv").write_text("text\tlabel\tstars\na man\tx\t1\na dog\ty\t2\n" * 20)
    (folder / "labelled.csv").write_text("sent0,sent1,label\na man,a dog,0\n" * 20)
    _write_examples(folder)
    (folder / "box" / sorted((folder / "kept").glob("simcse-*"))[0].name).mkdir(parents=True)
    _pickled(folder / "tiny", folder / "pickled")
    (folder / "leaderboards").mkdir()
    errata = "| v4 | `git worktree add ../boards 7ac043b3` |\n"
    (folder / "leaderboards" / "ERRATA.md").write_text(errata)


def _write_examples(folder: Path) -> None:
    """Write the files that suggestions take for examples."""
    for name in ("notes.txt", "a.txt", "b.txt", "A.txt", "B.txt"):
        (folder / name).write_text("\n".join(sentences(40)) + "\n")
    rated = [f"a {word} man,a dog,{n % 5}\n" for n, word in enumerate("abcdefghij")]
    (folder / "pairs.csv").write_text("question,answer,rating\n" + "".join(rated))
    (folder / "reviews.csv").write_text("text,stars\n" + "a good film,5\na bad film,1\n" * 20)


def _pickled(model: Path, to: Path) -> None:
    """Copy a model with its weights in a pickle."""
    import torch
    from safetensors.torch import load_file

    shutil.copytree(model, to)
    torch.save(load_file(to / "model.safetensors"), to / "pytorch_model.bin")
    (to / "model.safetensors").unlink()
