"""The matrix as the main page shows it: cells with words and links, and what a cell opens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from bench.base.grid import Grid, grid
from bench.base.text import plural
from bench.board.board import Board
from bench.board.matrix import Matrix, MatrixCell, MatrixRow
from bench.board.pages.links import minus, run_link
from bench.board.repeat import repeat
from bench.board.tables import RowPlace
from bench.compare.formatting import score, signed_number
from bench.compare.statistics.table import ALPHA, BETTER, INCONCLUSIVE, WORSE, Row, Table
from bench.compare.words.names import row_name, suite_name
from bench.papers import claimed_gain

BACKBONE = "bert-base-uncased"
"""The backbone of the claims in the matrix."""
STRIP = 280.0
"""The width of the drawing of every seed."""
EDGE = 6.0
JUDGED = (BETTER, WORSE, INCONCLUSIVE)


class ShownCell(NamedTuple):
    """A cell of the matrix: "−9.4 worse", a link to what it opens."""

    text: str
    word: str
    anchor: str
    # True for the words of a verdict
    judged: bool


class ShownRow(NamedTuple):
    """A row of the matrix, and the gain that its paper claims on STS and BERT-base."""

    name: str
    method: str
    claimed: str
    of: str
    cells: list[ShownCell | None]


class ShownGroup(NamedTuple):
    """Rows that stand for the same: "" for the judged ones."""

    stands: str
    rows: list[ShownRow]


def matrix_groups(matrix: Matrix, anchors: Mapping[RowPlace, str]) -> list[ShownGroup]:
    """Return the rows of the matrix without the baseline, group after group."""
    groups = []
    for stands, rows in groupby(matrix.rows, key=lambda row: row.stands):
        groups.append(ShownGroup(stands, [_shown_row(row, anchors) for row in rows]))
    return groups


def column_names(matrix: Matrix) -> list[str]:
    """Return "STS", "CxC", "transfer", ..."""
    return [suite_name(shown.table.suite) for shown in matrix.columns]


def baseline_scores(matrix: Matrix) -> list[tuple[str, int]]:
    """Return the baseline's score and number of seeds in each column."""
    scores = []
    for cell in matrix.baseline.cells:
        mean = None if cell is None else cell.mean
        text = "" if mean is None else score(mean, 1)
        scores.append((text, 0 if cell is None else len(cell.row.runs)))
    return scores


def _shown_row(row: MatrixRow, anchors: Mapping[RowPlace, str]) -> ShownRow:
    first = row.first.row
    claimed, of = _claim(first)
    cells = [None if cell is None else _shown_cell(cell, anchors) for cell in row.cells]
    return ShownRow(row_name(first, row.first.shown.table), first.method, claimed, of, cells)


def _claim(row: Row) -> tuple[str, str]:
    """Return the printed gain, and of how many runs it is; empty if no paper prints one."""
    found = claimed_gain(row.method, row.variant, row.setting, BACKBONE)
    if found is None:
        return "", ""
    gain, cell = found
    return _signed(gain), cell.runs


def _signed(value: float, decimals: int = 2) -> str:
    """Write "+1.64" or "−1.64"."""
    return minus(signed_number(value, decimals))


def _shown_cell(cell: MatrixCell, anchors: Mapping[RowPlace, str]) -> ShownCell:
    against = cell.against
    text = "" if against is None else _signed(against.difference, 1)
    return ShownCell(text, cell.word, cell_anchor(cell, anchors), cell.word in JUDGED)


def cell_anchor(cell: MatrixCell, anchors: Mapping[RowPlace, str]) -> str:
    """Return the id of what a cell opens."""
    return f"cell-{anchors[cell.shown.anchor, cell.place]}"


def matrix_grid(matrix: Matrix) -> Grid:
    """Lay out the matrix as a table of texts, for Markdown."""
    lines = []
    for row in matrix.rows:
        first = row.first.row
        name = row_name(first, row.first.shown.table)
        claimed, of = _claim(first)
        cells = [f"{name} ({row.stands})" if row.stands else name]
        cells.append(f"{claimed}, {of}" if of else claimed)
        for cell in row.cells:
            cells.append("" if cell is None else _cell_text(cell))
        lines.append(cells)
    base = row_name(matrix.baseline.first.row, matrix.columns[0].table)
    scores = [f"{text}, {plural(seeds, 'seed')}" for text, seeds in baseline_scores(matrix)]
    lines.append([f"{base}, score", "", *scores])
    columns = ["method", "paper says (STS, BERT-base)", *column_names(matrix)]
    return grid(columns, lines)


