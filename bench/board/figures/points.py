"""Figures in which a method is a point: quality against cost, scores elsewhere, and the geometry of
vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bench.board.figures.groups import Group, Point
from bench.board.figures.sheet import (
    ACCENT,
    NEXT_TO_POINT,
    QUIET,
    DataRow,
    Figure,
    draw_mark,
    rounded,
)
from bench.compare.statistics.table import Cell, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BARS = " Bars: the table's intervals, or standard deviations over seeds if it has none."
MOST_LABELS = 30
"""Points that are labelled: the coloured ones, then the first ones."""
Pairs = Sequence[tuple[Point, Point]]
"""The points across and upwards of the same runs."""


def pair_data(pairs: Pairs) -> list[DataRow]:
    """Return (label, x, y, low of y, high of y, low of x, high of x) for each pair."""
    no_ends = (None, None)
    rows = []
    for x, y in pairs:
        means = rounded(x.cell.mean, y.cell.mean)
        y_ends = rounded(*(y.ends or no_ends))
        x_ends = rounded(*(x.ends or no_ends))
        rows.append((x.label, *means, *y_ends, *x_ends))
    return rows


def scatter(axes: Axes, pairs: Pairs, strong: Collection[int], across: str, up: str) -> None:
    """Draw points with bars, and the names of both axes.

    Pairs with a number in ``strong`` are coloured, above the others, and labelled first.
    """
    strong_first = sorted(range(len(pairs)), key=lambda i: i not in strong)
    for i in reversed(strong_first):
        x, y = pairs[i]
        draw_mark(axes, x.cell.mean, y.cell.mean, ACCENT if i in strong else QUIET, x.ends, y.ends)
    for i in strong_first[:MOST_LABELS]:
        x, y = pairs[i]
        axes.text(x.cell.mean, y.cell.mean, x.label, label=NEXT_TO_POINT, zorder=4).set(
            size=10, weight="bold" if i in strong else "normal", ha="center", va="center"
        )
    axes.margins(0.12)
    axes.locator_params(axis="both" if axes.get_xscale() == "linear" else "y", nbins=5)
    # the name of the upright axis is above it, where it can be read without turning the head
    axes.set(xlabel=across, title=up)


COST_FIGURES = {
    "cost": (
        "Quality against training time",
        "training time of one run, seconds",
        "STS average against the training time of one run, a mean over seeds, on one kind of "
        "hardware.",
    ),
    "parameters": (
        "Quality against trained parameters",
        "trained parameters",
        "STS average against the number of parameters that get a gradient.",
    ),
}
"""Kind of figure -> its title, the name of its axis, and the first sentence of its caption."""


def quality_against_cost(group: Group, kind: str) -> Figure | None:
    """Draw the average of the STS sets against a cost; 0 is free. None if all known costs are
    equal."""
    title, axis, caption = COST_FIGURES[kind]
    pairs = []
    for point in group.methods("sts"):
        spent = _cost(kind, point.row)
        if spent is not None:
            pairs.append((replace(point, cell=Cell(mean=spent, sd=None, values=(), n=0)), point))
    costs = {x.cell.mean for x, _ in pairs}
    if not any(costs) or max(costs) <= 1.01 * min(costs):
        return None
    best = front([(x.cell.mean, y.cell.mean) for x, y in pairs])
    return group.figure(
        kind,
        title,
        f"{caption} Coloured and joined by the line: methods for which no other method is both "
        "cheaper and better, by the means; the difference between neighbours may be inconclusive."
        f"{BARS} Methods without a comparable cost are not shown.",
        [(*row[:5], "yes" if i in best else "no") for i, row in enumerate(pair_data(pairs))],
        plot=partial(draw_cost, pairs=pairs, best=best, axis=axis),
        height=340.0,
        header=("method", axis, "STS Avg.", "low", "high", "on the front"),
    )


def _cost(kind: str, row: Row) -> float | None:
    """Return the cost of a row, in seconds or parameters; untrained rows have no training time."""
    cost = row.cost or {}
    if kind == "parameters":
        return cost.get("trainable_parameters")
    seconds: float | None = cost.get("train_seconds")
    return 0.0 if row.setting == "none" and seconds is None else seconds


def front(priced: Sequence[tuple[float, float]]) -> list[int]:
    """Return the (cost, quality) pairs on the Pareto front by number, cheapest first.

    Compared with one of them every other pair is worse, costs more, or is equal in both.
    """

    def is_beaten(cost: float, quality: float) -> bool:
        return any((c <= cost and q > quality) or (c < cost and q >= quality) for c, q in priced)

    best = [i for i, (cost, quality) in enumerate(priced) if not is_beaten(cost, quality)]
    return sorted(best, key=lambda i: priced[i])


def draw_cost(axes: Axes, pairs: Pairs, best: Sequence[int], axis: str) -> None:
    """Draw costs on a logarithmic axis; it is linear below the lowest cost, so that 0 has a
    place."""
    from matplotlib.ticker import EngFormatter

    costs = [x.cell.mean for x, _ in pairs]
    lowest = min(filter(None, costs)) / 1.5
    highest = max(costs) * 1.5
    axes.set_xscale("symlog", linthresh=lowest, linscale=0.3)
    scatter(axes, pairs, best, f"{axis} (logarithmic)", "STS Avg.")
    axes.set_xlim(lowest if min(costs) else -lowest / 2, highest)
    x, y = zip(*((costs[i], pairs[i][1].cell.mean) for i in best), strict=True)
    axes.plot(x, y, drawstyle="steps-post", color=ACCENT, linewidth=1.0, alpha=0.6)
    round_numbers = [digit * 10.0**power for power in range(-3, 13) for digit in (1, 2, 5)]
    inside = [number for number in round_numbers if lowest <= number <= highest]
    ticks = inside[:: len(inside) // 6 + 1]
    if 0 in costs:
        ticks.insert(0, 0.0)
    axes.set_xticks(ticks)
    axes.xaxis.set_major_formatter(EngFormatter(sep="") if "parameters" in axis else "{x:g}")


PAIR_ENDS = ("second, low", "second, high", "first, low", "first, high")


def shift(group: Group) -> Figure | None:
    """Draw the average of the STS sets against CxC-STS."""
    up = group.by_run("cxc")
    pairs = [(x, up[x.row.runs[0]]) for x in group.methods("sts") if x.row.runs[0] in up]
    return group.figure(
        "shift",
        "STS against captions of another domain",
        "x: average of the seven STS sets; y: similarity of image captions (CxC-STS), another "
        "domain. Coloured: highest on either axis." + BARS,
        pair_data(pairs),
        plot=partial(draw_pairs, pairs=pairs, best=max, across="STS Avg.", up="CxC-STS"),
        suites=("sts", "cxc"),
        paper_figure="PromCSE, Figure 1",
        header=("method", "STS Avg.", "CxC-STS", *PAIR_ENDS),
    )


def geometry(group: Group) -> Figure | None:
    """Draw uniformity across and alignment upwards, the average of the STS sets in brackets."""
    up = group.by_run("geometry", "alignment")
    averages = group.by_run("sts")
    pairs = []
    for x in group.methods("geometry", "uniformity"):
        run = x.row.runs[0]
        average = f" ({averages[run].cell.mean:.1f})" if run in averages else ""
        if run in up:
            pairs.append((replace(x, label=x.label + average), up[run]))
    return group.figure(
        "geometry",
        "Alignment against uniformity",
        "Uniformity and alignment of the vectors of STS-B test; lower is better for both. In "
        "brackets: the average of the STS sets. Coloured: lowest on either axis." + BARS,
        pair_data(pairs),
        plot=partial(
            draw_pairs,
            pairs=pairs,
            best=min,
            across="uniformity (lower: spread more evenly)",
            up="alignment (lower: paraphrases closer)",
        ),
        suites=("geometry",),
        paper_figure="SimCSE, Figure 3",
        header=("method (STS Avg.)", "uniformity", "alignment", *PAIR_ENDS),
    )


def draw_pairs(axes: Axes, pairs: Pairs, best: Callable[..., int], across: str, up: str) -> None:
    """Draw pairs, the highest (``max``) or lowest (``min``) on either axis coloured."""
    strong = {best(range(len(pairs)), key=lambda i: pairs[i][axis].cell.mean) for axis in (0, 1)}
    scatter(axes, pairs, strong, across, up)
