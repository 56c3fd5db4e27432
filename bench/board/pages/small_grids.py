"""Small tables of a board's page: its methods, the data of a figure, and what changed."""

from __future__ import annotations

from collections.abc import Sequence

from bench.base.grid import Grid, GridCell, GridColumn, grid
from bench.base.paths import path_name
from bench.base.text import list_names
from bench.board.board import Board
from bench.board.figures import Figure
from bench.board.pages.links import method_link, method_paper_url
from bench.board.pages.words import plain_text
from bench.papers.names import printed_name
from bench.records.record import RunRecord

MOST_DATA = 60
"""Rows of a figure's data on the page; all of them are in its CSV file."""


def methods_grid(board: Board) -> Grid:
    """List every method of the board's rows with its summary and paper, or with the origin of its
    code if it is not described."""
    rows: list[list[GridCell | str]] = []
    for method in board.methods:
        name = GridCell(text=printed_name(method), link=method_link(board, method))
        described = board.described.get(method)
        if described is not None:
            paper = described.cls.paper
            cited = GridCell(text=paper, link=method_paper_url(method, paper))
            rows.append([name, plain_text(described.cls.summary), cited])
            continue
        records = [run.record for run in board.runs if run.record.method == method]
        if not any(record.evaluated_as for record in records):
            rows.append([name, code_origin(records), ""])
    return grid(("method", "what it is", "paper"), rows)


def code_origin(records: Sequence[RunRecord]) -> str:
    """Return "a method of mine.py"; "" if no record names the file of the code."""
    packages = {record.provenance.plugin.package for record in records}
    names = sorted({path_name(package) for package in packages if package})
    return f"a method of {list_names(names)}" if names else ""


def data_grid(figure: Figure) -> Grid:
    """Lay out the first rows of a figure's data."""
    columns = []
    for i, name in enumerate(figure.header):
        texts = [row[i] for row in figure.data if isinstance(row[i], str)]
        columns.append(GridColumn(name, right=not any(texts)))
    rows = []
    for row in figure.data[:MOST_DATA]:
        rows.append([value if isinstance(value, str) else _number(value) for value in row])
    notes = []
    if len(figure.data) > MOST_DATA:
        notes.append(f"The first {MOST_DATA} of {len(figure.data):,} rows; all are in the file.")
    return grid(columns, rows, notes=notes)


def _number(value: float) -> str:
    whole = abs(value) >= 100 and (float(value).is_integer() or abs(value) >= 1000)
    return f"{value:,.0f}" if whole else f"{value:,.4g}"


def changes_grid(board: Board) -> Grid | None:
    """List the rows that changed since the version before; None if there are none."""
    if board.changes is None or not board.changes.rows:
        return None
    before = GridColumn(board.changes.before, right=True)
    now = GridColumn("now", right=True)
    rows = []
    for row in board.changes.rows:
        numbers = (GridCell(number=row.before), GridCell(number=row.now))
        rows.append((row.row, row.where, row.suite, *numbers, row.differs))
    return grid(("row", "setting, backbone", "suite", before, now, "what differs"), rows)
