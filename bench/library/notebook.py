"""Progress of runs in a notebook: lines and bars of rich in one output, redrawn without widgets."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.table import Table
from rich.text import Text

from bench.run.progress import RunReporter

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
    """Shows the lines of a RunReporter, and below them its bars."""

    def __init__(self) -> None:
        super().__init__(plain=True)
        self.lines: list[Text] = []
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
        self.lines.append(Text(line, style))
        self._draw(now=True)

    def _say_progress(self) -> None:
        """Show nothing: lines are for logs, and here there is a bar."""

    def _draw(self, now: bool = False) -> None:
        if not now and time.monotonic() - self.drawn < REDRAW:
            return
        self.drawn = time.monotonic()
        from IPython.display import display

        if self.handle is None:
            self.handle = display(self._drawing(), display_id=True)
        else:
            self.handle.update(self._drawing())

    def _drawing(self) -> Table:
        """Return the last lines and the bars below one another; IPython asks rich for the HTML."""
        drawing = Table.grid(expand=True)
        hidden = len(self.lines) - SHOWN
        if hidden > 0:
            drawing.add_row(f"... {hidden} lines before")
        for part in (*self.lines[-SHOWN:], *self.bars.get_renderables()):
            drawing.add_row(part)
        return drawing
