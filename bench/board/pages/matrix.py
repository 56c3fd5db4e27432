"""The matrix as the main page shows it: cells with words and links, and what a cell opens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

from msgspec import Struct

from bench.base.grid import Grid, grid
from bench.base.text import capitalised, plural
from bench.board.board import Board
from bench.board.matrix import MatrixCell, MatrixRow
from bench.board.pages.links import method_link, minus, run_link
from bench.compare.formatting import interval_end, score, signed_number
from bench.compare.statistics.table import (
    ALPHA,
    BETTER,
    INCONCLUSIVE,
    WORSE,
    Row,
    Table,
)
from bench.compare.words.finding import as_good_untrained, table_finding
from bench.compare.words.names import row_name, suite_name, table_name
from bench.papers import claimed_gain
from bench.papers.names import CLAIMED_ON

STRIP = 280.0
"""The width of the drawing of every seed."""
EDGE = 6.0
JUDGED = (BETTER, WORSE, INCONCLUSIVE)


class ShownCell(Struct):
    """A cell of the matrix: "−9.4 worse", and the place on the page that it opens."""

    text: str
    # "" if the row is not judged: its group says what it stands for
    word: str
    anchor: str
    # True for the words of a verdict
    judged: bool


class ShownRow(Struct):
    """A row of the matrix, and the gain that its paper claims on STS and BERT-base."""

    name: str
    # the path of the method's page below the version; "" if it has none
    page: str
    claimed: str
    of: str
    cells: list[ShownCell | None]


class ShownGroup(Struct):
    """Rows that are not judged for one reason: "" for the judged ones."""

    stands: str
    rows: list[ShownRow]


class ShownScore(Struct):
    """The baseline's score in a column, "" if it has none, and of how many seeds it is."""

    text: str
    seeds: int


class ShownMatrix(Struct):
    """The matrix in words, as tables.json keeps it; every page, README and picture shows this."""

    # "STS, unsupervised, built-in backbone, 1,000 steps, senteval-all/1"
    place: str
    baseline: str
    # "STS", "CxC", "transfer", ...
    columns: list[str]
    # the anchor of each column's table
    tables: list[str]
    # without the baseline
    groups: list[ShownGroup]
    scores: list[ShownScore]


def shown_matrix(board: Board) -> ShownMatrix | None:
    """Write the board's matrix in words; None if it has none."""
    matrix = board.matrix
    if matrix is None:
        return None
    groups = []
    for stands, rows in groupby(matrix.rows, key=lambda row: row.stands):
        groups.append(ShownGroup(stands, [_shown_row(board, row) for row in rows]))
    main = matrix.columns[0].table
    return ShownMatrix(
        place=table_name(main),
        baseline=row_name(matrix.baseline.first.row, main),
        columns=[suite_name(shown.table.suite) for shown in matrix.columns],
        tables=[shown.anchor for shown in matrix.columns],
        groups=groups,
        scores=[_score(cell) for cell in matrix.baseline.cells],
    )


def other_findings(board: Board) -> str:
    """State what the columns find: the headline has the first one's, and names the length of
    training. Each says, too, if the backbone is as good without training.
    """
    if board.matrix is None:
        return ""
    said = []
    for place, shown in enumerate(board.matrix.columns):
        table = replace(shown.table, length="")
        if place:
            said.append(table_finding(table).claim)
        untrained = as_good_untrained(table)
        if untrained:
            said.append(f"{capitalised(untrained)}.")
    return " ".join(said)


def _score(cell: MatrixCell | None) -> ShownScore:
    if cell is None:
        return ShownScore("", 0)
    text = "" if cell.mean is None else score(cell.mean, 1)
    return ShownScore(text, len(cell.row.runs))


def _shown_row(board: Board, row: MatrixRow) -> ShownRow:
    first = row.first.row
    claimed, of = _claim(first)
    cells = [
        None if cell is None else shown_cell(cell, cell_anchor(board, cell), row.stands)
        for cell in row.cells
    ]
    name = row_name(first, row.first.shown.table)
    return ShownRow(name, method_link(board, first.method), claimed, of, cells)


def _claim(row: Row) -> tuple[str, str]:
    """Return the published gain, and of how many runs it is; empty if no paper publishes one, or
    the row stands for something else."""
    if not row.is_asked_about:
        return "", ""
    found = claimed_gain(row.method, row.variant, row.setting, CLAIMED_ON)
    if found is None:
        return "", ""
    gain, cell = found
    return _signed(gain), cell.runs or "runs not stated"


