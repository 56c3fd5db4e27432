"""How downloads are shown: a bar per file on a terminal, a plain line every ten seconds elsewhere; all on standard error."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

EVERY = 10.0  # seconds between two plain lines


class PlainDownloads:
    def __init__(self) -> None:
        self.name, self.total, self.done, self.last = "", 0, 0, 0.0

    def start(self, name: str, total: int | None, done: int) -> None:
        self.name, self.total, self.done, self.last = name, total or 0, done, time.monotonic()
        if done:
            self.say(f"{name}: goes on after {done / 1e6:.1f} MB")

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
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

        self.finish()
        self.bar = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), DownloadColumn(), TransferSpeedColumn(),
            TimeRemainingColumn(compact=True), console=self.console, transient=True,
        )  # fmt: skip
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
