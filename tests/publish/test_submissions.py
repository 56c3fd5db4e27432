"""A submission is a folder that anybody may have written: what is refused, why, and at what cost;
and how ``bench submit`` writes one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import bench
from made_runs import made_run
from msgspec.structs import replace
from scored_run import finished_run, predictions

from bench.base.errors import BenchError
from bench.base.hashes import values_sha256
from bench.compare.senders import SENDER_FILE
from bench.compare.together import TOGETHER_FILE, read_together
from bench.publish import submissions as checking
from bench.publish import submit
from bench.publish.gather import gather
from bench.publish.senders import submitter_of
from bench.publish.submissions import check_submission
from bench.records import RunRecord, RunsFolder, Score
from bench.records.arrays import read_arrays

Forgery = Callable[[RunsFolder, RunRecord], object]


@pytest.fixture
def theirs(tmp_path: Path) -> RunsFolder:
    return RunsFolder(tmp_path / "theirs")


def as_submission(store: RunsFolder) -> Path:
    """The only folder of a runs folder, as somebody submits it who does not use ``bench
    submit``.
    """
    (folder,) = store.path.iterdir()
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    (folder / SENDER_FILE).write_text("Eve\n")
    return folder


def refused(folder: Path) -> str:
    with pytest.raises(BenchError) as caught:
        check_submission(folder)
    return caught.value.message


# --- what is in a run: each forgery, and why it is refused ---


def spoil(store: RunsFolder, run: RunRecord, changes: Mapping[str, Any], **how: Any) -> None:
    """Other predictions, with a record that gives their hash, as a forger writes it."""
    path = predictions(store, run)
    arrays = {**read_arrays(path), **changes}
    np.savez_compressed(path, **arrays)
    sha256 = values_sha256({key: np.asarray(one) for key, one in arrays.items()})
    store.write(replace(run, scores=(replace(run.scores[0], predictions_sha256=sha256, **how),)))


def flipped(store: RunsFolder, run: RunRecord) -> None:
    spoil(store, run, {"prediction": read_arrays(predictions(store, run))["prediction"][::-1]})


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


def bomb(store: RunsFolder, run: RunRecord) -> None:
    stored(prediction=np.zeros(9_000_000))(store, run)


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


def own_suite(store: RunsFolder, run: RunRecord) -> None:
    """An average of a suite that nobody knows: nothing differs, and nothing was computed."""
    score = Score(suite="mine", task="Avg.", protocol="mine/1", metric="spearman", value=99.0, n=10)
    store.write(replace(run, scores=(*run.scores, score)))


def text_of(name: str, text: str) -> Forgery:
    return lambda store, run: (store.folder(run.run_id) / name).write_text(text)


another_seed = changed(seed=7)


def said(**fields: Any) -> Forgery:
    """A score with something beside it that its predictions do not give."""
    return lambda store, run: store.write(replace(run, scores=(replace(run.scores[0], **fields),)))


def more_detail(name: str, value: Any, *path: str) -> Forgery:
    """A key of its own in a score's detail, below ``path``."""

    def change(store: RunsFolder, run: RunRecord) -> None:
        detail = json.loads(json.dumps(dict(run.scores[0].detail)))
        below = detail
        for key in path:
            below = below[key]
        below[name] = value
        said(detail=detail)(store, run)

    return change


def own_task(store: RunsFolder, run: RunRecord) -> None:
    """A set that the suite does not have, so that nobody knows its gold values."""
    arrays = read_arrays(predictions(store, run))
    store.write_predictions(run.run_id, "STS99", "tokenised", arrays)
    score = replace(
        run.scores[0], suite="sts", task="STS99", protocol="senteval-all/1", text="tokenised"
    )
    origin = replace(run.provenance, data={**run.provenance.data, "STS99": "0" * 64})
    store.write(replace(run, scores=(*run.scores, score), provenance=origin))


