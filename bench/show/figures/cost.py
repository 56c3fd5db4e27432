"""Quality against cost, with the Pareto front: the methods than which every other one scores lower or costs more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from bench.compare.formatting import score
from bench.show.figures import plots
from bench.show.figures.drawing import ACCENT, LINE, QUIET, SMALL, Drawing, Figure, library
from bench.show.figures.labels import Box
from bench.show.figures.points import (
    Group,
    Point,
    bars_words,
    count_words,
    ends,
    mean_and_ends,
    names_in_words,
    one_point_per_method,
    points,
)
from bench.show.tables.lines import encode_condition, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Priced = list[tuple[float, Point]]
SECONDS: dict[float, str] = {
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
NUMBERS: dict[float, str] = {
    10**k * j: f"{j * 10 ** (k % 3)}{'kMGT'[k // 3 - 1] if k > 2 else ''}"
    for k in range(15)
    for j in (1, 3)
}


def training_cost(group: Group) -> Figure | None:
    """Average of the STS sets against training time, of runs on one hardware. None where fewer than two rows have both."""
    if "sts" not in group.tables:
        return None
    note = group.tables["sts"].cost_note.rstrip(".")
    return _figure(
        group,
        "cost",
        "Quality against training time",
        "training time of one run",
        SECONDS,
        _time,
        _spent,
        f"Training time is a mean over seeds{f'. {note[:1].upper()}{note[1:]}' if note else ''}.",
    )


def parameter_cost(group: Group) -> Figure | None:
    """Average of the STS sets against the number of parameters that are trained."""
    return _figure(
        group,
        "parameters",
        "Quality against trained parameters",
        "trained parameters",
        NUMBERS,
        _trained,
        short,
        "Trained parameters are those that get a gradient.",
    )


ENCODING = {0.1: "0.1 s", 0.3: "0.3 s"} | SECONDS


def encoding_cost(group: Group) -> Figure | None:
    """Average of the STS sets against the time that encoding takes, of rows that were measured under one condition."""
    table = group.table("sts")
    condition = encode_condition(table) if table else ""
    return _figure(
        group,
        "encoding",
        "Quality against time of encoding",
        "time to encode 1,000 sentences",
        ENCODING,
        _encoding,
        _briefly,
        f"Measured by bench speed: {condition}.",
    )


def _encoding(point: Point) -> float | None:
    rate = point.row.cost.encode_sentences_per_second if point.row.cost else None
    return 1000 / rate if rate else None


def _briefly(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 9.5 else _spent(seconds)


def _time(point: Point) -> float | None:
    seconds = point.row.cost.train_seconds if point.row.cost else None
    return 0.0 if seconds is None and point.row.setting == "none" else seconds


def _trained(point: Point) -> float | None:
    return point.row.cost.trainable_parameters if point.row.cost else None


def front(priced: Sequence[tuple[float, float]]) -> list[int]:
    """Of (cost, quality) pairs those on the Pareto front, cheapest first: every other is worse, costs more, or is equal in both."""
    found: list[int] = []
    for i in sorted(range(len(priced)), key=lambda i: (priced[i][0], -priced[i][1], i)):
        if not found or priced[i][1] > priced[found[-1]][1] or priced[i] == priced[found[-1]]:
            found.append(i)
    return found


def _figure(
    group: Group,
    kind: str,
    title: str,
    what: str,
    ticks: Mapping[float, str],
    cost: Callable[[Point], float | None],
    words: Callable[[float], str],
    how: str,
) -> Figure | None:
    table = group.table("sts")
    if table is None:
        return None
    found = one_point_per_method(points(table, table.head), table)
    priced: Priced = [(spent, point) for point in found if (spent := cost(point)) is not None]
    spent_all = {spent for spent, _ in priced}
    if max(spent_all, default=0.0) <= 1.01 * min(spent_all, default=0.0) or not max(
        spent_all, default=0.0
    ):
        return None  # all cost the same
    on_front = front([(spent, point.cell.mean) for spent, point in priced])
    with library():
        drawing = Drawing()
        left_out = _draw(drawing, priced, on_front, ticks, words, what, f"STS {table.head}")
        names = [
            f"{priced[i][1].label} ({words(priced[i][0])}, {score(priced[i][1].cell.mean)})"
            for i in on_front
        ]
        equal = len({(priced[i][0], priced[i][1].cell.mean) for i in on_front}) < len(on_front)
        caption = " ".join(
            filter(
                None,
                (
                    f"{count_words(len(on_front), 'method')} of {len(priced)} {'is' if len(on_front) == 1 else 'are'} on the front, "
                    f"where every other method scores lower or costs more{' (equal ones share their place)' if equal else ''}: {names_in_words(names, 5)}.",
                    "The order is that of means; neighbours may not differ.",
                    bars_words([table]),
                    how,
                    _without(len(found) - len(priced)),
                    plots.unlabelled_words(left_out),
                ),
            )
        )
        name, heading = group.name(kind), group.titled(title)
        alt = f"Scatter of {len(priced)} methods: average of the STS sets against {what}; on the front: {names_in_words(names, 5)}."
        return Figure(
            name=name,
            kind=kind,
            title=heading,
            caption=caption,
            alt=alt,
            svg=drawing.svg(name, heading, alt),
            header=("method", what, f"STS {table.head}", "low", "high", "on the front"),
            data=tuple(
                (point.label, spent, *mean_and_ends(point.cell), "yes" if i in on_front else "no")
                for i, (spent, point) in enumerate(priced)
            ),
        )


def _without(many: int) -> str:
    return (
        f"{count_words(many, 'method')} without a comparable cost {'is' if many == 1 else 'are'} not shown."
        if many
        else ""
    )


def _draw(
    drawing: Drawing,
    priced: Priced,
    on_front: Sequence[int],
    ticks: Mapping[float, str],
    words: Callable[[float], str],
    what: str,
    y_name: str,
) -> int:
    """Returns how many points have no label."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axes = drawing.axes()
    paid = [spent for spent, _ in priced if spent > 0]
    low, high = min(paid), max(paid)
    if high < 4 * low:  # less than a factor of four: wider, so that a tick or two lie within
        middle = (low * high) ** 0.5
        low, high = middle / 2.2, middle * 2.2
    room = (high / low) ** 0.07
    free = any(spent == 0 for spent, _ in priced)
    nothing = low / (high / low) ** 0.22  # where free ones stand, apart from the scale
    axes.set_xscale("log")
    axes.set_xlim((nothing / room if free else low / room), high * room)
    marks = [
        plots.Mark(
            spent or nothing,
            point.cell.mean,
            point.label,
            f"{point.label}: {score(point.cell.mean)}, {words(spent)}",
            strong=i in on_front,
            y_bar=ends(point.cell),
        )
        for i, (spent, point) in enumerate(priced)
    ]
    plots.fit_axes(axes, marks, x=False)
    axes.xaxis.set_major_locator(FixedLocator([]))
    axes.xaxis.set_minor_locator(NullLocator())
    box = drawing.box(axes)
    inside = [(value, text) for value, text in ticks.items() if low / room <= value <= high * room]
    for value, text in inside[
        :: -(-len(inside) // 5) or 1
    ]:  # at most five; of many every second or third
        drawing.text(
            drawing.at(axes, value, 0)[0],
            box.low - 15,
            text,
            size=SMALL,
            anchor="middle",
            colour=QUIET,
        )
    if free:
        x = drawing.at(axes, nothing, 0)[0]
        drawing.text(x, box.low - 15, "none", size=SMALL, anchor="middle", colour=QUIET)
        cut = drawing.at(axes, (nothing * low / room) ** 0.5, 0)[0]
        drawing.line((cut, box.low), (cut, box.high), LINE)
    line = _steps(drawing, axes, [marks[i] for i in on_front])
    drawing.names(axes, f"{what} (logarithmic)", y_name)
    return plots.draw_points(drawing, axes, marks, line)


def _steps(drawing: Drawing, axes: Axes, marks: Sequence[plots.Mark]) -> list[Box]:
    """The front as a staircase: as good as the best so far, until something better is paid for."""
    xs = [*(mark.x for mark in marks), axes.get_xlim()[1]]
    ys = [*(mark.y for mark in marks), marks[-1].y]
    axes.plot(xs, ys, drawstyle="steps-post", color=ACCENT, linewidth=1.0, alpha=0.5, zorder=2)
    covered = []
    for i in range(len(xs) - 1):
        (x0, y0), (x1, y1) = drawing.at(axes, xs[i], ys[i]), drawing.at(axes, xs[i + 1], ys[i + 1])
        covered += [Box(x0, y0 - 1, x1, y0 + 1), Box(x1 - 1, y0, x1 + 1, y1)]
    return covered


def _spent(seconds: float) -> str:
    if seconds == 0:
        return "not trained"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
