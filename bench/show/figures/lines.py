"""Methods as lines: the dev score while training, singular values, STS-B without frequent words, one
recipe value, the expected best of a search, and a formula."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, mode
from typing import TYPE_CHECKING, Any

import msgspec

from bench.base.errors import BenchError
from bench.base.files import write_or_fail
from bench.base.text import visible
from bench.compare.statistics.table import Differs
from bench.references import figure_runs, printed_points, results
from bench.references.ours import meaning
from bench.runs.intact import read_curve, series
from bench.runs.searches import RECIPE, RUNNING, Study, Trial, expected_best
from bench.score.metrics.geometry import effective_rank
from bench.show.figures.drawing import ACCENT, AT_END, QUIET, Figure, mark, rounded
from bench.show.figures.points import Group, Point, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_LINES = 9  # of a figure
Line = dict[float, float]
"""Its points from left to right."""
Lines = list[tuple[str, Line]]


def draw_lines(axes: Axes, lines: Lines, across: str, up: str, even: bool = False) -> None:
    """The first lines with their names at the right end, the very first in the accent colour, and
    the names of both axes. ``even``: from each x to the next is a step of equal width."""
    lines = lines[:MOST_LINES]
    xs = [list(range(len(line))) if even else list(line) for _, line in lines]
    left, right = min(x[0] for x in xs), max(x[-1] for x in xs)
    gap = 0.02 * (right - left)
    for i, (name, line) in reversed(list(enumerate(lines))):
        y, colour, weight = list(line.values()), QUIET if i else ACCENT, "normal" if i else "bold"
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
    """The plot of a figure, its data (name, x and y of each point of each line), and their header."""
    return {
        "plot": partial(draw_lines, lines=lines, across=across, up=up, even=even),
        "header": ("method", across, up),
        "data": [(name, *rounded(x, y)) for name, line in lines for x, y in line.items()],
    }


def method_lines(
    group: Group, suite: str, task: str | None, read: Callable[[Group, str], Line]
) -> Lines:
    """What ``read`` makes of the runs of each method, a mean over seeds. Methods whose seeds have not
    the same places, at least two, are left out."""
    lines: Lines = []
    for point in group.methods(suite, task):
        seeds = [read(group, run) for run in point.row.runs]
        if len(seeds[0]) > 1 and all(line.keys() == seeds[0].keys() for line in seeds):
            lines.append((point.label, {x: fmean(line[x] for line in seeds) for x in seeds[0]}))
    return lines


# --- the dev score while training ---


def learning(group: Group) -> Figure | None:
    """Of one dev set, that of most runs."""
    trained = [run.record.training for run in group.runs.values()]
    dev = mode([one.dev_task for one in trained if one and one.dev_task] or ["dev"])

    def read(group: Group, run: str) -> Line:
        done = group.runs[run].record.training
        if not done or (done.dev_task or dev) != dev or not done.steps or not done.sentences:
            return {}  # another set, or it is not known how much the run saw
        scores = series(read_curve(group.runs[run].folder), "dev_score")
        return {step * done.sentences / done.steps: score for step, score in scores if step > 0}

    lines = method_lines(group, "sts", None, read)
    lines.sort(key=lambda line: -list(line[1].values())[-1])
    return group.figure(
        "learning",
        f"{dev} while training",
        "Score on the dev set against rows of the corpus seen, means over seeds. Coloured: highest "
        "at the end. These scores chose the checkpoints and are of no test set. Of many methods the "
        "highest are drawn.",
        **drawing_of(lines, "rows of the corpus seen", dev),
    )


# --- where vectors lie: singular values, and correlation without the most frequent words ---


def spectrum(group: Group) -> Figure | None:
    """None where fewer than two methods have singular values."""
    spectra = method_lines(group, "geometry", "uniformity", _spectrum)
    spectra.sort(key=lambda line: -effective_rank(list(line[1].values())))
    powers = {1 << i for i in range(20)}
    lines = [(name, {k: y for k, y in line.items() if k in powers}) for name, line in spectra]
    return group.figure(
        "spectrum",
        "How many directions the vectors use",
        "Singular values of the unit vectors of STS-B test minus their mean, each over the largest; "
        "means over seeds. Coloured: the largest effective rank, which is exp of the entropy of all "
        "these values (Roy and Vetterli 2007). Of many methods those of the largest ranks are drawn.",
        **drawing_of(lines, "singular value, the largest first", "share of the largest", even=True),
        suites=("geometry",),
        paper_figure="SimCSE, Figure F.1",
    )


def _spectrum(group: Group, run: str) -> Line:
    """Number of the singular value -> its share of the largest; empty where the run stored none, or
    something else."""
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
    """None where fewer than two methods have the correlations."""
    lines = method_lines(group, "geometry", "alignment", _without_words)
    steps = max((list(line) for _, line in lines), key=len, default=[])
    lines = [(name, line) for name, line in lines if list(line) == steps]
    lines.sort(key=lambda line: line[1][steps[0]] - line[1][steps[-1]])
    return group.figure(
        "frequent-words",
        "Without the most frequent words",
        "Correlation on STS-B test when the most frequent words of STS-B test are taken out of the "
        "sentences; means over seeds. Coloured: the largest gain. Of many methods those of the "
        "largest gains are drawn. (ConPVP's Figure 5 takes out tokens, and averages the seven STS "
        "sets.)",
        **drawing_of(lines, "words taken out", "STS-B test, Spearman × 100", even=True),
        suites=("geometry",),
    )


def _without_words(group: Group, run: str) -> Line:
    """Words taken out -> correlation; empty where the record holds none, or something else."""
    score = group.score(run, "geometry", "alignment")
    stored = score.detail.get("without_frequent_words") if score else None
    try:
        entries = msgspec.convert(stored, list[dict[str, float]])
        return {entry["k"]: entry["spearman"] for entry in entries}
    except (KeyError, msgspec.ValidationError):
        return {}


# --- against one recipe value, next to what papers print (PromCSE, Figure 2) ---

FEWEST = 3  # points of a curve
MOST_CURVES = 6
SHOWN_BY: Mapping[str, str] = {
    "prompt_length": "PromCSE, Figure 2",
    "eh_margin": "PromCSE, Table 4",
    "temperature": "Focal-InfoNCE, Table 4",
    "hardness_m": "Focal-InfoNCE, Table 5",
}
"""Where papers show the same recipe value."""
Curve = dict[float, Point]
"""Value of the recipe key -> the row that has it."""


def ablations(group: Group) -> Iterator[Figure | None]:
    """A figure for each recipe value of which a method has at least three in rows that are equal in
    everything else, those with most values first: on the STS sets and on CxC."""
    for suite, score in (("sts", "STS Avg."), ("cxc", "CxC-STS")):
        for (name, key, others), curve in swept(group.points(suite))[:MOST_CURVES]:
            method, axis = visible(name, limit=40), visible(key, limit=40)
            printed = _printed(group, name, key, score.removeprefix("STS "))
            where = "".join(f", {visible(f'{k} {value}', limit=40)}" for k, value in others)
            yield group.figure(
                "ablation",
                f"{method}: {axis}{where}",
                "Runs that are equal in all but the recipe value on the axis below, means over "
                "seeds. Bars: the intervals of the table, or standard deviations over seeds where "
                "it has none. Grey squares: what papers print.",
                [
                    (method, x, *rounded(p.cell.mean, *(p.ends or (None, None)), printed.get(x)))
                    for x, p in curve.items()
                ],
                more=(name, key, *(["cxc"] if suite == "cxc" else [])),
                fewest=1,
                plot=partial(draw_ablation, curve=curve, printed=printed, key=axis, score=score),
                height=260.0,
                suites=(suite,),
                paper_figure=SHOWN_BY.get(key, ""),
                header=("method", axis, score, "low", "high", "printed"),
            )


def swept(points: Sequence[Point]) -> list[tuple[tuple[str, str, Differs], Curve]]:
    """(method, recipe key, what else sets its rows apart), and the rows by value, longest first."""
    curves: dict[tuple[str, str, Differs], Curve] = {}
    for point in points:
        for key, text in point.row.differs:
            others = tuple(pair for pair in point.row.differs if pair[0] != key)
            if (value := _number(text)) is not None:
                curves.setdefault((point.row.name, key, others), {}).setdefault(value, point)
    long = [(of, dict(sorted(one.items()))) for of, one in curves.items() if len(one) >= FEWEST]
    return sorted(long, key=lambda curve: -len(curve[1]))


def _number(text: str) -> float | None:
    """None where it is no number, or none that can be drawn."""
    try:
        return value if abs(value := float(text)) < 1e12 else None
    except ValueError:
        return None


def draw_ablation(
    axes: Axes, curve: Curve, printed: Mapping[float, float], key: str, score: str
) -> None:
    draw_lines(axes, [("", {x: p.cell.mean for x, p in curve.items()})], key, score, even=True)
    for i, (x, point) in enumerate(curve.items()):
        mark(axes, i, point.cell.mean, ACCENT, y_ends=point.ends)
        if x in printed:
            axes.plot([i], [printed[x]], "s", color=QUIET, markersize=5)


def _printed(group: Group, method: str, key: str, task: str) -> dict[float, float]:
    """Value of the recipe key -> printed number: of the same method, setting and backbone, from
    tables and from the points of pictures that a source gives."""
    backbone, printed = short_name(group.backbone), dict[float, float]()
    for cell in results(backbone=backbone, setting=group.setting, task=task):
        means = meaning(cell.method, cell.variant, cell.setting)
        if means.name == method and set(means.set) == {key} and cell.metric.startswith("spearman"):
            printed[float(means.set[key])] = cell.value
    for spec in figure_runs():
        if backbone in spec.backbones and (group.setting, method, "") in spec.runs:
            points = printed_points(spec.part)
            printed |= {p.x: p.y for p in points if (p.panel, p.key) == (task, key)}
    return printed


# --- a search: the expected best dev score against trials ---


def write_figures(folder: Path, study: Study, trials: Mapping[str, Sequence[Trial]]) -> None:
    """Draws what there is data for into the search's folder, with its data as CSV."""
    if figure := expected_best_figure(study, trials):
        write_or_fail(folder / f"{figure.name}.svg", figure.svg.encode())
        write_or_fail(folder / f"{figure.name}.csv", figure.csv.encode())


