"""Which grade a run has, and what is said of it."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factories import record, sts_scores
from scored_run import finished_run

from bench.hashes import file_sha256
from bench.publish.board import GRADES, PublishedRun
from bench.publish.grades import WORDS, apart, graded, weakest
from bench.publish.repeated import same_recipe, trained_again, training
from bench.runs import RunRecord, RunsFolder
from bench.runs.predictions import Run
from bench.statistics.grouping import rows_of
from bench.submit import Submissions, collect, pack


@pytest.fixture
def own(tmp_path: Path) -> RunsFolder:
    return RunsFolder(tmp_path / "own")


def runs(store: RunsFolder) -> list[Run]:
    return [(store.read(one), store.folder(one)) for one in store.ids()]


def sent(tmp_path: Path, own: RunsFolder, seed: int = 1, change: Any = None) -> Submissions:
    """One run of somebody else, as a board that has ``own`` takes it."""
    theirs, box = RunsFolder(tmp_path / "theirs"), tmp_path / "box"
    box.mkdir()
    run = finished_run(theirs, seed)
    if change is not None:
        theirs.write(change(run))
    pack([theirs.folder(run.run_id)], box / "a.zip", by="Ada")
    return collect(box, tmp_path / "aside", runs(own))


def attest(path: Path, folder: Path, run_id: str) -> None:
    found = {
        "record_sha256": file_sha256(folder / "run.json"),
        "files": {},
        "date": "2026-11-21",
        "bench_version": "1",
        "device": "cpu",
        "tasks": 1,
    }
    path.write_text(json.dumps({"schema": "bench.verified/1", "runs": {run_id: found}}))


def at(seed: int, base: float, **changes: Any) -> RunRecord:
    """A record whose STS average is near ``base``: +-0.9 is its 95 % interval over items."""
    return record("simcse", seed, scores=sts_scores(base), **changes)


def average(run: RunRecord) -> float:
    score = run.score("sts", "Avg.")
    assert score is not None
    return score.value


def test_every_grade_is_explained() -> None:
    assert set(WORDS) == {"printed", *GRADES} and list(WORDS)[1:] == list(GRADES)
    assert (
        weakest(["retrained", "submitted", "checkpoint"]) == "submitted" and weakest(["retrained", "checkpoint"]) == "checkpoint"
    )


def test_an_own_run_and_one_that_was_sent_in(tmp_path: Path, own: RunsFolder) -> None:
    mine = finished_run(own, 5, training=None)
    found = graded(runs(own), sent(tmp_path, own))
    assert [(one.record.run_id, one.grade, one.submitted_by) for one in found] == [
        (mine.run_id, "submitted", None), (found[1].record.run_id, "submitted", "Ada"),
    ]  # fmt: skip
    assert found[0].reason == "it was run by whoever publishes this board"
    assert found[1].reason.startswith("sent in by Ada; 1 score computed again from the predictions")
    assert (found[1].folder / "run.json").is_file()


def test_a_checkpoint_that_was_encoded_again(tmp_path: Path, own: RunsFolder) -> None:
    mine = finished_run(own, 5)
    attest(own.folder(mine.run_id) / "verified.json", own.folder(mine.run_id), mine.run_id)
    (one,) = graded(runs(own))
    assert one.grade == "checkpoint" and one.reason.startswith("encoded again from its checkpoint on 2026-11-21")
    own.write(replace(mine, cost=replace(mine.cost, train_seconds=1.0)))
    assert graded(runs(own))[0].grade == "submitted"


def test_a_submission_that_was_encoded_again_by_its_receiver(tmp_path: Path, own: RunsFolder) -> None:
    first = sent(tmp_path, own)
    assert graded([], first)[0].grade == "submitted"
    one = first.runs[0]
    attest(tmp_path / "box" / "a.zip.verified.json", one.folder, one.record.run_id)
    shutil.rmtree(tmp_path / "aside")
    (again,) = graded([], collect(tmp_path / "box", tmp_path / "aside"))
    assert (again.grade, again.submitted_by) == ("checkpoint", "Ada")


def test_a_submission_that_was_trained_again_with_another_seed(tmp_path: Path, own: RunsFolder) -> None:
    finished_run(own, 5)
    found = graded(runs(own), sent(tmp_path, own, 1))
    assert found[1].grade == "retrained" and found[1].reason.startswith("trained again here with seed 5: this run's check CHECK ")
    assert "lies within" in found[1].reason and found[0].grade == "submitted", "somebody else's training is none of ours"


def test_a_submission_that_was_trained_again_with_its_own_seed(tmp_path: Path, own: RunsFolder) -> None:
    finished_run(own, 1)
    found = graded(runs(own), sent(tmp_path, own, 1))
    assert [(one.grade, one.submitted_by) for one in found] == [("retrained", None)]
    assert found[0].reason.startswith("trained here and by Ada from the same recipe: Ada's check CHECK ")


def test_a_training_that_does_not_agree_is_told() -> None:
    runs = [(at(1, 70), Path()), (at(2, 75), Path())]
    for one in graded(runs):
        assert one.grade == "submitted" and "; trained again here with seed" in one.reason and "lies outside" in one.reason


def test_own_seeds_vouch_for_each_other() -> None:
    runs = [(at(seed, 70 + seed / 10), Path()) for seed in (1, 2, 3)]
    found = graded(runs)
    assert {one.grade for one in found} == {"retrained"} and "with seeds 2, 3: this run's sts Avg. " in found[0].reason


@pytest.mark.parametrize(("away", "within"), [(0.0, True), (-0.8, True), (1.05, False), (-1.05, False)])
def test_the_interval_of_another_training(away: float, within: bool) -> None:
    """That of seven correlations near 70 of 3,108, 1,500, ... pairs: computed here with Fisher's z and nothing of ours."""
    other = at(2, 70)
    tasks = [one for one in other.scores if one.task != "Avg."]
    ends = []
    for sign in (1, -1):
        shifts = []
        for one in tasks:
            r = one.value / 100
            z = sign * 1e-4 * ((1 + r**2 / 2) / (one.n - 3)) ** 0.5  # a short step, so that the scale is straight

            shifts.append((100 * math.tanh(math.atanh(r) + z) - one.value) / 1e-4)
        ends.append(1.96 * sum(one**2 for one in shifts) ** 0.5 / len(tasks))
    half = sum(ends) / 2
    assert 0.8 < half < 1.05
    run = replace(
        at(1, 70), scores=tuple(replace(one, value=average(other) + away) if one.task == "Avg." else one for one in other.scores)
    )
    found = trained_again(training(run), [training(other)])
    assert found is not None and found.within is within
    assert (found.found[0].low, found.found[0].high) == pytest.approx((average(other) - half, average(other) + half), abs=0.01)


