"""Progress on standard error: a live block on a terminal, a plain line every so often elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from bench.cli.columns import wrapped
from bench.cli.course import Course, Work, duration
from bench.method import Reporter

if TYPE_CHECKING:
    from rich.text import Text

EVERY = 10.0  # seconds between two plain lines


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
        if self.course.name != before:  # back and forth between training and its dev scores is not news
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
        where = f"{course.name} {counted(course)}"
        if course.in_dev:
            where += f", dev score {course.scores_done + 1}: {course.dev_done}" + (
                f" of {course.dev_total}" if course.dev_total else ""
            )
        left = course.phase_left()
        plan = plan_words(course)
        parts = [where, *numbers(course), *([f"{duration(left)} left"] if left is not None else []), *([plan] if plan else [])]
        self._say("  ".join(parts))

    def note(self, text: str) -> None:
        self._say(text)

    def done(self, line: str) -> None:
        self.course.finish()
        self._say(line)

    def _say(self, text: str) -> None:
        print(f"{self.label}: {text}" if self.label else text, file=sys.stderr, flush=True)


def counted(course: Course, of: str = " of ") -> str:
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
    """Three lines that never are wider than the terminal: the run and its place in the plan; phase, bar, count, time left; loss, best
    dev score, speed, and the time left of the whole plan. A finished run collapses into one line."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self.console = Console(stderr=True, highlight=False)
        self.course = Course()
        self.label = ""
        self.shown = False
        self.live = Live(
            get_renderable=self.draw, console=self.console, transient=True, refresh_per_second=4, vertical_overflow="crop"
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
        for line in wrapped(text, self.console.width - 2):
            self.console.print(f"  {line}", style=style, markup=False, soft_wrap=True)

    def draw(self) -> Text:
        from rich.text import Text

        if not self.shown or not self.course.name:
            return Text("")
        unicode = self.console.encoding.startswith("utf")
        return Text("\n").join(
            Text(line, no_wrap=True, overflow="crop") for line in drawn(self.course, self.console.width - 1, unicode)
        )


def drawn(course: Course, width: int, unicode: bool = True) -> list[str]:
    """The live view: three lines of at most ``width`` characters."""
    work, total, done = course.work(), course.total, course.done
    if course.in_dev:
        name, done, total = "dev", course.dev_done, course.dev_total
        count = f"{done}/{total}" if total else ""
        told = f"score {course.scores_done + 1}" + (f" of {work.scores}" if work.scores else "")
    else:
        name, left = course.name, course.phase_left()
        count = counted(course, "/") if total or done else ""
        told = f"{duration(left)} left" if left is not None else ""
    ahead, behind = f"{name:<8}  ", "".join(f"  {part}" for part in (count, told) if part)
    middle = bar(min(1.0, done / total), max(width - len(ahead) - len(behind), 0), unicode) if total else ""
    at = [f"step {course.done}/{course.total}"] if course.in_dev and course.total else []
    runs = f"run {course.number} of {len(course.works)}, " if len(course.works) > 1 else ""
    plan = plan_words(course)
    so_far = f"{runs}{clock(time.monotonic() - course.began)} so far{f'; {plan}' if plan else ''}"
    return [line[:width] for line in (ahead + middle + behind, "  ".join([*at, *numbers(course)]), so_far)]


def clock(seconds: float) -> str:
    """ "0:07", "12:30", "1:02:03" """
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def bar(share: float, width: int, unicode: bool = True) -> str:
    """A bar of ``width`` characters, filled as far as ``share``."""
    full, empty = ("━", "─") if unicode else ("#", "-")
    filled = round(share * width)
    return full * filled + empty * (width - filled)


@contextmanager
def reporter(plain: bool) -> Iterator[RunReporter]:
    if plain or not sys.stderr.isatty():
        yield PlainReporter()
        return
    live = LiveReporter()
    with live.live:
        yield live
