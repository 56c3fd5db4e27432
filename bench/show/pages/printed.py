"""What the papers printed, table by table, with the audit's remarks and what runs here made of each number."""

from __future__ import annotations

from collections.abc import Sequence

from bench.board.board import Board
from bench.board.reference_tables import ReferenceCell, ReferenceRow, ReferenceTable
from bench.compare.printed import DIFFERS, NOT_TESTED
from bench.references.audit import KINDS
from bench.references.ours import meaning
from bench.show.grid import Cell, Column, Grid, grid
from bench.show.pages.engine import method_link

Papers = dict[str, list[tuple[ReferenceTable, Grid]]]
"""Short name and citation of a paper -> its tables, in the paper's order."""
SIGNS = {DIFFERS: "outside", NOT_TESTED: "not tested"}


def printed_papers(board: Board, method: str | None = None, up: int = 0) -> Papers:
    """All printed tables of a board; with ``method`` the rows that mean it, and the columns in which they have a number."""
    papers: Papers = {}
    for table in board.references:
        rows = [row for row in table.rows if method is None or method_of(row) == method]
        if rows:
            made = (table, printed_grid(board, table, rows, up))
            papers.setdefault(f"{table.paper}: {table.title}", []).append(made)
    return papers


def method_of(row: ReferenceRow) -> str:
    """The method that a printed row means, "" for none of ours."""
    return meaning(row.method, row.variant, row.setting).method


def printed_grid(
    board: Board, table: ReferenceTable, rows: Sequence[ReferenceRow], up: int = 0
) -> Grid:
    """Rows as printed, each with ours below it where runs have its method, backbone and recipe; columns without a number are left out."""
    texts = remarks(rows)
    lines: list[list[Cell | str]] = []
    for row in rows:
        method = method_of(row)
        link = method_link(board, method) if method in board.methods and up == 0 else ""
        label = Cell(text=row.label, link=link, marks=_marks(row, texts))
        copied = f"copied from {row.source}" if row.source else "copied"
        setting = "" if row.setting == "none" else row.setting
        facts = (setting, row.corpus, "" if row.own else copied, row.runs)
        numbers = [_number(cell, texts) for cell in row.cells]
        lines.append([label, row.backbone, *numbers, "; ".join(filter(None, facts))])
        ours = [_ours(board, table, row, task) for task in table.tasks]
        lines += [["  ours", "", *ours, ""]] if any(cell.main for cell in ours) else []
    tasks = [Column(task, right=True) for task in table.tasks]
    return grid(["as printed", "backbone", *tasks, "of"], lines, footnotes=texts)


def remarks(rows: Sequence[ReferenceRow]) -> list[str]:
    """What the audit says of these rows, the gravest kinds first; that a row is copied stands next to it."""
    ranked = {
        (list(KINDS).index(remark.kind), f"{remark.title}: {remark.text}")
        for row in rows
        for part in (row, *row.cells)
        for remark in (part.remarks if part else ())
        if remark.kind != "copied"
    }
    return [text for _, text in sorted(ranked)]


def _marks(part: ReferenceRow | ReferenceCell, texts: Sequence[str]) -> tuple[int, ...]:
    """Numbers of the remarks on a row or a cell."""
    mine = {f"{remark.title}: {remark.text}" for remark in part.remarks}
    return tuple(i for i, text in enumerate(texts, 1) if text in mine)


def _number(cell: ReferenceCell | None, texts: Sequence[str]) -> Cell:
    if cell is None:
        return Cell()
    std = "" if cell.std is None else f" ±{cell.std:g}"
    return Cell(text=cell.text + std, marks=_marks(cell, texts))


def _ours(board: Board, table: ReferenceTable, row: ReferenceRow, task: str) -> Cell:
    """The mean of our runs with half of the prediction interval for as many runs as the paper had."""
    place = (table.paper, table.table, row.label, row.setting, row.backbone, row.variant, task)
    here = board.reproduced.get(place)
    if here is None or here.mean is None:
        return Cell()
    sign = SIGNS.get(here.verdict, "")
    return Cell(number=here.mean, decimals=here.decimals, spread=here.half, sign=sign)
