"""What is drawn on the axes of most figures: points with error bars and labels, or lines with their names at the right end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bench.show.figures.drawing import (
    ACCENT,
    INK,
    PAPER,
    QUIET,
    SMALL,
    TEXT,
    WIDTH,
    Drawing,
    fit_text,
)
from bench.show.figures.labels import Box, spread_out, width

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# --- The axes ---


def limits(
    values: Sequence[float], around: float = 0.08, least: float = 0.5
) -> tuple[float, float]:
    """Ends of an axis: the values' own, with room; never narrower than ``least``."""
    low, high = min(values), max(values)
    wide = max(high - low, least)
    middle = (low + high) / 2
    return middle - wide * (0.5 + around), middle + wide * (0.5 + around)


def round_ticks(axes: Axes, axis: Literal["x", "y"], most: int = 5) -> None:
    """At round values, at most so many intervals."""
    axes.locator_params(axis=axis, nbins=most, steps=[1, 2, 5, 10])


def round_values(low: float, high: float, most: int) -> list[float]:
    """Where such ticks stand from ``low`` to ``high``."""
    from matplotlib.ticker import MaxNLocator

    return [
        value
        for value in MaxNLocator(most, steps=[1, 2, 5, 10]).tick_values(low, high)
        if low <= value <= high
    ]


def range_x(axes: Axes, low: float, high: float, around: float, *, log: bool) -> None:
    """x from ``low`` to ``high`` with room of a part of that ``around`` them, on a logarithmic scale where wanted."""
    from matplotlib.ticker import NullLocator

    if log:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        room = math.exp(math.log(high / low) * around)
        axes.set_xlim(low / room, high * room)
    else:
        room = around * (high - low)
        axes.set_xlim(low - room, high + room)


def ticks(drawing: Drawing, axes: Axes, at: Sequence[float], texts: Sequence[str]) -> None:
    """Tick labels below the axes, those left out that would touch the one before."""
    axes.set_xticks([])
    box = drawing.box(axes)
    free = -1.0
    for x, text in zip(at, texts, strict=True):
        middle, half = drawing.at(axes, x, 0)[0], width(text, SMALL) / 2
        if middle - half > free:
            drawing.text(middle, box.low - 15, text, size=SMALL, anchor="middle", colour=QUIET)
            free = middle + half + 3


# --- A scatter of methods with error bars and direct labels: what most figures are ---

CROWD, FIRST = 60, 12
"""Above so many points only the first ones, and the strong ones, have bars and labels."""


@dataclass(frozen=True)
class Mark:
    """A point of a scatter."""

    x: float
    y: float
    label: str
    tip: str
    strong: bool = False
    x_bar: tuple[float, float] | None = None
    y_bar: tuple[float, float] | None = None


def fit_axes(axes: Axes, marks: Sequence[Mark], *, x: bool = True, least: float = 0.5) -> None:
    """Limits that hold all marks and their bars, and few ticks. ``least``: the narrowest range that an axis may have."""
    ys = [v for mark in marks for v in (mark.y, *(mark.y_bar or ()))]
    low, high = limits(ys, least=least)
    axes.set_ylim(low, high + 0.1 * (high - low))  # room for labels above the best
    round_ticks(axes, "y")
    if x:
        axes.set_xlim(
            *limits([v for mark in marks for v in (mark.x, *(mark.x_bar or ()))], least=least)
        )
        round_ticks(axes, "x")


def draw_points(
    drawing: Drawing, axes: Axes, marks: Sequence[Mark], avoid: Sequence[Box] = ()
) -> int:
    """The marks on axes whose limits are set, strong ones labelled first; returns how many have no label.

    Where they are very many, those that are neither strong nor among the first are small dots without bars.
    """
    full = [
        mark
        for i, mark in enumerate(marks)
        if mark.strong or i < (FIRST if len(marks) > CROWD else CROWD)
    ]
    small = [mark for mark in marks if mark not in full] if len(full) < len(marks) else []
    covered = list(avoid)
    for mark in full:
        if mark.x_bar:
            covered.append(drawing.bar(axes, mark.x_bar, (mark.y, mark.y), strong=mark.strong))
        if mark.y_bar:
            covered.append(drawing.bar(axes, (mark.x, mark.x), mark.y_bar, strong=mark.strong))
    drawing.specks(axes, [mark.x for mark in small], [mark.y for mark in small])
    for mark in full:
        drawing.dot(axes, mark.x, mark.y, mark.tip, strong=mark.strong)
    labelled = drawing.label(
        axes,
        [(mark.x, mark.y) for mark in full],
        [mark.label for mark in full],
        strong=[mark.strong for mark in full],
        avoid=covered,
        specks=[(mark.x, mark.y) for mark in small],
    )
    return len(marks) - labelled


