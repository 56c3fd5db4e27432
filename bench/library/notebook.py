"""Progress of runs in a notebook: lines and a bar in one output, redrawn without widgets."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.base.text import format_duration
from bench.session.progress import RunReporter

REDRAW = 0.25
"""Seconds between two drawings, at least."""

SHOWN = 40
"""Lines that are drawn, the last ones of many."""


def in_notebook() -> bool:
    """Say if this process is the kernel of a notebook."""
    library = sys.modules.get("IPython")
    if library is None:
        return False
    return hasattr(library.get_ipython(), "kernel")


class NotebookReporter(RunReporter):
    """Shows the lines of a RunReporter and a bar for each phase that works, as HTML."""

    def __init__(self) -> None:
        super().__init__(plain=True)
        self.lines: list[str] = []
        self.handle: Any = None
        self.drawn = -REDRAW

    def advance(self, done: int, **fields: Any) -> None:
        super().advance(done, **fields)
        self._draw()

    def phase(self, name: str, total: int | None = None) -> None:
        super().phase(name, total)
        self._draw()

    @contextmanager
    def display(self) -> Iterator[None]:
        """Draw, at the end of this context, the lines without bars."""
        try:
            yield
        finally:
            self._end_phases()
            self._draw(now=True)

    def _say_label(self) -> None:
        """Show nothing: each line begins with it."""

    def _say(self, text: str, style: str = "") -> None:
        line = f"{self.label}: {text}" if self.label else text
        if style == "dim":
            self.lines.append(f"<span style='opacity: 0.7'>{html.escape(line)}</span>")
        else:
            self.lines.append(html.escape(line))
        self._draw(now=True)

    def _say_progress(self) -> None:
        """Show nothing: lines are for logs, and here there is a bar."""

    def _draw(self, now: bool = False) -> None:
        if not now and time.monotonic() - self.drawn < REDRAW:
            return
        self.drawn = time.monotonic()
        from IPython.display import HTML, display

        drawing = HTML(self._html())
        if self.handle is None:
            self.handle = display(drawing, display_id=True)
        else:
            self.handle.update(drawing)

    def _html(self) -> str:
        rows = list(self.lines)
        if len(rows) > SHOWN:
            rows = [f"... {len(rows) - SHOWN} lines before", *rows[-SHOWN:]]
        for task in self.bars.tasks:
            text = f"{task.description} {task.completed:g}"
            if task.total:
                text += f" of {task.total:g}"
            if task.time_remaining:
                text += f", {format_duration(task.time_remaining)} left"
            bar = f"<progress max='{task.total or 1:g}' value='{task.completed:g}'></progress>"
            rows.append(f"{bar} {html.escape(text)}")
        if self.bars.numbers:
            rows.append(html.escape(self.bars.numbers))
        return "<br>".join(rows)
