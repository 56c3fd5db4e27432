"""The dev score while training, of all methods of a table: against sentences seen, and against seconds; seeds thin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from bench.compare.formatting import score
from bench.runs.curve import read_curve
from bench.show.figures import lines
from bench.show.figures.drawing import LEFT, QUIET, SMALL, WIDTH, Drawing, Figure, library, number
from bench.show.figures.points import Group, counted, leading, listed, methods, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bench.board.board import PublishedRun

HIGH, FOOT, HEAD = 170.0, 40.0, 22.0  # units of height of a panel's axes, below and above them
AXES = (("sentences", "rows of the corpus seen"), ("steps", "steps"), ("seconds", "seconds of training, without dev scores"))


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

    def mean(self, axis: str) -> list[tuple[float, float]]:
        """(x, dev score), means over the seeds."""
        columns = zip(*(found for _, found in self.seeds), strict=True)
        return [(fmean(getattr(point, axis) for point in column), fmean(point.score for point in column)) for column in columns]


def learning(group: Group, runs: Mapping[str, PublishedRun]) -> Figure | None:
    """None where fewer than two methods have a curve of two points of one dev set."""
    board_table = group.tables.get("sts")
    if board_table is None:
        return None
    table = board_table.table
    labels = {point.row.runs: point.label for point in methods(points(table, table.head), table)}
    scored = [row for row in table.rows if row.runs in labels and runs.keys() >= set(row.runs)]
    sets = Counter(
        done.dev_task for row in scored for run in row.runs if (done := runs[run].record.training) and done.dev_score is not None
    )
    if not sets:
        return None
    dev = sets.most_common(1)[0][0] or "dev"
    found = []
    for row in scored:
        seeds = tuple((seed, course) for run, seed in zip(row.runs, row.seeds, strict=True) if (course := _points(runs[run], dev)))
        if not seeds or len(seeds[0][1]) < 2 or len({tuple(dev_point.steps for dev_point in course) for _, course in seeds}) > 1:
            continue
        timed = (
            row.cost is not None
            and row.cost.train_seconds is not None
            and all(dev_point.seconds is not None for _, course in seeds for dev_point in course)
        )
        found.append(Course(label=labels[row.runs], seeds=seeds, timed=timed))
    if len(found) < 2:
        return None
    shown = found[: lines.MOST]
    pace = {round(dev_point.sentences / dev_point.steps, 3) for course in shown for _, ones in course.seeds for dev_point in ones}
    axes = [
        (axis, words)
        for axis, words in AXES
        if (axis != "steps" or len(pace) > 1) and (axis != "seconds" or sum(c.timed for c in shown) > 1)
    ]
    finding = _finding(found)
    rest = f" Shown are {len(shown)} of {len(found)} methods." if len(shown) < len(found) else ""
    untimed = sum(not course.timed for course in shown) if ("seconds", AXES[2][1]) in axes else 0
    without = (
        f" {counted(untimed, 'method')} without comparable times {'is' if untimed == 1 else 'are'} not in the lower part."
        if untimed
        else ""
    )
    name, title = group.name("learning"), group.titled(f"{dev} while training")
    alt = f"Lines of {len(shown)} methods: {dev} against {' and against '.join(words for _, words in axes)}. {finding}"
    with library():
        drawing = _draw(shown, axes, dev)
        return Figure(
            name=name, kind="learning", title=title, alt=alt, svg=drawing.svg(name, title, alt),
            caption=f"{finding} Thick lines are means over seeds, thin ones the seeds. These scores chose the checkpoints; they are of no test set.{rest}{without}",
            header=("method", "seed", "steps", "sentences", "seconds", dev),
            data=tuple((course.label, "any" if seed is None else float(seed), dev_point.steps, dev_point.sentences, "" if dev_point.seconds is None else round(dev_point.seconds, 2), round(dev_point.score, 4))
                       for course in found for seed, ones in course.seeds for dev_point in ones),
        )  # fmt: skip


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
    best = leading([(label, course[-1][1]) for label, course in ends])
    top = score(next(course[-1][1] for label, course in ends if label == best[0]))
    rising = sum(course[-1][1] > course[-2][1] for _, course in ends)
    first = f"{listed(best)} {'ends' if len(best) == 1 else 'end'} highest, at {top}"
    many = "all" if rising == len(ends) else "none" if not rising else f"{rising} of {len(ends)}"
    return f"{first}; {many} {'was' if rising == 1 and len(ends) > 1 else 'were'} higher at the last score than at the one before."


def _draw(shown: Sequence[Course], axes: Sequence[tuple[str, str]], dev: str) -> Drawing:
    drawing = Drawing(height=len(axes) * (HEAD + HIGH + FOOT))
    best = leading([(course.label, course.mean("steps")[-1][1]) for course in shown])
    for i, (axis, words) in enumerate(axes):
        there = [course for course in shown if axis != "seconds" or course.timed]
        made = [
            lines.Line(
                course.label,
                tuple(x for x, _ in course.mean(axis)),
                tuple(y for _, y in course.mean(axis)),
                tuple(f"{course.label}: {score(y)} at {x:,.0f} {axis}" for x, y in course.mean(axis)),
                strong=course.label in best,
            )
            for course in there
        ]
        top = drawing.height - i * (HEAD + HIGH + FOOT) - HEAD
        panel = lines.panel(drawing, LEFT, top - HIGH, WIDTH - lines.room(made), top)
        _panel(drawing, panel, there, made, axis)
        box = drawing.box(panel)
        drawing.text(2.0, box.high + 10, dev, colour=QUIET)
        drawing.text((box.left + box.right) / 2, box.low - 32, words, size=SMALL, anchor="middle", colour=QUIET)
    return drawing


def _panel(drawing: Drawing, axes: Axes, there: Sequence[Course], made: Sequence[lines.Line], axis: str) -> None:
    from matplotlib.ticker import MaxNLocator

    end = max(getattr(point, axis) for course in there for _, ones in course.seeds for point in ones)
    axes.set_xlim(0, end)
    for course in there:
        for _, ones in course.seeds:
            axes.plot(
                [getattr(point, axis) for point in ones],
                [one.score for one in ones],
                color=QUIET,
                linewidth=0.5,
                alpha=0.6,
                zorder=2,
            )
    bars = [point.score for course in there for _, ones in course.seeds for point in ones]
    lines.draw(drawing, axes, made, also=bars)
    at = [t for t in MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(0, end) if 0 <= t <= end]
    lines.ticks(drawing, axes, at, [f"{t:,.0f}" for t in at])
