"""Where a run and a method stand on a board: the rows of its tables, found by run id and by method."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.board.board import Board, BoardTable
    from bench.compare.statistics.table import Row


@dataclass(frozen=True)
class Place:
    """One row of one table."""

    of: BoardTable
    row: Row


@dataclass
class Places:
    """All rows of a board."""

    by_run: dict[str, list[Place]] = field(default_factory=dict)
    by_method: dict[str, list[Place]] = field(default_factory=dict)


_last: list[tuple[Board, Places]] = []  # of the board whose pages are being made: a thousand pages ask for the same


def places(board: Board) -> Places:
    """In the order of the board's tables and their rows."""
    if not _last or _last[0][0] is not board:
        _last[:] = [(board, _places(board))]
    return _last[0][1]


def _places(board: Board) -> Places:
    found = Places()
    for table in board.tables:
        for row in table.table.rows:
            place = Place(table, row)
            found.by_method.setdefault(row.method, []).append(place)
            for run_id in row.runs:
                found.by_run.setdefault(run_id, []).append(place)
    return found