def test_what_is_another_thing_was_not_repeated() -> None:
    first = at(1, 70)
    assert same_recipe(first) == same_recipe(at(2, 60)) == same_recipe(replace(first, run_id="another"))
    others = [
        at(2, 70, recipe={"temperature": 0.1}), at(2, 70, variant="eh"), at(2, 70, setting="supervised"), at(2, 70, backbone="other"),
        replace(at(2, 70), provenance=replace(first.provenance, corpus={"name": "x", "sha256": "0" * 64})),
    ]  # fmt: skip
    assert all(same_recipe(one) != same_recipe(first) for one in others)
    assert {one.grade for one in graded([(one, Path()) for one in (first, *others)])} == {"submitted"}
    untrained = [(at(seed, 70, training=None), Path()) for seed in (1, 2)]
    assert {one.grade for one in graded(untrained)} == {"submitted"}, "what is not trained is not retrained"
    assert trained_again(training(first), [training(replace(first, scores=()))]) is None


def test_a_submitted_run_has_a_row_of_its_own() -> None:
    mine = PublishedRun(record=at(1, 70), folder=Path())
    late = replace(at(1, 99).provenance, created="2099-01-01T00:00:00+00:00")
    forged = PublishedRun(record=replace(at(1, 99), run_id="forged", provenance=late), folder=Path(), submitted_by="Eve")
    assert apart(mine) is mine.record
    mixed = rows_of([mine.record, forged.record], [])
    assert [[run.run_id for run in row] for row, _ in mixed] == [["forged"]], "what would happen otherwise"
    rows = rows_of([apart(mine), apart(forged)], [])
    assert [(row[0].run_id, dict(differs)) for row, differs in rows] == [
        (mine.record.run_id, {}), ("forged", {"submitted by": "Eve"}),
    ]  # fmt: skip


def test_a_submitted_run_is_not_the_baseline_where_the_board_has_one() -> None:
    from bench.statistics.summary import summarise

    mine = PublishedRun(record=at(1, 60), folder=Path())
    better = PublishedRun(record=replace(at(1, 90), run_id="better"), folder=Path(), submitted_by="Eve")
    (table,) = summarise([apart(mine), apart(better)], baseline="simcse")
    assert [(row.runs[0], row.is_baseline) for row in table.rows] == [("better", False), (mine.record.run_id, True)]
    (table,) = summarise([apart(better)], baseline="simcse")
    assert table.rows[0].is_baseline, "it is, where there is no other"
