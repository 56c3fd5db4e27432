"""Computes scores and averages again from stored predictions, and compares the stored gold values
with the data set."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import msgspec

from bench.base.errors import BenchError
from bench.base.findings import DIFFERS, UNCHECKED, Finding
from bench.base.hashes import values_sha256
from bench.board.verify.findings import NotChecked, make_finding, name_score
from bench.records.names import data_key
from bench.records.packed import PredictionsElsewhere
from bench.records.record import AVERAGE, REDUCED, RunRecord, Score
from bench.records.run import Run
from bench.records.selection import known_sets
from bench.score.suites import GIVEN, OWN, Arrays, average, rescore, suite, suite_names

SCHEMA = "bench.given/1"


def given_of(score: Score) -> dict[str, str] | None:
    """Hashes of the arrays that no model changes; None for an unknown task. Raw texts may have
    others."""
    given: dict[str, dict[str, str]] = known_sets()["given"]
    name = f"{score.suite}/{data_key(score.task, score.protocol)}"
    return given.get(name, given.get(f"{score.suite}/{score.task}"))


NO_SUITE = "the suite {} is not known; pass its file with --plugin FILE"

ABSOLUTE, RELATIVE = 1e-6, 1e-9
"""Libraries of linear algebra add in different orders; a millionth of a point is not a difference.
"""


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
            outcome = UNCHECKED if isinstance(error, PredictionsElsewhere) else DIFFERS
            yield Finding("score", name_score(score), outcome, error.message)
        else:
            yield from check_score(score, arrays)
            yield check_hash(score, arrays)
            if arrays:
                yield make_finding("gold", name_score(score), _gold_difference, score, arrays)


def check_score(score: Score, arrays: Arrays) -> Iterator[Finding]:
    """Check if the score follows from its predictions."""
    yield make_finding("score", name_score(score), _score_difference, score, arrays)
    if REDUCED in arrays and score.detail:
        yield Finding(
            "detail",
            name_score(score),
            UNCHECKED,
            "only those predictions are stored that the score needs",
        )


def check_hash(score: Score, arrays: Arrays) -> Finding:
    """Check that the arrays are the recorded ones."""
    return make_finding("predictions", name_score(score), _hash_difference, score, arrays)


def check_stored_average(score: Score, record: RunRecord) -> Finding:
    """Check if an average follows from the recorded scores, which are checked one by one."""
    return make_finding("average", name_score(score), _average_difference, score, record)


def _score_difference(score: Score, arrays: Arrays) -> str:
    again = rescore(score.key, arrays, score.metric)
    if score.suite not in suite_names():
        raise NotChecked(NO_SUITE.format(score.suite))
    if again is None:
        raise NotChecked(f"{score.metric} of {score.suite} cannot be computed from what is stored")
    metrics = _metrics(score)
    if not metrics:
        raise NotChecked(f"{score.suite} has no task {score.task} under {score.protocol}")
    if score.metric not in metrics:
        return f"the metric {score.metric} is recorded, {score.suite} has {' or '.join(metrics)}"
    if not close(score.value, again.value):
        return f"{score.value:.6f} is recorded, its predictions give {again.value:.6f}"
    if score.n != again.n:
        return f"{score.n:,} items are recorded, {again.n:,} predictions are there"
    if (score.std, again.std) != (None, None) and not close(score.std, again.std):
        return f"the standard deviation {score.std} is recorded, its predictions give {again.std}"
    if REDUCED in arrays:  # the detail comes from arrays that were not stored
        return ""
    ignored = set(suite(score.suite).extra_detail) - again.detail.keys()
    recorded = {key: value for key, value in score.detail.items() if key not in ignored}
    return _first_difference(
        recorded, msgspec.to_builtins(again.detail, str_keys=True, enc_hook=float), "detail"
    )


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


def close(recorded: Any, again: Any) -> bool:
    """Say if two numbers are equal up to the last digits, which differ between machines."""
    return (
        isinstance(recorded, int | float)
        and isinstance(again, int | float)
        and math.isclose(recorded, again, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    )


def _first_difference(recorded: Any, again: Any, path: str) -> str:
    """Describe the first difference of two details; "" if there is none.

    An older record may hold less than the predictions give, but never more.
    """
    if isinstance(recorded, dict) and isinstance(again, dict):
        more = [str(key) for key in recorded if key not in again]
        if more:
            return f"{path}.{more[0][:60]} is recorded, its predictions do not give it"
        pairs = [(f"{path}.{key}", recorded[key], again[key]) for key in again if key in recorded]
    elif isinstance(recorded, list) and isinstance(again, list) and len(recorded) == len(again):
        pairs = [(f"{path}[{i}]", recorded[i], again[i]) for i in range(len(again))]
    else:
        is_same = recorded == again
        if isinstance(again, float):
            is_same = close(recorded, again)
        if is_same:
            return ""
        return f"{path}: {str(recorded)[:60]} is recorded, its predictions give {str(again)[:60]}"
    for at, recorded_part, part_again in pairs:
        difference = _first_difference(recorded_part, part_again, at)
        if difference:
            return difference
    return ""


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
    return _first_difference(recorded, again.detail, "detail")
