"""How many sentences of a task stand in a training corpus: what a record keeps of ``bench.data.overlap``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

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


def merge_overlaps(found: Sequence[Overlap], before: Any = None) -> dict[str, Any]:
    """What a run's record keeps below ``provenance.corpus.overlap``: these, and of an earlier record what these do not replace."""
    cells = {(overlap.suite, overlap.task, overlap.text): asdict(overlap) for overlap in found}
    if isinstance(before, dict) and before.get("rule") == RULE:
        old = {(task["suite"], task["task"], task["text"]): task for task in before["tasks"]}
        cells = {**old, **cells}
    return {"rule": RULE, "tasks": list(cells.values())}
