"""Progress on standard error: a live block on a terminal, a plain line every so often elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import click

from bench.base.text import duration, size
from bench.method import Reporter
from bench.show.grid import wrap

if TYPE_CHECKING:
    from rich.text import Text


EVERY = 10.0  # seconds between two plain lines
SHOWN_WAITING = 4  # runs of the live view that wait
ENOUGH = (5, 30.0)  # steps after the first, or seconds of them, before a training's pace is one


class RunReporter(Reporter, Protocol):
    def plan(self, works: Sequence[Work]) -> None: ...

    def start(self, label: str, number: int | None = None) -> None: ...

    def done(self, line: str) -> None: ...


class PlainReporter:
    """One line when a run starts and ends, and one every ten seconds between. No control characters."""

    def __init__(self) -> None:
        self.label = ""
        self.course = Course()
        self.last = time.monotonic()

    def plan(self, works: Sequence[Work]) -> None:
        self.course.works = works

    def start(self, label: str, number: int | None = None) -> None:
        self.course.start(number)
        several = number is not None and len(self.course.works) > 1
        self.label = f"{label} ({number} of {len(self.course.works)})" if several else label
        self._say("starts")

    def phase(self, name: str, total: int | None = None) -> None:
        before = self.course.name
        self.course.phase(name, total)
        if (
            self.course.name != before
        ):  # back and forth between training and its dev scores is not news
            self.last = time.monotonic()

    def advance(self, done: int, **fields: Any) -> None:
        if not self.course.name:
            return
        self.course.advance(done, fields)
        now = time.monotonic()
        if now - self.last < EVERY:
            return
        self.last = now
        course = self.course
        where = f"{course.name} {step_count(course)}"
        if course.in_dev:
            where += f", dev score {course.scores_done + 1}: {course.dev_done}" + (
                f" of {course.dev_total}" if course.dev_total else ""
            )
        left = course.phase_left()
        parts = [
            where,
            *numbers(course),
            f"{duration(left)} left" if left is not None else "",
            plan_words(course),
        ]
        self._say("  ".join(filter(None, parts)))

    def note(self, text: str) -> None:
        self._say(text)

    def done(self, line: str) -> None:
        self.course.finish()
        self._say(line)

    def _say(self, text: str) -> None:
        print(f"{self.label}: {text}" if self.label else text, file=sys.stderr, flush=True)


def step_count(course: Course, of: str = " of ") -> str:
    """ "125 of 1000", with the task that is being scored"""
    task = f" {course.fields['task']}" if course.fields.get("task") else ""
    return f"{course.done}{f'{of}{course.total}' if course.total else ''}{task}"


def numbers(course: Course) -> list[str]:
    """Loss, the best dev score and where, speed: only what is known."""
    fields = course.fields
    parts = []
    if fields.get("loss") is not None:
        parts.append(f"loss {fields['loss']:.4f}")
    if fields.get("best") is not None:
        parts.append(f"dev best {fields['best']:.2f} at {fields['best_step']}")
    if fields.get("sentences_per_second"):
        parts.append(f"{fields['sentences_per_second']:.0f} sentences/s")
    elif course.name == "encode" and (pace := course.pace()):
        parts.append(f"{1 / pace:.0f} sentences/s")
    return parts


def plan_words(course: Course) -> str:
    """ "all 3 runs: 12 min left", "whole run: 40 s left, and scoring"; "" where that is not known."""
    left = course.plan_left()
    if left is None or (len(course.works) == 1 and course.name in ("score", "overlap")):
        return ""
    seconds, whole = left
    what = "whole run" if len(course.works) == 1 else f"all {len(course.works)} runs"
    return f"{what}: {duration(seconds)} left{'' if whole else ', and scoring'}"


class LiveReporter:
    """Lines that never are wider than the terminal. Above: a line for each run that is done. Then of the run that works: phase, bar,
    count, time left; loss, best dev score, speed; its place in the plan, and the time left of that. Below: the runs that wait."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self.console = Console(stderr=True, highlight=False)
        self.course = Course()
        self.label = ""
        self.shown = False
        self.live = Live(
            get_renderable=self.draw,
            console=self.console,
            transient=True,
            refresh_per_second=4,
            vertical_overflow="crop",
        )

    def plan(self, works: Sequence[Work]) -> None:
        self.course.works = works

    def start(self, label: str, number: int | None = None) -> None:
        self.course.start(number)
        self.label, self.shown = label, True
        self.console.print(label, style="bold", markup=False)

    def phase(self, name: str, total: int | None = None) -> None:
        self.course.phase(name, total)

    def advance(self, done: int, **fields: Any) -> None:
        self.course.advance(done, fields)

    def note(self, text: str) -> None:
        self._print(text, "dim")

    def done(self, line: str) -> None:
        self.course.finish()
        self.shown = False
        self._print(line)

    def _print(self, text: str, style: str = "") -> None:
        for line in wrap(text, self.console.width - 2):
            self.console.print(f"  {line}", style=style, markup=False, soft_wrap=True)

    def draw(self) -> Text:
        from rich.text import Text

        if not self.shown or not self.course.name:
            return Text("")
        unicode = self.console.encoding.startswith("utf")
        return Text("\n").join(
            Text(line, no_wrap=True, overflow="crop")
            for line in draw(self.course, self.console.width - 1, unicode)
        )


