"""The dev score while training, of all methods of a table: against rows of the corpus seen, and against seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from bench.runs.intact import read_curve
from bench.show.figures.drawing import MOST_LINES, QUIET, Figure, Line, drawn, lines, number
from bench.show.figures.points import Group, one_point_per_method, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bench.board.board import PublishedRun
    from bench.compare.statistics.table import Row

LEARNING = (
    "Score on the dev set while training. Thick lines are means over seeds, thin ones the seeds; coloured: highest at the end. These scores chose "
    "the checkpoints and are of no test set. Time excludes the scoring; methods whose times cannot be compared are not in that panel. "
    "Of many methods the first ones of the table are drawn."
)


@dataclass(frozen=True)
class Point:
    """A dev score of one run."""

    steps: float
    sentences: float
    seconds: float | None  # None: no pace was recorded
    score: float


@dataclass(frozen=True)
class Course:
    """A method: a list of points for each seed, at the same steps."""

    label: str
    seeds: tuple[tuple[int | None, tuple[Point, ...]], ...]
    timed: bool  # its seconds can be compared with those of the others

    def mean(self, axis: str) -> list[tuple[float, float]]:
        """(x, dev score), means over the seeds."""
        columns = zip(*(seed_points for _, seed_points in self.seeds), strict=True)
        return [
            (fmean(getattr(p, axis) for p in column), fmean(p.score for p in column))
            for column in columns
        ]


def learning(group: Group, runs: Mapping[str, PublishedRun]) -> Figure | None:
    """None where fewer than two methods have a curve of two points of one dev set."""
    table = group.table("sts")
    if table is None:
        return None
    shown = one_point_per_method(points(table, table.head), table)
    scored = [point for point in shown if runs.keys() >= set(point.row.runs)]
    sets = Counter(
        done.dev_task
        for point in scored
        for run in point.row.runs
        if (done := runs[run].record.training) and done.dev_score is not None
    )
    dev = (sets.most_common(1)[0][0] or "dev") if sets else ""
    courses = [course for point in scored if (course := _course(point.label, point.row, runs, dev))]
    if len(courses) < 2:
        return None
    axes = {"sentences": "rows of the corpus seen"}
    if sum(course.timed for course in courses[:MOST_LINES]) > 1:
        axes["seconds"] = "seconds of training"
    return Figure(
        name=group.name("learning"),
        kind="learning",
        title=group.titled(f"{dev} while training"),
        caption=LEARNING,
        svg=drawn(
            draw_learning, courses, axes, dev, height=230.0 * len(axes), panels=(len(axes), 1)
        ),
        header=("method", "seed", "steps", "sentences", "seconds", dev),
        data=tuple(
            (
                course.label,
                "any" if seed is None else float(seed),
                one.steps,
                one.sentences,
                "" if one.seconds is None else round(one.seconds, 2),
                round(one.score, 4),
            )
            for course in courses
            for seed, seed_points in course.seeds
            for one in seed_points
        ),
    )


def _course(label: str, row: Row, runs: Mapping[str, PublishedRun], dev: str) -> Course | None:
    """None where its seeds have not the same steps, at least two."""
    pairs = zip(row.runs, row.seeds, strict=True)
    seeds = tuple((seed, course) for run, seed in pairs if (course := _points(runs[run], dev)))
    steps = {tuple(point.steps for point in course) for _, course in seeds}
    if len(steps) != 1 or len(min(steps)) < 2:
        return None
    paced = all(point.seconds is not None for _, course in seeds for point in course)
    timed = row.cost is not None and row.cost.train_seconds is not None and paced
    return Course(label, seeds, timed)


def _points(run: PublishedRun, dev: str) -> tuple[Point, ...]:
    """The dev scores of a run, by step; empty where they are of another set, or it is not known how much the run saw."""
    done = run.record.training
    if done is None or (done.dev_task or "dev") != dev or not done.steps or not done.sentences:
        return ()
    seen_each = done.sentences / done.steps
    made = []
    for entry in read_curve(run.folder):
        value, pace = number(entry.get("dev_score")), number(entry.get("sentences_per_second"))
        if value is not None and entry["step"] > 0:
            seen = seen_each * entry["step"]
            made.append(Point(float(entry["step"]), seen, seen / pace if pace else None, value))
    return tuple(made)


def draw_learning(
    panels: Axes | Sequence[Axes], courses: Sequence[Course], axes: Mapping[str, str], dev: str
) -> None:
    """A panel for each of ``axes``: field of a point -> what it is called."""
    shown = courses[:MOST_LINES]
    top = max(course.mean("steps")[-1][1] for course in shown)
    for panel, (axis, what) in zip(
        panels if isinstance(panels, list) else [panels], axes.items(), strict=True
    ):
        there = [course for course in shown if axis != "seconds" or course.timed]
        for course in there:
            for _, seed_points in course.seeds:
                panel.plot(
                    [getattr(point, axis) for point in seed_points],
                    [point.score for point in seed_points],
                    color=QUIET,
                    linewidth=0.5,
                    alpha=0.6,
                )
        made = []
        for course in there:
            x, y = zip(*course.mean(axis), strict=True)
            made.append(Line(course.label, x, y, strong=y[-1] == top))
        lines(panel, made)
        panel.locator_params(axis="x", nbins=4)
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.set_xlabel(what)
        panel.set_title(dev)
