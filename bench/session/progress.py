"""Progress on standard error: rich's bars on a terminal, a plain line every so often elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
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

EVERY = 10.0  # seconds between two plain lines


class Bars(Progress):
    """A bar for each phase that works, and a line of numbers below them."""

    numbers = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        yield Text(self.numbers, no_wrap=True, overflow="ellipsis")


class RunReporter:
    """Lines when runs start and end; between them bars or, with ``plain``, a line every ten seconds without control characters.

    rich counts and times in both cases; with ``plain`` it draws nothing. Its last task is the current phase.
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
        self.last = time.monotonic()  # when a plain line was printed

    def plan(self, runs: Sequence[Any]) -> None:
        """Begin a list of runs."""
        self.count = len(runs)

    def start(self, label: str, number: int | None = None) -> None:
        """Begin a run; ``number``: its place in the list, from 1."""
        self.label = f"{label} ({number} of {self.count})" if number and self.count > 1 else label
        if self.plain:
            self._say("starts")
        else:
            self.console.print(self.label, style="bold", markup=False)

    def phase(self, name: str, total: int | None = None) -> None:
        """Begin a phase. A score on the dev set is within the training, which goes on afterwards."""
        self._end_phases(but="train" if name in ("train", "dev") else "")
        if name == "dev" or not self.bars.tasks:
            self.bars.add_task(name, total=total)
            self.last = self.last if name == "dev" else time.monotonic()

    def advance(self, done: int, **fields: Any) -> None:
        if not self.bars.tasks:
            return
        task = self.bars.tasks[-1]
        self.fields |= fields
        self.bars.update(task.id, completed=done, total=fields.get("total"))
        numbers = self._numbers(task)
        self.bars.numbers = "  ".join(numbers)
        if self.plain and time.monotonic() - self.last >= EVERY:
            self.last = time.monotonic()
            self._say_progress()

    def _say_progress(self) -> None:
        counts = [_count(task) for task in self.bars.tasks]
        self._say("  ".join([*counts, self.bars.numbers]).rstrip())

    def note(self, text: str) -> None:
        self._say(text, "dim")

    def done(self, line: str) -> None:
        """End a run with a line."""
        self._end_phases()
        self._say(line)

    def _end_phases(self, but: str = "") -> None:
        for task in self.bars.tasks:
            if task.description != but:
                self.bars.remove_task(task.id)
        if not self.bars.tasks:
            self.fields, self.bars.numbers = {}, ""

    def _numbers(self, task: Task) -> list[str]:
        """Task, loss, the best dev score and its step, speed: those that are known."""
        fields = self.fields
        speed = task.speed if task.description == "encode" else fields.get("sentences_per_second")
        return [
            part
            for part in (
                fields.get("task"),
                fields.get("loss") is not None and f"loss {fields['loss']:.4f}",
                fields.get("best") is not None
                and f"dev best {fields['best']:.2f} at {fields['best_step']}",
                speed and f"{speed:.0f} sentences/s",
            )
            if part
        ]

    def _say(self, text: str, style: str = "") -> None:
        if self.plain:
            print(f"{self.label}: {text}" if self.label else text, file=sys.stderr, flush=True)
        else:
            self.console.print(Padding.indent(Text(text, style), 2))


def _count(task: Task) -> str:
    """ "train 125 of 1000", and the remaining time if it is known."""
    of = f" of {task.total:g}" if task.total else ""
    remaining = f"  {duration(task.time_remaining)} left" if task.time_remaining else ""
    return f"{task.description} {task.completed:g}{of}{remaining}"


@contextmanager
def reporting(plain: bool) -> Iterator[RunReporter]:
    """A reporter that suits standard error: bars on a terminal, lines elsewhere or with ``plain``."""
    reporter = RunReporter(plain or not sys.stderr.isatty())
    with nullcontext() if reporter.plain else reporter.bars:
        yield reporter
