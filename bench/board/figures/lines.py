"""Figures in which a method is a line: dev scores, singular values, frequent words, a search, a
formula."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import msgspec

from bench.base.errors import BenchError
from bench.base.files import write_or_fail
from bench.board.figures.groups import Group
from bench.board.figures.sheet import ACCENT, AT_END, QUIET, Figure, rounded
from bench.records.names import WITHOUT_TOKENS, with_text
from bench.records.searches import RECIPE, RUNNING, Study, Trial, expected_best
from bench.score.metrics.geometry import effective_rank
from bench.score.suites import average
from bench.score.suites.frequent import REMOVED
from bench.score.suites.sts import PROTOCOL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LINES = 9
"""Lines of a figure."""
Line = dict[float, float]
"""Its points from left to right."""
Lines = list[tuple[str, Line]]


def draw_lines(axes: Axes, lines: Lines, across: str, up: str, even: bool = False) -> None:
    """Draw the first lines with their names at the right end, the very first in the accent colour.

    ``across``, ``up``: the names of both axes. ``even``: steps from x to x are equally wide.
    """
    lines = lines[:MOST_LINES]
    xs = [list(range(len(line))) if even else list(line) for _, line in lines]
    left, right = min(x[0] for x in xs), max(x[-1] for x in xs)
    gap = 0.02 * (right - left)
    for i, (name, line) in reversed(list(enumerate(lines))):
        y = list(line.values())
        colour, weight = (QUIET, "normal") if i else (ACCENT, "bold")
        axes.plot(xs[i], y, "o-", color=colour, markersize=4, zorder=3)
        axes.text(right + 2 * gap, y[-1], name, label=AT_END, size=10, weight=weight, va="center")
    axes.set_xlim(left - gap, right + gap)
    axes.margins(y=0.1)
    axes.locator_params(nbins=5)
    axes.xaxis.set_major_formatter("{x:,.10g}")
    axes.set(xlabel=across, title=up)
    if even:
        steps = max((list(line) for _, line in lines), key=len)
        axes.set_xticks(range(len(steps)), [f"{step:g}" for step in steps])


def drawing_of(lines: Lines, across: str, up: str, even: bool = False) -> dict[str, Any]:
    """Return the plot of a figure, its data (name, x and y of each point of each line), and their
    header."""
    return {
        "plot": partial(draw_lines, lines=lines, across=across, up=up, even=even),
        "header": ("method", across, up),
        "data": [(name, *rounded(x, y)) for name, line in lines for x, y in line.items()],
    }


def method_lines(
    group: Group, suite: str, task: str | None, read: Callable[[Group, str], Line]
) -> Lines:
    """Read a line from each run, and average over the seeds of each method that have one.

    A run may have none: a published version stores only the arrays that its scores need. A method
    is left out if its lines have different x values, or fewer than two.
    """
    lines: Lines = []
    for point in group.methods(suite, task):
        every_seed = [read(group, run) for run in point.row.runs]
        seeds = [line for line in every_seed if line]
        if not seeds or len(seeds[0]) < 2:
            continue
        if all(line.keys() == seeds[0].keys() for line in seeds):
            lines.append((point.label, {x: fmean(line[x] for line in seeds) for x in seeds[0]}))
    return lines


def spectrum(group: Group) -> Figure | None:
    """Draw singular values of the vectors; None if fewer than two methods have them."""
    spectra = sorted(
        method_lines(group, "geometry", "uniformity", _spectrum),
        key=lambda line: -effective_rank(list(line[1].values())),
    )
    powers = {1 << i for i in range(20)}
    lines = [(name, {k: y for k, y in line.items() if k in powers}) for name, line in spectra]
    return group.figure(
        "spectrum",
        "How many directions the vectors use",
        "Singular values of the unit vectors of STS-B test minus their mean, each over the "
        "largest; means over the seeds of which they are stored. Coloured: the largest effective "
        "rank, the exponential of the entropy of these values (Roy and Vetterli 2007). At most "
        "nine methods are drawn, those with the largest ranks.",
        **drawing_of(lines, "singular value, the largest first", "share of the largest", even=True),
        suites=("geometry",),
        paper_figure="SimCSE, Figure F.1",
    )


def _spectrum(group: Group, run: str) -> Line:
    """Return number of the singular value -> its share of the largest; empty if none are stored."""
    score = group.score(run, "geometry", "uniformity")
    try:
        arrays = group.runs[run].predictions(score.key, ("singular_values",)) if score else {}
        values = arrays["singular_values"].astype(float)
    except (BenchError, KeyError, ValueError):
        return {}
    if values.ndim != 1 or not (values >= 0).all() or not 0 < values.sum() < math.inf:
        return {}
    return dict(enumerate((values / values.max()).tolist(), 1))


def frequent(group: Group) -> Figure | None:
    """Draw correlations without the most frequent words; None if fewer than two methods have
    them."""
    lines = method_lines(group, "geometry", "alignment", _without_words)
    steps = max((list(line) for _, line in lines), key=len, default=[])
    lines = sorted(
        ((name, line) for name, line in lines if list(line) == steps),
        key=lambda line: line[1][steps[0]] - line[1][steps[-1]],
    )
    return group.figure(
        "frequent-words",
        "Without the most frequent words",
        "Correlation on STS-B test after its most frequent words are removed from the sentences; "
        "means over seeds. Coloured: the largest gain. At most nine methods are drawn, those with "
        "the largest gains. (ConPVP's Figure 5 removes tokens and averages the seven STS sets.)",
        **drawing_of(lines, "words taken out", "STS-B test, Spearman × 100", even=True),
        suites=("geometry",),
    )


def frequent_tokens(group: Group) -> Figure | None:
    """Draw the STS average without the most frequent tokens; None if fewer than two methods have
    it."""
    lines = method_lines(group, "sts", None, _without_tokens)
    lines.sort(key=lambda line: -list(line[1].values())[0])
    return group.figure(
        "frequent-tokens",
        "Without the most frequent tokens",
        "Average of the seven STS sets after the most frequent tokens of STS-B test, in the "
        "encoder's own vocabulary, are removed from the sentences; means over seeds. Coloured: the "
        "highest with all tokens. At most nine methods are drawn, the highest. (ConPVP's Figure "
        "5.)",
        **drawing_of(lines, "tokens taken out", "STS average, Spearman × 100", even=True),
        suites=("sts",),
    )


def _without_tokens(group: Group, run: str) -> Line:
    """Return tokens taken out -> STS average, of those numbers of tokens that a run has."""
    scores = group.runs[run].record.scores
    line = {}
    for k in (0, *REMOVED):
        protocol = with_text(PROTOCOL, WITHOUT_TOKENS.format(k)) if k else PROTOCOL
        whole = average(score for score in scores if score.protocol == protocol)
        if whole is not None:
            line[float(k)] = whole.value
    return line if 0 in line else {}


def _without_words(group: Group, run: str) -> Line:
    """Return words taken out -> correlation; empty if the record holds none."""
    score = group.score(run, "geometry", "alignment")
    stored = score.detail.get("without_frequent_words") if score else None
    try:
        return {
            entry["k"]: entry["spearman"]
            for entry in msgspec.convert(stored, list[dict[str, float]])
        }
    except (KeyError, msgspec.ValidationError):
        return {}


def write_figures(folder: Path, study: Study, trials: Mapping[str, Sequence[Trial]]) -> None:
    """Draw the expected best score into the search's folder, with its data as CSV."""
    figure = expected_best_figure(study, trials)
    if figure is not None:
        write_or_fail(folder / f"{figure.name}.svg", figure.svg.encode())
        write_or_fail(folder / f"{figure.name}.csv", figure.csv.encode())


