"""What the papers printed, table by table, with the audit's remarks and what runs here made of each number."""

from __future__ import annotations

from collections.abc import Sequence

from bench.board.board import Board
from bench.board.reference_tables import ReferenceCell, ReferenceRow, ReferenceTable
from bench.compare.printed import DIFFERS, NOT_TESTED
from bench.references.ours import meaning
from bench.show.grid import Cell, Column, Grid, grid
from bench.show.pages.engine import method_link

SIGNS = {DIFFERS: "outside", NOT_TESTED: "not tested"}


def printed_papers(
    board: Board, method: str | None = None, up: int = 0
) -> dict[str, list[tuple[ReferenceTable, Grid]]]:
    """Short name and citation of a paper -> its tables, in the paper's order; with ``method`` the rows that mean it, and the
    columns in which they have a number."""
    papers: dict[str, list[tuple[ReferenceTable, Grid]]] = {}
    for table in board.references:
        rows = [row for row in table.rows if method in (None, method_of(row))]
        if rows:
            tables = papers.setdefault(f"{table.paper}: {table.title}", [])
            tables.append((table, printed_grid(board, table, rows, up)))
    return papers


def method_of(row: ReferenceRow) -> str:
    """The method that a printed row means, "" for none of ours."""
    return meaning(row.method, row.variant, row.setting).method


def printed_grid(
    board: Board, table: ReferenceTable, rows: Sequence[ReferenceRow], up: int = 0
) -> Grid:
    """Rows as printed, each with ours below it where runs have its method, backbone and recipe; columns without a number are left out."""
    parts = [part for row in rows for part in (row, *row.cells) if part]
    texts = list(dict.fromkeys(text for part in parts for text in remarks(part)))

    def cell(part: ReferenceRow | ReferenceCell, text: str, link: str = "") -> Cell:
        marks = sorted(texts.index(remark) + 1 for remark in remarks(part))
        return Cell(text=text, link=link, marks=tuple(marks))

    lines: list[list[Cell | str]] = []
    for row in rows:
        method = method_of(row)
        link = method_link(board, method) if method in board.methods and up == 0 else ""
        numbers = [
            cell(one, one.text + (f" ±{one.std:g}" if one.std is not None else "")) if one else ""
            for one in row.cells
        ]
        copied = "" if row.own else f"copied from {row.source}".removesuffix(" from ")
        setting = "" if row.setting == "none" else row.setting
        facts = "; ".join(filter(None, (setting, row.corpus, copied, row.runs)))
        lines.append([cell(row, row.label, link), row.backbone, *numbers, facts])
        ours = [_ours(board, table, row, task) for task in table.tasks]
        lines += [["  ours", "", *ours, ""]] if any(one.main for one in ours) else []
    tasks = [Column(task, right=True) for task in table.tasks]
    return grid(["as printed", "backbone", *tasks, "of"], lines, footnotes=texts)


def remarks(part: ReferenceRow | ReferenceCell) -> list[str]:
    """What the audit says of a row or a cell; that a row is copied stands next to it."""
    return [f"{one.title}: {one.text}" for one in part.remarks if one.kind != "copied"]


def _ours(board: Board, table: ReferenceTable, row: ReferenceRow, task: str) -> Cell:
    """The mean of our runs with half of the prediction interval for as many runs as the paper had."""
    place = (table.paper, table.table, row.label, row.setting, row.backbone, row.variant, task)
    here = board.reproduced.get(place)
    if here is None:
        return Cell()
    return Cell(
        number=here.mean,
        decimals=here.decimals,
        spread=here.half,
        sign=SIGNS.get(here.verdict, ""),
    )
