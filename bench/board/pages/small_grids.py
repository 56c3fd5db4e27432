"""Small tables of a board's page: its methods, and what changed."""

from __future__ import annotations

from collections.abc import Sequence

from bench.base.grid import Grid, GridCell, GridColumn, grid
from bench.base.paths import path_name
from bench.base.text import list_names
from bench.board.board import Board
from bench.board.pages.links import method_link, method_paper_url
from bench.board.pages.words import plain_text
from bench.papers.names import printed_name
from bench.records.record import RunRecord


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
