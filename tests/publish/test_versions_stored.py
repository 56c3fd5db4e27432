"""What is copied of a run says exactly what the run's own files say, in fewer bytes."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from made_runs import made_run
from msgspec.structs import replace

from bench.base.errors import DataDamaged, DataMissing
from bench.base.files import file_sha256, values_sha256
from bench.publish.stored import File, Packed, narrow, pack, store_run
from bench.publish.versions import StagedFolder
from bench.runs import RunsFolder
from bench.runs.arrays import read_arrays
from bench.verify import verify_run

DRAW = np.random.default_rng(3)
ARRAYS = {
    "whole": np.arange(-3, 2000),
    "large": np.array([2**62, -(2**62)]),
    "wraps": np.array([2**64 - 1], dtype=np.uint64),
    "flags": np.array([True, False]),
    "cosine": DRAW.normal(size=3000),
    "halves": np.arange(5000) / 2,
    "strange": np.array([np.nan, np.inf, -0.0, 1e300, 1e-320]),
    "words": np.array(["a", "été", "", "\U0001f600 x"], dtype="<U40"),
    "grid": np.arange(12, dtype=np.int64).reshape(3, 4).T,
    "none": np.zeros((0, 3)),
    "one": np.float64(2.5),
    "no words": np.array([], dtype="<U9"),
}


def test_packed_arrays_are_the_same_arrays() -> None:
    with np.load(io.BytesIO(pack(ARRAYS)), allow_pickle=False) as read:
        assert sorted(read.files) == sorted(ARRAYS)
        for name, values in ARRAYS.items():
            again = read[name]
            assert again.shape == np.shape(values) and again.dtype.kind in (
                np.asarray(values).dtype.kind,
                "i",
            ), name
            assert values_sha256({"": again}) == values_sha256({"": np.asarray(values)}), name


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("whole", "int16"),
        ("large", "int64"),
        ("halves", "float32"),
        ("cosine", "float64"),
        ("strange", "float64"),
        ("words", "<U3"),
        ("flags", "bool"),
        ("grid", "int8"),
    ],
)
def test_the_narrowest_type_that_is_exact(name: str, kind: str) -> None:
    assert narrow(ARRAYS[name]).dtype == np.dtype(kind)


def test_the_same_arrays_give_the_same_bytes_whenever_and_in_whatever_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = pack(ARRAYS)
    monkeypatch.setattr("time.time", lambda: 2e9)
    assert pack(dict(reversed(ARRAYS.items()))) == first
    plain = io.BytesIO()
    np.savez_compressed(plain, **ARRAYS)  # type: ignore[arg-type]
    assert len(first) < len(plain.getvalue())


def test_what_was_packed_once_is_kept_and_a_damaged_file_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = {"prediction": DRAW.normal(size=5000)}
    np.savez(tmp_path / "run.npz", **large)  # type: ignore[arg-type]
    shelf = Packed(tmp_path / "cache")
    file = File.read(tmp_path / "run.npz")
    first = shelf.whole(file)
    assert (file.values_sha256, first) == (values_sha256(large), pack(large))
    (kept,) = (tmp_path / "cache").iterdir()
    monkeypatch.setattr(
        "bench.publish.stored.pack", lambda arrays: pytest.fail("it was packed again")
    )
    assert shelf.whole(file) == first
    monkeypatch.undo()
    whole = kept.read_bytes()
    for wrong in (
        b"",
        b"nothing of ours",
        whole[:-1] + b"?",
        whole.replace(b"packed/1", b"packed/0"),
        b"\xff" + whole,
    ):
        kept.write_bytes(wrong)
        assert shelf.whole(file) == first and kept.read_bytes() == whole


def test_a_small_file_is_copied_as_it_is(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "run.npz", prediction=np.arange(100))
    file = File.read(tmp_path / "run.npz")
    assert file.values_sha256 == values_sha256({"prediction": np.arange(100)})
    assert Packed(tmp_path / "cache").whole(file) == (tmp_path / "run.npz").read_bytes()
    assert not (tmp_path / "cache").exists()


def test_a_published_run_verifies_without_its_checkpoint(tmp_path: Path) -> None:
    run = made_run(tmp_path / "runs", suites=("check",))
    here, to = tmp_path / "runs" / run.run_id, tmp_path / "out" / run.run_id
    (here / "checkpoint").mkdir()
    (here / "checkpoint" / "weights").write_bytes(b"many")
    (here / "vectors").mkdir()
    sha256 = store_run(run, here, StagedFolder(to))
    assert sorted(path.name for path in to.rglob("*")) == [
        "CHECK.npz",
        "curve.jsonl",
        "predictions",
        "run.json",
    ]
    assert sha256 == file_sha256(to / "run.json") == file_sha256(here / "run.json")
    report = verify_run(to)
    assert (
        report.differences == [] and report.count("score") == 1 and report.count("predictions") == 1
    )
    assert RunsFolder(tmp_path / "out").read(run.run_id) == RunsFolder(tmp_path / "runs").read(
        run.run_id
    )
    assert (to / "curve.jsonl").read_bytes() == (here / "curve.jsonl").read_bytes()


@pytest.mark.parametrize("what", ["missing", "another", "damaged"])
def test_a_run_whose_predictions_nobody_could_check_is_refused(tmp_path: Path, what: str) -> None:
    run = made_run(tmp_path)
    path = RunsFolder(tmp_path).predictions_path(run.run_id, "STS13", "tokenised")
    if what == "missing":
        path.unlink()
    elif what == "another":
        np.savez(path, **(read_arrays(path) | {"prediction": np.zeros(150)}))
    else:
        path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataMissing if what == "missing" else DataDamaged, match=r"STS13"):
        store_run(run, tmp_path / run.run_id, StagedFolder(tmp_path / "out"))


def test_a_record_of_the_first_schema_has_no_hash_to_compare(tmp_path: Path) -> None:
    run = made_run(tmp_path / "runs")
    store = RunsFolder(tmp_path / "runs")
    old = replace(run, scores=tuple(replace(one, predictions_sha256=None) for one in run.scores))
    store.write(old)
    store_run(old, store.folder(run.run_id), StagedFolder(tmp_path / "out"))
    assert len(list((tmp_path / "out" / "predictions").iterdir())) == 7


def test_a_record_that_changes_while_it_is_published_is_refused(tmp_path: Path) -> None:
    run = made_run(tmp_path / "runs")
    store = RunsFolder(tmp_path / "runs")
    store.write(replace(run, scores=run.scores[:3]))
    with pytest.raises(DataDamaged, match="it changed while"):
        store_run(run, store.folder(run.run_id), StagedFolder(tmp_path / "out"))
