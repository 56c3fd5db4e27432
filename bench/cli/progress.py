"""Progress on standard error: a live block on a terminal, a plain line every so often elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import click

from bench.base.text import duration, size
from bench.method import Reporter
from bench.show.grid import wrap

if TYPE_CHECKING:
    from rich.text import Text

EVERY = 10.0  # seconds between two plain lines


class RunReporter(Reporter, Protocol):
    def plan(self, runs: Sequence[Any]) -> None:
        """Begin a list of runs."""

    def start(self, label: str, number: int | None = None) -> None:
        """Begin a run; ``number``: its place in the list, from 1."""

    def done(self, line: str) -> None:
        """End a run with a line."""


class Course:
    """How far the runs of a command are. All times in seconds."""

    def __init__(self) -> None:
        self.runs, self.number = 0, 0  # in the list; the place of this one, from 1
        self.began = self.run_began = time.monotonic()
        self.durations: list[float] = []  # of the runs that are done
        self._forget_run()

    def _forget_run(self) -> None:
        self.name, self.done = "", 0  # of the phase
        self.total: int | None = None
        self.in_dev, self.dev_done, self.scores = False, 0, 0  # scores on the dev set
        self.dev_total: int | None = None
        self.first: tuple[float, int] | None = None  # when, and at what count, the phase began
        self.fields: dict[str, Any] = {}

    def start(self, number: int | None) -> None:
        self._forget_run()
        self.run_began = time.monotonic()
        self.number = self.number if number is None else number

    def phase(self, name: str, total: int | None) -> None:
        """A dev score is within the training, which goes on afterwards."""
        if name == "dev":
            self.in_dev, self.dev_done, self.dev_total = True, 0, None
        elif self.in_dev and name == self.name:
            self.in_dev, self.total, self.scores = False, total or self.total, self.scores + 1
        else:
            self.name, self.done, self.total, self.in_dev, self.first = name, 0, total, False, None
            best = ("best", "best_step")
            self.fields = {key: self.fields[key] for key in best if key in self.fields}

    def advance(self, done: int, fields: dict[str, Any]) -> None:
        if self.in_dev:
            self.dev_done, self.dev_total = done, fields.get("total", self.dev_total)
            return
        if self.first is None:
            self.first = time.monotonic(), done
        self.done, self.total = done, fields.get("total") or self.total
        self.fields |= {key: value for key, value in fields.items() if key != "total"}

    def finish(self) -> None:
        if self.name:
            self.durations.append(time.monotonic() - self.run_began)

    def pace(self) -> float | None:
        """Seconds for one of what the phase counts. None where that is not known yet."""
        if self.first is None or self.done <= self.first[1]:
            return None
        return (time.monotonic() - self.first[0]) / (self.done - self.first[1])

    def phase_left(self) -> float | None:
        """Until the end of the phase, at its pace so far. None where that is not known, and during a dev score."""
        pace = self.pace()
        if pace is None or self.in_dev or not self.total or self.done >= self.total:
            return None
        return (self.total - self.done) * pace

    def all_left(self) -> float | None:
        """Until the last run is done, if each takes as long as those before. None where none was done."""
        if not self.durations or self.number >= self.runs:
            return None
        usual = sum(self.durations) / len(self.durations)
        spent = time.monotonic() - self.run_began
        return max(0.0, usual - spent) + usual * (self.runs - self.number)


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
    speed = fields.get("sentences_per_second")
    if not speed and course.name == "encode" and (pace := course.pace()):
        speed = 1 / pace
    return parts + ([f"{speed:.0f} sentences/s"] if speed else [])


def time_left(seconds: float | None, of: str = "") -> str:
    """ "12s left", "all 3 runs: 12s left"; "" where it is not known."""
    return "" if seconds is None else f"{of}{duration(seconds)} left"


class PlainReporter:
    """One line when a run starts and ends, and one every ten seconds between. No control characters."""

    def __init__(self) -> None:
        self.label = ""
        self.course = Course()
        self.last = time.monotonic()

    def plan(self, runs: Sequence[Any]) -> None:
        self.course.runs = len(runs)

    def start(self, label: str, number: int | None = None) -> None:
        self.course.start(number)
        several = number is not None and self.course.runs > 1
        self.label = f"{label} ({number} of {self.course.runs})" if several else label
        self._say("starts")

    def phase(self, name: str, total: int | None = None) -> None:
        before = self.course.name
        self.course.phase(name, total)
        if self.course.name != before:  # not between training and its dev scores
            self.last = time.monotonic()

    def advance(self, done: int, **fields: Any) -> None:
        course, now = self.course, time.monotonic()
        if not course.name:
            return
        course.advance(done, fields)
        if now - self.last < EVERY:
            return
        self.last = now
        where = f"{course.name} {step_count(course)}"
        if course.in_dev:
            of = f" of {course.dev_total}" if course.dev_total else ""
            where += f", dev score {course.scores + 1}: {course.dev_done}{of}"
        everything = time_left(course.all_left(), f"all {course.runs} runs: ")
        parts = [where, *numbers(course), time_left(course.phase_left()), everything]
        self._say("  ".join(filter(None, parts)))

    def note(self, text: str) -> None:
        self._say(text)

    def done(self, line: str) -> None:
        self.course.finish()
        self._say(line)

    def _say(self, text: str) -> None:
        print(f"{self.label}: {text}" if self.label else text, file=sys.stderr, flush=True)


class LiveReporter:
    """Above: a line for each run that is done. Below, of the run that works: phase, bar, count, time left; loss, best dev score, speed;
    its place in the list, and the time left of that."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self.console = Console(stderr=True, highlight=False)
        self.course = Course()
        self.live = Live(
            get_renderable=self.draw,
            console=self.console,
            transient=True,
            refresh_per_second=4,
            vertical_overflow="crop",
        )

    def plan(self, runs: Sequence[Any]) -> None:
        self.course.runs = len(runs)

    def start(self, label: str, number: int | None = None) -> None:
        self.course.start(number)
        self.console.print(label, style="bold", markup=False)

    def phase(self, name: str, total: int | None = None) -> None:
        self.course.phase(name, total)

    def advance(self, done: int, **fields: Any) -> None:
        self.course.advance(done, fields)

    def note(self, text: str) -> None:
        self._print(text, "dim")

    def done(self, line: str) -> None:
        self.course.finish()
        self.course.name = ""
        self._print(line)

    def _print(self, text: str, style: str = "") -> None:
        for line in wrap(text, self.console.width - 2):
            self.console.print(f"  {line}", style=style, markup=False, soft_wrap=True)

    def draw(self) -> Text:
        from rich.text import Text

        unicode = self.console.encoding.startswith("utf")
        lines = live_lines(self.course, self.console.width - 1, unicode) if self.course.name else []
        return Text("\n").join(Text(line, no_wrap=True, overflow="crop") for line in lines)