def expected_best_figure(study: Study, trials: Mapping[str, Sequence[Trial]]) -> Figure | None:
    """None where no method has two trials."""
    lines: Lines = []
    for method, every in trials.items():
        curve = expected_best([t.score for t in every if t.number != RECIPE and t.state != RUNNING])
        points = [(0, t.score) for t in every if t.number == RECIPE and t.score is not None]
        if len(curve) > 1:
            lines.append((method, dict([*points, *enumerate(curve, 1)])))
    if not lines:
        return None
    lines.sort(key=lambda line: -list(line[1].values())[-1])
    return Figure(
        name="expected-best",
        kind="search",
        title=f"Expected best {study.select_on} against trials",
        caption="Expected best dev score of n of the trials (Dodge et al. 2019); a trial that failed "
        "or was pruned counts as the lowest. At 0: the recipe without a search. Coloured: highest "
        "with all trials. Of many methods the highest are drawn.",
        **drawing_of(lines, "trials", study.select_on),
        suites=(),
    )


# --- Focal-InfoNCE's re-scaling of negative pairs (Figure 1) ---

ADDED = (0.4, 0.3, 0.2, 0.1)  # values of m


def rescaled(s: float, m: float) -> float:
    """What stands for the cosine s of a negative pair in the loss, before the temperature
    (Focal-InfoNCE, eq. 2)."""
    return s * (s + m)


def rescaling() -> Figure:
    cosines = [i / 20 for i in range(21)]
    lines = [(f"m = {m:g}", {s: rescaled(s, m) for s in cosines}) for m in ADDED]
    lines.append(("s itself", {s: s for s in cosines}))
    return Figure(
        name="rescaling",
        kind="rescaling",
        title="Re-scaled negative pairs",
        caption="The value s (s + m) that Focal-InfoNCE takes in place of the cosine s of a negative "
        "pair, for the values of m in its Table 5. Coloured: the largest m. Above the line of s "
        "itself, where s > 1 − m, a pair counts more; below it, less. Drawn from the formula, "
        "without a run.",
        **drawing_of(lines, "cosine s of a negative pair", "re-scaled: s (s + m)"),
        suites=(),
        paper_figure="Focal-InfoNCE, Figure 1",
    )
