"""Accuracy from few labelled examples, draw by draw (ConPVP, Figure 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from bench.compare.statistics.table import AVERAGE, Row, Table
from bench.runs.record import RunRecord
from bench.show.figures.drawing import ACCENT, QUIET, Figure, drawn, numbers, rows
from bench.show.figures.points import Group, one_point_per_method, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW_SHOT = (
    "Accuracy from 16 examples a class. Each shape is the distribution over draws of the examples and seeds, its mark the mean; the draws "
    "are the same for all methods. Coloured: highest on average. Of many methods the highest are drawn, and the baseline."
)
MOST = 7  # methods
OUTLINE = 16  # points of a violin's outline
Draws = dict[str, list[float]]  # task -> accuracies of all draws and seeds


def few_shot(group: Group, records: Mapping[str, RunRecord]) -> Figure | None:
    """A violin per method and task over draws and seeds. None where fewer than two methods have their draws."""
    table = group.table("fewshot")
    if table is None:
        return None
    tasks = [task for task in table.columns if task != AVERAGE]
    scored = [
        (point.label, point.row.is_baseline, draws)
        for point in one_point_per_method(points(table, table.head), table)
        if (draws := _draws(point.row, table, tasks, records))
    ]
    scored.sort(key=lambda one: (-fmean(one[2][AVERAGE]), one[0]))
    if len(scored) < 2:
        return None
    shown = scored[:MOST]
    shown[-1] = next((one for one in scored[MOST:] if one[1]), shown[-1])
    lanes = -(-(len(tasks) + 1) // 2)
    return Figure(
        name=group.name("few-shot"),
        kind="few-shot",
        suites=("fewshot",),
        title=group.titled("From 16 examples a class"),
        caption=FEW_SHOT,
        svg=drawn(
            draw_few_shot,
            [(name, draws) for name, _, draws in shown],
            height=lanes * (50.0 + 17.0 * len(shown)),
            panels=(lanes, 2),
            sharey=True,
        ),
        paper_figure="ConPVP, Figure 7",
        header=("method", "task", "mean", "lowest", "highest", "draws and seeds"),
        data=tuple(
            (
                name,
                task,
                *(round(value, 4) for value in (fmean(values), min(values), max(values))),
                float(len(values)),
            )
            for name, _, draws in scored
            for task, values in draws.items()
        ),
    )


def _draws(row: Row, table: Table, tasks: Sequence[str], records: Mapping[str, RunRecord]) -> Draws:
    """The average first; empty where a task is missing."""
    made: Draws = {task: [] for task in (AVERAGE, *tasks)}
    for run in row.runs:
        record = records.get(run)
        scores = [
            record.score(table.suite, task, table.protocol, table.text) if record else None
            for task in tasks
        ]
        each = [numbers(one.detail.get("draws")) if one else [] for one in scores]
        if not each or not each[0] or len({len(values) for values in each}) > 1:
            return {}
        for task, values in zip(tasks, each, strict=True):
            made[task] += values
        made[AVERAGE] += [fmean(values) for values in zip(*each, strict=True)]
    return made if made[AVERAGE] else {}


def draw_few_shot(panels: Sequence[Axes], shown: Sequence[tuple[str, Draws]]) -> None:
    """A panel for the average and each task, a row for each method, the highest at the top."""
    tasks = list(shown[0][1])
    for axes, task in zip(panels, tasks, strict=False):
        for i, (_, draws) in enumerate(shown):
            values, colour = draws[task], QUIET if i else ACCENT
            if max(values) - min(values) > 1e-6:  # there is a density
                bodies = axes.violinplot(
                    [values],
                    positions=[i],
                    orientation="horizontal",
                    widths=0.85,
                    showextrema=False,
                    points=OUTLINE,
                )["bodies"]
                for body in bodies:  # type: ignore[attr-defined]
                    body.set(facecolor=(colour, 0.3), edgecolor=colour, alpha=None, linewidth=0.6)
            axes.plot([fmean(values)], [i], "o", color=colour, markersize=4)
        rows(axes, [name for name, _ in shown])
        axes.locator_params(axis="x", nbins=3)
        axes.set_title(task)
    for axes in panels[len(tasks) :]:
        axes.set_axis_off()
