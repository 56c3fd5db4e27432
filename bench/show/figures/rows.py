"""Figures whose methods are rows: gains that papers print next to what seeds alone do, gains over
the baseline, few labelled examples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING

from bench.compare.formatting import signed_number
from bench.compare.statistics.table import BETTER, WORSE, Against
from bench.references import BASE, printed_gains
from bench.show.figures.groups import Group
from bench.show.figures.sheet import ACCENT, QUIET, DataRow, Figure, draw_mark, rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FAR = 20
"""Points of a gain that is not drawn to scale: one outlier would squeeze all others."""
MOST_GAINS = 40
"""Rows of the figure of gains over the baseline."""
MOST_METHODS = 4
"""Methods of the figure of few labelled examples."""
REPORTED = (76.25, 75.68, 73.47, 74.84, 75.99)
"""Averages of unsupervised SimCSE on BERT-base as five parties report them: its paper,
Focal-InfoNCE's own run, and issues 53, 258 and 246 of SimCSE's repository."""
FigureRows = Sequence[tuple[str, float, Sequence[float], bool]]
"""Name, value, ends of its bar, and whether it is coloured; the first at the top."""


def sheet_height(rows: Sequence[object]) -> float:
    """Return the height of a sheet with so many rows, in points."""
    return 56.0 + 20.0 * len(rows)


def draw_rows(axes: Axes, rows: FigureRows, across: str, gains_over: float | None = None) -> None:
    """Draw row i at the height i.

    ``gains_over``: the values are gains, with a line at that one. A row that is far away has its
    number in its name, and no point.
    """
    names = [name for name, *_ in rows]
    for i, (name, value, bar, strong) in enumerate(rows):
        if gains_over is None or abs(value) <= FAR:
            draw_mark(axes, value, i, ACCENT if strong else QUIET, bar)
        else:
            names[i] = f"{name} ({signed_number(value).replace('-', '−')})"
    if gains_over is not None:
        axes.axvline(gains_over, color=ACCENT, linestyle="--")
        axes.text(gains_over, -0.7, f"{gains_over:.3g}", ha="center", va="bottom", size=10)
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.locator_params(axis="x", nbins=6)
    axes.set_xlabel(across)


def noise_line(simcse: float, middle: float) -> float:
    """Return 1.96 standard deviations of a difference of two single runs (docs/statistics.md).

    Arguments are spreads over seeds in points: of simcse, and the median of all rows that have two
    seeds or more.
    """
    return 1.96 * math.hypot(simcse, middle)


def paper_gains(group: Group) -> Figure | None:
    """Draw the gains that papers print; None if simcse, without a variant, is not one row with a
    spread."""
    spreads = [(p.row, p.cell.sd) for p in group.points("sts") if p.cell.sd is not None]
    simcse = [sd for row, sd in spreads if row.method == BASE and not row.variant]
    if len(simcse) != 1:
        return None
    middle = median(sd for _, sd in spreads)
    printed = printed_gains()
    line = noise_line(simcse[0], middle)
    elsewhere = stdev(REPORTED)
    line_elsewhere = noise_line(elsewhere, elsewhere)
    above = sum(gain.gain > line_elsewhere for gain in printed)
    count = Counter(gain.label for gain in printed)
    rows = []
    data: list[DataRow] = []
    for gain in printed:
        first = gain.first
        name = gain.label
        if count[name] > 1:
            name += f", {first.backbone.removesuffix('-uncased')}"
        rows.append((name, gain.gain, (), gain.gain > line))
        data.append(
            (
                gain.label,
                f"{first.paper}:{first.table}",
                f"{first.setting}, {first.backbone}",
                *rounded(gain.base, gain.gain, line, *simcse, middle),
            )
        )
    return group.figure(
        "printed-gains",
        "Gains over SimCSE that papers print",
        "Gains on the STS average over SimCSE that papers print, where the paper ran SimCSE itself "
        "in the same setting and on the same backbone; single runs, or the paper does not say how "
        "many. Line: 1.96 × √(s² + m²), where s is the standard deviation of simcse over seeds on "
        "this board, and m the median of the standard deviations of its rows. Coloured: above the "
        "line. It is a yardstick of this board's backbone and training, laid on gains of other "
        f"ones: {len(REPORTED)} reports of SimCSE on BERT-base have a standard deviation of "
        f"{elsewhere:.2f}, with which the line is at {line_elsewhere:.1f}, and {above} of "
        f"{len(printed)} gains are above it.",
        data,
        plot=partial(draw_rows, rows=rows, across="points of the STS average", gains_over=line),
        height=sheet_height(rows),
        header=("method", "paper:table", "setting, backbone", "SimCSE", "gain", "line", "s", "m"),
    )


def gains(group: Group) -> Figure | None:
    """Draw the rows that were compared with the baseline, the largest gain first; None if there is
    none."""
    suite = min(group.tables, key=lambda suite: (suite != "sts", suite))
    table = group.tables[suite]
    compared: list[tuple[str, Against]] = []
    for point in group.methods(suite):
        against = point.cell.against
        if against is not None and against.verdict is not None:
            compared.append((point.label, against))
    compared.sort(key=lambda gain: -gain[1].difference)
    rows = []
    for label, against in compared[:MOST_GAINS]:
        ends = [end for end in (against.ci_low, against.ci_high) if end is not None]
        rows.append((label, against.difference, ends, against.verdict in (BETTER, WORSE)))
    data: list[DataRow] = []
    for label, against in compared:
        numbers = rounded(against.difference, against.ci_low, against.ci_high, against.ci_level)
        data.append((label, *numbers, str(against.verdict)))
    return group.figure(
        "gains",
        f"Gains over {table.baseline}",
        "Each row minus the baseline. Bar: the confidence interval of the difference, at the level "
        "given in the table. Coloured: better or worse than the baseline; grey: inconclusive. Rows "
        "more than 20 points away are not drawn; their difference is in brackets. "
        f"At most {MOST_GAINS} rows, the highest.",
        data,
        fewest=1,
        plot=partial(
            draw_rows,
            rows=rows,
            across=f"{suite.replace('sts', 'STS')} {table.head} minus that of {table.baseline}",
            gains_over=0.0,
        ),
        height=sheet_height(rows),
        suites=(suite,),
        header=("method", "gain", "low", "high", "level of the interval", "verdict"),
    )


def few_shot(group: Group) -> Figure | None:
    """Draw accuracies from few labelled examples (ConPVP, Figure 7); None if fewer than two methods
    have them."""
    data: list[DataRow] = []
    rows = []
    table = group.tables.get("fewshot")
    tasks = table.columns[:-1] if table else ()
    for task in tasks:
        points = group.methods("fewshot", task)[:MOST_METHODS]
        best = max((point.cell.mean for point in points), default=0.0)
        for point in points:
            scores = [group.score(run, "fewshot", task) for run in point.row.runs]
            spread = fmean(score.std or 0.0 for score in scores if score)
            mean = point.cell.mean
            bar = (mean - spread, mean + spread)
            data.append((point.label, task, *rounded(mean, *bar)))
            rows.append((f"{task}, {point.label}", mean, bar, mean == best))
    return group.figure(
        "few-shot",
        "From 16 examples per class",
        "Accuracy from 16 examples per class, a mean over draws of the examples and over seeds; "
        "bar: "
        "one standard deviation over draws each way. All methods have the same draws. Coloured: "
        "the "
        "highest. At most four methods are drawn, the first four of the table.",
        data,
        plot=partial(draw_rows, rows=rows, across="accuracy, %"),
        height=sheet_height(rows),
        suites=("fewshot",),
        paper_figure="ConPVP, Figure 7",
        header=("method", "task", "mean", "mean - sd", "mean + sd"),
    )
