"""The average of a suite: the tasks that it is over, and how papers round it."""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec.structs import replace

from bench.base.errors import BenchError
from bench.records.record import AVERAGE, Score
from bench.score.suites.registry import suite


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
    return found.parts[protocol].holds if protocol in found.parts else ""


def average(scores: Iterable[Score]) -> Score | None:
    """Compute the papers' "Avg." of one suite's scores, in any order.

    Each value is rounded to 2 decimals, and their mean again. Returns None if a task of the average
    is missing, if the suite has no average, or if the tasks of the average differ in metric or
    protocol. Other tasks of the suite change nothing.
    """
    by_task = {score.task: score for score in scores if score.task != AVERAGE}
    if not by_task:
        return None
    first = next(iter(by_task.values()))
    here = suite(first.suite)
    names = here.average
    if first.protocol in here.parts:
        names = here.parts[first.protocol].tasks
    if not names or not by_task.keys() >= set(names):
        return None
    chosen = [by_task[name] for name in names]
    if len({(score.suite, score.protocol, score.metric) for score in chosen}) > 1:
        return None
    return replace(
        chosen[0],
        task=AVERAGE,
        value=average_of(score.value for score in chosen),
        std=None,
        n=sum(score.n for score in chosen),
        detail={"tasks": list(names)},
        # it has no predictions
        predictions_sha256=None,
        reduced_sha256=None,
    )
