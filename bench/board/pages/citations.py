"""The address of each row on a board's page, and a text that cites it."""

from __future__ import annotations

from collections.abc import Mapping

from bench.base.foreign_text import make_visible
from bench.base.text import plural, slug
from bench.board.board import Board
from bench.board.tables import BoardTable
from bench.compare.forms.scores import difference_text, spread_text
from bench.compare.statistics.table import Row
from bench.compare.words.names import column_name, row_name, table_name, versus

BIBTEX = {ord(sign): None for sign in "{}\\"}
"""Characters that would end or change a field."""


def row_citations(board: Board, shown: BoardTable) -> list[str]:
    """Return the BibTeX entry of each row of a table."""
    cited = []
    for place, row in enumerate(shown.table.rows):
        cited.append(row_citation(board, shown, row, board.row_anchors[shown.anchor, place]))
    return cited


def citation_of_run(board: Board, run_id: str) -> str:
    """Return the BibTeX entry of the first row that a run is in; "" if it is in none."""
    for shown in board.tables:
        for place, row in enumerate(shown.table.rows):
            if run_id in row.runs:
                return row_citation(board, shown, row, board.row_anchors[shown.anchor, place])
    return ""


def row_citation(board: Board, shown: BoardTable, row: Row, anchor: str) -> str:
    """Write the BibTeX entry of a row: its number, its baseline, and its address if the board has
    one.
    """
    table = shown.table
    where = f"{table_name(table)}, {plural(table.n(row), 'seed')}"
    fields: Mapping[str, str] = {
        "title": f"{row_name(row, table)}: {_numbers(shown, row)}",
        "howpublished": f"{board.title}, {board.version}: {where}",
        "note": f"row {anchor}",
        "year": board.date[:4],
        "url": f"{board.address}{board.version}/index.html#{anchor}" if board.address else "",
    }
    key = slug("bench", board.version, row.label, row.variant) or "bench"
    lines = [f"@misc{{{key},"]
    for name, value in fields.items():
        text = make_visible(value, limit=None).translate(BIBTEX)
        if text:
            lines.append(f"  {name} = {{{text}}},")
    return "\n".join([*lines, "}"])


def _numbers(shown: BoardTable, row: Row) -> str:
    """Return "STS average 60.85 ±1.58, +0.18 [-0.75, +1.12] vs SimCSE"."""
    table = shown.table
    cell = row.cells[-1]
    if table.head is None or cell is None:
        return table.suite
    half = spread_text(cell)
    text = f"{column_name(table).removeprefix('the ')} {cell.mean:.{cell.decimals}f}"
    if half:
        text += f" ±{half}"
    difference = difference_text(row)
    if difference:
        text += f", {difference} {versus(table)}"
    return text
