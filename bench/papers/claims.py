"""The claims in the papers' texts:

``claims.tsv`` of a paper's folder, a claim per line, with the two printed cells behind it, if there
are any, and the comparison here that tests it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from bench.base.errors import BenchError
from bench.papers import (
    ReferenceResult,
    half_unit,
    read_every,
    results,
)

HIGHER = "higher"
LOWER = "lower"
NOT_HIGHER = "not higher"
WORDS = (HIGHER, LOWER, NOT_HIGHER)
"""What a text claims of a score if it names no number of points."""
TINY = 1e-9
NOT_OURS = "other"
"""The printed setting of rows that nobody trains here."""


@dataclass(frozen=True)
class PrintedDifference:
    """The two printed cells behind a claim."""

    cell: ReferenceResult
    less: ReferenceResult

    @property
    def value(self) -> float:
        return self.cell.value - self.less.value

    @property
    def rounding(self) -> float:
        """The largest error that rounding of both cells explains."""
        return half_unit(self.cell.printed) + half_unit(self.less.printed)


@dataclass(frozen=True)
class Claim:
    """A claim of a paper's text, and the comparison that tests it."""

    paper: str
    # "section 6"; "text" if no more is recorded
    place: str
    # what is claimed: "EH improves uniformity"
    says: str
    # points as printed, "1.21", or one of WORDS
    claimed: str
    setting: str
    backbone: str
    task: str
    # "6" or "figure7": of the cells, or of the drawing where there are none
    table: str
    suite: str
    # the rows that a version needs: "promcse+eh", "promcse prompt_length=1"; the baseline is ""
    # if it is not run here
    row: str
    baseline: str
    # why a version cannot test it as it is printed
    open: str
    # None if the paper prints no cells
    printed: PrintedDifference | None

    @property
    def needs(self) -> tuple[str, ...]:
        """The rows that a version needs to test it; empty if none can."""
        return (self.row, self.baseline) if self.baseline else ()

    def holds(self, difference: float, rounding: float = 0.0) -> bool:
        """Return whether a difference is as claimed, ``rounding`` apart."""
        if self.claimed == HIGHER:
            return difference > TINY
        if self.claimed == LOWER:
            return difference < -TINY
        if self.claimed == NOT_HIGHER:
            return difference <= TINY
        off = abs(difference - float(self.claimed))
        return off <= math.fsum((half_unit(self.claimed), rounding, TINY))


@cache
def claims() -> tuple[Claim, ...]:
    """Return every claim that is recorded, true or not.

    Raises BenchError, naming the file, for a cell that is not printed.
    """
    found = []
    for row in read_every("claims.tsv"):
        printed = None
        if row["label"]:
            printed = PrintedDifference(
                _printed_cell(row, row["table"], row["label"]),
                _printed_cell(row, row["less_table"], row["less_label"]),
            )
        told = {key: text for key, text in row.items() if key not in CELLS}
        found.append(Claim(**told, printed=printed))
    return tuple(found)


CELLS = ("label", "less_table", "less_label")
"""The columns that name the cells."""


def _printed_cell(row: dict[str, str], table: str, label: str) -> ReferenceResult:
    """Return the cell of a label; of a copied row and a rerun with the same label, the rerun's."""
    found = []
    for cell in results(paper=row["paper"], backbone=row["backbone"], task=row["task"]):
        of_setting = cell.setting in (row["setting"], NOT_OURS)
        if of_setting and (cell.table, cell.label) == (table, label):
            found.append(cell)
    if not found:
        raise BenchError(
            f"claims.tsv: {row['paper']} table {table} has no cell {row['task']} of '{label}', "
            f"{row['setting']}, {row['backbone']}"
        )
    found.sort(key=lambda cell: not cell.own_result)
    return found[0]
