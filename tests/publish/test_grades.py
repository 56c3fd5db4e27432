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
from scored_run import finished_run, predictions

from bench.base.files import file_sha256
from bench.board.board import GRADES, PublishedRun
from bench.board.grades import (
    WORDS,
    Training,
    grade_runs,
    same_recipe,
    seed_variances,
    separate_record,
    trained_again,
    training,
    weakest,
)
from bench.compare.statistics.table import rows_of
from bench.runs import RunRecord, RunsFolder, Score
from bench.runs.arrays import read_arrays
from bench.runs.predictions import Run
from bench.score.suites.from_predictions import rescore
from bench.verify.attestation import sent as kept
from bench.verify.submit import Submissions, collect, pack


@pytest.fixture
def own(tmp_path: Path) -> RunsFolder:
    return RunsFolder(tmp_path / "own")


def runs(store: RunsFolder) -> list[Run]:
    return [(store.read(one), store.folder(one)) for one in store.ids()]


def sent(
    tmp_path: Path, own: RunsFolder, seed: int = 1, change: Any = None, weights: float = 0
) -> Submissions:
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
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(json.dumps({"schema": "bench.verified/1", "runs": {run_id: found}}))


def test_every_grade_is_explained() -> None:
    assert set(WORDS) == {"printed", *GRADES} and list(WORDS)[1:] == list(GRADES)
    assert (
        weakest(["retrained", "submitted", "checkpoint"]) == "submitted"
        and weakest(["retrained", "own", "checkpoint"]) == "own"
    )
    assert WORDS["own"].startswith("The keeper's word") and WORDS["submitted"].startswith(
        "Its sender's word"
    )


def test_an_own_run_and_one_that_was_sent_in(tmp_path: Path, own: RunsFolder) -> None:
    mine = finished_run(own, 5, training=None)
    found = grade_runs(runs(own), sent(tmp_path, own))
    assert [(one.record.run_id, one.grade, one.submitted_by) for one in found] == [
        (mine.run_id, "own", None),
        (found[1].record.run_id, "submitted", "Ada"),
    ]
    assert found[0].reason == "it was run by whoever publishes this board"
    assert found[1].reason.startswith("sent in by Ada; 1 score computed again from the predictions")
    assert found[1].reason.endswith("; its checkpoint came along and was not encoded again")
    assert (found[1].folder / "run.json").is_file()
    assert [one.checked for one in found] == [True, False]


def test_a_checkpoint_that_was_encoded_again(tmp_path: Path, own: RunsFolder) -> None:
    mine = finished_run(own, 5)
    attest(own.folder(mine.run_id) / "verified.json", own.folder(mine.run_id), mine.run_id)
    (one,) = grade_runs(runs(own))
    assert one.grade == "checkpoint" and one.reason.startswith(
        "encoded again from its checkpoint on 2026-11-21"
    )
    own.write(replace(mine, cost=replace(mine.cost, train_seconds=1.0)))
    assert grade_runs(runs(own))[0].grade == "own"


def test_a_submission_that_was_encoded_again_by_its_receiver(
    tmp_path: Path, own: RunsFolder
) -> None:
    first = sent(tmp_path, own)
    assert grade_runs([], first)[0].grade == "submitted"
    one = first.runs[0]
    attest(kept(own.path, one.folder), one.folder, one.record.run_id)
    shutil.rmtree(tmp_path / "aside")
    (again,) = grade_runs([], collect(tmp_path / "box", tmp_path / "aside", keeper=own.path))
    assert (again.grade, again.submitted_by, again.checked) == ("checkpoint", "Ada", True)


def test_a_word_beside_the_file_counts_for_nothing(tmp_path: Path, own: RunsFolder) -> None:
    """Whoever may put a submission there may put a word there, too."""
    one = sent(tmp_path, own).runs[0]
    attest(tmp_path / "box" / "a.zip.verified.json", one.folder, one.record.run_id)
    shutil.rmtree(tmp_path / "aside")
    found = collect(tmp_path / "box", tmp_path / "aside", keeper=own.path)
    assert [run.grade for run in grade_runs([], found)] == ["submitted"]
    assert found.refused[0].startswith(
        "a.zip.verified.json counts for nothing here: bench verify FILE.zip --retrain-free"
    )


