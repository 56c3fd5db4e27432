"""Progress on standard error: a live block on a terminal, a plain line every so often elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from bench.method import Reporter

EVERY = 10.0  # seconds between two plain lines


class RunReporter(Reporter, Protocol):
    def start(self, label: str) -> None: ...

    def done(self, line: str) -> None: ...


class PlainReporter:
    """One line per phase, and one every ten seconds within it. No control characters."""

    def __init__(self) -> None:
        self.label, self.name = "", ""
        self.total: int | None = None
        self.in_dev = False
        self.last = time.monotonic()
        self.first: tuple[float, int] | None = None  # when the phase's first advance came, and how far it was

    def start(self, label: str) -> None:
        self.label = label
        self._say("starts")

    def phase(self, name: str, total: int | None = None) -> None:
        self.in_dev = name == "dev"
        if self.in_dev or name == self.name:  # back and forth between training and its dev scores is not news
            return
        self.name, self.total, self.last, self.first = name, total, time.monotonic(), None

    def advance(self, done: int, **fields: Any) -> None:
        if self.in_dev or not self.name:
            return
        now = time.monotonic()
        self.first = self.first or (now, done)
        if now - self.last >= EVERY:
            self.last = now
            total = self.total or fields.get("total")
            left = time_left(self.first, (now, done), total) if total else ""
            self._say(f"{self.name} {done}{f' of {total}' if total else ''}{_fields(fields)}{left}")

    def note(self, text: str) -> None:
        self._say(text)

    def done(self, line: str) -> None:
        self._say(line)

    def _say(self, text: str) -> None:
        print(f"{self.label}: {text}" if self.label else text, file=sys.stderr, flush=True)


def time_left(first: tuple[float, int], last: tuple[float, int], total: int) -> str:
    """ "  3 min left" at the pace between two moments (seconds, done); "" where that tells nothing."""
    seconds, done = last[0] - first[0], last[1] - first[1]
    if done <= 0 or last[1] >= total:
        return ""
    left = (total - last[1]) * seconds / done
    return f"  {left:.0f} s left" if left < 100 else f"  {left / 60:.0f} min left"


def _fields(fields: dict[str, Any]) -> str:
    """Loss, dev score with its best and where, speed: only what is known."""
    parts = []
    if fields.get("loss") is not None:
        parts.append(f"loss {fields['loss']:.4f}")
    if fields.get("best") is not None:
        parts.append(f"dev best {fields['best']:.2f} at {fields['best_step']}")
    if fields.get("sentences_per_second"):
        parts.append(f"{fields['sentences_per_second']:.0f} sentences/s")
    return "  " + "  ".join(parts) if parts else ""


class LiveReporter:
    """A rich live block: phase, bar, numbers, time left. A finished run collapses into one line."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.console = Console(stderr=True, highlight=False)
        self.progress = Progress(
            TextColumn("{task.fields[phase]:<8}"), BarColumn(bar_width=20 if self.console.width >= 100 else 6), TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeRemainingColumn(compact=True), TextColumn("{task.fields[numbers]}", markup=False),
            console=self.console, transient=True, expand=False,
        )  # fmt: skip
        self.task = self.progress.add_task("", phase="", numbers="", total=1, visible=False)
        self.numbers = ""

    def start(self, label: str) -> None:
        self.numbers = ""
        self.console.print(label, style="bold", markup=False)

    def phase(self, name: str, total: int | None = None) -> None:
        if name == "dev":
            self.progress.update(self.task, phase=name)
            return
        current = self.progress.tasks[0]
        if current.fields["phase"] == "dev" and name == "train" and current.total == total:
            self.progress.update(self.task, phase=name)
            return
        self.progress.reset(self.task, total=total or 1, phase=name, numbers="", visible=total is not None)

    def advance(self, done: int, **fields: Any) -> None:
        if self.progress.tasks[0].fields["phase"] == "dev":
            return
        update: dict[str, Any] = {"completed": done, "visible": True}
        if fields.get("total"):
            update["total"] = fields["total"]
        self.numbers = _fields(fields).strip() or self.numbers
        self.progress.update(self.task, numbers=self.numbers if "loss" in fields else "", **update)

    def note(self, text: str) -> None:
        self.console.print(f"  {text}", style="dim", markup=False)

    def done(self, line: str) -> None:
        self.progress.update(self.task, visible=False)
        self.console.print(f"  {line}", markup=False)


@contextmanager
def reporter(plain: bool) -> Iterator[RunReporter]:
    if plain or not sys.stderr.isatty():
        yield PlainReporter()
        return
    live = LiveReporter()
    with live.progress:
        yield live
