"""The papers' own figures, drawn from our runs: ablations, few-shot, and one that is a formula."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from bench.compare.formatting import visible
from bench.compare.statistics.table import AVERAGE, SENDER
from bench.references import figure_runs, printed_points, results
from bench.references.ours import meaning
from bench.runs.record import ScoreKey
from bench.show.figures.drawing import (
    ACCENT,
    QUIET,
    Figure,
    Line,
    bar,
    drawn,
    line_data,
    lines,
    number,
    rounded,
    rows,
)
from bench.show.figures.points import Group, Point, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# --- against one recipe value (PromCSE, Figure 2) ---

ABLATION = (
    "Runs that are equal in all but the recipe value on the axis below, means over seeds. Bars: "
    "the intervals of the table, or standard deviations over seeds where it has none. Grey "
    "squares: what papers print."
)
FEWEST = 3  # points of a curve
MOST_CURVES = 6
SHOWN_BY: Mapping[str, str] = {
    "prompt_length": "PromCSE, Figure 2",
    "eh_margin": "PromCSE, Table 4",
    "temperature": "Focal-InfoNCE, Table 4",
    "hardness_m": "Focal-InfoNCE, Table 5",
}
"""Where papers show the same recipe value."""
Curve = Mapping[float, Point]
"""Value of the recipe key -> the row that has it."""


def ablations(group: Group) -> list[Figure]:
    """A figure for each recipe value of which a method has at least three, those with most values
    first: on the STS sets and on CxC; without the STS sets, on the first suite."""
    suites = [suite for suite in ("sts", "cxc") if suite in group.tables]
    suites = suites if "sts" in suites else group.suites[:1]
    curves = [(suite, *one) for suite in suites for one in swept(group.points(suite))[:MOST_CURVES]]
    return [_ablation(group, *one) for one in curves]


def swept(points: Sequence[Point]) -> list[tuple[str, str, Curve]]:
    """(method, recipe key, curve): of each method and key the longest series of rows that are equal
    in everything else."""
    series: dict[tuple[str, ...], dict[object, dict[float, Point]]] = {}
    for point in points:
        row = point.row
        for key, text in row.differs:
            value = _parsed(text)
            if value is not None and key != SENDER:
                rest = tuple(pair for pair in row.differs if pair[0] != key)
                alike = series.setdefault((row.name, key, row.setting, row.backbone), {})
                alike.setdefault(rest, {}).setdefault(value, point)
    longest = {names: max(alike.values(), key=len) for names, alike in series.items()}
    made = [
        (visible(name, limit=40), visible(key, limit=40), dict(sorted(curve.items())))
        for (name, key, *_), curve in longest.items()
        if len(curve) >= FEWEST
    ]
    return sorted(made, key=lambda one: (-len(one[2]), one[0], one[1]))


def _parsed(text: str) -> float | None:
    try:
        return number(float(text))
    except ValueError:
        return None


def _ablation(group: Group, suite: str, method: str, key: str, curve: Curve) -> Figure:
    head = group.tables[suite].head or ""
    score = f"{suite.replace('sts', 'STS')} {head}" if suite != "cxc" else head
    printed = _printed_points(group, method, key, head) if suite in ("sts", "cxc") else {}
    return group.figure(
        "ablation",
        f"{method}: {key}",
        ABLATION,
        more=(method, key, *([] if suite == "sts" else [suite])),
        svg=drawn(draw_ablation, curve, printed, key, score, height=260.0),
        suites=(suite,),
        paper_figure=SHOWN_BY.get(key, "") if suite in ("sts", "cxc") else "",
        header=("method", key, score, "low", "high", "printed"),
        data=tuple(
            (method, x, *rounded(p.cell.mean, *(p.ends or (None, None)), printed.get(x)))
            for x, p in curve.items()
        ),
    )


def draw_ablation(
    axes: Axes, curve: Curve, printed: Mapping[float, float], key: str, score: str
) -> None:
    """One curve; on a logarithmic axis where the values are far apart."""
    values = list(curve)
    if values[0] > 0 and values[-1] / values[0] >= 8:
        axes.set_xscale("log")
    for x, point in curve.items():
        bar(axes, (x, x), point.ends, ACCENT)
    axes.plot(values, [point.cell.mean for point in curve.values()], "o-", color=ACCENT)
    inside = {x: y for x, y in sorted(printed.items()) if values[0] <= x <= values[-1]}
    axes.plot(list(inside), list(inside.values()), "s", color=QUIET, markersize=5)
    axes.margins(x=0.05, y=0.1)
    axes.set_xticks(values, [f"{x:g}" for x in values])
    axes.set_xticks([], minor=True)
    axes.locator_params(axis="y", nbins=5)
    axes.set(xlabel=key, title=score)


def _printed_points(group: Group, method: str, key: str, task: str) -> dict[float, float]:
    """Value of the recipe key -> printed number: of the same method, setting and backbone, from
    tables and from the points of pictures that a source gives."""
    backbone, found = short_name(group.backbone), dict[float, float]()
    for cell in results(backbone=backbone, setting=group.setting, task=task):
        means = meaning(cell.method, cell.variant, cell.setting)
        known = means.name == method and cell.metric in ("spearman", "spearman-bootstrap")
        if known and set(means.set) == {key}:
            found[float(means.set[key])] = cell.value
    for spec in figure_runs():
        of_it = backbone in spec.backbones and (group.setting, method, "") in spec.runs
        for point in printed_points(spec.part) if of_it else ():
            if (point.panel, point.key) == (task, key):
                found[point.x] = point.y
    return found


# --- accuracy from few labelled examples, draw by draw (ConPVP, Figure 7) ---

FEW_SHOT = (
    "Accuracy from 16 examples a class. Each shape is the distribution over draws of the examples "
    "and seeds, its mark the mean; the draws are the same for all methods. Coloured: highest on "
    "average. Of many methods the highest are drawn."
)
MOST_METHODS = 7
Draws = dict[str, list[float]]
"""Task -> accuracies of all draws and seeds, the average first."""


def few_shot(group: Group) -> Figure | None:
    """A violin per method and task over draws and seeds. None where fewer than two methods have
    their draws."""
    points = group.methods("fewshot")
    scored = [(point.label, draws) for point in points if (draws := _draws(group, point))]
    if len(scored) < 2:
        return None
    scored.sort(key=lambda one: -fmean(one[1][AVERAGE]))
    shown, lanes = scored[:MOST_METHODS], -(-len(scored[0][1]) // 2)
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


# --- Focal-InfoNCE's re-scaling of negative pairs (Figure 1) ---

RESCALING = (
    "The value s (s + m) that Focal-InfoNCE takes in place of the cosine s of a negative pair, "
    "for the values of m in its Table 5. Coloured: the largest m. Above the dashed line, where s "
    "> 1 − m, a pair counts more; below it, less. Drawn from the formula, without a run."
)
ADDED = (0.1, 0.2, 0.3, 0.4)  # values of m


def rescaled(s: float, m: float) -> float:
    """What stands for the cosine s of a negative pair in the loss, before the temperature
    (Focal-InfoNCE, eq. 2)."""
    return s * (s + m)


def rescaling() -> Figure:
    cosines = [i / 20 for i in range(21)]
    made = [Line(f"m = {m:g}", cosines, [rescaled(s, m) for s in cosines]) for m in ADDED]
    return Figure(
        name="rescaling",
        kind="rescaling",
        title="Re-scaled negative pairs",
        caption=RESCALING,
        svg=drawn(draw_rescaling, made),
        suites=(),
        paper_figure="Focal-InfoNCE, Figure 1",
        header=("m", "cosine s", "s (s + m)"),
        data=line_data(made),
    )


def draw_rescaling(axes: Axes, those: Sequence[Line]) -> None:
    axes.plot([0, 1], [0, 1], "--", color=QUIET)
    lines(axes, those, those[-1], "cosine s of a negative pair", "re-scaled: s (s + m)")
