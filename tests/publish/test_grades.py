"""Which grade a run has, and what is said of it."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from factories import record, sts_scores
from msgspec.structs import replace
from scipy.stats import t as student
from scored_run import finished_run

from bench.base.hashes import file_sha256
from bench.board.board import GRADES, PublishedRun
from bench.board.grades import WORDS, Training, apart, graded, same_recipe, seed_variances, trained_again, training, weakest
from bench.compare.statistics.grouping import rows_of
from bench.runs import RunRecord, RunsFolder, Score
from bench.runs.predictions import Run
from bench.verify.submit import Submissions, collect, pack


@pytest.fixture
def own(tmp_path: Path) -> RunsFolder:
    return RunsFolder(tmp_path / "own")


def runs(store: RunsFolder) -> list[Run]:
    return [(store.read(one), store.folder(one)) for one in store.ids()]


def sent(tmp_path: Path, own: RunsFolder, seed: int = 1, change: Any = None, weights: float = 0) -> Submissions:
    """One run of somebody else, as a board that has ``own`` takes it."""
    theirs, box = RunsFolder(tmp_path / "theirs"), tmp_path / "box"
    box.mkdir()
    run = finished_run(theirs, seed, weights)
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
    for seed in (5, 6):
        finished_run(own, seed, weights=seed / 1000)
    found = graded(runs(own), sent(tmp_path, own, 1, weights=0.004))
    assert found[2].grade == "retrained" and found[2].reason.startswith(
        "trained again here with seeds 5, 6: this run's check CHECK "
    )
    assert "lies within" in found[2].reason


def test_one_seed_says_nothing_of_seeds(tmp_path: Path, own: RunsFolder) -> None:
    finished_run(own, 5)
    found = graded(runs(own), sent(tmp_path, own, 1, weights=1))
    assert [one.grade for one in found] == ["submitted", "submitted"]
    assert "nothing says how far seeds vary" in found[1].reason


def test_a_submission_that_was_trained_again_with_its_own_seed(tmp_path: Path, own: RunsFolder) -> None:
    for seed in (1, 5, 6):
        finished_run(own, seed, weights=seed / 1000)
    found = graded(runs(own), sent(tmp_path, own, 1, weights=0.002))
    assert [(one.grade, one.submitted_by) for one in found][0] == ("retrained", None)
    assert found[0].reason.startswith("trained here and by Ada from the same recipe: Ada's check CHECK ")


def at(seed: int, base: float, noise: float = 0.5, **changes: Any) -> RunRecord:
    """A record of the seven STS tasks, each near ``base``, with the noise of its seed on all and on each."""
    draw = np.random.default_rng([seed, int(100 * base)])
    run = record("simcse", seed, scores=sts_scores(70), **changes)
    scores = [
        replace(one, value=one.value + base - 70 + noise * float(draw.normal())) for one in run.scores if one.task != "Avg."
    ]
    mean = replace(run.scores[-1], value=round(math.fsum(one.value for one in scores) / 7, 2))
    assert mean.task == "Avg."
    return hashed(replace(run, scores=(*scores, mean)), str(seed % 10))


def hashed(run: RunRecord, digit: str) -> RunRecord:
    """With other predictions for every digit, as far as hashes say it."""
    return replace(
        run, scores=tuple(one if one.task == "Avg." else replace(one, predictions_sha256=digit * 64) for one in run.scores)
    )


def grades(*records: RunRecord) -> list[str]:
    return [one.grade for one in graded([(one, Path()) for one in records])]


def test_own_seeds_vouch_for_each_other() -> None:
    own = [at(seed, 70) for seed in (1, 2, 3, 4)]
    found = graded([(one, Path()) for one in own])
    assert {one.grade for one in found} == {"retrained"} and "with seeds 2, 3, 4: this run's sts Avg. " in found[0].reason
    assert "all 8 scores do" in found[0].reason


def test_a_training_three_points_off_does_not_repeat_the_others() -> None:
    own = [at(seed, 70) for seed in (1, 2, 3, 4)]
    for away in (-3, 3):
        (*_, last) = graded([(one, Path()) for one in (*own, at(5, 70 + away))])
        assert last.grade == "submitted" and "; trained again here with seeds 1, 2, 3, 4, but" in last.reason
        assert "sts Avg." in last.reason and "lies outside" in last.reason


def test_one_planted_task_is_enough() -> None:
    own = [at(seed, 70) for seed in (1, 2, 3)]
    scores = tuple(
        replace(one, value=100.0) if one.task == "STS-B" else one for one in at(4, 70).scores
    )  # the average left as it is
    (*_, forged) = graded([(one, Path()) for one in (*own, replace(at(4, 70), scores=scores))])
    assert forged.grade == "submitted" and "sts STS-B 100.00 lies outside" in forged.reason


def test_seeds_that_vary_too_much_vouch_for_nothing() -> None:
    own = [at(seed, 70, noise=9) for seed in (1, 2, 3)]
    assert grades(*own, at(4, 76)) == ["submitted"] * 4
    assert "more seeds tell" in graded([(one, Path()) for one in own])[0].reason


def test_what_nobody_scored_again_was_not_repeated() -> None:
    own = [at(seed, 70) for seed in (1, 2, 3)]
    planted = Score(suite="transfer", task="MR", protocol="senteval-probe/1", metric="accuracy", value=100.0, n=10_662)
    (*_, forged) = graded([(one, Path()) for one in (*own, replace(at(4, 70), scores=(*at(4, 70).scores, planted)))])
    assert forged.grade == "submitted" and "transfer MR 100.00 was not scored again" in forged.reason


def test_equal_predictions_are_no_repetition() -> None:
    first = at(1, 70)
    copy = replace(first, run_id="copy", seed=2)
    assert grades(first, copy) == ["submitted", "submitted"]
    assert trained_again(training(copy), [training(first)], seed_variances([[training(at(s, 70)) for s in (3, 4)]])) is None
    one = replace(at(2, 70), scores=tuple(replace(a, predictions_sha256=b.predictions_sha256) if a.task == "STS12" else a
                                          for a, b in zip(at(2, 70).scores, first.scores, strict=True)))  # fmt: skip
    assert training(one).is_copy_of(training(first)), "cosines of one task are enough"
    assert not training(at(2, 70)).is_copy_of(training(first))


@pytest.mark.slow
def test_honest_repetitions_fail_at_most_five_times_in_a_hundred() -> None:
    """300 boards of five recipes with three seeds; a sixth run of the first recipe is honest, or three points off."""
    draw, keys = np.random.default_rng(11), [one for one in at(1, 70).scores if one.task != "Avg."]
    head = at(1, 70).scores[-1]

    def run(level: float) -> Training:
        common = draw.normal(0, 0.5)
        values = [level + common + draw.normal(0, sd) for sd in (0.9, 0.9, 0.7, 0.6, 0.8, 1.1, 0.3)]
        scores = [replace(one, value=value) for one, value in zip(keys, values, strict=True)]
        scores.append(replace(head, value=float(np.mean(values))))
        return Training(None, {(*one.key, one.metric): one for one in scores})

    failed, found = 0, 0
    for _ in range(300):
        board = [[run(level) for _ in range(3)] for level in (60, 44, 61, 44, 58)]
        lent = seed_variances(board)
        again, off = (trained_again(run(60 + away), board[0], lent) for away in (0, 3))
        assert again is not None and off is not None
        failed, found = failed + (not again.within), found + (not off.within)
    assert failed / 300 <= 0.05 + 2 * (0.05 * 0.95 / 300) ** 0.5
    assert found / 300 >= 0.8


def test_the_interval_of_one_more_training_by_hand() -> None:
    """Two recipes of three seeds; their variances agree so well that they are pooled: 4 degrees of freedom."""
    made = [[one_score(value) for value in values] for values in ((70.0, 71.0, 72.0), (50.0, 51.0, 52.0))]
    found = trained_again(one_score(74.0), made[0], seed_variances(made))
    assert found is not None
    half = float(student.ppf(1 - 0.04 / 2, 4)) * math.sqrt(4 / 3) + 0.05
    assert (found.found[0].low, found.found[0].high) == pytest.approx((71 - half, 71 + half))


def one_score(value: float) -> Training:
    score = Score(suite="check", task="CHECK", protocol="check/1", metric="spearman", value=value, n=100)
    return Training(None, {(*score.key, score.metric): score})


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
    assert trained_again(training(first), [training(replace(first, scores=()))], {}) is None


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
    from bench.compare.statistics.summary import summarise

    mine = PublishedRun(record=at(1, 60), folder=Path())
    better = PublishedRun(record=replace(at(1, 90), run_id="better"), folder=Path(), submitted_by="Eve")
    (table,) = summarise([apart(mine), apart(better)], baseline="simcse")
    assert [(row.runs[0], row.is_baseline) for row in table.rows] == [("better", False), (mine.record.run_id, True)]
    (table,) = summarise([apart(better)], baseline="simcse")
    assert table.rows[0].is_baseline, "it is, where there is no other"
