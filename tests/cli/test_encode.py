"""``bench encode``: one's own sentences through the model of a run."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from commands import bench, error_line, the_run, tree
from models import sentences

TEXT = [
    *sentences(30, seed=3),
    " ",
    "ein Satz, ein zweiter",
]  # a blank line is a row with one space in it


@pytest.fixture(scope="module")
def run(finished: tuple[Path, Result]) -> Path:
    return the_run(finished[0])


@pytest.fixture(scope="module")
def expected(run: Path) -> np.ndarray:
    """Return the method's own vectors of TEXT, with its weights loaded by hand."""
    from safetensors.torch import load_file

    from bench.backbones import load, resolve_recorded
    from bench.method import Context, Recipe, Value
    from bench.run.plugins import discover

    record = json.loads((run / "run.json").read_text())
    revision = record["provenance"]["backbone"]["revision"]
    method = discover()["simcse"].cls()
    method.context = Context()
    method.build(
        load(resolve_recorded(record["backbone"], revision, run.parent)),
        Recipe({k: Value(v["value"], "") for k, v in record["recipe"].items()}),
    )
    method.load_state_dict(load_file(run / "checkpoint" / "trained.safetensors"), strict=False)
    return method.encode(TEXT)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(TEXT) + "\n")
    return path


def encode(run: Path, file: Any, out: Path, *options: Any, **env: str) -> Result:
    return bench("encode", run, file, "--to", out, "--device", "cpu", *options, **env)


def test_to_npy(run: Path, text: Path, expected: np.ndarray, tmp_path: Path) -> None:
    before = tree(run)
    done = encode(run, text, tmp_path / "v.npy")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == f"{tmp_path / 'v.npy'}\n"
    assert f"done: 32 vectors of {expected.shape[1]} dimensions" in done.stderr
    assert np.array_equal(np.load(tmp_path / "v.npy"), expected)
    assert len(np.unique(expected, axis=0)) > 20
    assert tree(run) == before, "the run's folder is left as it was"
    about = json.loads((tmp_path / "v.npy.json").read_text())
    assert about["run"] == run.name and about["rows"] == 32


def test_a_file_that_is_there_is_replaced_on_request_only(
    run: Path, text: Path, tmp_path: Path
) -> None:
    assert encode(run, text, tmp_path / "v.npy").exit_code == 0
    before = tree(tmp_path)
    assert "exists already" in error_line(encode(run, text, tmp_path / "v.npy"))
    assert tree(tmp_path) == before
    text.write_text("another\n")
    assert encode(run, text, tmp_path / "v.npy", "--fresh").exit_code == 0
    assert len(np.load(tmp_path / "v.npy")) == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.txt.gz", gzip.compress("\n".join(TEXT).encode(), mtime=0)),
        ("t.txt.xz", lzma.compress("\n".join(TEXT).encode())),
        ("t.jsonl", "\n".join(json.dumps({"text": s, "other": 1}) for s in TEXT).encode()),
        ("t.csv", ("sentence\n" + "\n".join('"' + s + '"' for s in TEXT)).encode()),
        ("t.tsv.gz", gzip.compress(("sentence\n" + "\n".join(TEXT)).encode(), mtime=0)),
    ],
)
def test_every_form_of_the_same_text(
    name: str, content: bytes, run: Path, expected: np.ndarray, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    done = encode(run, tmp_path / name, tmp_path / "v.npy")
    assert done.exit_code == 0, done.stderr
    assert np.array_equal(np.load(tmp_path / "v.npy"), expected)


def test_columns(run: Path, expected: np.ndarray, tmp_path: Path) -> None:
    rows = zip(TEXT[0:20:2], TEXT[1:20:2], strict=True)
    file, out = tmp_path / "t.csv", tmp_path / "v.npy"
    file.write_text("sent0,sent1\n" + "".join(f'"{a}","{b}"\n' for a, b in rows))
    assert "several columns: sent0, sent1" in error_line(encode(run, file, out))
    assert "no column 'x'" in error_line(encode(run, file, out, "--column", "x"))
    for column, wanted in (("sent1", expected[1:20:2]), ("all", expected[:20])):
        assert encode(run, file, out, "--column", column, "--fresh").exit_code == 0
        assert np.allclose(np.load(out), wanted, atol=1e-5)


@pytest.mark.parametrize(
    ("file", "out", "says"),
    [
        ("text.txt", "v.pt", "unknown format '.pt'"),
        ("bad.txt", "v.npy", "bad.txt: line 3 is not UTF-8"),
        ("text.txt", "no/v.npy", "is not a folder"),
    ],
)
def test_mistakes_leave_nothing(
    file: str, out: str, says: str, run: Path, text: Path, tmp_path: Path
) -> None:
    (tmp_path / "bad.txt").write_bytes(b"a\nb\n\xff\n")
    before = tree(tmp_path)
    assert says in error_line(encode(run, tmp_path / file, tmp_path / out))
    assert tree(tmp_path) == before