def search_lines(trials: Mapping[str, Sequence[Trial]]) -> Lines:
    """Return the expected best dev score after n trials of each method that has two, the highest
    first; at 0 is the recipe without a search.
    """
    lines: Lines = []
    for method, every in trials.items():
        drawn = [trial for trial in every if trial.number != RECIPE and trial.state != RUNNING]
        curve = expected_best([trial.score for trial in drawn])
        points = []
        for trial in every:
            if trial.number == RECIPE and trial.score is not None:
                points.append((0, trial.score))
        if len(curve) > 1:
            lines.append((method, dict([*points, *enumerate(curve, 1)])))
    lines.sort(key=lambda line: -list(line[1].values())[-1])
    return lines


def expected_best_figure(study: Study, trials: Mapping[str, Sequence[Trial]]) -> Figure | None:
    """Draw the expected best dev score against trials; None if no method has two trials."""
    lines = search_lines(trials)
    if not lines:
        return None
    return Figure(
        name="expected-best",
        kind="search",
        title=f"Expected best {study.select_on} against trials",
        caption="Expected best dev score after n trials (Dodge et al. 2019); failed and pruned "
        "trials "
        "count as the lowest score. At 0: the recipe without a search. Coloured: highest after all "
        "trials. At most nine methods are drawn, the highest.",
        **drawing_of(lines, "trials", study.select_on),
        suites=(),
    )
