"""The matrix of a board: methods by suites, each cell a difference from the baseline with its word.

Its rows are those of the main table: the judged ones, then those for comparison and for scale.
Untrained starts are not in it, nor rows of other questions, which have tables of their own. Its
columns are the tables of the same setting, backbone and length, one per suite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.board.tables import PROTOCOLS, BoardTable
from bench.compare.statistics.table import FOR_COMPARISON, Against, Row, Table
from bench.compare.words.finding import comparison_of, main_table, verdict_word

FEWEST_COLUMNS = 2
"""A matrix of one suite is its table."""


@dataclass(frozen=True, kw_only=True)
class MatrixCell:
    """One row in the table of one suite."""

    shown: BoardTable
    # the place of the row in the table
    place: int
    row: Row

    @property
    def mean(self) -> float | None:
        """The value of the column that ranks."""
        cell = self.row.cells[-1]
        return None if cell is None else cell.mean

    @property
    def against(self) -> Against | None:
        """The difference from the baseline, with its interval."""
        return comparison_of(self.row)

    @property
    def word(self) -> str:
        """better, worse, inconclusive, not tested, or why the row is not judged."""
        return verdict_word(self.row, self.shown.table)


@dataclass(frozen=True, kw_only=True)
class MatrixRow:
    """A method's cells, one per column; None where it was not scored."""

    first: MatrixCell
    cells: tuple[MatrixCell | None, ...]

    @property
    def stands(self) -> str:
        """Why the row is not judged, "not trained" or "for scale"; "" if it is."""
        return self.first.row.stands


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Methods by suites."""

    columns: tuple[BoardTable, ...]
    rows: tuple[MatrixRow, ...]
    baseline: MatrixRow


def make_matrix(tables: Sequence[BoardTable]) -> Matrix | None:
    """Return the matrix around the main table; None if it has no baseline, or is alone."""
    main = main_table([shown.table for shown in tables])
    if main is None or main.baseline is None:
        return None
    columns = _columns(tables, main)
    if len(columns) < FEWEST_COLUMNS:
        return None
    elsewhere = _rows_of_further_questions(tables)
    made = []
    for place, row in enumerate(main.rows):
        is_elsewhere = row.stands == FOR_COMPARISON and row.runs in elsewhere
        if not is_elsewhere and not row.is_start:
            made.append(_row(place, columns))
    baseline = [row for row in made if row.first.row.is_baseline]
    if not baseline:
        return None
    rows = [row for row in made if not row.first.row.is_baseline]
    return Matrix(columns=tuple(columns), rows=tuple(rows), baseline=baseline[0])


def other_questions(tables: Sequence[BoardTable], matrix: Matrix | None) -> list[BoardTable]:
    """Return the publisher's tables that answer a planned question, but for the main table and the
    columns of the matrix."""
    main = main_table([shown.table for shown in tables])
    columns = {shown.anchor for shown in matrix.columns} if matrix is not None else set()
    found = []
    for shown in tables:
        is_asked = bool(shown.table.question) and not shown.table.sender
        if is_asked and shown.table is not main and shown.anchor not in columns:
            found.append(shown)
    return found


def _rows_of_further_questions(tables: Sequence[BoardTable]) -> set[tuple[str, ...]]:
    """Return the runs of each row of a further question, its baseline among them."""
    found: set[tuple[str, ...]] = set()
    for shown in tables:
        if shown.table.is_further:
            found |= {row.runs for row in shown.table.rows if row.is_asked_about}
    return found


def _columns(tables: Sequence[BoardTable], main: Table) -> list[BoardTable]:
    """Return the main table and, of each other suite, the first table of the same kind that ranks
    its rows and shares most runs with it."""
    runs = {run for row in main.rows for run in row.runs}
    found: dict[str, BoardTable] = {}
    for shown in tables:
        table = shown.table
        same = (table.setting, table.backbone, table.budget, table.sender)
        if same != (main.setting, main.backbone, main.budget, main.sender):
            continue
        if table.is_further:
            continue
        shares = any(run in runs for row in table.rows for run in row.runs)
        if table is main:
            found[table.suite] = shown
        elif shares and table.head is not None and table.baseline is not None:
            found.setdefault(table.suite, shown)
            if PROTOCOLS.get(table.suite) == table.protocol:
                found[table.suite] = shown
    first = [shown for shown in found.values() if shown.table is main]
    return [*first, *(shown for shown in found.values() if shown.table is not main)]


def _row(place: int, columns: Sequence[BoardTable]) -> MatrixRow:
    """Return the row at a place of the first column, with the row of the same runs in each other
    one."""
    main, *others = columns
    first = MatrixCell(shown=main, place=place, row=main.table.rows[place])
    runs = set(first.row.runs)
    cells: list[MatrixCell | None] = [first]
    for shown in others:
        same = [i for i, row in enumerate(shown.table.rows) if not runs.isdisjoint(row.runs)]
        cell = None
        if same:
            cell = MatrixCell(shown=shown, place=same[0], row=shown.table.rows[same[0]])
        cells.append(cell)
    return MatrixRow(first=first, cells=tuple(cells))
