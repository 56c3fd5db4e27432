"""How many sentences of a task stand in a training corpus: what a record keeps of ``bench.data.overlap``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

RULE = "overlap/1"  # of the way sentences are compared: two counts compare only under one


@dataclass(frozen=True)
class Overlap:
    """Of the ``sentences`` distinct ones of a task, ``exact`` stand in the corpus and ``near`` others nearly; ``rows`` of the
    corpus have at least one of either."""

    suite: str
    task: str
    text: str | None
    sentences: int
    exact: int
    near: int
    rows: int


MUCH = 0.1  # share of a task's sentences from which a row that trained on them is marked


def overlaps_of(stored: Any) -> list[Overlap]:
    """What a record keeps, which may be anything; empty where nothing was recorded, or in another version's form."""
    try:
        return msgspec.convert(stored["tasks"], list[Overlap])
    except (TypeError, KeyError, msgspec.ValidationError):
        return []


def seen_tasks(stored: Any, suite: str) -> list[str]:
    """The tasks of a suite of whose sentences a tenth or more stand in the corpus."""
    return [
        one.task
        for one in overlaps_of(stored)
        if one.suite == suite and one.exact + one.near >= MUCH * one.sentences > 0
    ]


def merge_overlaps(found: Sequence[Overlap], before: Any = None) -> dict[str, Any]:
    """What a run's record keeps below ``provenance.corpus.overlap``: these, and of an earlier record what these do not replace."""
    cells = {(overlap.suite, overlap.task, overlap.text): asdict(overlap) for overlap in found}
    if isinstance(before, dict) and before.get("rule") == RULE:
        old = {(task["suite"], task["task"], task["text"]): task for task in before["tasks"]}
        cells = {**old, **cells}
    return {"rule": RULE, "tasks": list(cells.values())}
