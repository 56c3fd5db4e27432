"""Files that hold something else than a user believes: what tests of mistakes name."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np


def write_wrong_files(folder: Path) -> None:
    """Write them into a folder that has pairs.tsv and tiny."""
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
