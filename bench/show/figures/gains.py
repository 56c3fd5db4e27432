"""Gains that papers print, next to what seeds alone do; and what each row of a table gains over the
baseline."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from bench.compare.formatting import signed_number
from bench.compare.statistics.table import BETTER, WORSE
from bench.references import BASE, PrintedGain, printed_gains
from bench.show.figures.drawing import ACCENT, AROUND, QUIET, ROW, Figure, bar, drawn, rounded, rows
from bench.show.figures.points import Group

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bench.compare.statistics.table import Against

# --- what papers print ---

PAPER_GAINS = (
    "Gains on the STS average that papers print over a SimCSE which they ran themselves, in the "
    "same setting and on the same backbone; single runs, or the paper does not say how many. "
    "Line: 1.96 × √(s² + m²), where s is the standard deviation of simcse over seeds on this "
    "board, and m the median of the standard deviations of its rows. Coloured: above the line."
)


def noise_line(simcse: float, middle: float) -> float:
    """1.96 standard deviations of a difference of two single runs (docs/statistics.md), from
    spreads over seeds in points: of simcse, and the median of all rows that have two seeds or
    more."""
    return 1.96 * math.hypot(simcse, middle)


def paper_gains(group: Group) -> Figure | None:
    """The gains that papers print, with the line of noise of this board's runs. None where simcse,
    without a variant, is not exactly one row with a spread."""
    spreads = [(p.row, p.cell.sd) for p in group.points("sts") if p.cell.sd is not None]
    simcse = [sd for row, sd in spreads if row.method == BASE and not row.variant]
    if len(simcse) != 1:
        return None
    middle, (printed, _) = median(sd for _, sd in spreads), printed_gains()
    line = noise_line(simcse[0], middle)
    numbers = (round(line, 2), round(simcse[0], 2), round(middle, 2))
    return Figure(
        name=group.name("printed-gains"),
        kind="printed-gains",
        title="Gains over SimCSE that papers print",
        caption=PAPER_GAINS,
        svg=drawn(draw_paper_gains, printed, line, height=AROUND + ROW * len(printed)),
        header=("method", "paper:table", "setting, backbone", "SimCSE", "gain", "line", "s", "m"),
        data=tuple(
            (one.label, one.source, one.where, one.base, round(one.gain, 2), *numbers)
            for one in printed
        ),
    )


def draw_paper_gains(axes: Axes, printed: Sequence[PrintedGain], line: float) -> None:
    """Rows from the largest gain to the smallest; the backbone stands where a name has several."""
    count = Counter(one.label for one in printed)
    for i, one in enumerate(printed):
        axes.plot([one.gain], [i], "o", color=ACCENT if one.gain > line else QUIET)
    axes.axvline(0, color=QUIET, linewidth=0.9)
    axes.axvline(line, color=ACCENT, linestyle="--")
    axes.text(line, -0.7, f"{line:.2f}", ha="center", va="bottom", size=10)
    axes.set_xlabel("points of the STS average")
    short = [one.first.backbone.removesuffix("-uncased") for one in printed]
    both = zip(printed, short, strict=True)
    rows(axes, (f"{g.label}, {name}" if count[g.label] > 1 else g.label for g, name in both))


# --- over the baseline ---

GAINS = (
    "Each row less the baseline. Bar: the confidence interval of that difference, at the level "
    "that the table of this figure gives. Coloured: better or worse than the baseline; grey: "
    "inconclusive. An arrow at the edge stands for a row far from the others."
)
MOST = 24  # rows of a figure


def gains(group: Group) -> Figure | None:
    """A line for each row that was compared with the baseline, the largest gain first. None where
    there is none."""
    suite = group.suites[0]
    table = group.tables[suite]
    pairs = [(point.label, point.cell.against) for point in group.methods(suite)]
    compared = [(label, one) for label, one in pairs if one is not None and one.verdict is not None]
    if not compared or not table.baseline:
        return None
    compared.sort(key=lambda gain: -gain[1].difference)
    shown = compared[:MOST]
    axis = f"{suite.replace('sts', 'STS')} {table.head} less that of {table.baseline}"
    return group.figure(
        "gains",
        f"Gains over {table.baseline}",
        GAINS,
        svg=drawn(draw_gains, shown, axis, height=AROUND + ROW * len(shown)),
        suites=(suite,),
        header=("method", "gain", "low", "high", "level of the interval", "verdict"),
        data=tuple(
            (label, *rounded(one.difference, one.ci_low, one.ci_high, one.ci_level), one.verdict)
            for label, one in compared
        ),
    )


def draw_gains(axes: Axes, shown: Sequence[tuple[str, Against]], axis: str) -> None:
    """Rows to scale as far as Tukey's outer fences (1977), three quartile ranges around the middle
    half, and at least to zero."""
    from numpy import percentile

    quartiles = percentile([one.difference for _, one in shown], [25, 75])
    low, high = map(float, quartiles)
    reach = 3 * max(high - low, 0.5)  # points; a range is at least half of one
    lowest, highest = min(low - reach, 0.0), max(high + reach, 0.0)
    for i, (_, one) in enumerate(shown):
        value, colour = one.difference, ACCENT if one.verdict in (BETTER, WORSE) else QUIET
        if lowest <= value <= highest:
            if one.ci_low is not None and one.ci_high is not None:
                bar(axes, (max(one.ci_low, lowest), min(one.ci_high, highest)), (i, i), colour)
            axes.plot([value], [i], "o", color=colour)
            continue
        text, is_low = signed_number(value).replace("-", "−"), value < lowest
        text, side = (f"← {text}", "left") if is_low else (f"{text} →", "right")
        across = axes.get_yaxis_transform()  # 0 and 1 are the edges
        axes.text(float(not is_low), i, text, ha=side, va="center", size=10, transform=across)
    axes.axvline(0, color=QUIET, linewidth=0.9)
    axes.set_xlabel(axis)
    rows(axes, (label for label, _ in shown))
