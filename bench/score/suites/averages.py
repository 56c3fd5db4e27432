"""The average of a suite: the tasks that it is over, and how papers round it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeVar

from msgspec.structs import replace

from bench.base.errors import BenchError
from bench.records.record import AVERAGE
from bench.score.suites.parts import SuiteOfParts, averaged_tasks
from bench.score.suites.registry import suite
from bench.score.suites.task import TaskResult

AnyScore = TypeVar("AnyScore")


def average_of(values: Iterable[float]) -> float:
    """Return the papers' "Avg.": the mean of values rounded to two decimals, rounded again.

    The values are rounded first because the papers average the numbers that they print.
    """
    printed = [round(value, 2) for value in values]
    return round(math.fsum(printed) / len(printed), 2)


def name_average(suite_name: str, protocol: str) -> str:
    """Return in words the tasks that a suite's average under a protocol is a mean of.

    "" if the suite has one average, which its page describes, or is not here.
    """
    try:
        found = suite(suite_name)
    except BenchError:
        return ""
    if isinstance(found, SuiteOfParts) and protocol in found.parts:
        return found.parts[protocol].holds
    return ""


def average(scores: Iterable[AnyScore]) -> AnyScore | None:
    """Compute the papers' "Avg." of one suite's scores.

    Each value is rounded to 2 decimals, and their mean again. Takes Scores or TaskResults, in any
    order, and gives one more of the same kind, task "Avg.". Returns None if a task of the average
    is missing, if the suite has no average, or if the tasks of the average differ in metric or
    protocol. Other tasks of the suite change nothing.
    """
    by_task: dict[str, Any] = {}
    for score in scores:
        if score.task != AVERAGE:  # type: ignore[attr-defined]
            by_task[score.task] = score  # type: ignore[attr-defined]
    if not by_task:
        return None
    first = next(iter(by_task.values()))
    names = averaged_tasks(suite(first.suite), first.protocol)
    if not names or not by_task.keys() >= set(names):
        return None
    chosen = [by_task[name] for name in names]
    if len({(score.suite, score.protocol, score.metric) for score in chosen}) > 1:
        return None
    # there are no predictions of the average: a TaskResult has the arrays, a Score their hash
    none: dict[str, Any] = {"predictions_sha256": None}
    if isinstance(chosen[0], TaskResult):
        none = {"predictions": {}}
    return replace(
        chosen[0],
        task=AVERAGE,
        value=average_of(score.value for score in chosen),
        std=None,
        n=sum(score.n for score in chosen),
        detail={"tasks": list(names)},
        reduced_sha256=None,
        **none,
    )
