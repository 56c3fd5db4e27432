"""What a board takes of the submissions in a folder, and what it says of the rest."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_runs import HOSTILE, damaged_run, made_run
from msgspec.structs import replace
from scored_run import finished_run, predictions

from bench.base.errors import BenchError
from bench.base.files import file_sha256, values_sha256
from bench.runs import RunRecord, RunsFolder, Score
from bench.runs.arrays import read_arrays
from bench.verify.submit import Submissions, collect, pack
from bench.verify.submit.unpacking import Header, header_bytes


@pytest.fixture
def theirs(tmp_path: Path) -> RunsFolder:
    return RunsFolder(tmp_path / "theirs")


@pytest.fixture
def box(tmp_path: Path) -> Path:
    folder = tmp_path / "submissions"
    folder.mkdir()
    return folder


def put(
    store: RunsFolder, box: Path, name: str = "a.zip", by: str | None = "Ada", **options: Any
) -> Path:
    """All runs of a folder as ``bench submit`` packs them."""
    return pack([store.folder(one) for one in store.ids()], box / name, by=by, **options).file


def forge(store: RunsFolder, box: Path, name: str = "a.zip") -> Path:
    """The files of a runs folder as they are, with right hashes: what somebody sends who does not care for ``bench submit``."""
    paths = {
        f"runs/{path.relative_to(store.path).as_posix()}": path
        for path in sorted(store.path.rglob("*"))
        if path.is_file()
    }
    with zipfile.ZipFile(box / name, "w") as archive:
        archive.writestr(
            "submission.json",
            header_bytes(
                Header(by="Eve", files={n: file_sha256(p) for n, p in paths.items()}), "1"
            ),
        )
        for one, path in paths.items():
            archive.write(path, one)
    return box / name


def taken(box: Path, tmp_path: Path, own: RunsFolder | None = None) -> Submissions:
    runs = [(own.read(one), own.folder(one)) for one in own.ids()] if own is not None else []
    return collect(box, tmp_path / "aside", runs)


def refused(box: Path, tmp_path: Path) -> str:
    found = taken(box, tmp_path)
    assert found.runs == () and len(found.refused) == 1, found.refused
    return found.refused[0]


def test_runs_of_several_senders(theirs: RunsFolder, box: Path, tmp_path: Path) -> None:
    first = finished_run(theirs, 1)
    put(theirs, box)
    others = RunsFolder(tmp_path / "others")
    second = finished_run(others, 2)
    put(others, box, "b.zip", by=None)
    (box / "README.txt").write_text("not a submission")
    found = taken(box, tmp_path)
    assert [one.record.run_id for one in found.runs] == sorted(
        (first.run_id, second.run_id)
    ) and found.refused == ()
    assert {one.sender for one in found.runs} == {"Ada", "an unnamed sender (b.zip)"}
    for one in found.runs:
        assert (one.folder / "run.json").is_file() and (
            one.folder / "predictions" / "CHECK.npz"
        ).is_file()
        assert (
            one.words()
            == f"sent in by {one.sender}; 1 score computed again from the predictions; its checkpoint came along and was not encoded again"
        )


def test_no_folder_and_an_empty_one(box: Path, tmp_path: Path) -> None:
    assert taken(box, tmp_path) == Submissions()
    with pytest.raises(BenchError, match="no folder"):
        collect(tmp_path / "none", tmp_path / "aside")


def test_one_bad_file_takes_nothing_else_down(
    theirs: RunsFolder, box: Path, tmp_path: Path
) -> None:
    run = finished_run(theirs)
    put(theirs, box, "m.zip")
    (box / "a.zip").write_bytes(b"PK" * 100)
    (box / "z.zip").symlink_to(tmp_path / "nowhere")
    found = taken(box, tmp_path)
    assert [one.record.run_id for one in found.runs] == [run.run_id]
    assert [line.partition(":")[0] for line in found.refused] == [
        "a.zip is refused",
        "z.zip cannot be unpacked",
    ]


def test_one_bad_run_leaves_the_others_of_its_file(
    theirs: RunsFolder, box: Path, tmp_path: Path
) -> None:
    good, bad = finished_run(theirs, 1), finished_run(theirs, 2)
    theirs.write(replace(bad, scores=(replace(bad.scores[0], value=99.0),)))
    forge(theirs, box)
    found = taken(box, tmp_path)
    assert [one.record.run_id for one in found.runs] == [good.run_id]
    assert found.refused[0].startswith(
        f"a.zip: {bad.run_id} is refused: score of check CHECK: 99.000000 is recorded"
    )


# --- whose runs are shown ---


def test_an_own_run_is_never_replaced(theirs: RunsFolder, box: Path, tmp_path: Path) -> None:
    own = RunsFolder(tmp_path / "own")
    run = finished_run(own, 1)
    shutil.copytree(own.path, theirs.path)
    theirs.write(
        replace(run, provenance=replace(run.provenance, created="2026-01-31T00:00:00+00:00"))
    )
    put(theirs, box)
    found = taken(box, tmp_path, own)
    assert found.runs == ()
    assert found.refused == (f"a.zip: {run.run_id} is left out: this board has its own run of it",)


def test_nor_under_another_name(theirs: RunsFolder, box: Path, tmp_path: Path) -> None:
    own = RunsFolder(tmp_path / "own")
    run = finished_run(own, 1)
    shutil.copytree(own.folder(run.run_id), theirs.folder(f"better-{run.run_id[-8:]}"))
    theirs.write(replace(run, run_id=f"better-{run.run_id[-8:]}"))
    put(theirs, box)
    found = taken(box, tmp_path, own)
    assert found.runs == () and "this board has its own run" in found.refused[0]


def test_two_files_with_one_run(theirs: RunsFolder, box: Path, tmp_path: Path) -> None:
    run = finished_run(theirs)
    put(theirs, box, "a.zip")
    put(theirs, box, "b.zip", by="Eve")
    theirs.write(replace(run, cost=replace(run.cost, train_seconds=1.0)))
    put(theirs, box, "c.zip", by="Mallory")
    found = taken(box, tmp_path)
    assert [(one.record.run_id, one.by) for one in found.runs] == [(run.run_id, "Ada")]
    assert [line.rpartition(": ")[2] for line in found.refused] == [
        "a.zip has the same run",
        "a.zip has another run of that name or fingerprint",
    ]


# --- what is in a run ---


def spoil(
    store: RunsFolder,
    run: RunRecord,
    changes: Mapping[str, Any],
    *,
    hashed: bool = True,
    **how: Any,
) -> None:
    """Other predictions, with a record that gives their hash, as a forger writes it."""
    path = predictions(store, run)
    arrays = {**read_arrays(path), **changes}
    np.savez_compressed(path, **arrays)
    sha256 = (
        values_sha256({key: np.asarray(one) for key, one in arrays.items()}) if hashed else None
    )
    store.write(replace(run, scores=(replace(run.scores[0], predictions_sha256=sha256, **how),)))


def flipped(store: RunsFolder, run: RunRecord) -> None:
    spoil(store, run, {"prediction": read_arrays(predictions(store, run))["prediction"][::-1]})


def made_to_fit(store: RunsFolder, run: RunRecord) -> None:
    """Gold values that the predictions rank perfectly, with the score that follows from them."""
    from bench.score.suites.from_predictions import rescore

    arrays = read_arrays(predictions(store, run))
    arrays["gold"] = arrays["prediction"].copy()
    again = rescore(run.scores[0].key, arrays)
    assert again is not None and again.value > 99
    spoil(store, run, arrays, value=again.value, detail=dict(again.detail))


def pickled(store: RunsFolder, run: RunRecord) -> None:
    np.savez(predictions(store, run), prediction=np.array([{"a": 1}], dtype=object))


def bomb(store: RunsFolder, run: RunRecord) -> None:
    np.savez_compressed(predictions(store, run), prediction=np.zeros(9_000_000))


def many_names(store: RunsFolder, run: RunRecord) -> None:
    spoil(store, run, {"subset": np.array([f"part {i}" for i in range(1000)])})


def many_columns(store: RunsFolder, run: RunRecord) -> None:
    spoil(store, run, {"prediction": np.zeros((1000, 200))})


def empty_text(store: RunsFolder, run: RunRecord) -> None:
    head = b"{'descr': '<U0', 'fortran_order': False, 'shape': (300000000,), }".ljust(117) + b"\n"
    with zipfile.ZipFile(predictions(store, run), "w") as archive:
        archive.writestr(
            "subset.npy", b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head
        )


def bytes_array(store: RunsFolder, run: RunRecord) -> None:
    np.savez(predictions(store, run), prediction=np.array([b"x"]))


def dates(store: RunsFolder, run: RunRecord) -> None:
    np.savez(predictions(store, run), prediction=np.array(["2026-01-01"], dtype="datetime64[D]"))


def lzma(store: RunsFolder, run: RunRecord) -> None:
    with zipfile.ZipFile(predictions(store, run), "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("prediction.npy", b"x" * 1000)


def no_predictions(store: RunsFolder, run: RunRecord) -> None:
    predictions(store, run).unlink()


def another_file(store: RunsFolder, run: RunRecord) -> None:
    shutil.copy(predictions(store, run), predictions(store, run).with_name("STS12.npz"))


def another_seed(store: RunsFolder, run: RunRecord) -> None:
    store.write(replace(run, seed=7))


def another_checkpoint(store: RunsFolder, run: RunRecord) -> None:
    (store.folder(run.run_id) / "checkpoint" / "method.json").write_text("{}")


def failed(store: RunsFolder, run: RunRecord) -> None:
    store.write(replace(run, status="failed", error="x"))


def no_scores(store: RunsFolder, run: RunRecord) -> None:
    predictions(store, run).unlink()
    store.write(replace(run, scores=()))


def own_suite(store: RunsFolder, run: RunRecord) -> None:
    """An average of a suite that nobody knows: nothing differs, and nothing was computed."""
    score = Score(suite="mine", task="Avg.", protocol="mine/1", metric="spearman", value=99.0, n=10)
    store.write(replace(run, scores=(*run.scores, score)))


def no_json(store: RunsFolder, run: RunRecord) -> None:
    (store.folder(run.run_id) / "run.json").write_text("{")


def deep_json(store: RunsFolder, run: RunRecord) -> None:
    (store.folder(run.run_id) / "run.json").write_text("[" * 200_000)


def other_name(store: RunsFolder, run: RunRecord) -> None:
    store.folder(run.run_id).rename(store.path / "other-name")


def no_curve(store: RunsFolder, run: RunRecord) -> None:
    (store.folder(run.run_id) / "curve.jsonl").write_text(
        '{"step": 1}\n<script>alert(1)</script>\n'
    )


def said(**fields: Any) -> Callable[[RunsFolder, RunRecord], None]:
    """A score with something beside it that its predictions do not give."""

    def change(store: RunsFolder, run: RunRecord) -> None:
        store.write(replace(run, scores=(replace(run.scores[0], **fields),)))

    change.__name__ = f"said {', '.join(fields)}"
    return change


def more_detail(name: str, value: Any, *path: str) -> Callable[[RunsFolder, RunRecord], None]:
    """A key of its own in a score's detail, below ``path``."""

    def change(store: RunsFolder, run: RunRecord) -> None:
        detail = json.loads(json.dumps(dict(run.scores[0].detail)))
        below = detail
        for key in path:
            below = below[key]
        below[name] = value
        store.write(replace(run, scores=(replace(run.scores[0], detail=detail),)))

    change.__name__ = ".".join((*path, name))
    return change