def live_lines(course: Course, width: int, unicode: bool = True) -> list[str]:
    """The live view of the run that works: three lines of at most ``width`` characters."""
    name, done, total = course.name, course.done, course.total
    count, left = step_count(course, "/") if total or done else "", time_left(course.phase_left())
    if course.in_dev:
        name, done, total = "dev", course.dev_done, course.dev_total
        count, left = f"{done}/{total}" if total else "", f"score {course.scores + 1}"
    start, end = f"{name:<8}  ", "".join(f"  {part}" for part in (count, left) if part)
    room = max(width - len(start) - len(end), 0)
    filled = round(min(1.0, done / total) * room) if total else 0
    full, empty = ("━", "─") if unicode else ("#", "-")
    middle = full * filled + empty * (room - filled) if total else ""
    step = [f"step {course.done}/{course.total}"] if course.in_dev and course.total else []
    place = f"run {course.number} of {course.runs}, " if course.runs > 1 else ""
    everything = time_left(course.all_left(), f"; all {course.runs} runs: ")
    so_far = f"{place}{duration(time.monotonic() - course.began)} so far{everything}"
    lines = [start + middle + end, "  ".join([*step, *numbers(course)]), so_far]
    return [line[:width] for line in lines]


@contextmanager
def reporting(plain: bool) -> Iterator[RunReporter]:
    """What fits standard error, while it is open."""
    if plain or not sys.stderr.isatty():
        yield PlainReporter()
        return
    live = LiveReporter()
    with live.live:
        yield live


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
