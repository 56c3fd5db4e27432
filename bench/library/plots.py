"""Plots of score tables and of searches, on matplotlib's axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench.base.errors import BenchError, UnknownName
from bench.compare.formatting import setting_words
from bench.compare.statistics.table import BETTER, WORSE, Cell, Row, Table
from bench.library.libraries import import_pyplot
from bench.records.searches import RECIPE, RUNNING, Trial, expected_best

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BEST, OTHERS = "#c2622d", "#6b665f"
"""Colours of the rows that are better than the baseline, or may be the best, and of all others."""
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
        _draw_points(table_axes, table_points)
        table_axes.set_title(_title(table), loc="left", fontsize="medium")
        table_axes.set_xlabel(_axis_label(table, task))
    return axes_of_tables


def plot_trials(
    trials: Mapping[str, Sequence[Trial]], select_on: str, axes: Axes | None = None
) -> Axes:
    """Draw, for each method of a search, the expected best dev score after n trials.

    At 0 is the score of the unchanged recipe. ``trials``: method -> its trials. Raises BenchError.
    """
    if axes is None:
        (axes,) = _new_axes([8])
    for method, method_trials in trials.items():
        recipe = None
        tried = []
        for trial in method_trials:
            if trial.number == RECIPE:
                recipe = trial.score
            elif trial.state != RUNNING:
                tried.append(trial)
        curve = expected_best([trial.score for trial in tried])
        (line,) = axes.plot(range(1, len(curve) + 1), curve, marker="o", label=method)
        if recipe is not None:
            axes.plot([0], [recipe], marker="s", color=line.get_color())
    axes.set_xlabel("trials (0: the recipe as it is)")
    axes.set_ylabel(f"expected best {select_on}")
    axes.legend()
    return axes


Point = tuple[str, Cell, bool]
"""The label of a row, its score, and if it is coloured."""


def _new_axes(rows: Sequence[int]) -> list[Axes]:
    heights = [0.9 + ROW_HEIGHT * count for count in rows]
    _, axes = import_pyplot().subplots(
        nrows=len(rows),
        figsize=(WIDTH, sum(heights)),
        height_ratios=heights,
        squeeze=False,
        layout="constrained",
    )
    return list(axes[:, 0])


def _points(table: Table, task: str | None) -> list[Point]:
    """Return a point for each row in one column; for a table of one row, one for each column."""
    if len(table.rows) == 1 and task is None:
        (row,) = table.rows
        cells = zip(table.columns, row.cells, strict=True)
        return [(column, cell, True) for column, cell in cells if cell is not None]
    column = table.columns.index(task or table.head or table.columns[-1])
    points = []
    for row in table.rows:
        cell = row.cells[column]
        if cell is not None:
            points.append((_label(row, table), cell, _is_coloured(row, cell)))
    return points


def _is_coloured(row: Row, cell: Cell) -> bool:
    if cell.against is not None and cell.against.verdict in (BETTER, WORSE):
        return cell.against.verdict == BETTER
    return row.may_be_best


def _label(row: Row, table: Table) -> str:
    parts = [row.name]
    if table.setting is None:
        parts.append(setting_words(row.setting))
    if table.backbone is None and not row.model:
        parts.append(row.backbone)
    parts += [f"{key}={value}" for key, value in row.differs]
    return ", ".join(parts)


def _draw_points(axes: Axes, points: Sequence[Point]) -> None:
    """Draw the first point on top; a bar is the 95 % interval of a score that has one."""
    for height, (_, cell, coloured) in enumerate(points):
        colour = BEST if coloured else OTHERS
        if cell.spread is not None:
            ends = [cell.spread.low, cell.spread.high]
            axes.plot(ends, [height, height], color=colour, linewidth=1.5)
        axes.plot([cell.mean], [height], marker="o", color=colour)
    axes.set_yticks(range(len(points)), [label for label, _, _ in points])
    axes.set_ylim(len(points) - 0.5, -0.5)
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _title(table: Table) -> str:
    parts = [table.suite]
    if table.setting is not None:
        parts.append(setting_words(table.setting))
    if table.backbone is not None:
        parts.append(table.backbone)
    return ", ".join(parts)


def _axis_label(table: Table, task: str | None) -> str:
    """Return the label of the axis of scores: column, metric, and the meaning of a bar."""
    column = task or table.head
    if len(table.rows) == 1 and task is None:
        column = None
    words = table.metric if column is None else f"{column} ({table.metric})"
    bars = any(cell and cell.spread for row in table.rows for cell in row.cells)
    return f"{words}; bars: 95 % intervals" if bars else words
