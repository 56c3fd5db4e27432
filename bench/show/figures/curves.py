"""Methods as lines: the dev score while training, singular values, and STS-B without frequent
words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError
from bench.runs.intact import read_curve
from bench.runs.record import ScoreKey
from bench.runs.run import Run
from bench.score.metrics.geometry import effective_rank
from bench.show.figures.drawing import (
    MOST_LINES,
    QUIET,
    Figure,
    Line,
    drawn,
    line_data,
    lines,
    number,
)
from bench.show.figures.points import Group

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bench.compare.statistics.table import Row

# --- the dev score while training ---

LEARNING = (
    "Score on the dev set against rows of the corpus seen. Thick lines are means over seeds, thin "
    "ones the seeds; coloured: highest at the end. These scores chose the checkpoints and are of "
    "no test set. Of many methods the first ones of the table are drawn."
)
Course = tuple[str, Sequence[Line]]
"""A method, and a line for each of its seeds."""


def learning(group: Group) -> Figure | None:
    """None where fewer than two methods have a curve of two points of one dev set."""
    shown = [p for p in group.methods("sts") if group.runs.keys() >= set(p.row.runs)]
    trained = [group.runs[run].record.training for point in shown for run in point.row.runs]
    sets = Counter(one.dev_task or "dev" for one in trained if one and one.dev_score is not None)
    dev = max(sets, key=lambda name: sets[name], default="")
    courses = [(p.label, course) for p in shown if (course := _course(p.row, group.runs, dev))]
    if len(courses) < 2:
        return None
    return group.figure(
        "learning",
        f"{dev} while training",
        LEARNING,
        svg=drawn(draw_learning, courses[:MOST_LINES], dev),
        header=("method", "seed", "rows of the corpus", dev),
        data=tuple((name, *row) for name, course in courses for row in line_data(course)),
    )


def _course(row: Row, runs: Mapping[str, Run], dev: str) -> list[Line]:
    """Dev scores over rows of the corpus; empty where its seeds have not the same steps, at least
    two."""
    course = []
    for seed, run in zip(row.seeds, (runs[name] for name in row.runs), strict=True):
        done, curve = run.record.training, read_curve(run.folder)
        if done is None or (done.dev_task or "dev") != dev or not done.steps or not done.sentences:
            continue  # another set, or it is not known how much the run saw
        scored = [(entry["step"], number(entry.get("dev_score"))) for entry in curve]
        points = [(step, value) for step, value in scored if value is not None and step > 0]
        seen = tuple(step * done.sentences / done.steps for step, _ in points)
        course.append(Line("any" if seed is None else str(seed), seen, [y for _, y in points]))
    return course if mean_line("", course) else []


def draw_learning(axes: Axes, courses: Sequence[Course], dev: str) -> None:
    for seed in (seed for _, course in courses for seed in course):
        axes.plot(seed.x, seed.y, color=QUIET, linewidth=0.5, alpha=0.6)
    means = [line for name, course in courses if (line := mean_line(name, course))]
    best = max(means, key=lambda line: line.y[-1])
    lines(axes, means, best, "rows of the corpus seen", dev)
    axes.locator_params(axis="x", nbins=4)
    axes.xaxis.set_major_formatter("{x:,.0f}")


def mean_line(label: str, course: Sequence[Line]) -> Line | None:
    """The mean over seeds at each place; None where they have not the same places, at least two."""
    if len({tuple(line.x) for line in course}) != 1 or len(course[0].x) < 2:
        return None
    means = [fmean(values) for values in zip(*(line.y for line in course), strict=True)]
    return Line(label, course[0].x, means)


# --- where vectors lie: singular values, and correlation without the most frequent words ---

SPECTRUM = (
    "Singular values of the unit vectors of STS-B test less their mean, each over the largest; "
    "means over seeds. Coloured: the largest effective rank, which is exp of the entropy of the "
    "values (Roy and Vetterli 2007). Of many methods those of the largest ranks are drawn."
)
FREQUENT = (
    "Correlation on STS-B test when the most frequent words of STS-B test are taken out of the "
    "sentences; means over seeds. Coloured: the largest gain. Of many methods those highest at "
    "first are drawn. (ConPVP's Figure 5 takes out tokens, and averages the seven STS sets.)"
)


def spectrum(group: Group) -> Figure | None:
    """A line per method over the number of the singular value, in powers of two. None where fewer
    than two methods have them."""
    found = []
    for point in group.methods("geometry", "uniformity"):
        values = [one for run in point.row.runs if (one := _singular_values(group, run))]
        shares = [Line("", range(len(one)), [value / one[0] for value in one]) for one in values]
        if (line := mean_line(point.label, shares)) is not None:
            found.append((fmean(map(effective_rank, values)), line))
    if len(found) < 2:
        return None
    found.sort(key=lambda one: -one[0])
    last = min(len(line.y) for _, line in found)
    places = sorted({*(1 << i for i in range(last.bit_length())), last})
    made = [Line(line.label, places, [line.y[k - 1] for k in places]) for _, line in found]
    ranks = {line.label: round(rank, 3) for rank, line in found}
    return group.figure(
        "spectrum",
        "How many directions the vectors use",
        SPECTRUM,
        svg=drawn(
            draw_steps, made, made[0], "singular value, the largest first", "share of the largest"
        ),
        suites=("geometry",),
        paper_figure="SimCSE, Figure F.1",
        header=("method", "singular value", "share of the largest", "effective rank"),
        data=tuple((*row, ranks[str(row[0])]) for row in line_data(made)),
    )


def _singular_values(group: Group, run: str) -> list[float]:
    """As the run stored them; empty where it did not, or where they are not what they should be."""
    import numpy as np

    table = group.tables["geometry"]
    key, name = ScoreKey(table.suite, "uniformity", table.protocol, table.text), "singular_values"
    try:
        values = group.runs[run].predictions(key, (name,))[name]
        effective_rank(values)
    except (BenchError, KeyError, ValueError):
        return []
    vector = values.dtype.kind == "f" and values.ndim == 1 and values.size > 1
    sound = vector and np.isfinite(values).all() and values[0] > 0 and values.min() >= 0
    return values.tolist() if sound else []


def frequent(group: Group) -> Figure | None:
    """A line per method over the number of words taken out. None where fewer than two methods have
    them."""
    made = []
    for point in group.methods("geometry", "alignment"):
        course = [line for run in point.row.runs if (line := _without_words(group, run))]
        if (mean := mean_line(point.label, course)) is not None:
            made.append(mean)
    steps = max((line.x for line in made), key=len, default=())
    made = [line for line in made if line.x == steps]
    if len(made) < 2:
        return None
    made.sort(key=lambda line: -line.y[0])
    gain = max(made, key=lambda line: line.y[-1] - line.y[0])
    return group.figure(
        "frequent-words",
        "Without the most frequent words",
        FREQUENT,
        svg=drawn(
            draw_steps, made, gain, "most frequent words taken out", "STS-B test, Spearman × 100"
        ),
        suites=("geometry",),
        header=("method", "words taken out", "STS-B test"),
        data=line_data(made),
    )


def _without_words(group: Group, run: str) -> Line | None:
    """Correlation over the number of words taken out; None where the record holds none, or
    something else."""
    table = group.tables["geometry"]
    published = group.runs.get(run)
    key = ScoreKey("geometry", "alignment", table.protocol, table.text)
    alignment = published.record.score(*key) if published else None
    stored: Any = alignment.detail.get("without_frequent_words") if alignment else None
    entries = [e for e in stored if isinstance(e, dict)] if isinstance(stored, list) else []
    pairs = [(number(entry.get("k")), number(entry.get("spearman"))) for entry in entries]
    known = sorted((int(k), value) for k, value in pairs if k is not None and value is not None)
    return Line("", [k for k, _ in known], [value for _, value in known]) if known else None


def draw_steps(axes: Axes, those: Sequence[Line], strong: Line, across: str, up: str) -> None:
    """Lines over the same numbers, each of which is a step of equal width."""
    steps = those[0].x
    even = {line.label: replace(line, x=range(len(steps))) for line in those}
    lines(axes, list(even.values()), even[strong.label], across, up)
    axes.set_xticks(range(len(steps)), [f"{step:g}" for step in steps])
