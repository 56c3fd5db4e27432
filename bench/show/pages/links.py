"""Links between pages, and how pages write numbers."""

from __future__ import annotations

from bench.board.addresses import link, method_page, run_file
from bench.board.board import Board
from bench.compare.statistics.table import Table


def run_link(board: Board, run_id: str, up: int = 0) -> str:
    """Link to the page that has the scores of a run, from a page ``up`` folders deep."""
    page = board.page_of[run_id]
    return f"#{link(page)}" if board.one_file else link(run_file(page, "index.html"), up)


def method_link(board: Board, method: str, up: int = 0) -> str:
    """Link to the page of a method; "" if there is none."""
    return "" if board.one_file else link(method_page(method), up)


def form_text(table: Table) -> str:
    """Return "senteval-all/1, tokenised"."""
    return f"{table.protocol}, {table.text}" if table.text else table.protocol


def minus(text: str) -> str:
    """Replace hyphens by minus signs."""
    return text.replace("-", "\N{MINUS SIGN}")
