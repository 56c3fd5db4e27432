"""Score tables in every form: the terminal, Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console, Group
from rich.text import Text

from bench.compare.statistics.summary import summarise
from bench.compare.statistics.table import Table
from bench.runs.record import RunRecord
from bench.show import grid
from bench.show.tables import data
from bench.show.tables.scores import score_grid


def render_terminal(records: Iterable[RunRecord], console: Console | None = None) -> None:
    """Print the score tables of ``records`` on standard output, or on ``console``."""
    print_tables(summarise(records), console=console)


def print_tables(tables: Sequence[Table], console: Console | None = None) -> None:
    console = console or Console(highlight=False, markup=False, emoji=False)
    width, encoding, styled = console.width, console.encoding, console.is_terminal
    console.print(drawn(tables, width, encoding, styled=styled), soft_wrap=True)


def drawn(
    tables: Sequence[Table], width: int, encoding: str = "utf-8", *, styled: bool = True
) -> Group:
    """The tables below one another, for a terminal of ``width`` characters."""
    lines = list[Text]()
    for table in tables:
        lines += [Text("")] if lines else []
        lines += grid.terminal(score_grid(table), width, encoding, styled=styled)
    return Group(*lines)


def render(tables: Sequence[Table], form: str) -> str:
    """The tables as text: md, latex, csv or json; ends with a newline."""
    if form == "csv":
        return data.as_csv(tables)
    if form == "json":
        return data.as_json(tables)
    grids = [score_grid(table) for table in tables]
    return (
        grid.latex_document(grids) if form == "latex" else "\n".join(map(grid.as_markdown, grids))
    )
