"""The row that a row of another method is run like."""

from __future__ import annotations

from bench.board.addresses import run_file
from bench.board.board import Board
from bench.compare.statistics.table import Row, Table
from bench.records.names import PLAN


def plan_to_copy(board: Board) -> str:
    """Return the path below the version of the plan that a row of another method copies, of the
    largest table of trained rows.
    """
    first, *_ = row_to_copy(board, largest_table(board)).runs
    return run_file(first, PLAN)


def largest_table(board: Board) -> Table:
    """Return the publisher's table with the most rows, the first of equals; one with trained rows
    if there is any."""
    tables = [shown.table for shown in board.tables if not shown.table.sender]
    trained = [table for table in tables if any(has_training(board, row) for row in table.rows)]
    choice = trained or tables or [shown.table for shown in board.tables]
    return max(choice, key=lambda table: len(table.rows))


def row_to_copy(board: Board, table: Table) -> Row:
    """Return the row to copy seeds and training from: the baseline if it is trained, else the
    trained row of most seeds."""
    trained = [row for row in table.rows if has_training(board, row)]
    for row in trained:
        if row.is_baseline:
            return row
    return max(trained or table.rows, key=lambda row: len(row.runs))


def has_training(board: Board, row: Row) -> bool:
    """Say if something was trained for a row."""
    return board.records[row.runs[0]].training is not None