def made_at(created: str) -> Callable[[RunsFolder, RunRecord], None]:
    def change(store: RunsFolder, run: RunRecord) -> None:
        store.write(replace(run, provenance=replace(run.provenance, created=created)))

    change.__name__ = f"made at {created}"
    return change


def own_task(store: RunsFolder, run: RunRecord) -> None:
    """A set that the suite does not have, so that nobody knows its gold values."""
    arrays = read_arrays(predictions(store, run))
    store.write_predictions(run.run_id, "STS99", "tokenised", arrays)
    score = replace(
        run.scores[0], suite="sts", task="STS99", protocol="senteval-all/1", text="tokenised"
    )
    data = {**run.provenance.data, "STS99": "0" * 64}
    store.write(
        replace(run, scores=(*run.scores, score), provenance=replace(run.provenance, data=data))
    )


FORGERIES: list[tuple[Callable[[RunsFolder, RunRecord], None], str]] = [
    (flipped, "score of check CHECK: .* is recorded, its predictions give"),
    (made_to_fit, "gold of check CHECK: the array 'gold' is not the data set's"),
    (pickled, "predictions/CHECK.npz is no predictions file: "),
    (bomb, "unpacks to 72,000,.* bytes"),
    (many_names, "subset has more than 400 different values"),
    (many_columns, r"prediction has the shape \(1000, 200\)"),
    (empty_text, "an array of 300,000,000 values"),
    (bytes_array, "holds neither numbers nor text"),
    (dates, "holds neither numbers nor text"),
    (lzma, "compressed in a way"),
    (no_predictions, "predictions of check CHECK: .* has no predictions"),
    (another_file, "belongs to none of its scores"),
    (another_seed, "fingerprint: .* is recorded, the record's own fields give"),
    (another_checkpoint, "checkpoint: method.json was changed"),
    (failed, "it is not finished, but failed"),
    (no_scores, "it has 0 scores"),
    (own_suite, "mine Avg. .*cannot be computed again"),
    (said(std=0.01), "a standard deviation of 0.01 is recorded, the task has none"),
    (said(std=1e18), "a standard deviation of 1e\\+18 is recorded, the task has none"),
    (said(metric="accuracy"), "the metric accuracy is recorded, check has spearman"),
    (
        more_detail("better than all", 99.99),
        "detail.better than all is recorded, its predictions do not give it",
    ),
    (more_detail("mean", 10**15), "detail.mean.* is recorded, its predictions"),
    (
        more_detail("invented", {"spearman": 99.99, "n": 750}, "subsets"),
        "detail.subsets.invented is recorded, its predictions do not",
    ),
    (own_task, "sts STS99 cannot be computed again"),
    (made_at("9999-12-31T23:59:59Z"), "it was made at 9999-12-31T23:59:59Z, which is yet to come"),
    (made_at("2026-02-31T00:00:00"), "which is no moment of the calendar"),
    (no_json, "not JSON"),
    (deep_json, "not JSON"),
    (other_name, "its record is of"),
    (no_curve, "line 2 of its curve.jsonl"),
]


