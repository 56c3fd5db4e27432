"""The dev score while training, of all methods of a table: against sentences seen, and against seconds; seeds thin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from bench.compare.formatting import score
from bench.runs.intact import read_curve
from bench.show.figures import plots
from bench.show.figures.drawing import LEFT, QUIET, SMALL, WIDTH, Drawing, Figure, library, number
from bench.show.figures.points import (
    Group,
    count_words,
    leaders,
    names_in_words,
    one_point_per_method,
    points,
    shown_words,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bench.board.board import PublishedRun

HIGH, FOOT, HEAD = 170.0, 40.0, 22.0  # units of height of a panel's axes, below and above them


@dataclass(frozen=True)
class Point:
    """A dev score of one run."""

    steps: float
    sentences: float
    seconds: float | None  # None: no pace was written down
    score: float


@dataclass(frozen=True)
class Course:
    """A method: a list of points for each seed, at the same steps."""

    label: str
    seeds: tuple[tuple[int | None, tuple[Point, ...]], ...]
    timed: bool  # its seconds are of the hardware that the table's are of

    @property
    def points(self) -> list[Point]:
        """Of all seeds."""
        return [point for _, seed_points in self.seeds for point in seed_points]

    def mean(self, axis: str) -> list[tuple[float, float]]:
        """(x, dev score), means over the seeds."""
        columns = zip(*(seed_points for _, seed_points in self.seeds), strict=True)
        return [
            (
                fmean(getattr(point, axis) for point in column),
                fmean(point.score for point in column),
            )
            for column in columns
        ]


def learning(group: Group, runs: Mapping[str, PublishedRun]) -> Figure | None:
    """None where fewer than two methods have a curve of two points of one dev set."""
    table = group.table("sts")
    if table is None:
        return None
    labels = {
        point.row.runs: point.label
        for point in one_point_per_method(points(table, table.head), table)
    }
    scored = [row for row in table.rows if row.runs in labels and runs.keys() >= set(row.runs)]
    sets = Counter(
        done.dev_task
        for row in scored
        for run in row.runs
        if (done := runs[run].record.training) and done.dev_score is not None
    )
    if not sets:
        return None
    dev = sets.most_common(1)[0][0] or "dev"
    found = []
    for row in scored:
        seeds = tuple(
            (seed, course)
            for run, seed in zip(row.runs, row.seeds, strict=True)
            if (course := _points(runs[run], dev))
        )
        if (
            not seeds
            or len(seeds[0][1]) < 2
            or len({tuple(dev_point.steps for dev_point in course) for _, course in seeds}) > 1
        ):
            continue
        paced = all(dev_point.seconds is not None for _, course in seeds for dev_point in course)
        timed = row.cost is not None and row.cost.train_seconds is not None and paced
        found.append(Course(label=labels[row.runs], seeds=seeds, timed=timed))
    if len(found) < 2:
        return None
    shown = found[: plots.MOST]
    batches = {
        round(dev_point.sentences / dev_point.steps, 3)
        for course in shown
        for dev_point in course.points
    }
    timed_courses = sum(course.timed for course in shown)
    axes = {"sentences": "rows of the corpus seen"}
    if len(batches) > 1:
        axes["steps"] = "steps"
    if timed_courses > 1:
        axes["seconds"] = "seconds of training, without dev scores"
    finding = _finding(found)
    rest = shown_words(shown, found)
    untimed, without = len(shown) - timed_courses, ""
    if untimed and "seconds" in axes:
        without = f" {count_words(untimed, 'method')} without comparable times {'is' if untimed == 1 else 'are'} not in the lower part."
    name, title = group.name("learning"), group.titled(f"{dev} while training")
    alt = f"Lines of {len(shown)} methods: {dev} against {' and against '.join(axes.values())}. {finding}"
    with library():
        drawing = _draw(shown, axes, dev)
        return Figure(
            name=name,
            kind="learning",
            title=title,
            alt=alt,
            svg=drawing.svg(name, title, alt),
            caption=f"{finding} Thick lines are means over seeds, thin ones the seeds. These scores chose the checkpoints; they are of no test set.{rest}{without}",
            header=("method", "seed", "steps", "sentences", "seconds", dev),
            data=tuple(
                (
                    course.label,
                    "any" if seed is None else float(seed),
                    dev_point.steps,
                    dev_point.sentences,
                    "" if dev_point.seconds is None else round(dev_point.seconds, 2),
                    round(dev_point.score, 4),
                )
                for course in found
                for seed, ones in course.seeds
                for dev_point in ones
            ),
        )


def _points(run: PublishedRun, dev: str) -> tuple[Point, ...]:
    """The dev scores of a run, by step; empty where they are of another set, or it says not how much it saw."""
    done = run.record.training
    if done is None or (done.dev_task or "dev") != dev or not done.steps or not done.sentences:
        return ()
    rows = done.sentences / done.steps
    made = []
    for entry in read_curve(run.folder):
        value, pace = number(entry.get("dev_score")), number(entry.get("sentences_per_second"))
        if value is not None and entry["step"] > 0:
            seen = rows * entry["step"]
            made.append(Point(float(entry["step"]), seen, seen / pace if pace else None, value))
    return tuple(made)


def _finding(found: Sequence[Course]) -> str:
    """Who ends highest, and how many still rose."""
    ends = [(course.label, course.mean("steps")) for course in found]
    best = leaders([(label, course[-1][1]) for label, course in ends])
    top = score(next(course[-1][1] for label, course in ends if label == best[0]))
    rising = sum(course[-1][1] > course[-2][1] for _, course in ends)
    first = f"{names_in_words(best)} {'ends' if len(best) == 1 else 'end'} highest, at {top}"
    many = {len(ends): "all", 0: "none"}.get(rising, f"{rising} of {len(ends)}")
    return f"{first}; {many} {'was' if rising == 1 and len(ends) > 1 else 'were'} higher at the last score than at the one before."


def _draw(shown: Sequence[Course], axes: Mapping[str, str], dev: str) -> Drawing:
    drawing = Drawing(height=len(axes) * (HEAD + HIGH + FOOT))
    best = leaders([(course.label, course.mean("steps")[-1][1]) for course in shown])
    for i, (axis, words) in enumerate(axes.items()):
        there = [course for course in shown if axis != "seconds" or course.timed]
        made = []
        for course in there:
            x, y = zip(*course.mean(axis), strict=True)
            tips = tuple(
                f"{course.label}: {score(dev_score)} at {place:,.0f} {axis}"
                for place, dev_score in course.mean(axis)
            )
            made.append(plots.Line(course.label, x, y, tips, strong=course.label in best))
        top = drawing.height - i * (HEAD + HIGH + FOOT) - HEAD
        panel = drawing.axes(LEFT, top - HIGH, WIDTH - plots.room(made), top)
        _panel(drawing, panel, there, made, axis)
        box = drawing.box(panel)
        drawing.text(2.0, box.high + 10, dev, colour=QUIET)
        drawing.text(
            (box.left + box.right) / 2,
            box.low - 32,
            words,
            size=SMALL,
            anchor="middle",
            colour=QUIET,
        )
    return drawing


def _panel(
    drawing: Drawing, axes: Axes, there: Sequence[Course], made: Sequence[plots.Line], axis: str
) -> None:
    end = max(getattr(point, axis) for course in there for point in course.points)
    axes.set_xlim(0, end)
    for course in there:
        for _, seed_points in course.seeds:
            xs, ys = (
                [getattr(point, axis) for point in seed_points],
                [point.score for point in seed_points],
            )
            axes.plot(xs, ys, color=QUIET, linewidth=0.5, alpha=0.6, zorder=2)
    plots.draw(
        drawing, axes, made, also=[point.score for course in there for point in course.points]
    )
    at = plots.round_values(0, end, 4)
    plots.ticks(drawing, axes, at, [f"{t:,.0f}" for t in at])
