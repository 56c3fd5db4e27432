"""Lines over an axis, each with its name at the right end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.show.figures import scatter
from bench.show.figures.drawing import SMALL, TEXT, WIDTH, Drawing, fitting
from bench.show.figures.labels import Box, spread_out, width
from bench.show.figures.svg import ACCENT, INK, PAPER, QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    from matplotlib.ticker import MaxNLocator

    ys = [v for line in lines for v in (*line.y, *(end for bar in line.bars if bar for end in bar))]
    axes.set_ylim(*scatter.limits([*ys, *also]))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    for line in sorted(lines, key=lambda line: line.strong):
        colour, order = (ACCENT, 6) if line.strong else (QUIET, 4)
        if line.joined:
            axes.plot(line.x, line.y, color=colour, linewidth=1.6 if line.strong else 1.0, zorder=order, clip_on=False)
        for i, (x, y) in enumerate(zip(line.x, line.y, strict=True)):
            if line.bars and (bar := line.bars[i]):
                drawing.bar(axes, (x, x), bar, strong=line.strong)
            axes.plot([x], [y], marker="o", markersize=5, linestyle="", markerfacecolor=colour if line.strong else PAPER, markeredgecolor=colour,
                      markeredgewidth=1.2, zorder=order + 1, clip_on=False, gid=drawing.tip(line.tips[i]))  # fmt: skip
    if any(line.label for line in lines):
        _names(drawing, axes, lines)


def _names(drawing: Drawing, axes: Axes, lines: Sequence[Line]) -> None:
    box = drawing.box(axes)
    ends = [drawing.at(axes, line.x[-1], line.y[-1]) for line in lines]
    heights = spread_out([y for _, y in ends], TEXT + 2, box.low + 4, box.high + 6)
    for line, (x, y), height in zip(lines, ends, heights, strict=True):
        begin = max(x, box.right) + 14
        if abs(height - y) > 3:
            drawing.line((x + 5, y), (begin - 3, height))
        drawing.text(begin, height - 0.35 * TEXT, fitting(line.label, WIDTH - begin - 1), colour=ACCENT if line.strong else INK)


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


def panel(drawing: Drawing, left: float, low: float, right: float, high: float) -> Axes:
    """Axes in a part of the sheet."""
    return drawing.axes(Box(left, low, right, high))
