"""Bars of progress on standard error, as rich draws them."""

from __future__ import annotations

import time
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
from rich.text import Text

from bench.base.terminal import shows_bars


class Bars(Progress):
    """A bar for each task, and a line of numbers below them."""

    numbers = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        if self.tasks:
            yield self.make_tasks_table(self.tasks)
            yield Text(self.numbers, no_wrap=True, overflow="ellipsis")


def make_bars(
    *columns: ProgressColumn, console: Console | None = None, plain: bool | None = None
) -> Bars:
    """Return bars with these columns behind each, which are gone when they end.

    Nothing is drawn if ``plain``. None: if a line of standard error cannot be drawn again.
    """
    return Bars(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        *columns,
        console=console or Console(stderr=True),
        transient=True,
        refresh_per_second=4,
        # the mean of all, because scores on the dev set take longer than steps
        speed_estimate_period=1e9,
        get_time=time.monotonic,
        disable=not shows_bars() if plain is None else plain,
        expand=True,
    )
