"""A submission may have been written by anybody: what is refused, why, and at what cost."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from scored_run import finished_run, predictions
from submitted import as_submission, own_suite, spoil

from bench.base.errors import BenchError
from bench.board.publish import submissions as checking
from bench.board.publish.submissions import check_submission
from bench.compare.senders import SENDER_FILE
from bench.records import RunRecord, RunsFolder
from bench.records.arrays import read_arrays

Forgery = Callable[[RunsFolder, RunRecord], object]


def refused(folder: Path) -> str:
    with pytest.raises(BenchError) as caught:
        check_submission(folder)
    return caught.value.message


def made_to_fit(store: RunsFolder, run: RunRecord) -> None:
    """Gold values that the predictions rank perfectly, with the score that follows from them."""
    from bench.score.suites import rescore

    arrays = read_arrays(predictions(store, run))
    arrays["gold"] = arrays["prediction"].copy()
    again = rescore(run.scores[0].key, arrays)
    assert again is not None and again.value > 99
    spoil(store, run, arrays, value=again.value, detail=dict(again.detail))


def other_file(write: Callable[[Path], object]) -> Forgery:
    """Another file in the place of the predictions."""
    return lambda store, run: write(predictions(store, run))


def stored(**arrays: Any) -> Forgery:
    return other_file(lambda path: np.savez_compressed(path, **arrays))


def many_names(store: RunsFolder, run: RunRecord) -> None:
    spoil(store, run, {"subset": np.array([f"part {i}" for i in range(1000)])})


def empty_text(path: Path) -> None:
    head = b"{'descr': '<U0', 'fortran_order': False, 'shape': (300000000,), }".ljust(117) + b"\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "subset.npy", b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head
        )


def lzma(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("prediction.npy", b"x" * 1000)


def not_a_number(store: RunsFolder, run: RunRecord) -> None:
    values = read_arrays(predictions(store, run))["prediction"]
    values[3] = np.nan
    spoil(store, run, {"prediction": values})


def changed(**fields: Any) -> Forgery:
    """Other fields of the record."""
    return lambda store, run: store.write(replace(run, **fields))


def no_scores(store: RunsFolder, run: RunRecord) -> None:
    predictions(store, run).unlink()
    store.write(replace(run, scores=()))


def text_of(name: str, text: str) -> Forgery:
    return lambda store, run: (store.folder(run.run_id) / name).write_text(text)


def in_record(old: str, new: str) -> Forgery:
    """Other bytes in the record's file, which a reader of records passes over."""

    def change(store: RunsFolder, run: RunRecord) -> None:
        file = store.folder(run.run_id) / "run.json"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new, 1))

    return change


def path_in_array(store: RunsFolder, run: RunRecord) -> None:
    rows = len(read_arrays(predictions(store, run))["prediction"])
    spoil(store, run, {"made_by": np.full(rows, "/home/ada/secret")})


def with_score_fields(**fields: Any) -> Forgery:
    """Make a score with an extra value that its predictions do not give."""
    return lambda store, run: store.write(replace(run, scores=(replace(run.scores[0], **fields),)))


def more_detail(store: RunsFolder, run: RunRecord) -> None:
    """A key of its own in a score's detail."""
    detail = {**run.scores[0].detail, "better than all": 99.99}
    with_score_fields(detail=detail)(store, run)


def own_task(store: RunsFolder, run: RunRecord) -> None:
    """A set that the suite does not have, so that nobody knows its gold values."""
    arrays = read_arrays(predictions(store, run))
    store.write_predictions(run.run_id, "STS99", "senteval-all/1", arrays)
    score = replace(run.scores[0], suite="sts", task="STS99", protocol="senteval-all/1")
    origin = replace(run.provenance, data={**run.provenance.data, "STS99": "0" * 64})
    store.write(replace(run, scores=(*run.scores, score), provenance=origin))


