"""The checks of a suite, which is scored with a made-up encoder.

Its scores must be repeatable, depend on the vectors, and follow from its predictions alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.base.errors import BenchError, PluginFailed, RunFailed
from bench.base.findings import DIFFERS, Finding
from bench.base.user_code import located
from bench.data.sets import DataFolder
from bench.records import RunsFolder, ScoreKey
from bench.records.arrays import read_arrays
from bench.run.conformance import Failed, fail_if, once_each, result_of
from bench.score.suites import Suite, Task, TaskResult, Vectors, rescore

DIMENSIONS = 32


def stand_in(sentences: Sequence[str], seed: int = 0) -> np.ndarray:
    """Return (n, DIMENSIONS) float32 from a hash of each sentence: the same for one sentence,
    unrelated between two.
    """
    digests = [hashlib.sha256(sentence.encode()).digest()[:8] for sentence in sentences]
    rows = [np.random.default_rng([seed, *bits]).standard_normal(DIMENSIONS) for bits in digests]
    return np.array(rows, dtype=np.float32).reshape(len(rows), DIMENSIONS)


def check_suite(suite: Suite, data: DataFolder) -> list[Finding]:
    """Run every check of every task. Raises BenchError if data is missing or damaged."""
    results = []
    for task in suite.tasks:
        try:
            case = TaskCase(task, data, suite.extra_detail)
        except PluginFailed as error:  # its ``read`` raises, or returns something else
            results.append(Finding(OF_TASKS[0][0], task.name, DIFFERS, error.message))
        else:
            results += [
                result_of(task.name, name, partial(function, case)) for name, function in OF_TASKS
            ]
    return once_each(results)


class TaskCase:
    """A task with its data. Raises BenchError if they cannot be read."""

    def __init__(self, task: Task, data: DataFolder, extra_detail: Sequence[str] = ()) -> None:
        self.task = task
        self.data = data
        self.loaded = task.load(data)
        self.extra_detail = extra_detail

    def score(self, vectors: Vectors = stand_in) -> TaskResult:
        try:
            return self.loaded.score(vectors)
        except RunFailed as error:
            raise Failed(f"random vectors are rejected: {error.message}") from None


def data_is_read(case: TaskCase) -> str:
    task, loaded = case.task, case.loaded
    again = task.load(case.data)
    fail_if(
        loaded.sha256 != again.sha256 or list(loaded.sentences) != list(again.sentences),
        "reading it a second time gives other data",
    )
    fail_if(len(loaded.sha256) != 64, f"sha256 has {len(loaded.sha256)} characters, not 64")
    fail_if(
        task.n and loaded.n != task.n, f"the task says n={task.n}, its data has {loaded.n} items"
    )
    return f"{loaded.n:,} items, sha256 {loaded.sha256[:8]}"


def sentences_are_named(case: TaskCase) -> str:
    """Check ``sentences``, and that they are plain text: an object could carry the answer."""
    named = list(case.loaded.sentences)
    requested: list[str] = []
    fail_if(not named, "sentences is empty")

    def encode(sentences: Sequence[str]) -> np.ndarray:
        requested.extend(sentences)
        return stand_in(sentences)

    case.score(encode)
    strange = [type(text).__name__ for text in (*named, *requested) if type(text) is not str]
    fail_if(strange, f"sentences holds {''.join(strange[:1])}, not str")
    more = [text for text in requested if text not in set(named)]
    fail_if(more, f"score encodes a text that sentences lacks: {''.join(more[:1])[:40]!r}")
    return f"{len(named):,}, {len(set(named)):,} of them distinct"


def score_is_repeatable(case: TaskCase) -> str:
    first, second = case.score(), TaskCase(case.task, case.data).score()
    fail_if(
        first.value != second.value or first.predictions_sha256 != second.predictions_sha256,
        f"the same vectors score {first.value:.4f} and {second.value:.4f}, "
        "or give other predictions; fix its seeds",
    )
    return f"{first.value:.2f} of random vectors"


def predictions_follow_the_vectors(case: TaskCase) -> str:
    results = [case.score(partial(stand_in, seed=seed)) for seed in (0, 1)]
    fail_if(
        not all(result.predictions for result in results),
        "it stores no predictions: tables have no interval, and nobody can check the score",
    )
    fail_if(
        results[0].predictions_sha256 == results[1].predictions_sha256,
        "unrelated vectors give the same predictions: are they made from the gold values?",
    )
    fail_if(
        all(result.value == 100 for result in results),
        "random vectors score 100: are predictions made from the gold values?",
    )
    arrays = results[0].predictions
    items = len(next(iter(arrays.values())))
    return f"{', '.join(arrays)} of {items:,} items"


def score_follows_from_predictions(case: TaskCase) -> str:
    """Compute the score as ``bench verify`` does, from predictions that were written and read."""
    result = case.score()
    fail_if(case.task.rescore is None, "rescore is None: bench verify cannot check the score")
    with tempfile.TemporaryDirectory() as folder:
        arrays = read_arrays(
            RunsFolder(Path(folder)).write_predictions(
                "run", result.task, result.protocol, result.predictions, result.suite
            )
        )
    again = _scored_again(result, arrays)
    fail_if(again is None, f"{result.metric} cannot be computed from its predictions")
    fail_if(
        not math.isclose(result.value, again.value, rel_tol=1e-9, abs_tol=1e-6),
        f"{result.value:.6f} is recorded, but its predictions give {again.value:.6f}",
    )
    fail_if(
        result.n != again.n,
        f"{result.n:,} items are recorded, but there are {again.n:,} predictions",
    )
    extra = sorted(result.detail.keys() - again.detail.keys() - set(case.extra_detail))
    fail_if(
        extra,
        f"its predictions do not give {', '.join(extra)} of the detail: "
        f"Suite(extra_detail={tuple(extra)})",
    )
    return "bench verify agrees"


def _scored_again(result: TaskResult, arrays: Mapping[str, np.ndarray]) -> Any:
    try:
        return rescore(
            ScoreKey(result.suite, result.task, result.protocol),
            arrays,
            result.metric,
        )
    except BenchError as error:
        raise Failed(error.message) from None


def useless_vectors_are_refused(case: TaskCase) -> str:
    wrong: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "NaN in a vector": lambda x_ND: np.vstack([x_ND[:1] * np.nan, x_ND[1:]]),
        "all vectors the same": np.ones_like,
        "a row too few": lambda x_ND: x_ND[1:],
    }
    case.score()  # a task that rejects every vector fails elsewhere
    for name, change in wrong.items():
        try:
            result = case.loaded.score(partial(_changed, change))
        except RunFailed:
            continue
        except Exception as error:  # a plugin's own code
            raise Failed(
                f"{name}: it raises {located(error)}, "
                "not RunFailed as check_vectors and check_variety do"
            ) from None
        raise Failed(
            f"{name}: scored {result.value:.2f}; check_vectors and check_variety reject it"
        )
    return ", ".join(wrong)


def _changed(change: Callable[[np.ndarray], np.ndarray], sentences: Sequence[str]) -> np.ndarray:
    return change(stand_in(sentences))


def record_takes_it(case: TaskCase) -> str:
    result = case.score()
    fail_if(not np.isfinite(result.value) or result.n <= 0, f"value {result.value}, n {result.n}")
    expected = (case.task.suite, case.task.name, case.task.protocol, case.task.metric.name)
    names = (result.suite, result.task, result.protocol, result.metric)
    fail_if(names != expected, f"the result is of {names}, the task of {expected}")
    fail_if(
        not case.task.protocol.rpartition("/")[2].isdigit(),
        f"the protocol {case.task.protocol} has no version: NAME/1",
    )
    json.dumps(result.detail, allow_nan=False)
    return f"{result.metric} under {result.protocol}"


OF_TASKS: tuple[tuple[str, Callable[[TaskCase], str]], ...] = (
    ("its data is read, twice the same", data_is_read),
    ("its sentences are named, and plain text", sentences_are_named),
    ("its result fits a record", record_takes_it),
    ("its score is repeatable", score_is_repeatable),
    ("its predictions follow the vectors", predictions_follow_the_vectors),
    ("its score follows from its predictions", score_follows_from_predictions),
    ("useless vectors are refused", useless_vectors_are_refused),
)
