"""The figures of a board with the sheets that they were drawn on, and the points on them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from bench.board.board import Board
from bench.board.figures import Figure, board_figures
from bench.board.figures.sheet import BAR
from bench.board.tables import BoardTable
from bench.compare.statistics.table import Table

LENGTHS = (1, 4, 16)
SEEDS = 3  # seeds of a method with its own recipe


@dataclass
class Drawn:
    """The figures drawn from a board: by kind, and the axes of each."""

    board: Board
    figures: dict[str, Figure] = field(default_factory=dict)
    sheets: dict[str, Any] = field(default_factory=dict)  # matplotlib's sheets, by the SVG's figure

    def axes(self, kind: str) -> list[Any]:
        return list(self.sheets[kind].axes)

    def table(self, suite: str) -> Table:
        return table_of(self.board, suite).table

    def rows(self, kind: str) -> dict[str, tuple[Any, ...]]:
        """Return the data of a figure by their first column."""
        return {str(row[0]): row[1:] for row in self.figures[kind].data}


def table_of(board: Board, suite: str) -> BoardTable:
    return next(one for one in board.tables if one.table.suite == suite)


def draw(board: Board) -> Drawn:
    """Draw all figures, and keep the sheet that each was written from."""
    from matplotlib.figure import Figure as Sheet

    done, sheets = Drawn(board), []
    savefig = Sheet.savefig
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Sheet, "savefig", lambda *a, **b: sheets.append(a[0]) or savefig(*a, **b))
        for figure in board_figures(board):
            assert figure.svg
            kind, *_ = figure.name.split("-")
            done.figures[kind], done.sheets[kind] = figure, sheets[-1]
    return done


def with_captions(board: Board) -> Board:
    """Add CxC-STS to a board of STS.

    It gets the numbers of the first STS set in another order, because the real suite takes long.
    """
    one = table_of(board, "sts")
    table = replace(
        one.table,
        suite="cxc",
        protocol="cxc-promcse/1",
        columns=("CxC-STS",),
        rows=tuple(replace(row, cells=row.cells[:1]) for row in reversed(one.table.rows)),
    )
    return replace(board, tables=(*board.tables, replace(one, anchor="cxc", table=table)))


def marks(axes: Any, colour: str | None = None, marker: str = "o") -> list[tuple[float, float]]:
    """Return the coordinates of all points on these axes."""
    points = []
    for line in axes.lines:
        if line.get_marker() == marker and colour in (None, line.get_color()):
            for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True):
                points.append((float(x), float(y)))
    return points


def bars(axes: Any) -> list[list[float]]:
    """Return the error bars: x, x, y, y."""
    lines = [line.get_xydata().T for line in axes.lines if line.get_label() == BAR]
    return sorted([*map(float, x), *map(float, y)] for x, y in lines if len(x))


def close(found: list[Any], expected: list[Any]) -> None:
    """Check that both hold the same points in any order, as exact as data are written."""
    assert len(found) == len(expected)
    np.testing.assert_allclose(sorted(found), sorted(expected), atol=1e-3)