def _cell_text(cell: MatrixCell) -> str:
    """Write "−9.4 worse"; the difference alone for a row that is not judged."""
    against = cell.against
    text = "" if against is None else _signed(against.difference, 1)
    word = "" if cell.row.stands else cell.word
    return " ".join(filter(None, (text, word)))


class OpenCell(NamedTuple):
    """What a cell opens: facts with their words, a drawing of every seed, and where to go."""

    anchor: str
    title: str
    word: str
    facts: list[tuple[str, str]]
    strip: dict[str, Any] | None
    row_anchor: str
    run: str
    command: str


def open_cells(board: Board, matrix: Matrix, anchors: Mapping[RowPlace, str]) -> list[OpenCell]:
    """Return what each cell of the matrix opens."""
    opened = []
    for row in matrix.rows:
        for cell, base in zip(row.cells, matrix.baseline.cells, strict=True):
            if cell is not None and base is not None:
                opened.append(_open(board, cell, base, anchors))
    return opened


def _open(
    board: Board, cell: MatrixCell, base: MatrixCell, anchors: Mapping[RowPlace, str]
) -> OpenCell:
    table = cell.shown.table
    runs = [run for run in board.runs if run.record.run_id in cell.row.runs]
    return OpenCell(
        anchor=cell_anchor(cell, anchors),
        title=f"{row_name(cell.row, table)} on {suite_name(table.suite)}",
        word=cell.word,
        facts=_facts(cell, base),
        strip=_strip(cell, base),
        row_anchor=anchors[cell.shown.anchor, cell.place],
        run=run_link(board, cell.row.runs[0]),
        command=repeat(runs),
    )


def _facts(cell: MatrixCell, base: MatrixCell) -> list[tuple[str, str]]:
    """Return what is known of a cell, a line each."""
    table, row, against = cell.shown.table, cell.row, cell.against
    name = row_name(base.row, base.shown.table)
    facts = []
    if against is not None:
        here = f"{_signed(against.difference)} against {name}"
        if against.ci_low is not None and against.ci_high is not None:
            level = f"{100 * (against.ci_level or 0.95):.3g} %"
            ends = f"{_signed(against.ci_low)} to {_signed(against.ci_high)}"
            here += f", {level} interval {ends}"
        facts.append(("here", here))
    facts += _threshold(cell, table)
    claimed, of = _claim(row)
    if claimed and table.suite == "sts":
        facts.append(("paper", f"{claimed} on BERT-base{f', {of}' if of else ''}"))
    if against is not None and against.equal_within is not None and cell.word in JUDGED:
        facts.append(("equal within", f"{against.equal_within:.2f} points"))
    facts += [("seeds", _values(row)), (name, _values(base.row))]
    facts += [("note", note) for note in row.notes]
    return facts


def _threshold(cell: MatrixCell, table: Table) -> list[tuple[str, str]]:
    """Say which p-value is needed, and why, if the cell has a verdict."""
    against = cell.against
    if against is None or against.p is None or table.tested is None or cell.word not in JUDGED:
        return []
    needed = 1 - (against.ci_level or 0.95)
    because = ", because several rows are compared" if needed < ALPHA - 1e-9 else ""
    return [("p", f"{against.p:.2g}; below {needed:.2g} is needed{because}")]


def _values(row: Row) -> str:
    """Write the value of each seed: "46.7, 52.1"."""
    cell = row.cells[-1]
    return "" if cell is None else ", ".join(score(value, 1) for value in cell.values)


def _strip(cell: MatrixCell, base: MatrixCell) -> dict[str, Any] | None:
    """Return the places of every seed's dot of a row and of the baseline, on one scale; None if
    all are equal."""
    ours, theirs = cell.row.cells[-1], base.row.cells[-1]
    if ours is None or theirs is None:
        return None
    every = [*ours.values, *theirs.values]
    low, high = min(every), max(every)
    if high - low < 1e-6:
        return None

    def places(values: Sequence[float]) -> list[float]:
        width = STRIP - 2 * EDGE
        return [round(EDGE + (value - low) / (high - low) * width, 1) for value in values]

    return {
        "ours": places(ours.values),
        "theirs": places(theirs.values),
        "low": score(low, 1),
        "high": score(high, 1),
        "baseline": row_name(base.row, base.shown.table),
    }
