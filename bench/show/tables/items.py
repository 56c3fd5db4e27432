"""Items on which two runs disagree, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bench.show.grid import Column, Grid, grid

if TYPE_CHECKING:
    from bench.compare.items import Disagreement, ItemValue

RANKS = "in brackets: place by rank among all items, 0 to 100; first the pairs whose places are furthest apart"


def items_grid(one: Disagreement) -> Grid:
    """A row for each item: its number in the data, gold, the values of both runs, and the texts
    where they are at hand."""
    _, task, protocol, form = one.key
    title = f"{task}, {protocol}{f' ({form})' if form else ''}"
    notes = [f"no texts: {one.no_texts}"] if one.no_texts else []
    notes += [RANKS] if any(item.gold.place is not None for item in one.items) else []
    numbers = [Column(name, right=True) for name in ("item", "gold", "A", "B")]
    return grid(
        [*numbers, Column("texts", wrap=24)],
        [
            (
                str(item.number),
                *map(_text, (item.gold, item.first, item.second)),
                " | ".join(item.texts or ()),
            )
            for item in one.items
        ],
        title=f"{title}: {one.differ:,} of {one.n:,} items differ",
        notes=notes,
    )


def _text(item: ItemValue) -> str:
    return item.text if item.place is None else f"{item.text} ({item.place:.0f})".lstrip()


def as_data(disagreements: Sequence[Disagreement], first: str, second: str) -> dict[str, Any]:
    """Schema ``bench.items/1``: numbers in full."""
    tasks = [
        {
            name: value
            for name, value in (one.key._asdict() | asdict(one)).items()
            if name not in ("key", "no_texts")
        }
        for one in disagreements
    ]
    return {"schema": "bench.items/1", "runs": [first, second], "tasks": tasks}