def draw(course: Course, width: int, unicode: bool = True) -> list[str]:
    """The live view, in lines of at most ``width`` characters: three of the run that works, and one for each of the next that wait."""
    work, total, done = course.work(), course.total, course.done
    if course.in_dev:
        name, done, total = "dev", course.dev_done, course.dev_total
        count = f"{done}/{total}" if total else ""
        told = f"score {course.scores_done + 1}" + (f" of {work.scores}" if work.scores else "")
    else:
        name, left = course.name, course.phase_left()
        count = step_count(course, "/") if total or done else ""
        told = f"{duration(left)} left" if left is not None else ""
    ahead, behind = f"{name:<8}  ", "".join(f"  {part}" for part in (count, told) if part)
    middle = (
        bar(min(1.0, done / total), max(width - len(ahead) - len(behind), 0), unicode)
        if total
        else ""
    )
    at = [f"step {course.done}/{course.total}"] if course.in_dev and course.total else []
    runs = f"run {course.number} of {len(course.works)}, " if len(course.works) > 1 else ""
    plan = plan_words(course)
    so_far = (
        f"{runs}{duration(time.monotonic() - course.began)} so far{f'; {plan}' if plan else ''}"
    )
    lines = [
        ahead + middle + behind,
        "  ".join([*at, *numbers(course)]),
        so_far,
        *waiting_lines(course),
    ]
    return [line[:width] for line in lines]


def waiting_lines(course: Course) -> list[str]:
    """The next runs of the plan with what they will take, as far as that is known; how many more there are."""
    rest = course.works[course.number :]
    lines = []
    for work in rest[:SHOWN_WAITING]:
        seconds = course.expected(work)
        lines.append(
            f"waiting   {work.name}"
            + (f"  about {duration(seconds)}" if seconds is not None else "")
        )
    return lines + (
        [f"          and {len(rest) - SHOWN_WAITING} more"] if len(rest) > SHOWN_WAITING else []
    )


def bar(share: float, width: int, unicode: bool = True) -> str:
    """A bar of ``width`` characters, filled as far as ``share``."""
    full, empty = ("━", "─") if unicode else ("#", "-")
    filled = round(share * width)
    return full * filled + empty * (width - filled)


@contextmanager
def reporting(plain: bool) -> Iterator[RunReporter]:
    """What fits standard error, while it is open."""
    if plain or not sys.stderr.isatty():
        yield PlainReporter()
        return
    live = LiveReporter()
    with live.live:
        yield live


