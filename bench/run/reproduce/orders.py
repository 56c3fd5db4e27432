"""Do the rows of a printed table stand in the same order here? Rank correlations and pairs: numbers in, numbers out.

Rows are compared within one setting, printed backbone and task of a table: its average, or each task where it has none. A small
version on another backbone says nothing about a paper's values; which orders it keeps can still be counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from bench.references import ReferenceResult
from bench.references.rows import Row
from bench.score.metrics.correlation import spearman

FEWEST = 3  # rows of a rank correlation


@dataclass(frozen=True)
class Place:
    """A printed row and ours beside it."""

    label: str
    printed: float
    ours: float | None  # None: no finished run of ours has it
    run: str  # what ours is; or why there is none


@dataclass(frozen=True)
class Order:
    """Rows of one table that print the same task, in the paper's order: the best first."""

    paper: str
    table: str
    setting: str
    backbone: str  # as printed
    task: str
    metric: str
    places: tuple[Place, ...]

    @property
    def compared(self) -> tuple[Place, ...]:
        return tuple(place for place in self.places if place.ours is not None)

    @property
    def pairs(self) -> tuple[int, int]:
        """(pairs of rows in the paper's order, pairs that could be): where both sides tell the two apart and they are not one run."""
        able = [
            (a.printed - b.printed, (a.ours or 0.0) - (b.ours or 0.0))
            for a, b in combinations(self.compared, 2)
            if a.printed != b.printed and a.ours != b.ours
        ]
        return sum((printed > 0) == (ours > 0) for printed, ours in able), len(able)

    @property
    def correlation(self) -> float | None:
        """Spearman's, equal values sharing the mean of their ranks; None for fewer than three rows, or where one side is all equal."""
        found = self.compared
        if len(found) < FEWEST:
            return None
        try:
            return spearman([place.printed for place in found], [cell.ours or 0.0 for cell in found]) / 100
        except ValueError:
            return None


def orders(
    rows: Sequence[Row], ours: Callable[[ReferenceResult, Row], tuple[float | None, str]], lower_is_better: Sequence[str]
) -> list[Order]:
    """The orders of printed rows, table by table; ``ours`` gives our value of a printed cell, and what it is or why it is none.

    A group of one row has no order and is left out.
    """
    groups: dict[tuple[str, str, str, str, str, str], list[Place]] = {}
    for row in rows:
        for cell in _heads(row):
            groups.setdefault(_group(cell), []).append(Place(cell.label, cell.value, *ours(cell, row)))
    found = []
    for key, places in groups.items():
        if len(places) > 1:
            places.sort(key=lambda place: place.printed if key[5] in lower_is_better else -place.printed)  # noqa: B023
            found.append(Order(*key, tuple(places)))
    return found


def _heads(row: Row) -> Iterator[ReferenceResult]:
    yield from (row.average,) if row.average is not None else row.cells


def _group(cell: ReferenceResult) -> tuple[str, str, str, str, str, str]:
    return cell.paper, cell.table, cell.setting, cell.backbone, cell.task, cell.metric
