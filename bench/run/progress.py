"""Progress of runs on standard error: bars on a terminal, a plain line every so often elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.progress import (
    MofNCompleteColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from bench.base.bars import make_bars
from bench.base.terminal import shows_bars
from bench.base.text import format_duration
from bench.method.context import SilentReporter

SECONDS_BETWEEN_LINES = 10.0


class RunReporter:
    """Shows lines when runs start and end, and between them how far a phase is.

    The id of a run is printed when it starts, and later lines are indented below it. On a terminal
    a phase has a bar. With ``plain`` it has a line every ten seconds, without control characters.
    rich counts and times in both cases; its last task is the current phase. ``verbose``: details,
    too, such as which weights of a backbone were read.

        reporter = terminal_reporter(plain=False)
        with reporter.display():
            reporter.start("simcse-builtin-s42")
    """

    def __init__(self, plain: bool = True, verbose: bool = False) -> None:
        self.plain = plain
        self.verbose = verbose
        self.label = ""
        self.count = 1
        self.console = Console(stderr=True, highlight=False)
        self.bars = make_bars(
            MofNCompleteColumn(separator="/"),
            TextColumn("elapsed"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self.console,
            plain=plain,
        )
        self.fields: dict[str, Any] = {}
        self.last_line = time.monotonic()  # when a plain line was printed

    @contextmanager
    def display(self) -> Iterator[None]:
        """Draw the bars while this context is open; plain lines need none."""
        if self.plain:
            yield
            return
        with self.bars:
            yield

    def plan(self, runs: Sequence[Any]) -> None:
        """Begin a list of runs."""
        self.count = len(runs)

    def start(self, label: str, number: int | None = None) -> None:
        """Begin a run. ``number``: its place in the list, from 1."""
        self.label = label
        if number and self.count > 1:
            self.label = f"{label} ({number} of {self.count})"
        self._say_label()

    def _say_label(self) -> None:
        if self.plain:
            print(self.label, file=sys.stderr, flush=True)
        else:
            self.console.print(self.label, style="bold", markup=False)

    def phase(self, name: str, total: int | None = None) -> None:
        """Begin a phase. A score on the dev set is part of the training, which then goes on."""
        self._end_phases(but="train" if name in ("train", "dev") else "")
        if name != "dev" and self.bars.tasks:
            return
        self.bars.add_task(name, total=total)
        if name != "dev":
            self.last_line = time.monotonic()

    def advance(self, done: int, **fields: Any) -> None:
        """Show that ``done`` steps of the phase are done, with numbers such as the loss."""
        if not self.bars.tasks:
            return
        task = self.bars.tasks[-1]
        self.fields |= fields
        self.bars.update(task.id, completed=done, total=fields.get("total"))
        self.bars.numbers = "  ".join(self._numbers(task))
        if self.plain and time.monotonic() - self.last_line >= SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            self._say_progress()

    def note(self, text: str, *, detail: bool = False) -> None:
        """Show a line about the run; a ``detail`` only if details are shown."""
        if self.verbose or not detail:
            self._say(text, "dim")

    def done(self, line: str) -> None:
        """End a run with a line."""
        self._end_phases()
        self._say(line)

    def _say_progress(self) -> None:
        counts = [_count(task) for task in self.bars.tasks]
        self._say("  ".join([*counts, self.bars.numbers]).rstrip())

    def _end_phases(self, but: str = "") -> None:
        for task in self.bars.tasks:
            if task.description != but:
                self.bars.remove_task(task.id)
        if not self.bars.tasks:
            self.fields = {}
            self.bars.numbers = ""

    def _numbers(self, task: Task) -> list[str]:
        """Return task, loss, best dev score with its step, and speed, without those not known."""
        fields = self.fields
        numbers = []
        if fields.get("task"):
            numbers.append(str(fields["task"]))
        if fields.get("loss") is not None:
            numbers.append(f"loss {fields['loss']:.4f}")
        if fields.get("best") is not None:
            numbers.append(f"dev best {fields['best']:.2f} at {fields['best_step']}")
        speed = fields.get("sentences_per_second")
        if task.description == "encode":
            speed = task.speed
        if speed:
            numbers.append(f"{speed:.0f} sentences/s")
        return numbers

    def _say(self, text: str, style: str = "") -> None:
        if self.plain:
            indent = "  " if self.label else ""
            print(f"{indent}{text}", file=sys.stderr, flush=True)
        else:
            self.console.print(Padding.indent(Text(text, style), 2))


def _count(task: Task) -> str:
    """Write "train 125 of 1000", and the remaining time if it is known."""
    text = f"{task.description} {task.completed:g}"
    if task.total:
        text += f" of {task.total:g}"
    if task.time_remaining:
        text += f"  {format_duration(task.time_remaining)} left"
    return text


class QuietReporter(SilentReporter):
    """Shows nothing of runs."""

    @contextmanager
    def display(self) -> Iterator[None]:
        """Draw nothing."""
        yield

    def plan(self, runs: Sequence[object]) -> None:
        """Begin a list of runs."""

    def start(self, label: str, number: int | None = None) -> None:
        """Begin a run."""

    def done(self, line: str) -> None:
        """End a run."""


def terminal_reporter(plain: bool, verbose: bool = False) -> RunReporter:
    """Return a reporter that suits standard error: bars on a terminal, else plain lines."""
    return RunReporter(plain or not shows_bars(), verbose)
