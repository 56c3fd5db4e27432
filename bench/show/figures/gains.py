"""What each method gains over the baseline, and what papers print as gains, beside what one run against one run could show.

Legend: S runs of a method, B runs of the baseline.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from bench.compare.formatting import score, signed_number, with_interval
from bench.compare.statements import baseline_row
from bench.compare.statistics.table import BETTER, INCONCLUSIVE, WORSE
from bench.references import PrintedGain, printed_gains
from bench.show.figures import plots
from bench.show.figures.drawing import (
    BOTTOM,
    LINE,
    QUIET,
    SMALL,
    TEXT,
    TOP,
    WIDTH,
    Drawing,
    Figure,
    fit_text,
    library,
)
from bench.show.figures.labels import width
from bench.show.figures.points import (
    Group,
    Point,
    count_words,
    names_in_words,
    one_point_per_method,
    points,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bench.compare.statistics.table import Against, Table, Tested

ROW = 24.0  # units of height of a line
MOST = 24  # lines of a figure
LEAST = 0.5  # points around zero that every figure shows
LEVELS, STEP = 3, 13.0  # of names above lines


@dataclass(frozen=True)
class Gain:
    """A row less the baseline, and how often single runs say otherwise than all together."""

    label: str
    against: Against
    pairs: int  # S x B
    otherwise: int  # of those pairs: the method's run less the baseline's has not the sign of the difference of the means


def gains(group: Group) -> Figure | None:
    """A line for each row: its gain over the baseline, with the interval that the verdict goes by. None without verdicts."""
    table = group.tables[group.suites[0]].table
    found = row_gains(table)
    if table.tested is None or not found:
        return None
    base, what = table.baseline or "", f"{table.suite} {table.head}"
    shown = sorted(found, key=lambda one: -one.against.difference)[:MOST]
    finding = gain_words(found, base)
    title = group.titled(f"Gains over {base}")
    alt = f"{count_words(len(shown), 'line')}, one a row: its difference from {base} on {what}, with an interval. {finding}"
    with library():
        drawing = Drawing(height=TOP + BOTTOM + ROW * len(shown))
        lowest, highest = fences([gain.against.difference for gain in shown], LEAST)
        ends = [
            end
            for gain in shown
            for end in (gain.against.ci_low, gain.against.ci_high, gain.against.difference)
            if end is not None
        ]
        ends = [min(max(end, lowest), highest) for end in ends]
        left = min(150.0, max(width(gain.label, TEXT) for gain in shown) + 14)
        axes = _axes(drawing, left, [*ends, -LEAST, LEAST], len(shown))
        axes.axvline(0, color=QUIET, linewidth=0.8, zorder=1)
        drawing.text(
            WIDTH - 2,
            drawing.height - TOP + 8,
            "other sign",
            size=SMALL,
            anchor="end",
            colour=QUIET,
        )
        (left_edge, right_edge), far = axes.get_xlim(), 0
        for i, row_gain in enumerate(reversed(shown)):
            against, height = row_gain.against, drawing.at(axes, 0, i)[1]
            value, strong = against.difference, against.verdict in ("better", "worse")
            if lowest <= value <= highest:
                if against.ci_low is not None and against.ci_high is not None:
                    drawing.bar(
                        axes,
                        (max(against.ci_low, left_edge), min(against.ci_high, right_edge)),
                        (i, i),
                        strong=strong,
                    )
                drawing.dot(axes, value, i, f"{row_gain.label}: {_told(row_gain)}", strong=strong)
            else:
                far += 1
                edge, anchor, text = (
                    (left_edge, "start", f"← {signed_number(value)}")
                    if value < lowest
                    else (right_edge, "end", f"{signed_number(value)} →")
                )
                drawing.text(
                    drawing.at(axes, edge, i)[0],
                    height - 0.35 * SMALL,
                    text,
                    size=SMALL,
                    anchor=anchor,
                    colour=QUIET,
                )
            drawing.text(2, height - 0.35 * TEXT, fit_text(row_gain.label, left - 10))
            drawing.text(
                WIDTH - 2,
                height - 0.35 * SMALL,
                _share(row_gain),
                size=SMALL,
                anchor="end",
                colour=QUIET,
            )
        drawing.text(
            (left + WIDTH - 66) / 2,
            BOTTOM - 32,
            f"{what} less that of {base}",
            anchor="middle",
            colour=QUIET,
        )
        rest = (
            f" Shown are the first {len(shown)} of {len(found)} rows."
            if len(shown) < len(found)
            else ""
        )
        rest += (
            f" Of {count_words(far, 'row')} far from the others the gain is written at the edge."
            if far
            else ""
        )
        name = group.name("gains")
        return Figure(
            name=name,
            kind="gains",
            title=title,
            alt=alt,
            svg=drawing.svg(name, title, alt),
            suites=(table.suite,),
            caption=f"{finding} {_how(table.tested)}{rest}",
            header=(
                "method",
                "gain",
                "low",
                "high",
                "verdict",
                "pairs of runs",
                "with the other sign",
            ),
            data=tuple(
                (
                    gain.label,
                    _cell(gain.against.difference),
                    _cell(gain.against.ci_low),
                    _cell(gain.against.ci_high),
                    gain.against.verdict or "",
                    float(gain.pairs),
                    float(gain.otherwise),
                )
                for gain in found
            ),
        )


def fences(values: Sequence[float], least: float) -> tuple[float, float]:
    """What is drawn to scale: three quartile ranges around the middle half (Tukey 1977), and zero; a range is ``least`` at the least."""
    from numpy import percentile

    low, high = (float(quartile) for quartile in percentile(values, [25, 75]))
    reach = 3 * max(high - low, least)
    return min(low - reach, 0.0), max(high + reach, 0.0)


def row_gains(table: Table) -> list[Gain]:
    """Of every row that was tested against the baseline on the column that ranks, in the table's order."""
    drawn = points(table, table.head)
    base = next((point for point in drawn if point.row.is_baseline), None)
    if base is None:
        return []
    return [
        Gain(
            point.label,
            point.cell.against,
            len(point.cell.values) * len(base.cell.values),
            other_sign(point, base),
        )
        for point in one_point_per_method(drawn, table)
        if point.cell.against is not None and point.cell.against.verdict is not None
    ]