def test_a_word_on_a_submission_without_a_checkpoint_counts_for_nothing(
    tmp_path: Path, own: RunsFolder
) -> None:
    box = tmp_path / "box"
    one = sent(tmp_path, own).runs[0]
    (box / "a.zip").unlink()
    shutil.rmtree(tmp_path / "aside")
    theirs = RunsFolder(tmp_path / "theirs")
    pack([theirs.folder(one.record.run_id)], box / "b.zip", by="Eve", checkpoints="no")
    (bare,) = collect(box, tmp_path / "aside").runs
    attest(kept(own.path, bare.folder), bare.folder, bare.record.run_id)
    shutil.rmtree(tmp_path / "aside")
    (found,) = grade_runs([], collect(box, tmp_path / "aside", keeper=own.path))
    assert found.grade == "submitted" and "checkpoint" not in found.reason


def test_a_submission_that_was_trained_again_is_not_ranked_without_its_checkpoint(
    tmp_path: Path, own: RunsFolder
) -> None:
    """Whoever knows our trainings can make up scores between them. With the checkpoint encoded again it is retrained."""
    for seed in (5, 6):
        finished_run(own, seed, weights=seed / 1000)
    taken = sent(tmp_path, own, 1, weights=0.004)
    found = grade_runs(runs(own), taken)[2]
    assert found.grade == "submitted" and not found.checked
    assert (
        "; trained again here with seeds 5, 6: this run's check CHECK " in found.reason
        and "lies within" in found.reason
    )
    one = taken.runs[0]
    attest(kept(own.path, one.folder), one.folder, one.record.run_id)
    shutil.rmtree(tmp_path / "aside")
    found = grade_runs(
        runs(own), collect(tmp_path / "box", tmp_path / "aside", runs(own), keeper=own.path)
    )[2]
    assert (
        found.grade == "retrained"
        and "lies within" in found.reason
        and "encoded again from its checkpoint" in found.reason
    )


def test_one_seed_says_nothing_of_seeds(tmp_path: Path, own: RunsFolder) -> None:
    finished_run(own, 5)
    found = grade_runs(runs(own), sent(tmp_path, own, 1, weights=1))
    assert [one.grade for one in found] == ["own", "submitted"]
    assert "nothing says how far seeds vary" in found[1].reason


@pytest.mark.parametrize("weights", [0.001, 0.002], ids=["unchanged", "another training"])
def test_nobody_raises_our_grade(tmp_path: Path, own: RunsFolder, weights: float) -> None:
    """A stranger packs our run, or makes one of its id, recipe and seed; only what was trained here says how far seeds vary."""
    finished_run(own, 1, weights=0.001)
    before = grade_runs(runs(own))
    box, theirs = tmp_path / "box", RunsFolder(tmp_path / "theirs")
    box.mkdir()
    one = finished_run(theirs, 1, weights=weights)
    pack([theirs.folder(one.run_id)], box / "a.zip", by="Eve")
    other = finished_run(theirs, 2, weights=0.003)
    pack([theirs.folder(other.run_id)], box / "b.zip", by="Eve")
    after = grade_runs(runs(own), collect(box, tmp_path / "aside", runs(own)))
    assert after[:1] == before and after[0].grade == "own"
    assert [run.grade for run in after[1:]] == ["submitted"], (
        "nor does one submission raise another"
    )


def forged(store: RunsFolder, run: RunRecord, change: Any) -> RunRecord:
    """With other arrays, and a record that fits them but for their hash, which it leaves out."""
    path = predictions(store, run)
    arrays = {**read_arrays(path)}
    change(arrays)
    np.savez_compressed(path, **arrays)
    again = rescore(run.scores[0].key, arrays)
    assert again is not None
    score = replace(
        run.scores[0],
        value=again.value,
        predictions_sha256=None,
        detail=json.loads(json.dumps(again.detail)),
    )
    return replace(run, scores=(score,))