def unlabelled_words(many: int) -> str:
    """What a caption says of points without a label."""
    if not many:
        return ""
    have, them = ("s have", "them") if many > 1 else (" has", "it")
    return f"{many} point{have} no room for a label; the table names {them}."


# --- Lines over an axis, each with its name at the right end ---


MOST = 9  # lines of a figure
ROOM = 128.0  # at most, for the names at the right


@dataclass(frozen=True)
class Line:
    """Points from left to right. ``bars`` are their error bars, where there are any."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    tips: tuple[str, ...]
    strong: bool = False
    bars: tuple[tuple[float, float] | None, ...] = ()
    joined: bool = True  # False: points alone, of which nobody knows what lies between


def room(lines: Sequence[Line]) -> float:
    """What the names need at the right."""
    return min(ROOM, max(width(line.label, TEXT) for line in lines) + 18)


def draw(drawing: Drawing, axes: Axes, lines: Sequence[Line], also: Sequence[float] = ()) -> None:
    """The lines on axes whose x is set; strong ones on top. ``also``: other heights for which there has to be room."""
    ys = [v for line in lines for v in (*line.y, *(end for bar in line.bars if bar for end in bar))]
    axes.set_ylim(*limits([*ys, *also]))
    round_ticks(axes, "y")
    for line in sorted(lines, key=lambda line: line.strong):
        colour, order = (ACCENT, 6) if line.strong else (QUIET, 4)
        if line.joined:
            axes.plot(
                line.x,
                line.y,
                color=colour,
                linewidth=1.6 if line.strong else 1.0,
                zorder=order,
                clip_on=False,
            )
        for i, (x, y) in enumerate(zip(line.x, line.y, strict=True)):
            if line.bars and (bar := line.bars[i]):
                drawing.bar(axes, (x, x), bar, strong=line.strong)
            axes.plot(
                [x],
                [y],
                marker="o",
                markersize=5,
                linestyle="",
                markerfacecolor=colour if line.strong else PAPER,
                markeredgecolor=colour,
                markeredgewidth=1.2,
                zorder=order + 1,
                clip_on=False,
                gid=drawing.tip(line.tips[i]),
            )
    if any(line.label for line in lines):
        _names(drawing, axes, lines)


def drawn_over(
    steps: Sequence[int],
    lines: Sequence[Line],
    x_name: str,
    y_name: str,
    also: Sequence[float] = (),
) -> Drawing:
    """A sheet of lines over ``steps``, which stand evenly apart whatever their numbers: x is 0, 1, 2 ..."""
    drawing = Drawing()
    axes = drawing.axes(right=WIDTH - room(lines))
    axes.set_xlim(-0.3, len(steps) - 0.9)
    draw(drawing, axes, lines, also=also)
    ticks(drawing, axes, range(len(steps)), [str(k) for k in steps])
    drawing.names(axes, x_name, y_name)
    return drawing


def _names(drawing: Drawing, axes: Axes, lines: Sequence[Line]) -> None:
    box = drawing.box(axes)
    ends = [drawing.at(axes, line.x[-1], line.y[-1]) for line in lines]
    heights = spread_out([y for _, y in ends], TEXT + 2, box.low + 4, box.high + 6)
    for line, (x, y), height in zip(lines, ends, heights, strict=True):
        begin = max(x, box.right) + 14
        if abs(height - y) > 3:
            drawing.line((x + 5, y), (begin - 3, height))
        drawing.text(
            begin,
            height - 0.35 * TEXT,
            fit_text(line.label, WIDTH - begin - 1),
            colour=ACCENT if line.strong else INK,
        )