@pytest.mark.parametrize(("how", "why"), FORGERIES, ids=[how.__name__ for how, _ in FORGERIES])
def test_a_run_that_is_not_what_it_says(
    theirs: RunsFolder,
    box: Path,
    tmp_path: Path,
    how: Callable[[RunsFolder, RunRecord], None],
    why: str,
) -> None:
    run = finished_run(theirs)
    how(theirs, run)
    forge(theirs, box)
    line = refused(box, tmp_path)
    assert (
        line.startswith(("a.zip: simcse-builtin-s42-", "a.zip: other-name"))
        and " is refused: " in line
    )
    assert line.isprintable() and len(line) <= 300 and "/aside/" not in line, line
    import re

    assert re.search(why, line), line


def test_clusters_without_number(theirs: RunsFolder, box: Path, tmp_path: Path) -> None:
    """Matching clusters with classes takes the cube of their number: a thousand clusters are not taken up."""
    run = made_run(theirs.path, "simcse", 1, suites=("clustering",))
    path = theirs.predictions_path(run.run_id, "AgNews", "sccl")
    arrays = read_arrays(path)
    np.savez_compressed(
        path, **{**arrays, "prediction": np.arange(5000).reshape(-1, 1), "gold": np.arange(5000)}
    )
    forge(theirs, box)
    assert (
        "predictions/AgNews@sccl.npz: " in (line := refused(box, tmp_path))
        and "more than 400 different values" in line
    )


