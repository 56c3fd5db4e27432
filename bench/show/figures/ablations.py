"""Scores against one recipe value, next to what papers print (PromCSE, Figure 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.compare.formatting import visible
from bench.references import figure_runs, printed_points, results
from bench.references.ours import meaning
from bench.show.figures.drawing import ACCENT, QUIET, Figure, mark, rounded
from bench.show.figures.points import Group, Point, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


def ablations(group: Group) -> Iterator[Figure | None]:
    """A figure for each recipe value of which a method has at least three, those with most values
    first: on the STS sets and on CxC."""
    for suite, score in (("sts", "STS Avg."), ("cxc", "CxC-STS")):
        for method, key, curve in swept(group.points(suite))[:MOST_CURVES]:
            printed = _printed(group, method, key, score.removeprefix("STS "))
            yield group.figure(
                "ablation",
                f"{method}: {key}",
                "Runs that are equal in all but the recipe value on the axis below, means over "
                "seeds. Bars: the intervals of the table, or standard deviations over seeds where "
                "it has none. Grey squares: what papers print.",
                [
                    (method, x, *rounded(p.cell.mean, *(p.ends or (None, None)), printed.get(x)))
                    for x, p in curve.items()
                ],
                more=(method, key, *(["cxc"] if suite == "cxc" else [])),
                fewest=1,
                plot=partial(draw_ablation, curve=curve, printed=printed, key=key, score=score),
                height=260.0,
                suites=(suite,),
                paper_figure=SHOWN_BY.get(key, ""),
                header=("method", key, score, "low", "high", "printed"),
            )


def swept(points: Sequence[Point]) -> list[tuple[str, str, Curve]]:
    """(method, recipe key, curve): of each method and key the longest series of rows that are equal
    in everything else."""
    curves: dict[Any, dict[float, Point]] = {}
    for point in points:
        row = point.row
        for key, text in row.differs:
            rest = tuple(pair for pair in row.differs if pair[0] != key)
            if (value := _number(text)) is not None:
                curves.setdefault((row.name, key, row.setting, rest), {}).setdefault(value, point)
    longest: dict[Any, tuple[str, str, Curve]] = {}
    for (name, key, setting, _), curve in sorted(curves.items(), key=lambda one: -len(one[1])):
        if len(curve) >= FEWEST:
            made = visible(name, limit=40), visible(key, limit=40), dict(sorted(curve.items()))
            longest.setdefault((name, key, setting), made)
    return list(longest.values())


def _number(text: str) -> float | None:
    """None where it is no number, or none that can be drawn."""
    try:
        return value if abs(value := float(text)) < 1e12 else None
    except ValueError:
        return None


def draw_ablation(
    axes: Axes, curve: Curve, printed: Mapping[float, float], key: str, score: str
) -> None:
    """One curve; on a logarithmic axis where the values are far apart."""
    values = list(curve)
    if values[0] > 0 and values[-1] / values[0] >= 8:
        axes.set_xscale("log")
    axes.plot(values, [point.cell.mean for point in curve.values()], color=ACCENT)
    for x, point in curve.items():
        mark(axes, x, point.cell.mean, ACCENT, y_ends=point.ends)
    axes.plot(list(printed), list(printed.values()), "s", color=QUIET, markersize=5)
    axes.margins(x=0.05, y=0.1)
    axes.set_xticks(values, [f"{x:g}" for x in values])
    axes.set_xticks([], minor=True)
    axes.locator_params(axis="y", nbins=5)
    axes.set(xlabel=key, title=score)


def _printed(group: Group, method: str, key: str, task: str) -> dict[float, float]:
    """Value of the recipe key -> printed number: of the same method, setting and backbone, from
    tables and from the points of pictures that a source gives."""
    backbone, printed = short_name(group.backbone), dict[float, float]()
    for cell in results(backbone=backbone, setting=group.setting, task=task):
        means = meaning(cell.method, cell.variant, cell.setting)
        if means.name == method and set(means.set) == {key} and cell.metric.startswith("spearman"):
            printed[float(means.set[key])] = cell.value
    for spec in figure_runs():
        if backbone in spec.backbones and (group.setting, method, "") in spec.runs:
            points = printed_points(spec.part)
            printed |= {p.x: p.y for p in points if (p.panel, p.key) == (task, key)}
    return printed
