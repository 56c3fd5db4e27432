"""The average of a suite's scores, as papers print it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, TypeVar

from msgspec.structs import replace

from bench.base.text import average_of
from bench.records.record import AVERAGE
from bench.score.suites.registry import suite
from bench.score.suites.task import TaskResult

AnyScore = TypeVar("AnyScore")


def average(scores: Iterable[AnyScore]) -> AnyScore | None:
    """The papers' "Avg.": each value rounded to 2 decimals, their mean, rounded again; of one suite's scores.

    Takes Scores or TaskResults, in any order, and gives one more of the same kind, task "Avg.". None when a task of the average is missing,
    when the suite has no average, or when the tasks of the average are not of one metric, protocol and text form. Other tasks of the suite
    change nothing.
    """
    by_task: dict[str, Any] = {score.task: score for score in scores if score.task != AVERAGE}  # type: ignore[attr-defined]
    first: Any = next(iter(by_task.values()), None)
    names = None if first is None else suite(first.suite).average
    if not names or not by_task.keys() >= set(names):
        return None
    chosen = [by_task[name] for name in names]
    kinds = {(score.suite, score.protocol, score.metric) for score in chosen}
    forms = {score.text for score in chosen}
    known = [form for form in forms if not (form or "other-").startswith("other-")]
    if len(kinds) > 1 or (len(forms) > 1 and (None in forms or len(known) > 1)):
        return None
    text = chosen[0].text
    if len(forms) > 1:
        # a third tokenisation is named by its hash for each set (and may equal a known form of a set with nothing to split)
        joined = "\n".join(sorted(f"{score.task} {score.text}" for score in chosen))
        text = f"other-{hashlib.sha256(joined.encode()).hexdigest()[:8]}"
    # there are no predictions of the average: a TaskResult has the arrays, a Score their hash
    none: dict[str, Any] = (
        {"predictions": {}} if isinstance(chosen[0], TaskResult) else {"predictions_sha256": None}
    )
    return replace(
        chosen[0],
        task=AVERAGE,
        value=average_of(score.value for score in chosen),
        std=None,
        n=sum(score.n for score in chosen),
        text=text,
        detail={"tasks": list(names)},
        reduced_sha256=None,
        **none,
    )
