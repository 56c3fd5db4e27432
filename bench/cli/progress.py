"""Progress on standard error: rich's bars on a terminal, a plain line every so often elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from bench.base.text import duration
from bench.show.grid import wrap

EVERY = 10.0  # seconds between two plain lines
ALL = "all runs"


class Bars(Progress):
    """A bar for each phase that works, and a line of numbers below them."""

    numbers = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        yield Text(self.numbers, no_wrap=True, overflow="ellipsis")


class RunReporter:
    """Lines for runs that start and end; between them bars, or with ``plain`` a line every ten seconds without control characters.

    rich keeps counts, paces and times in both cases; with ``plain`` it draws nothing.
    """

    def __init__(self, plain: bool = True) -> None:
        self.plain, self.label, self.count = plain, "", 1
        self.console = Console(stderr=True, highlight=False)
        self.bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            MofNCompleteColumn(separator="/"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
            refresh_per_second=4,
            speed_estimate_period=1e9,  # the mean of the whole phase: scores on the dev set are slower
            get_time=time.monotonic,
            disable=plain,
            expand=True,
        )
        self.fields: dict[str, Any] = {}
        self.working, self.last = "", time.monotonic()  # on a phase; the time of the last line

    def plan(self, runs: Sequence[Any]) -> None:
        """Begin a list of runs."""
        self.count = len(runs)
        if self.count > 1:
            self.bars.add_task(ALL, total=self.count)

    def start(self, label: str, number: int | None = None) -> None:
        """Begin a run; ``number``: its place in the list, from 1."""
        several = number is not None and self.count > 1
        self.label = f"{label} ({number} of {self.count})" if several else label
        if self.plain:
            self._say("starts")
        else:
            self.console.print(self.label, style="bold", markup=False)

    def phase(self, name: str, total: int | None = None) -> None:
        """Begin a phase. A score on the dev set is within the training, which goes on afterwards."""
        self._forget(ALL, "train" if name in ("dev", "train") else "")
        if name not in self._tasks():
            self.bars.add_task(name, total=total)
            self.last = self.last if name == "dev" else time.monotonic()
        self.working = name

    def advance(self, done: int, **fields: Any) -> None:
        task = self._tasks().get(self.working)
        if task is None:
            return
        self.fields |= fields
        self.bars.update(task.id, completed=done, total=fields.get("total"))
        self.bars.numbers = "  ".join(self._numbers(task))
        if self.plain and time.monotonic() - self.last >= EVERY:
            self.last = time.monotonic()
            tasks = self._tasks()
            every = tasks.pop(ALL, None)
            phases = [_count(task) for task in tasks.values()]
            self._say(
                "  ".join([*phases, *self._numbers(task), *([_count(every)] if every else [])])
            )

    def note(self, text: str) -> None:
        self._say(text, "dim")

    def done(self, line: str) -> None:
        """End a run with a line."""
        if (every := self._tasks().get(ALL)) is not None:
            self.bars.advance(every.id)
        self._forget(ALL)
        self._say(line)

    def _tasks(self) -> dict[str, Task]:
        return {task.description: task for task in self.bars.tasks}

    def _forget(self, *but: str) -> None:
        """Without the bars of other phases, and without numbers where no training goes on."""
        for name, task in self._tasks().items():
            if name not in but:
                self.bars.remove_task(task.id)
        if "train" not in self._tasks():
            self.fields, self.working, self.bars.numbers = {}, "", ""

    def _numbers(self, task: Task) -> list[str]:
        """Task, loss, the best dev score and where, speed: only what is known."""
        fields, parts = self.fields, list[str]()
        if fields.get("task"):
            parts.append(fields["task"])
        if fields.get("loss") is not None:
            parts.append(f"loss {fields['loss']:.4f}")
        if fields.get("best") is not None:
            parts.append(f"dev best {fields['best']:.2f} at {fields['best_step']}")
        speed = task.speed if self.working == "encode" else fields.get("sentences_per_second")
        return parts + ([f"{speed:.0f} sentences/s"] if speed else [])

    def _say(self, text: str, style: str = "") -> None:
        if self.plain:
            print(f"{self.label}: {text}" if self.label else text, file=sys.stderr, flush=True)
            return
        for line in wrap(text, self.console.width - 2):
            self.console.print(f"  {line}", style=style, markup=False, soft_wrap=True)


def _count(task: Task) -> str:
    """ "train 125 of 1000", and the time left where it is known."""
    of = f" of {task.total:g}" if task.total else ""
    left = f"  {duration(task.time_remaining)} left" if task.time_remaining else ""
    return f"{task.description} {task.completed:g}{of}{left}"


@contextmanager
def reporting(plain: bool) -> Iterator[RunReporter]:
    """What fits standard error, while it is open."""
    reporter = RunReporter(plain or not sys.stderr.isatty())
    if reporter.plain:
        yield reporter
        return
    with reporter.bars:
        yield reporter
