"""A scatter of methods with error bars and direct labels: what most figures are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.show.figures.drawing import Drawing
from bench.show.figures.labels import Box

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


def limits(values: Sequence[float], around: float = 0.08, least: float = 0.5) -> tuple[float, float]:
    """Ends of an axis: the values' own, with room; never narrower than ``least``."""
    low, high = min(values), max(values)
    wide = max(high - low, least)
    middle = (low + high) / 2
    return middle - wide * (0.5 + around), middle + wide * (0.5 + around)


def fit(axes: Axes, marks: Sequence[Mark], *, x: bool = True, least: float = 0.5) -> None:
    """Limits that hold all marks and their bars, and few ticks. ``least``: the narrowest range that an axis may have."""
    from matplotlib.ticker import MaxNLocator

    ys = [v for mark in marks for v in (mark.y, *(mark.y_bar or ()))]
    low, high = limits(ys, least=least)
    axes.set_ylim(low, high + 0.1 * (high - low))  # room for labels above the best
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    if x:
        axes.set_xlim(*limits([v for mark in marks for v in (mark.x, *(mark.x_bar or ()))], least=least))
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))


def draw(drawing: Drawing, axes: Axes, marks: Sequence[Mark], avoid: Sequence[Box] = ()) -> int:
    """The marks on axes whose limits are set, strong ones labelled first; returns how many have no label.

    Where they are very many, those that are neither strong nor among the first are small dots without bars.
    """
    full = [mark for i, mark in enumerate(marks) if mark.strong or i < (FIRST if len(marks) > CROWD else CROWD)]
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


def unlabelled(many: int) -> str:
    """What a caption says of points without a label."""
    if not many:
        return ""
    have, them = ("s have", "them") if many > 1 else (" has", "it")
    return f"{many} point{have} no room for a label; the table names {them}."
