"""Scores against one value of a method: of runs that are equal in all else (PromCSE, Figure 2), and of a formula (Focal-InfoNCE, Figure 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench.compare.formatting import visible
from bench.compare.statistics.table import SENDER
from bench.references import figure_runs, printed_points, results
from bench.references.ours import meaning
from bench.show.figures.drawing import ACCENT, AT_END, QUIET, SECOND, Figure, bar, drawn, number
from bench.show.figures.points import Group, Point, rounded, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# --- runs ---

ABLATION = (
    "Runs that are equal in all but the recipe value on the axis below, means over seeds. Bars: the intervals of the table, or standard deviations over seeds where it has none. Grey squares: "
    "what papers print."
)
FEWEST = 3  # points of a curve
MOST = 6  # curves of a group
PAPERS: Mapping[str, str] = {
    "prompt_length": "PromCSE, Figure 2",
    "eh_margin": "PromCSE, Table 4",
    "temperature": "Focal-InfoNCE, Table 4",
    "hardness_m": "Focal-InfoNCE, Table 5",
}
"""Where papers show the same recipe value."""
Curve = Mapping[float, Point]
"""Value of the recipe key -> the row that has it."""


def ablations(group: Group) -> list[Figure]:
    """A figure for each recipe value of which a method has at least three, those with most values first: on the STS sets and on CxC;
    without the STS sets, on the first suite."""
    suites = [suite for suite in ("sts", "cxc") if suite in group.tables]
    suites = suites if "sts" in suites else group.suites[:1]
    curves = [(suite, *one) for suite in suites for one in swept(group.points(suite))[:MOST]]
    return [_figure(group, *one) for one in curves]


def swept(points: Sequence[Point]) -> list[tuple[str, str, Curve]]:
    """(method, recipe key, curve): of each method and key the longest series of rows that are equal in everything else."""
    series: dict[tuple[str, ...], dict[object, dict[float, Point]]] = {}
    for point in points:
        row = point.row
        for key, text in row.differs:
            value = _parsed(text)
            if value is not None and key != SENDER:
                rest = tuple(pair for pair in row.differs if pair[0] != key)
                alike = series.setdefault((row.name, key, row.setting, row.backbone), {})
                alike.setdefault(rest, {}).setdefault(value, point)
    made = []
    for (name, key, *_), alike in series.items():
        longest = max(alike.values(), key=len)
        if len(longest) >= FEWEST:
            made.append(
                (visible(name, limit=40), visible(key, limit=40), dict(sorted(longest.items())))
            )
    return sorted(made, key=lambda one: (-len(one[2]), one[0], one[1]))


def _parsed(text: str) -> float | None:
    try:
        return number(float(text))
    except ValueError:
        return None


def _figure(group: Group, suite: str, method: str, key: str, curve: Curve) -> Figure:
    head = group.tables[suite].head or ""
    score = f"{suite.replace('sts', 'STS')} {head}" if suite != "cxc" else head
    printed = _printed(group, method, key, head) if suite in ("sts", "cxc") else {}
    return group.figure(
        "ablation",
        f"{method}: {key}",
        ABLATION,
        more=(method, key, *([] if suite == "sts" else [suite])),
        svg=drawn(draw_ablation, curve, printed, key, score, height=260.0),
        suites=(suite,),
        paper_figure=PAPERS.get(key, "") if suite in ("sts", "cxc") else "",
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
    axes.set_xlabel(key)
    axes.set_title(score)


def _printed(group: Group, method: str, key: str, task: str) -> dict[float, float]:
    """Value of the recipe key -> printed number: of the same method, setting and backbone, from tables and from the points of pictures
    that a source gives."""
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


# --- Focal-InfoNCE's re-scaling of negative pairs ---

RESCALING = (
    "The value s (s + m) that Focal-InfoNCE takes in place of the cosine s of a negative pair, for the values of m in its Table 5. Orange: up-weighted, "
    "where the curve lies above s (dashed), which is where s > 1 − m; green: down-weighted. Drawn from the formula, without a run."
)
ADDED = (0.1, 0.2, 0.3, 0.4)  # values of m
STEPS = 40  # parts that a curve is drawn in


def rescaled(s: float, m: float) -> float:
    """What stands for the cosine s of a negative pair in the loss, before the temperature (Focal-InfoNCE, eq. 2)."""
    return s * (s + m)


def rescaling() -> Figure:
    tenths = [i / 10 for i in range(11)]
    return Figure(
        name="rescaling",
        kind="rescaling",
        title="Re-scaled negative pairs",
        caption=RESCALING,
        svg=drawn(draw_rescaling),
        suites=(),
        paper_figure="Focal-InfoNCE, Figure 1",
        header=("cosine", *(f"m = {m:g}" for m in ADDED)),
        data=tuple((s, *rounded(*(rescaled(s, m) for m in ADDED))) for s in tenths),
    )


def draw_rescaling(axes: Axes) -> None:
    axes.plot([0, 1], [0, 1], "--", color=QUIET)
    axes.text(1.02, 1.0, "s", gid=AT_END, va="center")
    for m in ADDED:
        for low, high, colour in ((0.0, 1 - m, SECOND), (1 - m, 1.0, ACCENT)):
            cosines = [low + (high - low) * i / STEPS for i in range(STEPS + 1)]
            axes.plot(cosines, [rescaled(s, m) for s in cosines], color=colour, linewidth=1.6)
        axes.text(1.02, rescaled(1.0, m), f"m = {m:g}", gid=AT_END, va="center")
    axes.set_xlim(0, 1)
    axes.set_xlabel("cosine s of a negative pair")
    axes.set_title("re-scaled: s (s + m)")
