"""Accuracy from few labelled examples, draw by draw (ConPVP, Figure 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from bench.compare.formatting import score
from bench.compare.statistics.table import AVERAGE, Row, Table
from bench.runs.record import RunRecord
from bench.show.figures import plots
from bench.show.figures.drawing import (
    ACCENT,
    INK,
    LINE,
    PAPER,
    QUIET,
    TEXT,
    WIDTH,
    Drawing,
    Figure,
    fit_text,
    library,
    numbers,
)
from bench.show.figures.labels import width
from bench.show.figures.points import (
    Group,
    leaders,
    names_in_words,
    one_point_per_method,
    points,
    shown_words,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 7  # methods
STEP = 17.0  # units of height of a method
HEAD, FOOT, BETWEEN = 18.0, 20.0, 14.0
OUTLINE = 14  # points of a violin's outline; more cannot be told apart

Draws = dict[str, list[float]]


def few_shot(group: Group, records: Mapping[str, RunRecord]) -> Figure | None:
    """A violin per method and task over draws and seeds. None where no method, or only one, has its draws."""
    table = group.table("fewshot")
    if table is None:
        return None
    tasks = [task for task in table.columns if task != AVERAGE]
    scored = one_point_per_method(points(table, table.head), table)
    drawn = [
        (p.label, p.row.is_baseline, draws)
        for p in scored
        if (draws := _draws(p.row, table, tasks, records))
    ]
    drawn.sort(key=lambda point: (-fmean(point[2][AVERAGE]), point[0]))
    if len(drawn) < 2:
        return None
    shown = drawn[:MOST]
    if len(drawn) > MOST and (base := next((point for point in drawn[MOST:] if point[1]), None)):
        shown[-1] = base
    rows = [(name, draws) for name, _, draws in shown]
    with library():
        drawing = _draw(rows, [AVERAGE, *tasks])
        name, title = group.name("few-shot"), group.titled("From 16 examples a class")
        finding = _finding([(name, draws) for name, _, draws in drawn])
        kept = sorted({len(draws[AVERAGE]) for _, draws in rows})
        many = str(kept[0]) if len(kept) == 1 else f"{kept[0]} to {kept[-1]}"
        rest = shown_words(rows, drawn)
        alt = f"Violins of {len(rows)} methods on {len(tasks)} tasks: accuracy over draws of the examples. {finding}"
        return Figure(
            name=name,
            kind="few-shot",
            suites=("fewshot",),
            title=title,
            alt=alt,
            svg=drawing.svg(name, title, alt),
            paper_figure="ConPVP, Figure 7",
            caption=f"{finding} Each shape is the distribution of accuracy over {many} draws and seeds, the mark its mean; the draws are the "
            f"same for all methods.{rest}",
            header=("method", "task", "mean", "lowest", "highest", "draws and seeds"),
            data=tuple(
                (
                    name,
                    task,
                    round(fmean(values), 4),
                    round(min(values), 4),
                    round(max(values), 4),
                    float(len(values)),
                )
                for name, _, draws in drawn
                for task, values in draws.items()
            ),
        )


def _draws(row: Row, table: Table, tasks: Sequence[str], records: Mapping[str, RunRecord]) -> Draws:
    """Task -> accuracies of all draws of all the row's runs, and their averages; empty where a task is missing."""
    scores_of: Draws = {task: [] for task in (AVERAGE, *tasks)}
    for run in row.runs:
        record = records.get(run)
        scores = [
            record.score(table.suite, task, table.protocol, table.text) if record else None
            for task in tasks
        ]
        each = [numbers(own_score.detail.get("draws")) if own_score else [] for own_score in scores]
        if not each or not each[0] or len({len(values) for values in each}) > 1:
            return {}
        for task, values in zip(tasks, each, strict=True):
            scores_of[task] += values
        scores_of[AVERAGE] += [fmean(values) for values in zip(*each, strict=True)]
    return scores_of if scores_of[AVERAGE] else {}


def _finding(drawn: Sequence[tuple[str, Draws]]) -> str:
    (best, draws), (second, others) = drawn[0], drawn[1]
    level = leaders([(name, fmean(scores[AVERAGE])) for name, scores in drawn])
    if len(level) > 1:
        return f"{names_in_words(level)} are highest on average: {score(fmean(draws[AVERAGE]))}."
    ahead = "highest" if len(drawn) > 2 else "higher"
    finding = f"{best} is {ahead} on average: {score(fmean(draws[AVERAGE]))}, {score(fmean(draws[AVERAGE]) - fmean(others[AVERAGE]))} above {second}"
    if len(draws[AVERAGE]) != len(others[AVERAGE]):
        return f"{finding}."
    won = sum(a > b for a, b in zip(draws[AVERAGE], others[AVERAGE], strict=True))
    return f"{finding}, and above it in {won} of {len(draws[AVERAGE])} draws."


def _draw(rows: Sequence[tuple[str, Draws]], tasks: Sequence[str]) -> Drawing:
    names = min(100.0, max(width(name, TEXT) for name, _ in rows)) + 6
    wide = (WIDTH - names - 10 - BETWEEN) / 2
    high = HEAD + STEP * len(rows) + FOOT
    lanes = -(-len(tasks) // 2)
    drawing = Drawing(height=lanes * (high + 8))
    for i, task in enumerate(tasks):
        left = names + (i % 2) * (wide + BETWEEN)
        top = drawing.height - (i // 2) * (high + 8)
        axes = drawing.axes(left, top - HEAD - STEP * len(rows), left + wide, top - HEAD)
        _panel(drawing, axes, task, [draws[task] for _, draws in rows])
        if i % 2 == 0:
            for k, (name, _) in enumerate(rows):
                drawing.text(
                    0,
                    top - HEAD - STEP * (k + 0.5) - 0.35 * TEXT,
                    fit_text(name, names - 6),
                    colour=INK if k else ACCENT,
                )
    return drawing


def _panel(drawing: Drawing, axes: Axes, task: str, values: Sequence[list[float]]) -> None:
    low, high = plots.limits([v for value in values for v in value], around=0.06, least=2.0)
    axes.set_xlim(low, high)
    axes.set_ylim(len(values) - 0.5, -0.5)
    axes.set_yticks([])
    axes.grid(False)
    box = drawing.box(axes)
    drawing.text(box.left, box.high + 6, task, colour=QUIET)
    at = plots.round_values(low, high, 3)
    axes.vlines(at, len(values) - 0.5, -0.5, color=LINE, linewidth=0.6, zorder=1)
    plots.ticks(drawing, axes, at, [f"{t:g}" for t in at])
    axes.set_yticks([])
    for k, drawn in enumerate(values):
        colour = QUIET if k else ACCENT
        _violin(axes, k, drawn, colour)
        axes.plot(
            [fmean(drawn)],
            [k],
            marker="o",
            markersize=4,
            markerfacecolor=PAPER,
            markeredgecolor=colour,
            linestyle="",
            zorder=5,
            gid=drawing.tip(
                f"{task}: {score(fmean(drawn))}, {score(min(drawn))} to {score(max(drawn))}"
            ),
        )


def _violin(axes: Axes, k: int, values: list[float], colour: str) -> None:
    if max(values) - min(values) < 1e-6:  # nothing varies: there is no density
        return
    body = axes.violinplot(
        [values],
        positions=[k],
        orientation="horizontal",
        widths=0.85,
        showextrema=False,
        points=OUTLINE,
    )["bodies"]
    for item in body:  # type: ignore[attr-defined]
        item.set(facecolor=(colour, 0.3), edgecolor=colour, alpha=None, linewidth=0.6)