@pytest.mark.parametrize("how", ["as they are", "without their hash", "stretched"])
def test_our_predictions_under_another_seed_are_no_repetition(
    tmp_path: Path, own: RunsFolder, how: str
) -> None:
    for seed in (5, 6):
        finished_run(own, seed, weights=seed / 1000)
    theirs = RunsFolder(tmp_path / "theirs")
    copy = finished_run(theirs, 7, weights=0.005)  # predicts as our seed 5
    if how != "as they are":
        scale = 1.0 if how == "without their hash" else 0.5
        copy = forged(
            theirs, copy, lambda arrays: arrays.update(prediction=arrays["prediction"] * scale)
        )
        theirs.write(copy)
    assert training(copy).is_copy_of(
        training(runs(own)[0][0] if runs(own)[0][0].seed == 5 else runs(own)[1][0])
    )
    (tmp_path / "box").mkdir()
    pack([theirs.folder(copy.run_id)], tmp_path / "box" / "a.zip", by="Eve")
    (found,) = grade_runs(runs(own), collect(tmp_path / "box", tmp_path / "aside", runs(own)))[2:]
    assert found.grade == "submitted" and "with seed 6" in found.reason, (
        "seed 5 is the one that was copied"
    )


def at(seed: int, base: float, noise: float = 0.5, **changes: Any) -> RunRecord:
    """A record of the seven STS tasks, each near ``base``, with the noise of its seed on all and on each."""
    draw = np.random.default_rng([seed, int(100 * base)])
    run = record("simcse", seed, scores=sts_scores(70), **changes)
    scores = [
        replace(one, value=one.value + base - 70 + noise * float(draw.normal()))
        for one in run.scores
        if one.task != "Avg."
    ]
    mean = replace(run.scores[-1], value=round(math.fsum(one.value for one in scores) / 7, 2))
    assert mean.task == "Avg."
    return hashed(replace(run, scores=(*scores, mean)), str(seed % 10))


def hashed(run: RunRecord, digit: str) -> RunRecord:
    """With other predictions for every digit, as far as hashes say it."""
    return replace(
        run,
        scores=tuple(
            one if one.task == "Avg." else replace(one, predictions_sha256=digit * 64)
            for one in run.scores
        ),
    )


def grades(*records: RunRecord) -> list[str]:
    return [one.grade for one in grade_runs([(one, Path()) for one in records])]


def test_own_seeds_vouch_for_each_other() -> None:
    own = [at(seed, 70) for seed in (1, 2, 3, 4)]
    found = grade_runs([(one, Path()) for one in own])
    assert {one.grade for one in found} == {
        "retrained"
    } and "with seeds 2, 3, 4: this run's sts Avg. " in found[0].reason
    assert "all 8 scores do" in found[0].reason


def test_a_training_three_points_off_does_not_repeat_the_others() -> None:
    own = [at(seed, 70) for seed in (1, 2, 3, 4)]
    for away in (-3, 3):
        (*_, last) = grade_runs([(one, Path()) for one in (*own, at(5, 70 + away))])
        assert (
            last.grade == "own" and "; trained again here with seeds 1, 2, 3, 4, but" in last.reason
        )
        assert "sts Avg." in last.reason and "lies outside" in last.reason


def test_one_planted_task_is_enough() -> None:
    own = [at(seed, 70) for seed in (1, 2, 3)]
    scores = tuple(
        replace(one, value=100.0) if one.task == "STS-B" else one for one in at(4, 70).scores
    )  # the average left as it is
    (*_, forged) = grade_runs([(one, Path()) for one in (*own, replace(at(4, 70), scores=scores))])
    assert forged.grade == "own" and "sts STS-B 100.00 lies outside" in forged.reason


def test_seeds_that_vary_too_much_vouch_for_nothing() -> None:
    own = [at(seed, 70, noise=9) for seed in (1, 2, 3)]
    assert grades(*own, at(4, 76)) == ["own"] * 4
    assert "more seeds tell" in grade_runs([(one, Path()) for one in own])[0].reason


def test_what_nobody_scored_again_was_not_repeated() -> None:
    own = [at(seed, 70) for seed in (1, 2, 3)]
    planted = tuple(
        Score(
            suite="transfer",
            task=task,
            protocol="senteval-probe/1",
            metric="accuracy",
            value=100.0,
            n=1000,
        )
        for task in ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC")
    )
    (*_, forged) = grade_runs(
        [(one, Path()) for one in (*own, replace(at(4, 70), scores=(*at(4, 70).scores, *planted)))]
    )
    assert forged.grade == "own" and "transfer MR 100.00 was not scored again" in forged.reason


