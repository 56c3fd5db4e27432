"""The printed tables, row by row: what ``bench references promcse:1`` shows, and what the audit and a reproduction go through."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

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


@dataclass(frozen=True)
class Part:
    """A table or figure of a paper. ``instead`` is empty where its scores are here to be compared with; else it is the command that
    shows, or makes, what stands there."""

    paper: str
    part: str  # "table 6", "figure 2"
    shows: str
    instead: str


@cache
def contents() -> tuple[Part, ...]:
    """The tables of the papers, and those of their figures of which it is known here what they show, in the papers' order."""
    with Path(__file__).with_name("contents.tsv").open(encoding="utf-8", newline="") as file:
        return tuple(Part(**row) for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def split_name(name: str) -> tuple[str, str | None]:
    """ "promcse:1" -> ("promcse", "1"); "promcse" -> ("promcse", None). Raises BenchError for one that is not here, with what stands
    there where that is known: "promcse:6" has hyperparameters, "promcse:figure2" points of a curve.
    """
    paper, colon, table = name.partition(":")
    if paper not in PAPERS:
        raise UnknownName("paper", paper, PAPERS, "with printed tables here", "bench references")
    known = [t for p, t in tables() if p == paper]
    if colon and table not in known:
        part = " ".join(re.fullmatch(r"(figure)? ?(.*)", table).groups("table"))  # type: ignore[union-attr]
        for one in contents():
            if (one.paper, one.part) == (paper, part):
                raise BenchError(f"{part} of {paper} has no scores that can be compared: it shows {one.shows}", one.instead)
        raise BenchError(
            f"table '{table}' of {paper} is not here: its tables are {', '.join(known)}", f"bench references {paper}:{known[0]}"
        )
    return paper, table if colon else None