# --- how far the runs of one command are, and what is left of them as far as what was measured tells ---


@dataclass(frozen=True)
class Work:
    """What a planned run would do. ``steps`` of the optimiser, None where a clock or tokens end it; ``size``: how much a step is, in
    rows times columns; ``scores`` on the dev set while it trains."""

    steps: int | None = 0
    size: int = 1
    scores: int = 0
    name: str = ""  # the run's id


class Course:
    """Told of what happens by a reporter. All times in seconds."""

    def __init__(self) -> None:
        self.works: Sequence[Work] = ()
        self.number = 0  # of the run, from 1
        self.began = self.mark = (
            time.monotonic()
        )  # of the command; of the stretch of time that is not counted yet
        self.train_seconds, self.train_size, self.train_steps = (
            0.0,
            0,
            0,
        )  # of all runs, for the pace
        self.dev_seconds, self.dev_count = 0.0, 0
        self.others: list[
            float
        ] = []  # what else a run took that is done: loading, encoding, scoring
        self._new_run()

    def _new_run(self) -> None:
        self.name, self.done = "", 0  # of the phase
        self.total: int | None = None
        self.in_dev, self.dev_done = False, 0
        self.dev_total: int | None = None
        self.first: tuple[float, int] | None = (
            None  # when the phase's first advance came, and how far it was
        )
        self.fields: dict[str, Any] = {}
        self.scores_done = 0  # dev scores of this run
        self.other_seconds, self.worked = (
            0.0,
            False,
        )  # loading, encoding, scoring; was anything to do

    # what happens

    def start(self, number: int | None) -> None:
        self._count()
        self._new_run()
        self.number = self.number if number is None else number

    def phase(self, name: str, total: int | None) -> None:
        self._count()
        self.worked = True
        if name == "dev":
            self.in_dev, self.dev_done, self.dev_total = True, 0, None
        elif self.in_dev and name == self.name:  # back from the dev score to the training
            self.in_dev, self.total = False, total or self.total
            self.dev_count, self.scores_done = self.dev_count + 1, self.scores_done + 1
        else:
            self.name, self.done, self.total, self.in_dev, self.first = name, 0, total, False, None
            self.fields = {
                key: value for key, value in self.fields.items() if key in ("best", "best_step")
            }

    def advance(self, done: int, fields: dict[str, Any]) -> None:
        if self.in_dev:
            self.dev_done, self.dev_total = done, fields.get("total", self.dev_total)
            return
        if (
            self.name == "train" and self.first is not None and self.done == self.first[1]
        ):  # its first step loads and allocates
            self.mark, self.done = time.monotonic(), done
        now = self._count(counts=self.first is not None)
        if self.first is None:
            self.first = (now, done)
        elif self.name == "train":
            self.train_steps += max(0, done - self.done)
            self.train_size += max(0, done - self.done) * self.work().size
        self.done, self.total = done, fields.get("total") or self.total
        self.fields |= {key: value for key, value in fields.items() if key != "total"}

    def finish(self) -> None:
        self._count()
        if self.worked:
            self.others.append(self.other_seconds)
        self.worked = False

    def _count(self, counts: bool = True) -> float:
        """The time since the last event, for what was going on; a training's counts when its first step is done."""
        now = time.monotonic()
        spent, self.mark = now - self.mark, now
        if self.in_dev:
            self.dev_seconds += spent
        elif self.name == "train" and counts:
            self.train_seconds += spent
        else:
            self.other_seconds += spent
        return now

    def work(self) -> Work:
        return self.works[self.number - 1] if 0 < self.number <= len(self.works) else Work()

    # what is left

    def phase_left(self) -> float | None:
        """Of the phase, at its own pace; of a training with the dev scores that are due. None where that is not known."""
        done, total = self.done, self.total
        if not total or done >= total:
            return None
        if self.name == "train":
            return self._training(self.work(), total - done, self.scores_done)
        pace = self.pace()
        return None if pace is None else (total - done) * pace

    def pace(self) -> float | None:
        """Seconds for one of what the phase counts, since its first advance. None where that tells nothing yet."""
        first, last, done = self.first, self.mark, self.done
        return (
            (last - first[0]) / (done - first[1])
            if first is not None and done > first[1] and last > first[0]
            else None
        )

    def _training(self, work: Work, steps: int, scored: int) -> float | None:
        steps_enough, seconds_enough = ENOUGH
        if not self.train_size or (
            self.train_steps < steps_enough and self.train_seconds < seconds_enough
        ):
            return None
        due = max(0, work.scores - scored)
        each = self.dev_seconds / self.dev_count if self.dev_count else 0.0
        return steps * work.size * self.train_seconds / self.train_size + due * each

    def _whole_training(self, work: Work) -> float | None:
        if work.steps == 0:
            return 0.0
        return None if work.steps is None else self._training(work, work.steps, 0)

    def _usual(self) -> float:
        """What runs took beside their training, in the mean; 0 before one is done."""
        return sum(self.others) / len(self.others) if self.others else 0.0

    def expected(self, work: Work) -> float | None:
        """Seconds that a run takes which waits; None where no run before it tells."""
        training = self._whole_training(work)
        return None if training is None or not self.others else training + self._usual()

    def plan_left(self) -> tuple[float, bool] | None:
        """Of all runs, and whether that is all: until a first run is done, nobody knows what scoring takes. None: not known."""
        if not self.works or not self.number:
            return None
        here: float | None = 0.0
        if self.name == "train":
            here = self.phase_left() if self.total and self.done < self.total else 0.0
        elif self.name in ("", "load", "tokenise") and self.work().steps != 0:
            here = self._whole_training(self.work())
        elif not self.others:
            here = self.phase_left()
        waiting = self.works[self.number :]
        left = [here, *map(self._whole_training, waiting)]
        known = [seconds for seconds in left if seconds is not None]
        if len(known) < len(left):
            return None
        usual = self._usual()
        return sum(known) + max(0.0, usual - self.other_seconds) + usual * len(waiting), bool(
            self.others
        )


