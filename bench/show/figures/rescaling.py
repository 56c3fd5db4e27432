"""How Focal-InfoNCE re-scales the cosine of a negative pair (its Figure 1): drawn from the formula s (s + m), without a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.show.figures.drawing import (
    ACCENT,
    INK,
    QUIET,
    TEXT,
    THIRD,
    WIDTH,
    Drawing,
    Figure,
    library,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ADDED = (0.1, 0.2, 0.3, 0.4)  # values of m: those of the paper's Table 5
STEPS = 40  # parts that a curve is drawn in
HIGHEST = 1.0 + max(ADDED)


def rescaled(s: float, m: float) -> float:
    """What stands for the cosine s of a negative pair in the loss, before the temperature (Focal-InfoNCE, eq. 2)."""
    return s * (s + m)


def rescaling() -> Figure:
    """A curve for each m, in one colour where it lies above the cosine itself (s > 1 - m) and in another one below."""
    with library():
        drawing = Drawing()
        axes = drawing.axes(right=WIDTH - 60)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, HIGHEST)
        axes.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1])
        axes.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4])
        axes.plot([0, 1], [0, 1], color=QUIET, linewidth=1.0, linestyle=(0, (4, 3)), zorder=3)
        _name(drawing, axes, 1.0, "s", QUIET)
        for m in ADDED:
            hard = 1 - m
            _curve(axes, [hard * i / STEPS for i in range(STEPS + 1)], m, THIRD)
            _curve(axes, [hard + m * i / STEPS for i in range(STEPS + 1)], m, ACCENT)
            _name(drawing, axes, rescaled(1.0, m), f"m = {m:g}", INK)
        box = drawing.box(axes)
        drawing.text(box.left + 12, box.high - 14, "up-weighted", colour=ACCENT)
        drawing.text(box.left + 12, box.high - 30, "down-weighted", colour=THIRD)
        drawing.names(axes, "cosine s of a negative pair", "re-scaled: s (s + m)")
        title = "Re-scaled negative pairs"
        alt = f"A curve of s (s + m) over s for each of {len(ADDED)} values of m, and the line of s itself; each curve crosses it at s = 1 - m."
        return Figure(
            name="rescaling",
            kind="rescaling",
            suites=(),
            title=title,
            alt=alt,
            svg=drawing.svg("rescaling", title, alt),
            paper_figure="Focal-InfoNCE, Figure 1",
            caption="The value s (s + m) that Focal-InfoNCE takes in place of the cosine s of a negative pair, for the values of m in its "
            "Table 5. A pair is up-weighted where the curve lies above s (dashed), which is where s > 1 − m, and down-weighted elsewhere. "
            "Drawn from the formula, without a run.",
            header=("cosine", *(f"m = {m:g}" for m in ADDED)),
            data=tuple(
                (s, *(round(rescaled(s, m), 4) for m in ADDED)) for s in (i / 10 for i in range(11))
            ),
        )


def _curve(axes: Axes, s: Sequence[float], m: float, colour: str) -> None:
    axes.plot(
        s,
        [rescaled(cosine, m) for cosine in s],
        color=colour,
        linewidth=1.6,
        zorder=5,
        clip_on=False,
    )


def _name(drawing: Drawing, axes: Axes, height: float, text: str, colour: str) -> None:
    x, y = drawing.at(axes, 1.0, height)
    drawing.text(x + 8, y - 0.35 * TEXT, text, colour=colour)
