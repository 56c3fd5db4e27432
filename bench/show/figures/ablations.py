"""Figures against one recipe value, next to what papers print (PromCSE, Figure 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from bench.base.text import visible
from bench.compare.statistics.rows import Differs
from bench.references import figure_runs, meaning, printed_points, results
from bench.show.figures.groups import Group, Point, short_name
from bench.show.figures.lines import draw_lines
from bench.show.figures.sheet import ACCENT, QUIET, Figure, mark, rounded

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
Curve = dict[float, Point]
"""Value of the recipe key -> the row that has it."""


def ablations(group: Group) -> Iterator[Figure | None]:
    """A figure for each recipe value of which a method has at least three in rows that are equal in
    everything else, those with most values first: on the STS sets and on CxC."""
    for suite, score in (("sts", "STS Avg."), ("cxc", "CxC-STS")):
        for (name, key, others), curve in swept(group.points(suite))[:MOST_CURVES]:
            method, axis = visible(name, limit=40), visible(key, limit=40)
            printed = _printed(group, name, key, score.removeprefix("STS "))
            where = "".join(f", {visible(f'{k} {value}', limit=40)}" for k, value in others)
            yield group.figure(
                "ablation",
                f"{method}: {axis}{where}",
                "Runs that differ only in the recipe value on the x axis, means over seeds. Bars: "
                "the table's intervals, or standard deviations over seeds if it has none. Grey "
                "squares: printed in papers.",
                [
                    (method, x, *rounded(p.cell.mean, *(p.ends or (None, None)), printed.get(x)))
                    for x, p in curve.items()
                ],
                more=(name, key, *(["cxc"] if suite == "cxc" else [])),
                fewest=1,
                plot=partial(draw_ablation, curve=curve, printed=printed, key=axis, score=score),
                height=260.0,
                suites=(suite,),
                paper_figure=SHOWN_BY.get(key, ""),
                header=("method", axis, score, "low", "high", "printed"),
            )


def swept(points: Sequence[Point]) -> list[tuple[tuple[str, str, Differs], Curve]]:
    """(method, recipe key, what else sets its rows apart), and the rows by value, longest first."""
    curves: dict[tuple[str, str, Differs], Curve] = {}
    for point in points:
        for key, text in point.row.differs:
            others = tuple(pair for pair in point.row.differs if pair[0] != key)
            if (value := _number(text)) is not None:
                curves.setdefault((point.row.name, key, others), {}).setdefault(value, point)
    return sorted(
        ((of, dict(sorted(one.items()))) for of, one in curves.items() if len(one) >= FEWEST),
        key=lambda curve: -len(curve[1]),
    )


def _number(text: str) -> float | None:
    """None where it is no number, or none that can be drawn."""
    try:
        return value if abs(value := float(text)) < 1e12 else None
    except ValueError:
        return None


def draw_ablation(
    axes: Axes, curve: Curve, printed: Mapping[float, float], key: str, score: str
) -> None:
    draw_lines(axes, [("", {x: p.cell.mean for x, p in curve.items()})], key, score, even=True)
    for i, (x, point) in enumerate(curve.items()):
        mark(axes, i, point.cell.mean, ACCENT, y_ends=point.ends)
        if x in printed:
            axes.plot([i], [printed[x]], "s", color=QUIET, markersize=5)


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
            printed |= {
                p.x: p.y for p in printed_points(spec.part) if (p.panel, p.key) == (task, key)
            }
    return printed
