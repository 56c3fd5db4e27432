"""The printed tables, row by row: what ``bench references promcse:1`` shows, and what the audit and a reproduction go through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.base.errors import BenchError, UnknownName
from bench.references import PAPERS, ReferenceResult, results

AVERAGE = "Avg."


@dataclass(frozen=True)
class Row:
    """Printed cells that belong together, in the table's order."""

    cells: tuple[ReferenceResult, ...]

    @property
    def first(self) -> ReferenceResult:
        """What all cells share: paper, table, label, setting, method, backbone, variant, and of a row of one metric the rest."""
        return self.cells[0]

    @property
    def average(self) -> ReferenceResult | None:
        return next((cell for cell in self.cells if cell.task == AVERAGE), None)

    @property
    def parts(self) -> tuple[ReferenceResult, ...]:
        """The cells that the average is taken of."""
        return tuple(cell for cell in self.cells if cell.task != AVERAGE)

    @property
    def values(self) -> tuple[tuple[str, float], ...]:
        return tuple((cell.task, cell.value) for cell in self.cells)


def rows(found: Sequence[ReferenceResult] | None = None, *, by_metric: bool = True) -> tuple[Row, ...]:
    """All printed rows, or those that these results make, in the papers' order.

    ``by_metric``: cells of two metrics, which one line of print may hold, are two rows; without it they are one.
    """
    groups: dict[tuple[str, ...], list[ReferenceResult]] = {}
    for r in results() if found is None else found:
        key = (r.paper, r.table, r.label, r.setting, r.backbone, r.variant, *((r.metric, r.source) if by_metric else ()))
        groups.setdefault(key, []).append(r)
    return tuple(Row(tuple(cells)) for cells in groups.values())


def tables() -> tuple[tuple[str, str], ...]:
    """(paper, table) of every table that is here."""
    return tuple(dict.fromkeys((r.paper, r.table) for r in results()))


def split_name(name: str) -> tuple[str, str | None]:
    """ "promcse:1" -> ("promcse", "1"); "promcse" -> ("promcse", None). Raises BenchError for one that is not here."""
    paper, colon, table = name.partition(":")
    if paper not in PAPERS:
        raise UnknownName("paper", paper, PAPERS, "with printed tables here", "bench references")
    known = [t for p, t in tables() if p == paper]
    if colon and table not in known:
        raise BenchError(
            f"table '{table}' of {paper} is not here: its tables are {', '.join(known)}", f"bench references {paper}:{known[0]}"
        )
    return paper, table if colon else None
