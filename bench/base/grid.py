"""A table as data. ``printing`` and ``markup`` print it; nothing else draws one.

Texts come from plugins, folders and other people's records: no form lets them move a cursor, open a
tag, run a formula or a command.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import StringIO

from bench.base.foreign_text import format_csv_value

MAY_BE_BEST = "may be the best"
BEST_SIGN = "◆"
"""What a text has behind a cell that may be the best. Pages shade it."""


@dataclass(frozen=True, kw_only=True)
class GridCell:
    """One cell: ``text``, or ``number`` with ``decimals``."""

    text: str = ""
    number: float | None = None
    decimals: int = 2
    # printed after ±
    spread: float | None = None
    may_be_best: bool = False
    # "best", "strong", "second" or "dim"
    emphasis: str = ""
    # a relative address, for Markdown and HTML
    link: str = ""

    @property
    def main(self) -> str:
        """The text, or the number as printed."""
        return self.text if self.number is None else f"{self.number:.{self.decimals}f}"

    @property
    def half(self) -> str:
        """The spread as printed; "" for none."""
        return "" if self.spread is None else f"{self.spread:.{self.decimals}f}"


@dataclass(frozen=True)
class GridColumn:
    """The alignment of a column, and how a terminal shortens it if there is too little room."""

    name: str
    right: bool = False
    # its texts fold; columns are left out rather than that it gets narrower; 0: it never folds
    wrap: int = 0
    # columns are left out rather than that texts of up to so many characters fold
    whole: int = 0
    # columns with the highest number are left out first; 0: never
    drop: int = 0


INDENT = "  "
"""Printed before the first cell of a row, once for each level."""


@dataclass(frozen=True)
class GridRow:
    """The cells of a row."""

    cells: tuple[GridCell, ...]
    # number of levels below the row above that it belongs to; 0 for a row of its own
    indent: int = 0

    def __iter__(self) -> Iterator[GridCell]:
        return iter(self.cells)

    def __getitem__(self, number: int) -> GridCell:
        return self.cells[number]

    @property
    def printed(self) -> tuple[GridCell, ...]:
        """The cells, the text of the first one indented."""
        if not self.indent:
            return self.cells
        first, *others = self.cells
        return (replace(first, text=INDENT * self.indent + first.main, number=None), *others)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table: rows of as many cells as there are columns."""

    columns: tuple[GridColumn, ...]
    rows: tuple[GridRow, ...]
    # what the table finds, in sentences: it stands first
    lead: str = ""
    title: str = ""
    notes: tuple[str, ...] = ()
    # a small table that stands below the notes
    below: Grid | None = None
    # how to see the columns that a terminal has no room for
    whole: str = "a wider terminal"
    # meaning of bold and the like, for forms that have them
    key: str = ""


def grid(
    columns: Iterable[GridColumn | str],
    rows: Iterable[GridRow | Iterable[GridCell | str]],
    *,
    title: str = "",
    notes: Sequence[str] = (),
    whole: str = "a wider terminal",
) -> Grid:
    """Make a grid of cells and plain strings. Columns without any text are left out."""
    made = [_as_row(row) for row in rows]
    shape = [column if isinstance(column, GridColumn) else GridColumn(column) for column in columns]
    used = _used_columns(made, len(shape))
    shown = []
    for row in made:
        shown.append(GridRow(tuple(row.cells[number] for number in used), row.indent))
    return Grid(
        columns=tuple(shape[number] for number in used),
        rows=tuple(shown),
        title=title,
        notes=tuple(notes),
        whole=whole,
    )


def indented(cells: Iterable[GridCell | str], levels: int = 1) -> GridRow:
    """Make a row that belongs to the one above."""
    return replace(_as_row(cells), indent=levels)


def _as_row(cells: GridRow | Iterable[GridCell | str]) -> GridRow:
    if isinstance(cells, GridRow):
        return cells
    return GridRow(
        tuple(cell if isinstance(cell, GridCell) else GridCell(text=cell) for cell in cells)
    )


def _used_columns(rows: Sequence[GridRow], columns: int) -> list[int]:
    """Return the numbers of the columns that have a text; all of them if there are no
    rows."""
    if not rows:
        return list(range(columns))
    used = []
    for number, column in enumerate(zip(*(row.cells for row in rows), strict=True)):
        if any(cell.main for cell in column):
            used.append(number)
    return used or [0]


def csv_lines(names: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a line of names and a line for each row as CSV.

    Numbers have all digits, truth values are "yes" and "no", None is empty; no text is a formula.
    """
    out = StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [format_csv_value(value) for value in row] for row in (names, *rows)
    )
    return out.getvalue()
