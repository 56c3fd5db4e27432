"""Score tables in every form: on a terminal, as Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group
from rich.text import Text

from bench.compare.statistics.table import Table
from bench.show.markup import as_markdown, latex_document
from bench.show.tables.data import tables_csv, tables_json
from bench.show.tables.scores import score_grid
from bench.show.terminal import terminal_lines


def print_score_tables(tables: Sequence[Table], console: Console | None = None) -> None:
    """Print the tables below one another, as wide as the terminal."""
    console = console or Console(highlight=False, markup=False, emoji=False)
    console.print(
        draw_tables(tables, console.width, console.encoding, styled=console.is_terminal),
        soft_wrap=True,
    )


def draw_tables(
    tables: Sequence[Table], width: int, encoding: str = "utf-8", *, styled: bool = True
) -> Group:
    """Draw the tables below one another, for a terminal of ``width`` characters."""
    lines: list[Text] = []
    for table in tables:
        if lines:
            lines.append(Text(""))
        lines += terminal_lines(score_grid(table), width, encoding, styled=styled)
    return Group(*lines)


def format_tables(tables: Sequence[Table], form: str) -> str:
    """Write the tables as text: md, latex, csv or json; ends with a newline."""
    if form == "csv":
        return tables_csv(tables)
    if form == "json":
        return tables_json(tables)
    grids = [score_grid(table) for table in tables]
    return latex_document(grids) if form == "latex" else "\n".join(map(as_markdown, grids))