def other_sign(point: Point, base: Point) -> int:
    """Of all pairs of one run of each: those whose difference has not the sign that the difference of the means has. Of equal means
    every pair that differs has another one."""
    mean = point.cell.mean - base.cell.mean
    differences = [value - other for value in point.cell.values for other in base.cell.values]
    return sum(difference * mean <= 0 if mean else difference != 0 for difference in differences)


def gain_words(found: Sequence[Gain], base: str) -> str:
    """How many rows are better, worse, inconclusive; how often a pair of single runs says otherwise."""
    by = {
        verdict: [gain for gain in found if gain.against.verdict == verdict]
        for verdict in (BETTER, WORSE, INCONCLUSIVE)
    }
    names = ", ".join(
        f"{len(ones)} {verdict}"
        + (f" ({names_in_words([gain.label for gain in ones])})" if verdict == "better" else "")
        for verdict, ones in by.items()
        if ones
    )
    parts = [f"Of {count_words(len(found), 'row')} compared with {base}: {names}."]
    paired = [gain for gain in found if gain.pairs > 1]
    if paired:
        pairs, otherwise = (
            sum(getattr(gain, name) for gain in paired) for name in ("pairs", "otherwise")
        )
        parts.append(
            f"One run against one run of {base} has the other sign in {otherwise} of {pairs:,} pairs"
            + _worst(paired)
            + "."
        )
    return " ".join(parts)


def _worst(paired: Sequence[Gain]) -> str:
    """ "; most often of a (4 of 9)"; nothing where it never happens, or there is one row."""
    most = max(gain.otherwise / gain.pairs for gain in paired)
    if most == 0 or len(paired) == 1:
        return ""
    first = [gain for gain in paired if gain.otherwise / gain.pairs == most]
    return f"; most often of {names_in_words([f'{gain.label} ({gain.otherwise} of {gain.pairs})' for gain in first])}"


