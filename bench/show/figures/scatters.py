"""Methods as points: quality against cost, scores elsewhere, and where vectors lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.compare.statistics.table import Cost
from bench.show.figures.drawing import ACCENT, Figure, Mark, drawn, scatter, scatter_data
from bench.show.figures.points import Group, Point, join_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bench.compare.statistics.table import Row

BARS = " Bars: the intervals of the table, or standard deviations over seeds where it has none."


# --- quality against cost, with the Pareto front ---

FRONT = (
    " Coloured, and joined by the line: methods that no other method is both cheaper and better "
    "than, by the means; neighbours on the line may not "
    "differ." + BARS + " Methods without a comparable cost are not shown."
)
COSTS = {
    "cost": (
        "Quality against training time",
        "training time of one run, seconds",
        "STS average against the training time of one run, a mean over seeds, on one kind of hardware.",
    ),
    "encoding": (
        "Quality against time of encoding",
        "time to encode 1,000 sentences, seconds",
        "STS average against the time that it takes to encode 1,000 sentences, measured under one condition.",
    ),
    "parameters": (
        "Quality against trained parameters",
        "trained parameters",
        "STS average against the number of parameters that get a gradient.",
    ),
}
"""Kind of figure -> its title, the name of its axis, and its caption."""
MOST_TICKS = 5
UNITS = {1e9: "G", 1e6: "M", 1e3: "k"}


def cost(group: Group, kind: str) -> Figure | None:
    """Average of the STS sets against a cost; 0 is free. None where fewer than two costs are
    known."""
    title, axis, caption = COSTS[kind]
    points = group.methods("sts")
    paid = [(c, p) for p in points if (c := _cost(kind, p.row)) is not None]
    costs = {spent for spent, _ in paid}
    if not any(costs) or max(costs) <= 1.01 * min(costs):
        return None  # all cost the same
    best = set(front([(spent, point.cell.mean) for spent, point in paid]))
    marks = [
        Mark(point.label, spent, point.cell.mean, i in best, y_ends=point.ends)
        for i, (spent, point) in enumerate(paid)
    ]
    return group.figure(
        kind,
        title,
        caption + FRONT,
        svg=drawn(draw_cost, marks, axis, height=340.0),
        header=("method", axis, "STS Avg.", "low", "high", "on the front"),
        data=tuple(
            (*row[:5], "yes" if one.strong else "no")
            for one, row in zip(marks, scatter_data(marks), strict=True)
        ),
    )


def _cost(kind: str, row: Row) -> float | None:
    """In seconds or parameters. Untrained rows take no time of training."""
    cost = row.cost or Cost()
    rate = cost.encode_sentences_per_second
    known = {
        "cost": 0.0 if row.setting == "none" else None,
        "parameters": cost.trainable_parameters,
        "encoding": 1000 / rate if rate else None,
    }
    return cost.train_seconds if kind == "cost" and cost.train_seconds is not None else known[kind]


def front(priced: Sequence[tuple[float, float]]) -> list[int]:
    """Of (cost, quality) pairs those on the Pareto front, cheapest first: every other is worse,
    costs more, or is equal in both."""
    best = [
        i
        for i, (cost, quality) in enumerate(priced)
        if not any((c <= cost and q > quality) or (c < cost and q >= quality) for c, q in priced)
    ]
    return sorted(best, key=lambda i: priced[i])


def draw_cost(axes: Axes, marks: Sequence[Mark], axis: str) -> None:
    """Costs on a logarithmic axis; it is linear below the lowest cost, so that what is free has a
    place."""
    paid = [one.x for one in marks if one.x > 0]
    lowest, highest = min(paid), max(paid)
    room = max((highest / lowest) ** 0.15, 1.5)
    free = len(paid) < len(marks)
    axes.set_xscale("symlog", linthresh=lowest / room, linscale=0.3)
    scatter(axes, marks, f"{axis} (logarithmic)", "STS Avg.")
    axes.set_xlim(-lowest / room / 2 if free else lowest / room, highest * room)
    best = sorted((one for one in marks if one.strong), key=lambda one: one.x)
    x, y = [*(one.x for one in best), highest * room], [one.y for one in best]
    axes.plot(x, [*y, y[-1]], drawstyle="steps-post", color=ACCENT, linewidth=1.0, alpha=0.6)
    round_numbers = [digit * 10.0**power for power in range(-3, 13) for digit in (1, 3)]
    inside = [one for one in round_numbers if lowest / room <= one <= highest * room]
    ticks = [0.0] * free + inside[:: -(-len(inside) // MOST_TICKS) or 1]
    axes.set_xticks(ticks, [short_number(tick) for tick in ticks])
    axes.set_xticks([], minor=True)


def short_number(value: float) -> str:
    """ "0.3", "30", "100k", "3M" """
    unit = next((unit for unit in UNITS if value >= unit), 1.0)
    return f"{value / unit:g}{UNITS.get(unit, '')}"


# --- two scores of the same runs ---

SHIFT = (
    "Average of the seven STS sets across, similarity of image captions (CxC-STS), another "
    "domain, upwards. Coloured: highest on either." + BARS
)
SPHERE = (
    "Uniformity and alignment of the vectors of STS-B test, lower is better on both. In brackets:"
    " the average of the STS sets. "
    "Coloured: lowest on either." + BARS
)
PAIR_ENDS = ("second, low", "second, high", "first, low", "first, high")


def shift(group: Group) -> Figure | None:
    """Average of the STS sets against CxC-STS. None where fewer than two rows have both."""
    columns = group.tables["cxc"].columns if "cxc" in group.tables else ("",)
    marks = _marks(group.methods("sts"), group.points("cxc", columns[0]), max)
    if len(marks) < 2:
        return None
    return group.figure(
        "shift",
        "STS against captions of another domain",
        SHIFT,
        svg=drawn(scatter, marks, "STS Avg.", "CxC-STS"),
        suites=("sts", "cxc"),
        paper_figure="PromCSE, Figure 1",
        header=("method", "STS Avg.", "CxC-STS", *PAIR_ENDS),
        data=scatter_data(marks),
    )


def geometry(group: Group) -> Figure | None:
    """Uniformity across, alignment upwards, the average of the STS sets in brackets. None where
    fewer than two rows have both."""
    averages = {run: p.cell.mean for p in group.points("sts") for run in p.row.runs}
    points = [
        replace(p, label=f"{p.label} ({averages[p.row.runs[0]]:.1f})")
        if p.row.runs[0] in averages
        else p
        for p in group.methods("geometry", "uniformity")
    ]
    marks = _marks(points, group.points("geometry", "alignment"), min)
    if len(marks) < 2:
        return None
    return group.figure(
        "geometry",
        "Alignment against uniformity",
        SPHERE,
        svg=drawn(
            scatter,
            marks,
            "uniformity (lower: spread more evenly)",
            "alignment (lower: paraphrases closer)",
        ),
        suites=("geometry",),
        paper_figure="SimCSE, Figure 3",
        header=("method (STS Avg.)", "uniformity", "alignment", *PAIR_ENDS),
        data=scatter_data(marks),
    )


def _marks(across: Sequence[Point], up: Sequence[Point], best: Callable[..., float]) -> list[Mark]:
    """The points that stand for the same runs; emphasised is the best on either axis."""
    pairs = join_points(across, up)
    tops = [best((pair[i].cell.mean for pair in pairs), default=0.0) for i in (0, 1)]
    return [
        Mark(
            x.label,
            x.cell.mean,
            y.cell.mean,
            tops[0] == x.cell.mean or tops[1] == y.cell.mean,
            x.ends,
            y.ends,
        )
        for x, y in pairs
    ]
