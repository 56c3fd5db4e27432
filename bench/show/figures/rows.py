"""Methods as rows: gains that papers print next to what seeds alone do, gains over the baseline, and
accuracy from few labelled examples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from bench.compare.formatting import signed_number
from bench.compare.statistics.table import BETTER, WORSE, Against
from bench.references import BASE, PrintedGain, printed_gains
from bench.show.figures.drawing import ACCENT, QUIET, Figure, mark, rounded
from bench.show.figures.points import Group

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def height(rows: int) -> float:
    """Of a sheet, in points."""
    return 56.0 + 20.0 * rows


def name_rows(axes: Axes, names: Sequence[str], across: str) -> None:
    """A row for each name, the first at the top: row i is drawn at the height i."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.locator_params(axis="x", nbins=6)
    axes.set_xlabel(across)


# --- what papers print ---


def noise_line(simcse: float, middle: float) -> float:
    """1.96 standard deviations of a difference of two single runs (docs/statistics.md), from
    spreads over seeds in points: of simcse, and the median of all rows that have two seeds or
    more."""
    return 1.96 * math.hypot(simcse, middle)


def paper_gains(group: Group) -> Figure | None:
    """None where simcse, without a variant, is not exactly one row with a spread."""
    spreads = [(p.row, p.cell.sd) for p in group.points("sts") if p.cell.sd is not None]
    simcse = [sd for row, sd in spreads if row.method == BASE and not row.variant]
    if len(simcse) != 1:
        return None
    middle, (printed, _) = median(sd for _, sd in spreads), printed_gains()
    line = noise_line(simcse[0], middle)
    numbers = rounded(line, simcse[0], middle)
    return group.figure(
        "printed-gains",
        "Gains over SimCSE that papers print",
        "Gains on the STS average that papers print over a SimCSE which they ran themselves, in "
        "the same setting and on the same backbone; single runs, or the paper does not say how "
        "many. Line: 1.96 × √(s² + m²), where s is the standard deviation of simcse over seeds on "
        "this board, and m the median of the standard deviations of its rows. Coloured: above the "
        "line.",
        [
            (one.label, one.source, one.where, *rounded(one.base, one.gain), *numbers)
            for one in printed
        ],
        plot=partial(draw_paper_gains, printed=printed, line=line),
        height=height(len(printed)),
        header=("method", "paper:table", "setting, backbone", "SimCSE", "gain", "line", "s", "m"),
    )


def draw_paper_gains(axes: Axes, printed: Sequence[PrintedGain], line: float) -> None:
    """From the largest gain to the smallest; the backbone stands where a name has several."""
    count, names = Counter(one.label for one in printed), []
    for i, one in enumerate(printed):
        mark(axes, one.gain, i, ACCENT if one.gain > line else QUIET)
        backbone = f", {one.first.backbone.removesuffix('-uncased')}"
        names.append(one.label + backbone * (count[one.label] > 1))
    axes.axvline(0, color=QUIET, linewidth=0.9)
    axes.axvline(line, color=ACCENT, linestyle="--")
    axes.text(line, -0.7, f"{line:.2f}", ha="center", va="bottom", size=10)
    name_rows(axes, names, "points of the STS average")


# --- over the baseline ---

FAR = 20  # points of a row that is not drawn to scale: one outlier would squeeze all others
MOST = 24  # rows


def gains(group: Group) -> Figure | None:
    """The rows that were compared with the baseline, the largest gain first. None where there is
    none."""
    suite = min(group.tables, key=lambda suite: (suite != "sts", suite))
    table = group.tables[suite]
    pairs = [(point.label, point.cell.against) for point in group.methods(suite)]
    compared = [(label, one) for label, one in pairs if one is not None and one.verdict is not None]
    compared.sort(key=lambda gain: -gain[1].difference)
    shown = compared[:MOST]
    across = f"{suite.replace('sts', 'STS')} {table.head} less that of {table.baseline}"
    return group.figure(
        "gains",
        f"Gains over {table.baseline}",
        "Each row less the baseline. Bar: the confidence interval of that difference, at the level "
        "that the table of this figure gives. Coloured: better or worse than the baseline; grey: "
        "inconclusive. An arrow stands for a row more than 20 points away.",
        [
            (label, *rounded(one.difference, one.ci_low, one.ci_high, one.ci_level), one.verdict)
            for label, one in compared
        ],
        fewest=1,
        plot=partial(draw_gains, shown=shown, across=across),
        height=height(len(shown)),
        suites=(suite,),
        header=("method", "gain", "low", "high", "level of the interval", "verdict"),
    )


def draw_gains(axes: Axes, shown: Sequence[tuple[str, Against]], across: str) -> None:
    axes.axvline(0, color=QUIET, linewidth=0.9)
    if any(abs(one.difference) > FAR for _, one in shown):
        axes.margins(x=0.25)  # room for the arrows
    for i, (_, one) in enumerate(shown):
        number = signed_number(one.difference).replace("-", "−")
        edge: dict[str, Any] = {"va": "center", "size": 10, "transform": axes.get_yaxis_transform()}
        if one.difference < -FAR:
            axes.text(0, i, f"← {number}", ha="left", **edge)
        elif one.difference > FAR:
            axes.text(1, i, f"{number} →", ha="right", **edge)
        else:
            bar = [end for end in (one.ci_low, one.ci_high) if end is not None]
            mark(axes, one.difference, i, ACCENT if one.verdict in (BETTER, WORSE) else QUIET, bar)
    name_rows(axes, [label for label, _ in shown], across)


# --- accuracy from few labelled examples, draw by draw (ConPVP, Figure 7) ---

MOST_METHODS = 4


def few_shot(group: Group) -> Figure | None:
    """None where fewer than two methods have the scores."""
    shown = []
    for task in group.tables["fewshot"].columns[:-1] if "fewshot" in group.tables else ():
        for point in group.methods("fewshot", task)[:MOST_METHODS]:
            scores = [group.score(run, "fewshot", task) for run in point.row.runs]
            spread = fmean(score.std or 0.0 for score in scores if score)
            mean = point.cell.mean
            shown.append((point.label, task, *rounded(mean, mean - spread, mean + spread)))
    return group.figure(
        "few-shot",
        "From 16 examples a class",
        "Accuracy from 16 examples a class, a mean over draws of the examples and over seeds; bar: "
        "one standard deviation over draws each way. The draws are the same for all methods. "
        "Coloured: the highest. Of many methods the first four of the table are drawn.",
        shown,
        plot=partial(draw_few_shot, shown=shown),
        height=height(len(shown)),
        suites=("fewshot",),
        paper_figure="ConPVP, Figure 7",
        header=("method", "task", "mean", "mean - sd", "mean + sd"),
    )


def draw_few_shot(axes: Axes, shown: Sequence[tuple[Any, ...]]) -> None:
    for i, (_, task, mean, *bar) in enumerate(shown):
        best = max(row[2] for row in shown if row[1] == task)
        mark(axes, mean, i, ACCENT if mean == best else QUIET, bar)
    name_rows(axes, [f"{task}, {name}" for name, task, *_ in shown], "accuracy, %")
