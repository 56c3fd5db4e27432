"""The printed tables of papers, with the audit's remarks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bench.base.grid import Grid, GridCell, GridColumn, grid
from bench.base.text import list_names, plural, slug
from bench.board.board import Board
from bench.board.pages.links import method_link
from bench.papers import (
    README,
    SUITES,
    PrintedRow,
    ReferenceResult,
    meaning,
    results,
    rows,
    tables,
)
from bench.papers.remarks import KINDS, remarks

MAIN = "main"
"""The name of a paper's only table of results, if its number is not known."""


class PrintedTable(NamedTuple):
    """A printed table as pages show it."""

    # "printed-promcse-1"
    anchor: str
    # "1"
    table: str
    # "sts, 24 rows, 3 remarks"
    about: str
    grid: Grid

    @property
    def name(self) -> str:
        """Return "table 1"."""
        return printed_table_name(self.table)


def printed_papers(
    board: Board, method: str | None = None, up: int = 0
) -> dict[str, list[PrintedTable]]:
    """Return paper -> its tables, in the paper's order.

    ``method``: only its rows, and the columns in which they have a number.
    """
    papers: dict[str, list[PrintedTable]] = {}
    if board.one_file:
        return papers
    for paper, table in tables():
        lines = [
            row
            for row in rows(results(paper=paper, table=table), by_metric=False)
            if method in (None, method_of(row))
        ]
        if not lines:
            continue
        made = printed_grid(board, lines, up)
        about = [
            *dict.fromkeys(SUITES[cell.metric] for row in lines for cell in row.cells),
            plural(len(lines), "row"),
        ]
        if made.notes:
            about.append(plural(len(made.notes), "remark"))
        papers.setdefault(paper, []).append(
            PrintedTable(
                anchor=f"printed-{slug(paper, table)}",
                table=table,
                about=", ".join(about),
                grid=made,
            )
        )
    return papers


def printed_table_name(table: str) -> str:
    """Return "table 1"; "README of its repository" for numbers that no table of the paper has."""
    if table == README:
        return "README of its repository"
    if table == MAIN:
        return "main table"
    return f"table {table}"


def method_of(row: PrintedRow) -> str:
    """Return the method behind a printed row, "" if it is none of ours."""
    return meaning(row.first.method, row.first.variant, row.first.setting).method


def printed_grid(board: Board, lines: Sequence[PrintedRow], up: int = 0) -> Grid:
    """Lay out rows as printed."""
    tasks = dict.fromkeys(cell.task for row in lines for cell in row.cells)
    made: list[list[GridCell | str]] = []
    for row in lines:
        cells = {cell.task: cell for cell in row.cells}
        ours = method_of(row)
        is_here = ours in board.methods and up == 0
        label = GridCell(text=row.first.label, link=method_link(board, ours) if is_here else "")
        numbers = [_number(cells.get(task)) for task in tasks]
        made.append([label, row.first.backbone, *numbers, _origin(row)])
    return grid(
        ["as published", "backbone", *(GridColumn(task, right=True) for task in tasks), "of"],
        made,
        notes=remark_lines(lines),
    )


def _origin(row: PrintedRow) -> str:
    """Return "unsupervised; copied from simcse; one run"."""
    first = row.first
    facts = ["" if first.setting == "none" else first.setting]
    facts += [cell.corpus for cell in row.cells]
    for cell in row.cells:
        if not cell.own_result:
            facts.append(f"copied from {cell.source}".removesuffix(" from "))
    facts += [cell.runs for cell in row.cells]
    return "; ".join(dict.fromkeys(fact for fact in facts if fact))


def remark_lines(lines: Sequence[PrintedRow]) -> list[str]:
    """Return the audit's remarks on these rows with the rows and cells that they are about, the
    gravest kinds first."""
    kinds = list(KINDS)
    places: dict[tuple[int, str], dict[str, None]] = {}
    for row in lines:
        for cell in row.cells:
            for remark in remarks(cell):
                text = f"{KINDS[remark.kind]}: {remark.text}"
                place = ", ".join(filter(None, (row.first.label, remark.task)))
                places.setdefault((kinds.index(remark.kind), text), {})[place] = None
    return [f"{list_names(noted)}: {text}" for (_, text), noted in sorted(places.items())]


def _number(cell: ReferenceResult | None) -> GridCell:
    if cell is None:
        return GridCell()
    return GridCell(text=cell.printed + ("" if cell.std is None else f" ±{cell.std:g}"))