def _how(tested: Tested) -> str:
    return (
        f"Bars: {100 * tested.ci_level:.3g} % intervals, one by one; they leave zero out where a row is better or worse. Filled: better or worse. "
        "Other sign: of all pairs of one run each, those whose difference has not the sign of the mean's."
    )


def _told(row_gain: Gain) -> str:
    gain = with_interval(
        row_gain.against.difference, row_gain.against.ci_low, row_gain.against.ci_high
    )
    return f"{gain}, {row_gain.against.verdict}; other sign in {row_gain.otherwise} of {row_gain.pairs}"


def _share(gain: Gain) -> str:
    return f"{100 * gain.otherwise / gain.pairs:.0f} %" if gain.pairs > 1 else ""


def _cell(value: float | None) -> float | str:
    return "" if value is None else round(value, 4)


def _axes(
    drawing: Drawing, left: float, values: Sequence[float], rows: int, above: float = 0.0
) -> Axes:
    axes = drawing.axes(left, BOTTOM, WIDTH - 66, drawing.height - TOP - above)
    axes.set_xlim(*plots.limits(values))
    axes.set_ylim(-0.6, rows - 0.4)
    axes.set_yticks([])
    plots.round_ticks(axes, "x")
    axes.grid(axis="x", color=LINE, linewidth=0.6)
    return axes


# --- what papers print ---


@dataclass(frozen=True)
class Noise:
    """A spread over seeds, and the least difference of one run from one run that it leaves to be told from nothing."""

    name: str
    words: str
    sd: float

    @property
    def least(self) -> float:
        """Both runs spread alike, and by how much is taken as known: at the 5 % level, two-sided; a least one, then."""
        return 1.959964 * math.sqrt(2) * self.sd


def paper_gains(group: Group) -> Figure | None:
    """Gains that papers print over a SimCSE that they ran themselves, single runs both, beside the spread of our seeds and of a paper's.

    None where the STS table has no baseline with a spread over seeds.
    """
    table = group.table("sts")
    sds = (None, None) if table is None else _seed_sds(table)
    if sds[0] is None or sds[1] is None:
        return None
    printed, spreads = printed_gains()
    # of one run against one of the baseline
    ours = Noise("ours", "our spread over seeds", math.sqrt((sds[0] ** 2 + sds[1] ** 2) / 2))
    least, most = (choose(spreads, key=lambda spread: spread[1]) for choose in (min, max))
    noises = [
        ours,
        Noise("least printed", f"the least that a paper prints, {least[0]},", least[1]),
        Noise("most printed", f"the most, {most[0]},", most[1]),
    ]
    finding = paper_words(printed, noises)
    title = "Gains over SimCSE that papers print"
    alt = f"{count_words(len(printed), 'point')}, the gains that papers print over their own SimCSE, and three lines. {finding}"
    with library():
        drawing = Drawing(height=TOP + BOTTOM + 0.75 * ROW * len(printed) + STEP)
        names = _names(printed)
        left = min(190.0, max(width(name, SMALL) for name in names) + 12)
        axes = _axes(
            drawing,
            left,
            [0.0, *(gain.gain for gain in printed), *(one.least for one in noises)],
            len(printed),
            STEP,
        )
        for noise in noises:
            wide, dashes = (1.4, "-") if noise is ours else (0.9, "--")
            axes.axvline(noise.least, color=QUIET, linewidth=wide, linestyle=dashes, zorder=1)
        axes.axvline(0, color=QUIET, linewidth=0.8, zorder=1)
        _line_names(drawing, axes, noises, len(printed))
        for i, (name, printed_gain) in enumerate(reversed(list(zip(names, printed, strict=True)))):
            tip = f"{name}, {printed_gain.where}: {signed_number(printed_gain.gain)} over {score(printed_gain.base)}"
            drawing.dot(axes, printed_gain.gain, i, tip, strong=printed_gain.gain > ours.least)
            height = drawing.at(axes, 0, i)[1]
            drawing.text(2, height - 0.35 * SMALL, fit_text(name, left - 8, SMALL), size=SMALL)
            drawing.text(
                WIDTH - 2,
                height - 0.35 * SMALL,
                signed_number(printed_gain.gain),
                size=SMALL,
                anchor="end",
                colour=QUIET,
            )
        drawing.text(
            (left + WIDTH - 66) / 2,
            BOTTOM - 32,
            "points of the STS average",
            anchor="middle",
            colour=QUIET,
        )
        file = group.name("printed-gains")
        return Figure(
            name=file,
            kind="printed-gains",
            title=title,
            alt=alt,
            svg=drawing.svg(file, title, alt),
            caption=f"{finding} {PAPER_HOW}",
            header=(
                "method",
                "paper:table",
                "setting, backbone",
                "SimCSE",
                "gain",
                *(f"above {score(noise.least)} ({noise.name})" for noise in noises),
            ),
            data=tuple(
                (
                    gain.label,
                    gain.source,
                    gain.where,
                    gain.base,
                    round(gain.gain, 2),
                    *("yes" if gain.gain > noise.least else "no" for noise in noises),
                )
                for gain in printed
            ),
        )