def test_texts_of_a_stranger_stay_text(theirs: RunsFolder, box: Path, tmp_path: Path) -> None:
    damaged_run(theirs.path)
    bad = finished_run(theirs)
    theirs.write(replace(bad, scores=(replace(bad.scores[0], task=f"\x1b[2J{HOSTILE}"),)))
    forge(theirs, box)
    found = taken(box, tmp_path)
    assert found.runs == () and len(found.refused) == 2
    assert all(line.isprintable() for line in found.refused)


def test_an_attestation_does_not_come_with_a_submission(
    theirs: RunsFolder, box: Path, tmp_path: Path
) -> None:
    run = finished_run(theirs)
    (theirs.folder(run.run_id) / "verified.json").write_text(
        json.dumps({"schema": "bench.verified/1"})
    )
    forge(theirs, box)
    assert "has no place in a submission" in refused(box, tmp_path)


# --- what a refusal costs ---


def shorter(store: RunsFolder, run: RunRecord) -> None:
    spoil(store, run, {"prediction": read_arrays(predictions(store, run))["prediction"][:-1]})


CHEAP = [made_to_fit, another_seed, another_checkpoint, another_file, many_names, shorter]


@pytest.mark.parametrize("how", CHEAP, ids=[how.__name__ for how in CHEAP])
def test_what_is_cheap_is_looked_at_before_any_score_is_computed(
    theirs: RunsFolder,
    box: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: Callable[[RunsFolder, RunRecord], None],
) -> None:
    how(theirs, finished_run(theirs))
    forge(theirs, box)
    monkeypatch.setattr(
        "bench.verify.scores.rescore", lambda *_: pytest.fail("a score was computed")
    )
    assert " is refused: " in refused(box, tmp_path)


