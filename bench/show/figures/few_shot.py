"""Accuracy from few labelled examples, draw by draw (ConPVP, Figure 7)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from bench.compare.statistics.table import AVERAGE
from bench.runs.record import ScoreKey
from bench.show.figures.drawing import ACCENT, QUIET, Figure, drawn, number, rows
from bench.show.figures.points import Group, Point, rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW_SHOT = (
    "Accuracy from 16 examples a class. Each shape is the distribution over draws of the examples and seeds, its mark the mean; the draws "
    "are the same for all methods. Coloured: highest on average. Of many methods the highest are drawn."
)
MOST = 7  # methods
Draws = dict[str, list[float]]
"""Task -> accuracies of all draws and seeds, the average first."""


def few_shot(group: Group) -> Figure | None:
    """A violin per method and task over draws and seeds. None where fewer than two methods have their draws."""
    points = group.methods("fewshot")
    scored = [(point.label, draws) for point in points if (draws := _draws(group, point))]
    if len(scored) < 2:
        return None
    scored.sort(key=lambda one: -fmean(one[1][AVERAGE]))
    shown, lanes = scored[:MOST], -(-len(scored[0][1]) // 2)
    height = lanes * (50.0 + 17.0 * len(shown))
    return group.figure(
        "few-shot",
        "From 16 examples a class",
        FEW_SHOT,
        svg=drawn(draw_few_shot, shown, height=height, panels=(lanes, 2)),
        suites=("fewshot",),
        paper_figure="ConPVP, Figure 7",
        header=("method", "task", "mean", "lowest", "highest", "draws and seeds"),
        data=tuple(
            (name, task, *rounded(fmean(values), min(values), max(values), len(values)))
            for name, draws in scored
            for task, values in draws.items()
        ),
    )


def _draws(group: Group, point: Point) -> Draws:
    """Empty where a run has not the same number of draws for every task."""
    table = group.tables["fewshot"]
    tasks = [task for task in table.columns if task != AVERAGE]
    made: Draws = {task: [] for task in (AVERAGE, *tasks)}
    for run in (group.runs[run].record for run in point.row.runs if run in group.runs):
        keys = [ScoreKey("fewshot", task, table.protocol, table.text) for task in tasks]
        each = [
            _numbers(one.detail.get("draws")) if (one := run.score(*key)) else [] for key in keys
        ]
        if not each or not each[0] or len({len(values) for values in each}) > 1:
            return {}
        for task, values in zip(tasks, each, strict=True):
            made[task] += values
        made[AVERAGE] += [fmean(values) for values in zip(*each, strict=True)]
    return made if made[AVERAGE] else {}


def _numbers(values: Any) -> list[float]:
    """Of a record's free field; empty where one of them is no number."""
    finite = [number(value) for value in values] if isinstance(values, list) else []
    return [] if None in finite else [value for value in finite if value is not None]


def draw_few_shot(panels: Sequence[Axes], shown: Sequence[tuple[str, Draws]]) -> None:
    """A panel for the average and each task, a row for each method, the highest at the top."""
    tasks = list(shown[0][1])
    for axes, task in zip(panels, tasks, strict=False):
        for i, (_, draws) in enumerate(shown):
            values, colour = draws[task], QUIET if i else ACCENT
            if max(values) - min(values) > 1e-6:  # there is a density
                shape: dict[str, Any] = {"orientation": "horizontal", "showextrema": False}
                bodies = axes.violinplot([values], [i], widths=0.85, points=16, **shape)["bodies"]
                for body in bodies:  # type: ignore[attr-defined]
                    body.set(facecolor=(colour, 0.3), edgecolor=colour, alpha=None, linewidth=0.6)
            axes.plot([fmean(values)], [i], "o", color=colour, markersize=4)
        rows(axes, (name for name, _ in shown))
        axes.locator_params(axis="x", nbins=3)
        axes.set_title(task)
    for axes in panels[len(tasks) :]:
        axes.set_axis_off()