FORGERIES: dict[str, tuple[Forgery, str]] = {
    "flipped": (flipped, "check CHECK: .* is recorded, its predictions give"),
    "gold made to fit": (made_to_fit, "the array 'gold' is not the data set's"),
    "NaN": (not_a_number, "a prediction is NaN or infinite"),
    "pickled": (stored(prediction=np.array([{"a": 1}], dtype=object)), "not a predictions file"),
    "bomb": (bomb, "unpacks to 72,000,.* bytes"),
    "many names": (many_names, "subset has more than 400 different values"),
    "many columns": (
        lambda store, run: spoil(store, run, {"prediction": np.zeros((1000, 200))}),
        r"prediction has shape \(1000, 200\)",
    ),
    "empty text": (other_file(empty_text), "an array of 300,000,000 values"),
    "bytes": (stored(prediction=np.array([b"x"])), "holds neither numbers nor text"),
    "dates": (
        stored(prediction=np.array(["2026-01-01"], dtype="datetime64[D]")),
        "holds neither numbers nor text",
    ),
    "lzma": (other_file(lzma), "stored or deflated"),
    "no predictions": (other_file(Path.unlink), "has no predictions"),
    "another seed": (another_seed, "fingerprint: .* the record's fields give"),
    "failed": (changed(status="failed", error="x"), "this one is failed"),
    "no scores": (no_scores, "this one is finished; scores: 0"),
    "own suite": (own_suite, "mine Avg.: the suite mine is not known"),
    "own task": (own_task, "sts STS99: sts has no task STS99"),
    "std": (said(std=0.01), "the standard deviation 0.01 is recorded, its predictions give None"),
    "large std": (said(std=1e18), r"the standard deviation 1e\+18 is recorded"),
    "metric": (said(metric="accuracy"), "the metric accuracy is recorded, check has spearman"),
    "detail": (more_detail("better than all", 99.99), "detail.better than all is recorded"),
    "detail, large": (more_detail("mean", 10**15), "detail.mean.* is recorded"),
    "detail below": (
        more_detail("invented", {"spearman": 99.99, "n": 750}, "subsets"),
        "detail.subsets.invented is recorded, its predictions do not",
    ),
    "no JSON": (text_of("run.json", "{"), "not JSON"),
    "deep JSON": (text_of("run.json", "[" * 200_000), "not JSON"),
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


# --- what is in the folder ---


def pipe_for_record(folder: Path) -> None:
    (folder / "run.json").unlink()
    os.mkfifo(folder / "run.json")


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


def weights(folder: Path) -> None:
    (folder / "checkpoint").mkdir()
    (folder / "checkpoint" / "model.safetensors").touch()


def sender(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / SENDER_FILE).write_text(name)


FOLDERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "link": (
        lambda folder: (folder / "curve.jsonl").symlink_to("/etc/passwd"),
        "'curve.jsonl' is a link",
    ),
    "linked folder": (
        lambda folder: (folder / "predictions" / "mteb").symlink_to("/etc"),
        "'predictions/mteb' is a link",
    ),
    "pipe": (lambda folder: os.mkfifo(folder / "curve.jsonl"), "'curve.jsonl' is a link or"),
    "pipe for record": (pipe_for_record, "'run.json' is a link or a device"),
    "large": (sized("curve.jsonl", 5), "'curve.jsonl' has 5,242,880 bytes"),
    "large together": (large_together, "the limit is 16 MiB, 50 for all"),
    "many": (many, "more than 1,000 files"),
    "program": (lambda folder: (folder / "setup.py").touch(), "'setup.py' does not belong"),
    "weights": (weights, "'checkpoint/model.safetensors' does not belong"),
    "strange name": (
        lambda folder: (folder / "predictions" / "a\x1b[2J.npz").touch(),
        "does not belong in a submission",
    ),
    "no record": (lambda folder: (folder / "run.json").unlink(), "unknown run"),
    "no sender": (
        lambda folder: (folder / SENDER_FILE).unlink(),
        "a name of at most 120 characters",
    ),
    "long sender": (sender("x" * 121), "a name of at most 120 characters"),
    "odd sender": (sender("Ada \u202e"), "a name of at most 120 characters"),
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


# --- what a refusal costs ---


@pytest.mark.parametrize("how", [bomb, many_names])
def test_sizes_are_checked_before_any_score_is_computed(
    theirs: RunsFolder, monkeypatch: pytest.MonkeyPatch, how: Forgery
) -> None:
    how(theirs, finished_run(theirs))
    monkeypatch.setattr(
        "bench.verify.scores.rescore", lambda *_: pytest.fail("a score was computed")
    )
    assert refused(as_submission(theirs))


def test_what_a_stranger_sends_is_small_when_unpacked(
    theirs: RunsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished_run(theirs)
    folder = as_submission(theirs)
    check_submission(folder)
    monkeypatch.setattr(checking, "ALL_ARRAY_BYTES", 1000)
    assert "unpack to more than 1,000 bytes" in refused(folder)


def test_an_error_that_nobody_thought_of_refuses_that_run_alone(
    theirs: RunsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = finished_run(theirs, 1), finished_run(theirs, 2)
    box = tmp_path / "box"
    for run in (bad, good):
        assert bench("submit", theirs.folder(run.run_id), "--by", "Ada", "--to", box).exit_code == 0
    real = checking.verify_run

    def odd(folder: Path, data: Any) -> Any:
        return 1 / 0 if folder.name == bad.run_id else real(folder, data)

    monkeypatch.setattr(checking, "verify_run", odd)
    made_run(tmp_path / "own", "ct", 1, suites=("check",))
    found = gather(tmp_path / "own", box)
    assert found.refused == [
        f"{bad.run_id}: refused: it cannot be checked: ZeroDivisionError: division by zero"
    ]
    assert found.senders == {good.run_id: "Ada"}


# --- which of them a board has ---


def test_an_own_run_is_never_replaced(theirs: RunsFolder, tmp_path: Path) -> None:
    run = finished_run(theirs)
    shutil.copytree(theirs.path, tmp_path / "own")
    folder = as_submission(theirs)
    found = gather(tmp_path / "own", theirs.path)  # the very same run: nothing to add
    assert (found.refused, len(found.runs), found.senders) == ([], 1, {})
    theirs.write(replace(run, cost=replace(run.cost, train_seconds=1.0)))
    (line,) = gather(tmp_path / "own", theirs.path).refused
    assert line == f"{folder.name}: refused: {run.run_id} has the same id or fingerprint"


def test_rows_of_others_stand_apart_and_say_who_ran_them(
    theirs: RunsFolder, tmp_path: Path
) -> None:
    finished_run(theirs, 1)
    for seed in (2, 3):
        finished_run(RunsFolder(tmp_path / "own"), seed)
    as_submission(theirs)
    out = tmp_path / "boards"
    words = ("publish", "--runs", tmp_path / "own", "--submissions", theirs.path, "--out", out)
    done = bench(*words)
    assert done.exit_code == 0, done.output
    tables = json.loads((out / "v1" / "tables.json").read_bytes())["tables"]
    rows = [
        (one["table"].get("submitted_by"), row["differs"].get("submitted by"), len(row["runs"]))
        for one in tables
        for row in one["table"]["rows"]
    ]
    assert rows == [(None, None, 2), ("Eve", "Eve", 1)]
    run = next((out / "v1" / "runs").glob("*-s1-*"))
    assert "Run by Eve" in (run / "index.html").read_text()
    assert "Eve" in (out / "v1" / "README.md").read_text()
    # the next version knows who ran what, without the submission
    done = bench("publish", "--runs", out / "v1" / "runs", "--out", out, "--note", "n")
    assert done.exit_code == 0, done.output
    assert (run.parents[2] / "v2" / "runs" / run.name / "index.html").read_text().count("Eve")


def test_a_refused_submission_is_an_exit_code_and_the_board_is_made(
    theirs: RunsFolder, tmp_path: Path
) -> None:
    flipped(theirs, finished_run(theirs))
    finished_run(RunsFolder(tmp_path / "own"), 2)
    as_submission(theirs)
    out = tmp_path / "boards"
    words = ("--runs", tmp_path / "own", "--submissions", theirs.path, "--out", out)
    done = bench("publish", *words, "--preview")
    assert done.exit_code == 1 and "refused: check CHECK" in done.stderr
    assert (out / "preview" / "index.html").is_file()


# --- bench submit ---


def test_submit_writes_a_folder_that_passes(theirs: RunsFolder, tmp_path: Path) -> None:
    run = finished_run(theirs)
    words = ("submit", "simcse", "--runs", theirs.path, "--to", tmp_path / "box", "--by", "Ada")
    done = bench(*words)
    assert done.exit_code == 0 and done.stdout.strip() == str(tmp_path / "box" / run.run_id)
    made = tmp_path / "box" / run.run_id
    files = {path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file()}
    assert files == {"run.json", SENDER_FILE, "predictions/CHECK.npz"}
    assert check_submission(made) == run
    again = bench(*words)  # a command may have been killed at its very end
    assert again.exit_code == 0 and again.stdout == done.stdout
    other = bench(*words[:-1], "Grace")
    assert other.exit_code == 2 and "already exists" in other.stderr
    assert check_submission(made) == run and submitter_of(made) == "Ada"


def test_runs_of_one_command_say_that_they_came_together(
    theirs: RunsFolder, tmp_path: Path
) -> None:
    runs, box = [finished_run(theirs, seed) for seed in (1, 2)], tmp_path / "box"
    words = ("submit", "simcse", "--runs", theirs.path, "--to", box, "--by", "Ada")
    assert bench(*words).exit_code == 0
    sets = [read_together(box / run.run_id) for run in runs]
    assert sets[0] == sets[1] and len(sets[0]) == 2
    assert [check_submission(box / run.run_id) for run in runs] == runs
    shutil.rmtree(box / runs[1].run_id)  # killed between the two
    assert bench(*words).exit_code == 0
    assert read_together(box / runs[1].run_id) == sets[0]
    imposter = finished_run(RunsFolder(tmp_path / "other"), 3)
    folder = tmp_path / "other" / imposter.run_id
    shutil.copy(box / runs[0].run_id / TOGETHER_FILE, folder)
    assert len(read_together(folder)) == 1, "it is not in the file that it copied"


def test_if_one_of_several_runs_is_refused_none_is_written(
    theirs: RunsFolder, tmp_path: Path
) -> None:
    finished_run(theirs, 1)
    flipped(theirs, finished_run(theirs, 2))
    done = bench("submit", "simcse", "--runs", theirs.path, "--to", tmp_path / "box", "--by", "Ada")
    assert done.exit_code == 2 and "-s2-" in done.stderr and "cannot be submitted" in done.stderr
    assert list((tmp_path / "box").iterdir()) == []


def test_submit_refuses_what_a_board_refuses_and_leaves_nothing(
    theirs: RunsFolder, tmp_path: Path
) -> None:
    run = finished_run(theirs)
    own_suite(theirs, run)
    words = ("submit", run.run_id, "--runs", theirs.path, "--to", tmp_path / "box", "--by", "Ada")
    done = bench(*words)
    assert done.exit_code == 2 and "mine is not known" in done.stderr and "--suite" in done.stderr
    assert not (tmp_path / "box" / run.run_id).exists()
    done = bench(*words, "--suite", "check")
    assert done.exit_code == 0, done.output
    assert [score.suite for score in check_submission(tmp_path / "box" / run.run_id).scores] == [
        "check"
    ]


# --- nothing half-written in its place ---


def test_a_kill_leaves_nothing_in_the_place_and_the_same_command_goes_through(
    theirs: RunsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, box = finished_run(theirs), tmp_path / "box"

    def killed(folder: Path) -> None:
        """Ends as a kill does: what was written aside stays."""
        assert folder.parent.name.startswith(submit.TEMPORARY)
        shutil.copytree(folder.parent, box / f"{submit.TEMPORARY}of-a-killed-one")
        raise KeyboardInterrupt

    monkeypatch.setattr(submit, "check_submission", killed)
    with pytest.raises(KeyboardInterrupt):
        submit.submit_runs([theirs.folder(run.run_id)], box, "Ada")
    assert not (box / run.run_id).exists() and list(box.iterdir())
    monkeypatch.undo()
    (made,) = submit.submit_runs([theirs.folder(run.run_id)], box, "Ada")
    assert made == box / run.run_id and list(box.iterdir()) == [made]
    assert check_submission(made) == run


def test_a_full_disk_is_one_line_and_leaves_nothing(
    theirs: RunsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, box = finished_run(theirs), tmp_path / "box"

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(submit, "_write_files", full)
    with pytest.raises(BenchError, match="No space left on device"):
        submit.submit_runs([theirs.folder(run.run_id)], box, "Ada")
    assert list(box.iterdir()) == []


def test_a_name_is_checked_before_anything_is_written(theirs: RunsFolder, tmp_path: Path) -> None:
    run = finished_run(theirs)
    done = bench(
        "submit", run.run_id, "--runs", theirs.path, "--to", tmp_path / "box", "--by", "\u3164"
    )
    assert done.exit_code == 2 and "U+3164 cannot be seen" in done.stderr
    assert not (tmp_path / "box").exists()


def test_a_run_that_names_a_folder_is_not_submitted(theirs: RunsFolder, tmp_path: Path) -> None:
    run = finished_run(theirs)
    origin = replace(run.provenance, command="bench run --data C:\\Users\\ada\\sets")
    theirs.write(replace(run, provenance=origin))
    words = ("submit", run.run_id, "--runs", theirs.path, "--to", tmp_path / "box", "--by", "Ada")
    done = bench(*words)
    assert done.exit_code == 2 and "Users" not in done.stderr
    assert "run.json: provenance.command holds the absolute path of 'sets'" in done.stderr