def test_the_first_difference_ends_it(
    theirs: RunsFolder, box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.verify import scores

    monkeypatch.setattr(
        scores,
        "known_hashes",
        lambda: type("Nothing", (), {"given_of": lambda *_: None, "data": {}, "dev": {}})(),
    )
    run = made_run(theirs.path, "simcse", 1)
    theirs.write(
        replace(
            run,
            scores=tuple(
                replace(one, value=99.0) if one.task == "STS13" else one for one in run.scores
            ),
        )
    )
    forge(theirs, box)
    asked: list[str] = []
    real = scores.rescore
    monkeypatch.setattr(
        scores, "rescore", lambda key, *more: asked.append(key[1]) or real(key, *more)
    )
    assert "score of sts STS13: 99.000000 is recorded" in refused(box, tmp_path)
    assert asked == ["STS12", "STS13"]


@pytest.mark.parametrize(
    ("run", "file", "taken_runs", "why"),
    [
        (60.0, 600.0, 3, None),
        (1e-4, 600.0, 0, "at most 0 are spent on a run"),
        (60.0, 0.025, 2, "send it in several files"),
    ],
)
def test_the_work_that_a_stranger_may_ask_for_is_limited(
    theirs: RunsFolder,
    box: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: float,
    file: float,
    taken_runs: int,
    why: str | None,
) -> None:
    """A run of the generated pairs counts about a hundredth of a second."""
    from bench.verify.submit import check

    monkeypatch.setattr(check, "SECONDS_PER_VALUE", {"check": 1e-5})
    for seed in (1, 2, 3):
        finished_run(theirs, seed)
    put(theirs, box)
    monkeypatch.setattr(check, "RUN_SECONDS", run)
    monkeypatch.setattr(check, "Work", lambda real=check.Work: real(file))
    found = taken(box, tmp_path)
    assert len(found.runs) == taken_runs and len(found.refused) == 3 - taken_runs
    assert all(why is not None and line.endswith(why) for line in found.refused), found.refused


@pytest.mark.slow
def test_a_real_run_of_every_suite_is_far_below_the_limit() -> None:
    """The estimate of a published run, against what it takes: within a factor of ten here, however slow the machine."""
    import time

    from bench.verify.scores import StoredArrays, check_scores
    from bench.verify.submit import check

    place = next((Path(__file__).parents[2] / "leaderboards" / "v1" / "runs").glob("simcse-*"))
    store = RunsFolder(place.parent)
    record = store.read(place.name)
    stored = StoredArrays(record, place)
    estimated = sum(
        check._check_arrays(stored.path(one), one, stored.arrays(one)) for one in stored.scores
    )
    began = time.process_time()
    assert all(one.outcome != "differs" for one in check_scores(record, place))
    assert (
        estimated < check.RUN_SECONDS / 5 and 0.1 < (time.process_time() - began) / estimated < 10
    )


def test_an_error_that_nobody_thought_of_refuses_that_run_alone(
    theirs: RunsFolder, box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.verify.submit import check

    bad, good = finished_run(theirs, 1), finished_run(theirs, 2)
    put(theirs, box)
    real = check.check_fingerprint

    def odd(record: RunRecord) -> Any:
        if record.run_id == bad.run_id:
            raise ZeroDivisionError("division by zero")
        return real(record)

    monkeypatch.setattr(check, "check_fingerprint", odd)
    found = taken(box, tmp_path)
    assert [one.record.run_id for one in found.runs] == [good.run_id]
    assert found.refused == (
        f"a.zip: {bad.run_id} is refused: it cannot be checked: ZeroDivisionError: division by zero",
    )


def test_each_predictions_file_is_read_once_where_they_can_be_held(
    theirs: RunsFolder, box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.verify import scores

    monkeypatch.setattr(
        scores,
        "known_hashes",
        lambda: type("Nothing", (), {"given_of": lambda *_: None, "data": {}, "dev": {}})(),
    )
    made_run(theirs.path, "simcse", 1)
    forge(theirs, box)
    read: list[str] = []
    real = scores.read_arrays
    monkeypatch.setattr(
        scores, "read_arrays", lambda path, *more: read.append(path.name) or real(path, *more)
    )
    first = taken(box, tmp_path)
    assert len(first.runs) == 1 and len(read) == len(set(read)) == 7
    monkeypatch.setattr(scores, "HELD_BYTES", 0)
    shutil.rmtree(tmp_path / "aside")
    again = taken(box, tmp_path)
    assert len(read) > 14 and again.runs[0].report == first.runs[0].report, "memory alone differs"
