"""Computes scores and averages again from stored predictions, and compares the stored gold values
with the data set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from bench.base.errors import BenchError
from bench.base.findings import DIFFERS, UNCHECKED, Finding
from bench.base.hashes import values_sha256
from bench.board.verify.compared import close, first_difference
from bench.board.verify.findings import NotChecked, make_finding, name_score
from bench.records.names import data_key
from bench.records.record import AVERAGE, REDUCED, RunRecord, Score
from bench.records.run import Run
from bench.records.selection import known_sets
from bench.score.suites import (
    GIVEN,
    OWN,
    Arrays,
    TaskScore,
    average,
    rescore,
    suite,
    suite_names,
    suite_plugin,
)

SCHEMA = "bench.given/1"


def given_of(score: Score) -> dict[str, str] | None:
    """Hashes of the arrays that no model changes; None for an unknown task. Raw texts may have
    others."""
    given: dict[str, dict[str, str]] = known_sets()["given"]
    name = f"{score.suite}/{data_key(score.task, score.protocol)}"
    return given.get(name, given.get(f"{score.suite}/{score.task}"))


PASS_FILE = "; pass its file with --plugin FILE"
NO_SUITE = "the suite {} is not known" + PASS_FILE

LINEAR = "pearson"
"""The detail, at any depth, that the order of the predictions does not give."""
PREDICTIONS = "its predictions"


def check_scores(run: Run) -> Iterator[Finding]:
    """Return findings of kinds score, detail, predictions, gold for each task, and of kind average.
    Each predictions file is read when its turn comes."""
    for score in run.scores:
        if score.task == AVERAGE:
            yield check_stored_average(score, run.record)
            continue
        try:
            arrays = run.predictions(score.key)
        except BenchError as error:
            yield Finding("score", name_score(score), DIFFERS, error.message)
        else:
            yield from check_score(score, arrays)
            yield check_hash(score, arrays)
            if arrays:
                yield make_finding("gold", name_score(score), _gold_difference, score, arrays)


def check_score(score: Score, arrays: Arrays) -> Iterator[Finding]:
    """Check if the score follows from its predictions."""
    name = name_score(score)
    try:
        again = rescore(score.key, arrays, score.metric)
    except BenchError as error:
        yield Finding("score", name, DIFFERS, error.message)
        return
    yield make_finding("score", name, _score_difference, score, arrays, again)
    if REDUCED in arrays and score.detail:
        yield from _check_reduced_detail(score, again)


def check_hash(score: Score, arrays: Arrays) -> Finding:
    """Check that the arrays are the recorded ones."""
    return make_finding("predictions", name_score(score), _hash_difference, score, arrays)


def check_stored_average(score: Score, record: RunRecord) -> Finding:
    """Check if an average follows from the recorded scores, which are checked one by one."""
    return make_finding("average", name_score(score), _average_difference, score, record)


def _score_difference(score: Score, arrays: Arrays, again: TaskScore | None) -> str:
    if score.suite not in suite_names():
        raise NotChecked(NO_SUITE.format(score.suite))
    metrics = _metrics(score)
    if not metrics:
        raise NotChecked(f"{score.suite} has no task {score.task} under {score.protocol}")
    if again is None:
        raise NotChecked(f"{score.metric} of {score.suite} cannot be computed from what is stored")
    if score.metric not in metrics:
        return f"the metric {score.metric} is recorded, {score.suite} has {' or '.join(metrics)}"
    if not close(score.value, again.value):
        return f"{score.value:.6f} is recorded, its predictions give {again.value:.6f}"
    if score.n != again.n:
        return f"{score.n:,} items are recorded, {again.n:,} predictions are there"
    if (score.std, again.std) != (None, None) and not close(score.std, again.std):
        return f"the standard deviation {score.std} is recorded, its predictions give {again.std}"
    if REDUCED in arrays:
        return ""
    ignored = set(suite(score.suite).extra_detail) - again.detail.keys()
    recorded = {key: value for key, value in score.detail.items() if key not in ignored}
    return first_difference(recorded, _plain_detail(again), "detail", PREDICTIONS)


def _check_reduced_detail(score: Score, again: TaskScore | None) -> Iterator[Finding]:
    """Check the details that follow from what the score needs, and name the others.

    Of a ranked metric only the order of the predictions is stored. Nobody knows which details of a
    plugin's suite it gives.
    """
    name = name_score(score)
    given: dict[str, Any] = {}
    if again is not None and suite_plugin(score.suite) is None:
        given = _plain_detail(again)
    recorded = {key: value for key, value in score.detail.items() if key in given}
    if recorded:
        arguments = recorded, given, "detail", PREDICTIONS, (LINEAR,)
        yield make_finding("detail", name, first_difference, *arguments)
    missing = [key for key in score.detail if key == LINEAR or key not in given]
    if missing:
        why = f"what is stored gives the score, but not {', '.join(missing)}"
        yield Finding("detail", name, UNCHECKED, why)


def _plain_detail(score: TaskScore) -> dict[str, Any]:
    return dict(msgspec.to_builtins(score.detail, str_keys=True, enc_hook=float))


def _metrics(score: Score) -> list[str]:
    """Return the metrics that its suite has for such a task, none if it has no such task. For mteb
    ``rescore`` checks the metric.
    """
    if score.suite == "mteb":
        return [score.metric]
    defined = suite(score.suite)
    task = defined.find(score.task, score.protocol)
    if task is not None:
        return [task.metric.name]
    if score.protocol in defined.earlier and given_of(score) is not None:
        return [task.metric.name for task in defined.tasks]
    return []


def _hash_difference(score: Score, arrays: Arrays) -> str:
    expected = score.sha256_of(arrays)
    if expected is None:
        raise NotChecked("the record has no hash of them")
    if _sha256(arrays) == expected:
        return ""
    return "the predictions are not those that were recorded: another hash"


def _sha256(arrays: Arrays) -> str | None:
    """Return the hash of arrays; None if they hold anything but numbers and text."""
    try:
        return values_sha256(arrays)
    except ValueError:
        return None


def _gold_difference(score: Score, arrays: Arrays) -> str:
    """Describe the first difference from gold values, sub-datasets and draws, which are the same
    for every model; "" if there is none.
    """
    expected = given_of(score)
    if expected is None:
        source = "this set"
        if score.suite == "mteb":
            source = "mteb"
        elif score.suite == OWN:
            source = "somebody's own file"
        raise NotChecked(f"bench has no hashes of the gold values of {source}")
    for name in GIVEN:
        if name.startswith("all_splits") and name not in arrays:
            continue  # stored only if the other splits were scored, too
        if (name in expected) != (name in arrays):
            fault = "is missing" if name in expected else "does not belong to this set"
            return f"the array '{name}' {fault}"
        if name in expected and _sha256({name: arrays[name]}) != expected[name]:
            return f"the array '{name}' is not the data set's"
    return ""


def _average_difference(score: Score, record: RunRecord) -> str:
    if score.suite not in suite_names():
        raise NotChecked(NO_SUITE.format(score.suite))
    alike = [
        other
        for other in record.scores
        if (other.suite, other.protocol) == (score.suite, score.protocol)
    ]
    again = average(alike)
    if again is None:
        return "the record lacks a task of this average"
    if not close(score.value, again.value) or score.n != again.n:
        return f"{score.value} is recorded, its tasks give {again.value}"
    if score.metric != again.metric:
        return f"the metric {score.metric} is recorded, its tasks have {again.metric}"
    if score.std != again.std:
        return f"the standard deviation {score.std} is recorded; an average has none"
    recorded = dict(score.detail)
    tasks = recorded.get("tasks")
    if isinstance(tasks, list) and set(map(str, tasks)) == set(again.detail["tasks"]):
        recorded["tasks"] = again.detail["tasks"]  # their order changes no mean
    return first_difference(recorded, again.detail, "detail", "its tasks")
