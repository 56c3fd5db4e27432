"""What each row gains over the baseline, and what papers print as gains, next to what seeds alone do."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from bench.compare.formatting import signed_number
from bench.references import BASE, PrintedGain, printed_gains
from bench.show.figures.drawing import ACCENT, QUIET, Figure, bar, drawn, rows
from bench.show.figures.points import Group, one_point_per_method, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bench.compare.statistics.table import Against, Table

MOST = 24  # rows of a figure
ROW, AROUND = 20.0, 56.0  # points of height of a row, and of all that is not a row
DECIDED = ("better", "worse")

# --- over the baseline ---

GAINS = (
    "Each row less the baseline. Bar: the confidence interval of that difference, at the level that the table of this "
    "figure gives. Coloured: better or worse than the baseline; grey: inconclusive. An arrow at the edge stands for a row far from the others."
)
Gain = tuple[str, "Against"]  # what the row is called, and the row less the baseline


def gains(group: Group) -> Figure | None:
    """A line for each row that was compared with the baseline. None where there is none."""
    table = group.tables[group.suites[0]].table
    compared = row_gains(table)
    if not compared or not table.baseline:
        return None
    what = " ".join(
        (table.suite.replace("sts", "STS"), table.head or "", "less that of", table.baseline)
    )
    shown = compared[:MOST]
    return Figure(
        name=group.name("gains"),
        kind="gains",
        title=group.titled(f"Gains over {table.baseline}"),
        caption=GAINS,
        svg=drawn(draw_gains, shown, what, height=AROUND + ROW * len(shown)),
        suites=(table.suite,),
        header=("method", "gain", "low", "high", "level of the interval", "verdict"),
        data=tuple(
            (
                label,
                _cell(against.difference),
                _cell(against.ci_low),
                _cell(against.ci_high),
                _cell(against.ci_level),
                against.verdict or "",
            )
            for label, against in compared
        ),
    )


def row_gains(table: Table) -> list[Gain]:
    """Every row that has a verdict on the column that ranks, the largest gain first."""
    drawn_rows = one_point_per_method(points(table, table.head), table)
    compared = [
        (point.label, point.cell.against)
        for point in drawn_rows
        if point.cell.against is not None and point.cell.against.verdict is not None
    ]
    return sorted(compared, key=lambda gain: -gain[1].difference)


def draw_gains(axes: Axes, shown: Sequence[Gain], what: str) -> None:
    """Rows from the largest gain to the smallest."""
    lowest, highest = fences([against.difference for _, against in shown])
    for i, (_, against) in enumerate(shown):
        value, colour = against.difference, ACCENT if against.verdict in DECIDED else QUIET
        if not lowest <= value <= highest:
            edge, side, text = (
                (0.0, "left", f"← {minus(value)}")
                if value < lowest
                else (1.0, "right", f"{minus(value)} →")
            )
            axes.text(
                edge, i, text, ha=side, va="center", size=10, transform=axes.get_yaxis_transform()
            )
            continue
        if against.ci_low is not None and against.ci_high is not None:
            bar(axes, (max(against.ci_low, lowest), min(against.ci_high, highest)), (i, i), colour)
        axes.plot([value], [i], "o", color=colour)
    axes.axvline(0, color=QUIET, linewidth=0.9)
    axes.set_xlabel(what)
    rows(axes, [label for label, _ in shown])


def fences(values: Sequence[float]) -> tuple[float, float]:
    """What is drawn to scale: three quartile ranges around the middle half (Tukey 1977), and zero; a range is at least half a point."""
    from numpy import percentile

    low, high = (float(quartile) for quartile in percentile(values, [25, 75]))
    reach = 3 * max(high - low, 0.5)
    return min(low - reach, 0.0), max(high + reach, 0.0)


def minus(value: float) -> str:
    return signed_number(value).replace("-", "−")


def _cell(value: float | None) -> float | str:
    return "" if value is None else round(value, 4)


# --- what papers print ---

PAPER_GAINS = (
    "Gains on the STS average that papers print over a SimCSE which they ran themselves, in the same setting and on the same backbone; "
    "single runs, or the paper does not say how many. Line: 1.96 × √(s² + m²), where s is the standard deviation of simcse over seeds on "
    "this board, and m the median of the standard deviations of its rows. Coloured: above the line."
)


@dataclass(frozen=True)
class Noise:
    """Spreads over seeds of the STS average, in points: of simcse, and the median of all rows that have two seeds or more."""

    simcse: float
    median: float

    @property
    def line(self) -> float:
        """1.96 standard deviations of a difference of two single runs (docs/statistics.md)."""
        return 1.96 * math.sqrt(self.simcse**2 + self.median**2)


def noise(table: Table) -> Noise | None:
    """None where simcse, without a variant, is not exactly one row with a spread."""
    spreads = [
        (point.row, point.cell.sd)
        for point in points(table, table.head)
        if point.cell.sd is not None
    ]
    simcse = [sd for row, sd in spreads if row.method == BASE and not row.variant]
    return Noise(simcse[0], median(sd for _, sd in spreads)) if len(simcse) == 1 else None


def paper_gains(group: Group) -> Figure | None:
    """The gains that papers print, with the line of noise of this board's runs. None where the board does not give that line."""
    table = group.table("sts")
    line = noise(table) if table is not None else None
    if line is None:
        return None
    printed, _ = printed_gains()
    return Figure(
        name=group.name("printed-gains"),
        kind="printed-gains",
        title="Gains over SimCSE that papers print",
        caption=PAPER_GAINS,
        svg=drawn(draw_paper_gains, printed, line.line, height=AROUND + ROW * len(printed)),
        header=("method", "paper:table", "setting, backbone", "SimCSE", "gain", "line", "s", "m"),
        data=tuple(
            (
                gain.label,
                gain.source,
                gain.where,
                gain.base,
                round(gain.gain, 2),
                *(round(value, 2) for value in (line.line, line.simcse, line.median)),
            )
            for gain in printed
        ),
    )


def draw_paper_gains(axes: Axes, printed: Sequence[PrintedGain], line: float) -> None:
    """Rows from the largest gain to the smallest; the backbone stands where a name has several."""
    count = Counter(gain.label for gain in printed)
    for above, colour in ((True, ACCENT), (False, QUIET)):
        chosen = [(gain.gain, i) for i, gain in enumerate(printed) if (gain.gain > line) is above]
        axes.plot([gain for gain, _ in chosen], [i for _, i in chosen], "o", color=colour)
    axes.axvline(0, color=QUIET, linewidth=0.9)
    axes.axvline(line, color=ACCENT, linewidth=1.3, linestyle="--")
    axes.text(line, -0.7, f"{line:.2f}", ha="center", va="bottom", size=10)
    axes.set_xlabel("points of the STS average")
    rows(
        axes,
        [
            f"{gain.label}, {gain.first.backbone.removesuffix('-uncased')}"
            if count[gain.label] > 1
            else gain.label
            for gain in printed
        ],
    )