def test_equal_predictions_are_no_repetition() -> None:
    first = at(1, 70)
    copy = replace(first, run_id="copy", seed=2)
    assert grades(first, copy) == ["own", "own"]
    assert (
        trained_again(
            training(copy),
            [training(first)],
            seed_variances([[training(at(s, 70)) for s in (3, 4)]]),
        )
        is None
    )
    one = replace(
        at(2, 70),
        scores=tuple(
            replace(a, predictions_sha256=b.predictions_sha256) if a.task == "STS12" else a
            for a, b in zip(at(2, 70).scores, first.scores, strict=True)
        ),
    )
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
        scores = [
            replace(one, value=value, predictions_sha256=None)
            for one, value in zip(keys, values, strict=True)
        ]
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
    made = [
        [one_score(value) for value in values]
        for values in ((70.0, 71.0, 72.0), (50.0, 51.0, 52.0))
    ]
    found = trained_again(one_score(74.0), made[0], seed_variances(made))
    assert found is not None
    half = float(student.ppf(1 - 0.04 / 2, 4)) * math.sqrt(4 / 3) + 0.05
    assert (found.found[0].low, found.found[0].high) == pytest.approx((71 - half, 71 + half))


def one_score(value: float) -> Training:
    score = Score(
        suite="check", task="CHECK", protocol="check/1", metric="spearman", value=value, n=100
    )
    return Training(None, {(*score.key, score.metric): score})


def test_what_is_another_thing_was_not_repeated() -> None:
    first = at(1, 70)
    assert (
        same_recipe(first)
        == same_recipe(at(2, 60))
        == same_recipe(replace(first, run_id="another"))
    )
    others = [
        at(2, 70, recipe={"temperature": 0.1}),
        at(2, 70, variant="eh"),
        at(2, 70, setting="supervised"),
        at(2, 70, backbone="other"),
        replace(
            at(2, 70),
            provenance=replace(first.provenance, corpus={"name": "x", "sha256": "0" * 64}),
        ),
    ]
    assert all(same_recipe(one) != same_recipe(first) for one in others)
    assert {one.grade for one in grade_runs([(one, Path()) for one in (first, *others)])} == {"own"}
    untrained = [(at(seed, 70, training=None), Path()) for seed in (1, 2)]
    assert {one.grade for one in grade_runs(untrained)} == {"own"}, (
        "what is not trained is not retrained"
    )
    assert trained_again(training(first), [training(replace(first, scores=()))], {}) is None


def test_a_submitted_run_has_a_row_of_its_own() -> None:
    mine = PublishedRun(record=at(1, 70), folder=Path())
    late = replace(at(1, 99).provenance, created="2099-01-01T00:00:00+00:00")
    forged = PublishedRun(
        record=replace(at(1, 99), run_id="forged", provenance=late),
        folder=Path(),
        submitted_by="Eve",
        grade="checkpoint",
    )
    assert separate_record(mine) is mine.record
    mixed = rows_of([mine.record, forged.record], [])
    assert [[run.run_id for run in row] for row, *_ in mixed] == [["forged"]], (
        "what would happen otherwise"
    )
    rows = rows_of([separate_record(mine), separate_record(forged)], [])
    assert [(row[0].run_id, dict(differs)) for row, differs, _ in rows] == [
        (mine.record.run_id, {}),
        ("forged", {"submitted by": "Eve"}),
    ]
    unchecked = PublishedRun(
        record=replace(at(2, 99), run_id="late"),
        folder=Path(),
        submitted_by="Eve",
        grade="submitted",
    )
    rows = rows_of([separate_record(forged), separate_record(unchecked)], [])
    assert [dict(differs) for _, differs, _ in rows] == [
        {"submitted by": "Eve"},
        {"submitted by": "Eve, not checked here"},
    ]
    assert dict(rows_of([separate_record(forged)], [])[0][1]) == {"submitted by": "Eve"}, (
        "named even where it stands alone"
    )


def test_a_submitted_run_is_not_the_baseline_where_the_board_has_one() -> None:
    from bench.compare.statistics.summary import summarise

    mine = PublishedRun(record=at(1, 60), folder=Path())
    better = PublishedRun(
        record=replace(at(1, 90), run_id="better"), folder=Path(), submitted_by="Eve"
    )
    (table,) = summarise([separate_record(mine), separate_record(better)], baseline="simcse")
    assert [(row.runs[0], row.is_baseline) for row in table.rows] == [
        ("better", False),
        (mine.record.run_id, True),
    ]
    (table,) = summarise([separate_record(better)], baseline="simcse")
    assert table.rows[0].is_baseline, "it is, where there is no other"
