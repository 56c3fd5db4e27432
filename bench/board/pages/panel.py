"""The data behind the panel of a number, as JSON next to the tables."""

from __future__ import annotations

import json
from typing import Any

from markupsafe import Markup

from bench.base.foreign_text import make_visible
from bench.board.board import Board
from bench.board.pages.citations import row_citations
from bench.board.pages.links import run_link
from bench.board.pages.run_page import downloads
from bench.board.repeat import NOT_REPEATABLE
from bench.board.tables import BoardTable
from bench.compare.forms.data import table_data
from bench.compare.statistics.table import Row
from bench.records.run import Run


def panel_data(board: Board) -> dict[str, Any]:
    """Return the tables as in tables.json, with facts on each run and each row.

    A run has its seed, sender and files; a row its command. A row is found by its first
    run; if several rows begin with it, the one with most seeds is.
    """
    rows: dict[str, Row] = {}
    for _, row in board.rows:
        known = rows.get(row.runs[0])
        if known is None or len(row.runs) >= len(known.runs):
            rows[row.runs[0]] = row
    return {
        "tables": {shown.anchor: table_data(shown.table) for shown in board.tables},
        "runs": {run.record.run_id: _run(board, run) for run in board.runs},
        "rows": {run: _row(board, row) for run, row in rows.items()},
        "notes": {shown.anchor: _notes(board, shown) for shown in board.tables},
    }


def _notes(board: Board, shown: BoardTable) -> list[dict[str, Any]]:
    """Return for each row of a table its citation, and its notes."""
    cited = row_citations(board, shown)
    notes = []
    for row, citation in zip(shown.table.rows, cited, strict=True):
        notes.append({"cite": citation, "differs": [make_visible(text) for text in row.notes]})
    return notes


def _run(board: Board, run: Run) -> dict[str, Any]:
    """Return the seed of a run, who submitted it, and links to its page and its files."""
    record = run.record
    sender = board.senders.get(record.run_id)
    links = {"page": run_link(board, record.run_id)}
    for name, address, _ in downloads(board, run):
        links[name] = address
    return {"seed": record.seed, "by": sender and make_visible(sender), "links": links}


def _row(board: Board, row: Row) -> dict[str, Any]:
    """Return the command that makes a row again."""
    by_id = {run.record.run_id: run for run in board.runs}
    runs = [by_id[run_id] for run_id in row.runs]
    command = board.command_again(runs)
    return {
        "command": make_visible(command, limit=None),
        "repeatable": command != NOT_REPEATABLE,
    }


def as_script(content: Any) -> Markup:
    """Write JSON for a script element: no ``<``, no ``&``, no character beyond ASCII."""
    escapes = {ord(c): f"\\u{ord(c):04x}" for c in "<>&"}
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return Markup(text.translate(escapes))  # noqa: S704 - escaped
