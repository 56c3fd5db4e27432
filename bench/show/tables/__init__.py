"""Tables of scores, drawn: for the terminal, Markdown, LaTeX, CSV and JSON. What is in them is ``bench.compare.statistics.summary``'s."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from bench.compare.statistics.summary import summarise
from bench.compare.statistics.table import Table

if TYPE_CHECKING:
    from rich.console import Console

    from bench.runs.record import RunRecord


def render_terminal(
    records: Iterable[RunRecord],
    *,
    baseline: str | None = None,
    together: bool = False,
    console: Console | None = None,
) -> None:
    """Print the score tables of ``records`` on standard output, or on ``console``."""
    print_tables(summarise(records, baseline=baseline, together=together), console=console)


def print_tables(tables: Sequence[Table], console: Console | None = None) -> None:
    from rich.console import Console as RichConsole

    from bench.show.tables.terminal import draw

    console = console or RichConsole(highlight=False, markup=False, emoji=False)
    console.print(draw(tables, console.width, console.encoding, styled=console.is_terminal))


def render(tables: Sequence[Table], form: str) -> str:
    """The tables as text: md, latex, csv or json; ends with a newline."""
    from bench.show.tables import data, latex, markdown

    return {"md": markdown.draw, "latex": latex.draw, "csv": data.as_csv, "json": data.as_json}[
        form
    ](tables)
