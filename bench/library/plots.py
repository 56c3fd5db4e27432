"""Plots of score tables on matplotlib's axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError, UnknownName
from bench.base.extras import install_hint
from bench.board.figures.gains import FigureRows, draw_rows
from bench.board.figures.sheet import STYLE
from bench.compare.statistics.table import BETTER, WORSE, Cell, Row, Table
from bench.compare.words.names import row_name, table_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 6.4
ROW_HEIGHT = 0.3
"""Inches."""


def plot_tables(
    tables: Sequence[Table], task: str | None = None, axes: Axes | None = None
) -> list[Axes]:
    """Draw each table on its own axes, one below the other, as ``Tables.plot`` says."""
    if task is not None:
        known = list(dict.fromkeys(name for table in tables for name in table.columns))
        if task not in known:
            raise UnknownName("task", task, known, "of these tables")
        tables = [table for table in tables if task in table.columns]
    if not tables:
        raise BenchError("there is no score to draw", "runs that have finished, with a score")
    if axes is not None and len(tables) > 1:
        raise BenchError(
            f"one pair of axes for {len(tables)} tables",
            "leave axes= out, or choose the runs of one table",
        )
    points = [_points(table, task) for table in tables]
    if axes is not None:
        axes_of_tables = [axes]
    else:
        axes_of_tables = _new_axes([len(table_points) for table_points in points])
    for table_axes, table, table_points in zip(axes_of_tables, tables, points, strict=True):
        draw_rows(table_axes, table_points, _axis_label(table, task))
        table_axes.set_title(table_name(table), loc="left", fontsize="medium")
    return axes_of_tables


def _new_axes(rows: Sequence[int]) -> list[Axes]:
    try:
        import matplotlib.pyplot as pyplot
    except ImportError:
        hint = install_hint("publish")
        raise BenchError("plot() needs matplotlib, which is not installed", hint) from None
    heights = [0.9 + ROW_HEIGHT * count for count in rows]
    style: dict[Any, Any] = {
        key: value for key, value in STYLE.items() if key.startswith(("axes.", "grid."))
    }
    with pyplot.rc_context(style):
        _, axes = pyplot.subplots(
            nrows=len(rows),
            figsize=(WIDTH, sum(heights)),
            height_ratios=heights,
            squeeze=False,
            layout="constrained",
        )
    return list(axes[:, 0])


def _points(table: Table, task: str | None) -> FigureRows:
    """Return a row of the figure for each row in one column; for a table of one row, one for each
    column. A bar is the 95 % interval of a score that has one.
    """
    if len(table.rows) == 1 and task is None:
        (row,) = table.rows
        named = [(column, row, cell) for column, cell in zip(table.columns, row.cells, strict=True)]
    else:
        column = table.columns.index(task or table.head or table.columns[-1])
        named = [(row_name(row, table), row, row.cells[column]) for row in table.rows]
    points = []
    for name, row, cell in named:
        if cell is not None:
            bar = () if cell.spread is None else (cell.spread.low, cell.spread.high)
            points.append((name, cell.mean, bar, _is_coloured(row, cell)))
    return points


def _is_coloured(row: Row, cell: Cell) -> bool:
    if cell.against is not None and cell.against.verdict in (BETTER, WORSE):
        return cell.against.verdict == BETTER
    return row.may_be_best


def _axis_label(table: Table, task: str | None) -> str:
    """Return the label of the axis of scores: column, metric, and the meaning of a bar."""
    column = task or table.head
    if len(table.rows) == 1 and task is None:
        column = None
    words = table.metric if column is None else f"{column} ({table.metric})"
    bars = any(cell and cell.spread for row in table.rows for cell in row.cells)
    return f"{words}; bars: 95 % intervals" if bars else words