def _signed(value: float, decimals: int = 2) -> str:
    """Write "+1.64" or "−1.64"."""
    return minus(signed_number(value, decimals))


def shown_cell(cell: MatrixCell, anchor: str, stands: str = "") -> ShownCell:
    """Write a cell in words. ``anchor``: what it opens; ``stands``: what the row's group says,
    which is no verdict, so that the cell has none either."""
    against = cell.against
    text = "" if against is None else _signed(against.difference, 1)
    word = "" if stands else cell.word
    return ShownCell(text, word, anchor, word in JUDGED)


def cell_anchor(board: Board, cell: MatrixCell) -> str:
    """Return the id of what a cell opens."""
    return f"cell-{board.row_anchors[cell.shown.anchor, cell.place]}"


def matrix_grid(shown: ShownMatrix) -> Grid:
    """Lay out the matrix as a table of texts, for Markdown."""
    lines = []
    for group in shown.groups:
        for row in group.rows:
            name = f"{row.name} ({group.stands})" if group.stands else row.name
            claimed = f"{row.claimed}, {row.of}" if row.of else row.claimed
            lines.append([name, claimed, *cell_texts(row)])
    scores = [f"{one.text}, {plural(one.seeds, 'seed')}" for one in shown.scores]
    lines.append([f"{shown.baseline}, score", "", *scores])
    return grid(["method", "published gain (STS, BERT-base)", *shown.columns], lines)


def cell_texts(row: ShownRow) -> list[str]:
    """Return "+0.9 inconclusive" for each cell of a row, "" for none."""
    return [f"{cell.text} {cell.word}".strip() if cell else "" for cell in row.cells]


class OpenCell(NamedTuple):
    """What a cell opens: facts with their words, a drawing of every seed, and where to go."""

    anchor: str
    title: str
    word: str
    facts: list[tuple[str, str]]
    strip: dict[str, Any] | None
    row_anchor: str
    run: str
    # the row's and the baseline's, because the cell is their difference
    commands: list[str]


def open_cells(board: Board) -> list[OpenCell]:
    """Return what each cell of the matrix opens; nothing for a board without one."""
    opened: list[OpenCell] = []
    matrix = board.matrix
    if matrix is None:
        return opened
    for row in matrix.rows:
        for cell, base in zip(row.cells, matrix.baseline.cells, strict=True):
            if cell is not None and base is not None:
                opened.append(_open(board, cell, base))
    return opened


def _open(board: Board, cell: MatrixCell, base: MatrixCell) -> OpenCell:
    table = cell.shown.table
    return OpenCell(
        anchor=cell_anchor(board, cell),
        title=f"{row_name(cell.row, table)} on {suite_name(table.suite)}",
        word=cell.word,
        facts=_facts(cell, base),
        strip=_strip(cell, base),
        row_anchor=board.row_anchors[cell.shown.anchor, cell.place],
        run=run_link(board, cell.row.runs[0]),
        commands=_commands(board, cell, base),
    )


def _commands(board: Board, cell: MatrixCell, base: MatrixCell) -> list[str]:
    """Return the command that makes the runs of a cell's row again, and the baseline's."""
    commands = []
    for row in (cell.row, base.row):
        runs = [run for run in board.runs if run.record.run_id in row.runs]
        commands.append(board.command_again(runs))
    return commands


def _facts(cell: MatrixCell, base: MatrixCell) -> list[tuple[str, str]]:
    """Return what is known of a cell, a line each."""
    table, row, against = cell.shown.table, cell.row, cell.against
    name = row_name(base.row, base.shown.table)
    facts = []
    if against is not None:
        here = f"{_signed(against.difference)} against {name}"
        if against.ci_low is not None and against.ci_high is not None:
            level = f"{100 * (against.ci_level or 0.95):.3g} %"
            low, high = interval_end(against.ci_low), interval_end(against.ci_high)
            here += f", {level} interval {minus(low)} to {minus(high)}"
            own = row.cells[-1]
            if own is not None and own.spread is not None:
                here += f" over other {own.spread.covers}"
        facts.append(("here", here))
    facts += _threshold(cell, table)
    claimed, of = _claim(row)
    if claimed and table.suite == "sts":
        facts.append(("paper", f"{claimed} on BERT-base{f', {of}' if of else ''}"))
    if against is not None and against.equal_within is not None and cell.word in JUDGED:
        margin = f"{against.equal_within:.2f} points: equal only if so much does not matter"
        facts.append(("equal within", margin))
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
        "row": row_name(cell.row, cell.shown.table),
        "baseline": row_name(base.row, base.shown.table),
    }