def _seed_sds(table: Table) -> tuple[float | None, float | None]:
    """(standard deviation over seeds of the baseline, the median one of all rows) on the column that ranks."""
    base = baseline_row(table)
    cells = [cell for row in table.rows if (cell := row.cells[-1]) is not None]
    known = [cell.sd for cell in cells if cell.sd is not None]
    own = base.cells[-1] if base is not None else None
    return own.sd if own is not None else None, median(known) if known else None


def _names(printed: Sequence[PrintedGain]) -> list[str]:
    """With the backbone where one name would stand for several points."""
    count = Counter(gain.label for gain in printed)
    return [
        f"{gain.label}, {gain.first.backbone.removesuffix('-uncased')}"
        if count[gain.label] > 1
        else gain.label
        for gain in printed
    ]


PAPER_HOW = (
    "A line is 1.96 times the standard deviation of a difference of two single runs; ours is of one run of a method with the median spread and one of the baseline. Counted is every STS average of a method that a paper ran once, or does not "
    "say how often, beside a SimCSE of its own in the same setting and backbone; tables that vary one value count by value. Spreads differ by backbone and "
    "setting: ours is this board's, the printed ones are ConPVP's of unsupervised RoBERTa-large."
)


def paper_words(printed: Sequence[PrintedGain], noises: Sequence[Noise]) -> str:
    """How many of the gains are above what two single runs can show, by each spread."""
    told = []
    for noise in noises:
        above = sum(gain.gain > noise.least for gain in printed)
        told.append(
            f"with {noise.words} ({score(noise.sd)}) {score(noise.least)}, and {above} {'is' if above == 1 else 'are'} above"
        )
    return (
        f"{count_words(len(printed), 'gain')} of single runs that papers print over a SimCSE of their own. Two single runs can show a difference from a "
        f"certain size on: {'; '.join(told)}."
    )


def _line_names(drawing: Drawing, axes: Axes, noises: Sequence[Noise], rows: int) -> None:
    """Above the lines what each is, from left to right, a step higher where two would touch."""
    free = [-1.0] * LEVELS  # where each level is free from, the lowest first
    for noise in sorted(noises, key=lambda one: one.least):
        half = width(noise.name, SMALL) / 2
        x = min(drawing.at(axes, noise.least, rows)[0], WIDTH - 2 - half)
        level = next((i for i, end in enumerate(free) if x - half > end), LEVELS - 1)
        drawing.text(
            x,
            drawing.box(axes).high + 5 + STEP * level,
            noise.name,
            size=SMALL,
            anchor="middle",
            colour=QUIET,
        )
        free[level] = x + half + 4
