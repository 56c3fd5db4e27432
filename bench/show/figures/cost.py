"""Quality against cost, with the Pareto front: the methods that no other one is cheaper and better than."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.show.figures.drawing import ACCENT, QUIET, Figure, Mark, drawn, scatter
from bench.show.figures.points import (
    Group,
    Point,
    ends,
    mean_and_ends,
    one_point_per_method,
    points,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FRONT = (
    " Coloured, and joined by the line: methods that no other method is both cheaper and better than, by the means; neighbours on the line may not "
    "differ. Bars: the intervals of the table, or standard deviations over seeds where it has none. Methods without a comparable cost are not shown."
)
TRAINING = (
    "STS average against the training time of one run, a mean over seeds, on one kind of hardware."
)
PARAMETERS = "STS average against the number of parameters that get a gradient."
ENCODING = "STS average against the time that it takes to encode 1,000 sentences, measured under one condition."
SECONDS = {
    0.1: "0.1 s",
    0.3: "0.3 s",
    1: "1 s",
    3: "3 s",
    10: "10 s",
    30: "30 s",
    60: "1 min",
    180: "3 min",
    600: "10 min",
    1800: "30 min",
    3600: "1 h",
    10800: "3 h",
    36000: "10 h",
    86400: "1 d",
    259200: "3 d",
    864000: "10 d",
}
NUMBERS = {
    10.0**k * j: f"{j * 10 ** (k % 3)}{'kMGT'[k // 3 - 1] if k > 2 else ''}"
    for k in range(15)
    for j in (1, 3)
}
TICKS = 5  # at most


@dataclass(frozen=True)
class Priced:
    """A method with what it costs; 0 is free."""

    cost: float
    point: Point
    on_front: bool


def training_cost(group: Group) -> Figure | None:
    """Average of the STS sets against training time. None where fewer than two costs are known."""
    what = "training time of one run"
    return _figure(
        group, "cost", "Quality against training time", what, SECONDS, _training, TRAINING
    )


def parameter_cost(group: Group) -> Figure | None:
    """Average of the STS sets against the number of parameters that are trained."""
    return _figure(
        group,
        "parameters",
        "Quality against trained parameters",
        "trained parameters",
        NUMBERS,
        lambda point: point.row.cost.trainable_parameters if point.row.cost else None,
        PARAMETERS,
    )


def encoding_cost(group: Group) -> Figure | None:
    """Average of the STS sets against the time that encoding takes."""
    what = "time to encode 1,000 sentences"
    return _figure(
        group, "encoding", "Quality against time of encoding", what, SECONDS, _encoding, ENCODING
    )


def _training(point: Point) -> float | None:
    seconds = point.row.cost.train_seconds if point.row.cost else None
    return 0.0 if seconds is None and point.row.setting == "none" else seconds


def _encoding(point: Point) -> float | None:
    rate = point.row.cost.encode_sentences_per_second if point.row.cost else None
    return 1000 / rate if rate else None


def front(priced: Sequence[tuple[float, float]]) -> list[int]:
    """Of (cost, quality) pairs those on the Pareto front, cheapest first: every other is worse, costs more, or is equal in both."""
    chosen: list[int] = []
    for i in sorted(range(len(priced)), key=lambda i: (priced[i][0], -priced[i][1], i)):
        if not chosen or priced[i][1] > priced[chosen[-1]][1] or priced[i] == priced[chosen[-1]]:
            chosen.append(i)
    return chosen


def _figure(
    group: Group,
    kind: str,
    title: str,
    what: str,
    ticks: dict[float, str],
    cost: Callable[[Point], float | None],
    caption: str,
) -> Figure | None:
    table = group.table("sts")
    if table is None:
        return None
    shown = one_point_per_method(points(table, table.head), table)
    paid = [(spent, point) for point in shown if (spent := cost(point)) is not None]
    costs = {spent for spent, _ in paid}
    if not any(costs) or max(costs) <= 1.01 * min(costs):
        return None  # all cost the same
    on_front = set(front([(spent, point.cell.mean) for spent, point in paid]))
    priced = [Priced(spent, point, i in on_front) for i, (spent, point) in enumerate(paid)]
    return Figure(
        name=group.name(kind),
        kind=kind,
        title=group.titled(title),
        caption=caption + FRONT,
        svg=drawn(draw_cost, priced, ticks, what, f"STS {table.head}", height=340.0),
        header=("method", what, f"STS {table.head}", "low", "high", "on the front"),
        data=tuple(
            (
                one.point.label,
                one.cost,
                *mean_and_ends(one.point.cell),
                "yes" if one.on_front else "no",
            )
            for one in priced
        ),
    )


def draw_cost(
    axes: Axes, priced: Sequence[Priced], ticks: dict[float, str], what: str, quality: str
) -> None:
    """Costs on a logarithmic axis; what is free stands left of it, at "none"."""
    paid = [one.cost for one in priced if one.cost > 0]
    low, high = min(paid), max(paid)
    if high < 4 * low:  # wider, so that a tick or two lie within
        low, high = (low * high) ** 0.5 / 2.2, (low * high) ** 0.5 * 2.2
    nothing = low / (high / low) ** 0.25
    axes.set_xscale("log")
    scatter(
        axes,
        [
            Mark(
                one.cost or nothing,
                one.point.cell.mean,
                one.point.label,
                strong=one.on_front,
                y_bar=ends(one.point.cell),
            )
            for one in priced
        ],
    )
    best = sorted((one for one in priced if one.on_front), key=lambda one: one.cost)
    left, right = nothing if any(one.cost == 0 for one in priced) else low, high
    room = (right / left) ** 0.1
    axes.set_xlim(left / room, right * room)
    axes.plot(
        [*(one.cost or nothing for one in best), right * room],
        [*(one.point.cell.mean for one in best), best[-1].point.cell.mean],
        drawstyle="steps-post",
        color=ACCENT,
        linewidth=1.0,
        alpha=0.6,
    )
    least = low / 1.05 if any(one.cost == 0 for one in priced) else low / room
    inside = [value for value in ticks if least <= value <= right * room]
    inside = inside[:: -(-len(inside) // TICKS) or 1]
    free = [nothing] if left == nothing else []
    axes.set_xticks([*free, *inside], [*("none" for _ in free), *(ticks[v] for v in inside)])
    axes.set_xticks([], minor=True)
    if free:
        axes.axvline((nothing * low) ** 0.5, color=QUIET, linewidth=0.6)
    axes.set_xlabel(f"{what} (logarithmic)")
    axes.set_title(quality)