# --- how downloads are shown: a bar per file on a terminal, a plain line every ten seconds elsewhere; all on standard error ---


class PlainDownloads:
    def __init__(self) -> None:
        self.name, self.total, self.done, self.last = "", 0, 0, 0.0

    def start(self, name: str, total: int | None, done: int) -> None:
        self.name, self.total, self.done, self.last = name, total or 0, done, time.monotonic()
        if done:
            self.say(f"{name}: goes on after {size(done)}")

    def advance(self, count: int) -> None:
        self.done += count
        if time.monotonic() - self.last >= EVERY:
            self.last = time.monotonic()
            of = f" of {self.total / 1e6:.1f}" if self.total else ""
            self.say(f"{self.name}: {self.done / 1e6:.1f}{of} MB")

    def finish(self) -> None: ...

    def say(self, line: str) -> None:
        click.echo(line, err=True)


class LiveDownloads:
    """One transient bar for the file that is arriving."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(stderr=True, highlight=False)
        self.bar: Any = None

    def start(self, name: str, total: int | None, done: int) -> None:
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self.finish()
        self.bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(compact=True),
            console=self.console,
            transient=True,
        )
        self.bar.add_task(name if len(name) <= 32 else f"{name[:31]}…", total=total, completed=done)
        self.bar.start()

    def advance(self, count: int) -> None:
        if self.bar is not None:
            self.bar.advance(self.bar.task_ids[0], count)

    def finish(self) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def say(self, line: str) -> None:
        self.console.print(line, markup=False)


def downloads(plain: bool = False) -> PlainDownloads | LiveDownloads:
    """What fits standard error."""
    return PlainDownloads() if plain or not sys.stderr.isatty() else LiveDownloads()
