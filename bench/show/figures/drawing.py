"""The empty drawing that all figures begin with, and what they share: axes without boxes, points, labels, bars."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.show.figures import svg
from bench.show.figures.labels import Box, lead, placed, width
from bench.show.figures.svg import ACCENT, INK, LINE, PAPER, QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

WIDTH = 360.0  # units; as wide as a phone, so that text has its size there
SMALL, TEXT = 11.0, 12.0  # sizes of tick labels and of all other text
LEFT, RIGHT, TOP, BOTTOM = 38.0, 14.0, 30.0, 42.0
RADIUS = 4.0
HASHSALT = "bench"


@contextmanager
def library() -> Iterator[None]:
    """matplotlib with its own defaults, whatever its user has set, and quiet about characters that its font lacks."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "svg.fonttype": "none",
                "svg.hashsalt": HASHSALT,
                "font.family": ["DejaVu Sans"],
                "text.usetex": False,
                "text.parse_math": False,
                "axes.unicode_minus": True,
                "path.simplify": False,
            }
        )
        yield


@dataclass
class Drawing:
    """A sheet of ``height`` units, 360 wide, with one or more axes on it. Only within ``library()``."""

    height: float = 300.0
    tips: dict[str, str] = field(default_factory=dict)
    sheet: Sheet = field(init=False)

    def __post_init__(self) -> None:
        from matplotlib.figure import Figure as Sheet

        self.sheet = Sheet(figsize=(WIDTH / 72, self.height / 72), dpi=72)
        self.sheet.patch.set_visible(False)

    def axes(self, box: Box | None = None) -> Axes:
        """Axes in ``box`` of the sheet: a line at the bottom, no frame, no ticks."""
        box = box or Box(LEFT, BOTTOM, WIDTH - RIGHT, self.height - TOP)
        at = (box.left / WIDTH, box.low / self.height, (box.right - box.left) / WIDTH, (box.high - box.low) / self.height)
        axes = self.sheet.add_axes(at)
        axes.patch.set_visible(False)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.spines["bottom"].set_color(QUIET)
        axes.spines["bottom"].set_linewidth(0.8)
        axes.tick_params(left=False, bottom=False, labelsize=SMALL, labelcolor=QUIET, pad=4, which="both")
        axes.minorticks_off()
        axes.grid(axis="y", color=LINE, linewidth=0.6)
        axes.set_axisbelow(True)
        return axes

    def names(self, axes: Axes, x: str, y: str) -> None:
        """What the axes are: y at the top left, x below the middle."""
        box = self.box(axes)
        self.text(2.0, box.high + 14.0, y, colour=QUIET)
        self.text((box.left + box.right) / 2, box.low - 32.0, x, anchor="middle", colour=QUIET)

    def box(self, axes: Axes) -> Box:
        """Where the axes lie on the sheet."""
        found = axes.get_position()
        return Box(found.x0 * WIDTH, found.y0 * self.height, found.x1 * WIDTH, found.y1 * self.height)

    def at(self, axes: Axes, x: float, y: float) -> tuple[float, float]:
        """Where a value lies on the sheet."""
        found = axes.transData.transform((x, y))
        return float(found[0]), float(found[1])

    def text(
        self, x: float, y: float, text: str, *, size: float = TEXT, anchor: str = "start", colour: str = INK, bold: bool = False
    ) -> None:
        """A line of text with its baseline at ``y``."""
        side = {"start": "left", "middle": "center", "end": "right"}[anchor]
        self.sheet.text(x / WIDTH, y / self.height, text, fontsize=size, ha=side, va="baseline", color=colour,
                        fontweight="bold" if bold else "normal", parse_math=False)  # fmt: skip

    def tip(self, text: str) -> str:
        """The id of a mark that shows ``text`` when it is pointed at."""
        self.tips[f"tip{len(self.tips)}"] = text
        return f"tip{len(self.tips) - 1}"

    def dot(self, axes: Axes, x: float, y: float, tip: str, *, strong: bool = False, square: bool = False) -> None:
        """A point: filled in the accent where it is ``strong``, else hollow."""
        axes.plot([x], [y], marker="s" if square else "o", markersize=2 * RADIUS - 1, linestyle="", gid=self.tip(tip), zorder=6 if strong else 5,
                  markerfacecolor=ACCENT if strong else PAPER, markeredgecolor=ACCENT if strong else QUIET, markeredgewidth=1.4,
                  clip_on=False)  # fmt: skip

    def bar(self, axes: Axes, x: Sequence[float], y: Sequence[float], *, strong: bool = False) -> Box:
        """An error bar from the first to the second of ``x`` and ``y``; returns what it covers."""
        axes.plot(x, y, color=ACCENT if strong else QUIET, linewidth=1.1, alpha=0.75, zorder=3, clip_on=False)
        (x0, y0), (x1, y1) = self.at(axes, x[0], y[0]), self.at(axes, x[1], y[1])
        return Box(min(x0, x1) - 1, min(y0, y1) - 1, max(x0, x1) + 1, max(y0, y1) + 1)

    def specks(self, axes: Axes, x: Sequence[float], y: Sequence[float]) -> None:
        """Small dots: points that only show where the others are."""
        if x:
            axes.plot(
                x, y, marker="o", markersize=3, linestyle="", markerfacecolor=QUIET, markeredgewidth=0, alpha=0.6, zorder=4, clip_on=False
            )

    def label(
        self,
        axes: Axes,
        points: Sequence[tuple[float, float]],
        texts: Sequence[str],
        *,
        strong: Sequence[bool],
        avoid: Sequence[Box] = (),
        specks: Sequence[tuple[float, float]] = (),
    ) -> int:
        """Labels beside points, those of ``strong`` ones first; returns how many found a place."""
        order = sorted(range(len(points)), key=lambda i: not strong[i])
        spots = [self.at(axes, *points[i]) for i in order]
        inside = self.box(axes)
        frame = Box(inside.left - 4, inside.low + 2, WIDTH - 2, inside.high + 8)
        found = placed(
            spots,
            [texts[i] for i in order],
            frame,
            size=TEXT,
            radius=RADIUS,
            avoid=avoid,
            specks=[self.at(axes, *speck) for speck in specks],
        )
        for i, spot, place in zip(order, spots, found, strict=True):
            if place is None:
                continue
            if place.lead:
                self.line(*lead(spot, place.box, RADIUS))
            self.text(place.x, place.y, texts[i], anchor=place.anchor, colour=ACCENT if strong[i] else INK)
        return sum(place is not None for place in found)

    def line(self, begin: tuple[float, float], end: tuple[float, float], colour: str = QUIET) -> None:
        """A thin line between two places on the sheet."""
        from matplotlib.lines import Line2D

        self.sheet.add_artist(
            Line2D(
                [begin[0] / WIDTH, end[0] / WIDTH],
                [begin[1] / self.height, end[1] / self.height],
                color=colour,
                linewidth=0.6,
                transform=self.sheet.transFigure,
            )
        )

    def svg(self, name: str, title: str, alt: str) -> str:
        """The finished element."""
        from matplotlib.backends.backend_svg import FigureCanvasSVG

        out = io.StringIO()
        FigureCanvasSVG(self.sheet).print_svg(out, metadata={"Date": None, "Creator": None})
        return svg.finished(out.getvalue(), name, title, alt, self.tips)


def fitting(text: str, room: float, size: float = TEXT) -> str:
    """``text``, cut with an ellipsis where it is wider than ``room``."""
    if width(text, size) <= room:
        return text
    while text and width(text + "…", size) > room:
        text = text[:-1]
    return text.rstrip(" +=") + "…"