FORGERIES: dict[str, tuple[Forgery, str]] = {
    "gold made to fit": (made_to_fit, "the array 'gold' is not the data set's"),
    "NaN": (not_a_number, "a prediction is NaN or infinite"),
    "many names": (many_names, "subset has more than 400 different values"),
    "many columns": (
        lambda store, run: spoil(store, run, {"prediction": np.zeros((1000, 200))}),
        r"prediction has shape \(1000, 200\)",
    ),
    "empty text": (other_file(empty_text), "an array of 300,000,000 values"),
    "bytes": (stored(prediction=np.array([b"x"])), "holds neither numbers nor text"),
    "lzma": (other_file(lzma), "stored or deflated"),
    "no predictions": (other_file(Path.unlink), "has no predictions"),
    "no scores": (no_scores, "this one is finished; scores: 0"),
    # bench submit has no --plugin
    "own suite": (own_suite, "mine Avg.: the suite mine is not known$"),
    "own task": (own_task, "sts STS99: sts has no task STS99"),
    "std": (
        with_score_fields(std=0.01),
        "the standard deviation 0.01 is recorded, its predictions give None",
    ),
    "detail": (more_detail, "detail.better than all is recorded"),
    "a field that nobody reads": (
        in_record('"git": {', '"git": {"folder": "$HOME/secret", '),
        "provenance.git.folder holds the absolute path of 'secret'",
    ),
    "a field twice": (
        in_record('"status":', '"status": "/home/ada/secret", "status":'),
        "the field 'status' has two values",
    ),
    "a path in an array": (path_in_array, "made_by holds the absolute path of 'secret'"),
    "curve of text": (text_of("curve.jsonl", "../key.txt"), "curve.jsonl, line 1: not JSON"),
    "escaped path in a curve": (
        text_of("curve.jsonl", '{"step": 1}\n{"step": 2, "x": "\\/home\\/ada\\/secret"}'),
        "line 2: x holds the absolute path of 'secret'",
    ),
    "encoded path": (changed(error="%2Fhome%2Fada%2Fsecret"), "error holds the absolute path"),
    "full-width path": (changed(error="\uff0fhome\uff0fada"), "error holds the absolute path"),
    "other name": (
        lambda store, run: store.folder(run.run_id).rename(store.path / "other-name"),
        "not the folder's name",
    ),
}


@pytest.mark.parametrize(("how", "why"), FORGERIES.values(), ids=FORGERIES)
def test_a_run_that_is_not_what_it_says(theirs: RunsFolder, how: Forgery, why: str) -> None:
    run = finished_run(theirs)
    how(theirs, run)
    message = refused(as_submission(theirs))
    assert re.search(why, message) and message.isprintable(), message


def sized(name: str, mebibytes: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        with (folder / name).open("wb") as file:
            file.truncate(mebibytes << 20)

    return change


def large_together(folder: Path) -> None:
    for i in range(4):
        sized(f"predictions/T{i}.npz", 15)(folder)


def many(folder: Path) -> None:
    for i in range(checking.MOST_FILES + 1):
        (folder / "predictions" / f"T{i}.npz").touch()


FOLDERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "large together": (large_together, "the limit is 16 MiB, 50 for all"),
    "many": (many, "more than 1,000 files"),
    "strange name": (
        lambda folder: (folder / "predictions" / "a\x1b[2J.npz").touch(),
        "does not belong in a submission",
    ),
    "no record": (lambda folder: (folder / "run.json").unlink(), "unknown run"),
    "no sender": (
        lambda folder: (folder / SENDER_FILE).unlink(),
        "a name of at most 120 characters",
    ),
}


@pytest.mark.parametrize(("how", "why"), FOLDERS.values(), ids=FOLDERS)
def test_a_hostile_folder_is_refused(
    theirs: RunsFolder, how: Callable[[Path], object], why: str
) -> None:
    finished_run(theirs)
    folder = as_submission(theirs)
    how(folder)
    message = refused(folder)
    assert why in message and message.isprintable(), message


def test_a_submission_that_unpacks_to_too_much_is_refused(
    theirs: RunsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished_run(theirs)
    folder = as_submission(theirs)
    check_submission(folder)
    monkeypatch.setattr(checking, "ALL_ARRAY_BYTES", 1000)
    assert "unpack to more than 1,000 bytes" in refused(folder)
