"""Figures against one recipe value, next to what papers print (PromCSE, Figure 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from bench.base.foreign_text import make_visible
from bench.board.figures.groups import Group, Point, short_name
from bench.board.figures.sheet import ACCENT, QUIET, Figure, draw_mark, rounded
from bench.compare.statistics.rows import Differs
from bench.compare.words.names import method_title
from bench.papers import meaning, printed_points, results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEWEST = 3
"""The least number of points of a curve."""
MOST_CURVES = 6
# A list of names, because a figure is drawn from records, without the methods. It only adds a
# reference to a caption: every other recipe value gets the same figure without one.
SHOWN_BY: Mapping[str, str] = {
    "prompt_length": "PromCSE, Figure 2",
    "eh_margin": "PromCSE, Table 4",
    "temperature": "Focal-InfoNCE, Table 4",
    "hardness_m": "Focal-InfoNCE, Table 5",
}
"""Recipe key -> the figure or table of a paper that shows it."""
Curve = dict[float, Point]
"""Value of the recipe key -> the row that has it."""


def ablations(group: Group) -> Iterator[Figure]:
    """Draw a figure for each recipe key that a method has at least three values of.

    Scores are on the STS sets and on CxC. The rows are equal in everything else; recipe values with
    most rows come first.
    """
    for suite, score in (("sts", "STS Avg."), ("cxc", "CxC-STS")):
        for (name, key, others), curve in swept(group.points(suite))[:MOST_CURVES]:
            axis = make_visible(key, limit=40)
            named = method_title(next(iter(curve.values())).row)
            printed = _printed(group, name, key, score.removeprefix("STS "))
            where = ""
            for other, value in others:
                where += f", {make_visible(f'{other} {value}', limit=40)}"
            more = [name, key]
            if suite == "cxc":
                more.append("cxc")
            yield group.figure(
                "ablation",
                f"{make_visible(named, limit=40)}: {axis}{where}",
                "Runs that differ only in the recipe value on the x axis, means over seeds. Bars: "
                "the table's intervals, or standard deviations over seeds if it has none. Grey "
                "squares: published.",
                [
                    (
                        make_visible(named, limit=40),
                        x,
                        *rounded(p.cell.mean, *(p.ends or (None, None)), printed.get(x)),
                    )
                    for x, p in curve.items()
                ],
                more=tuple(more),
                plot=partial(draw_ablation, curve=curve, printed=printed, key=axis, score=score),
                height=260.0,
                suites=(suite,),
                paper_figure=SHOWN_BY.get(key, ""),
                header=("method", axis, score, "low", "high", "printed"),
            )


def swept(points: Sequence[Point]) -> list[tuple[tuple[str, str, Differs], Curve]]:
    """Return (method, recipe key, what else sets its rows apart) and the rows by value, longest
    first."""
    curves: dict[tuple[str, str, Differs], Curve] = {}
    for point in points:
        for key, text in point.row.differs:
            others = tuple(pair for pair in point.row.differs if pair[0] != key)
            value = _number(text)
            if value is not None:
                curves.setdefault((point.row.name, key, others), {}).setdefault(value, point)
    long_enough = []
    for name, curve in curves.items():
        if len(curve) >= FEWEST:
            long_enough.append((name, dict(sorted(curve.items()))))
    return sorted(long_enough, key=lambda named: -len(named[1]))


def _number(text: str) -> float | None:
    """Return the number in a text; None if there is none, or none that can be drawn."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < 1e12 else None


def draw_ablation(
    axes: Axes, curve: Curve, printed: Mapping[float, float], key: str, score: str
) -> None:
    """Draw a method's scores against a recipe value, with the printed ones as squares; steps from
    value to value are equally wide."""
    places = range(len(curve))
    axes.plot(places, [point.cell.mean for point in curve.values()], color=ACCENT, zorder=3)
    axes.margins(x=0.02, y=0.1)
    axes.locator_params(axis="y", nbins=5)
    axes.set_xticks(places, [f"{x:g}" for x in curve])
    # the name of the upright axis is above it, where it can be read without turning the head
    axes.set(xlabel=key, title=score)
    for i, (x, point) in enumerate(curve.items()):
        draw_mark(axes, i, point.cell.mean, ACCENT, y_ends=point.ends)
        if x in printed:
            axes.plot([i], [printed[x]], "s", color=QUIET, markersize=5)


def _printed(group: Group, method: str, key: str, task: str) -> dict[float, float]:
    """Return value of the recipe key -> number printed for the same method, setting and backbone.

    From tables, and from the points of pictures that a source gives.
    """
    backbone = short_name(group.backbone)
    printed: dict[float, float] = {}
    for cell in results(backbone=backbone, setting=group.setting, task=task):
        means = meaning(cell.method, cell.variant, cell.setting)
        if means.name == method and set(means.set) == {key} and cell.metric.startswith("spearman"):
            printed[float(means.set[key])] = cell.value
    of_curve = (group.setting, method, "", backbone, task, key)
    for point in printed_points():
        place = (point.setting, point.method, point.variant, point.backbone)
        if (*place, point.panel, point.key) == of_curve:
            printed[point.x] = point.y
    return printed
