"""The items that two runs disagree on, as a grid and as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bench.base.grid import Grid, GridColumn, grid
from bench.compare.items import Disagreement, ItemValue
from bench.score.metrics.metric import NDCG

SEARCHES = (
    "gold: the number of documents that answer the query; A and B: nDCG@10, and the ids of the "
    "first documents"
)
RANKS = "in brackets: rank among all items, from 0 to 100; the largest disagreements come first"


def items_grid(disagreement: Disagreement) -> Grid:
    """Make a row for each item: its number, gold, the values of both runs, and the texts if they
    are here."""
    _, task, protocol = disagreement.key
    rows = []
    for item in disagreement.items:
        values = [_text(value) for value in (item.gold, item.first, item.second)]
        rows.append((str(item.number), *values, " | ".join(item.texts or ())))
    notes = []
    if disagreement.no_texts:
        notes.append(f"texts are not available: {disagreement.no_texts}")
    if any(item.gold.place is not None for item in disagreement.items):
        notes.append(RANKS)
    if disagreement.metric == NDCG.name:
        notes.append(SEARCHES)
    return grid(
        [
            *(GridColumn(name, right=True) for name in ("item", "gold", "A", "B")),
            GridColumn("texts", wrap=24),
        ],
        rows,
        title=f"{task}, {protocol}: {disagreement.differ:,} of {disagreement.n:,} items differ",
        notes=notes,
    )


def _text(item: ItemValue) -> str:
    return item.text if item.place is None else f"{item.text} ({item.place:.0f})".lstrip()


def items_data(disagreements: Sequence[Disagreement], first: str, second: str) -> dict[str, Any]:
    """Return the disagreements of the runs ``first`` and ``second`` by schema ``bench.items/1``,
    numbers in full."""
    tasks = []
    for disagreement in disagreements:
        fields = disagreement.key._asdict() | asdict(disagreement)
        del fields["key"], fields["no_texts"]
        tasks.append(fields)
    return {"schema": "bench.items/1", "runs": [first, second], "tasks": tasks}
