"""Plain columns for the terminal: the last one wraps, nothing is cut, and foreign text cannot act as markup or control."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def print_columns(rows: Iterable[Sequence[str]], *, headings: Sequence[str] = (), indent: int = 0) -> None:
    """Print rows of equally many cells; every column but the last is as wide as its longest cell."""
    import io
    import shutil

    import click
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from bench.tables.words import visible

    listed = [list(row) for row in rows]
    if not listed:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=bool(headings))
    for i in range(len(listed[0])):
        last = i == len(listed[0]) - 1
        table.add_column(headings[i] if headings else "", no_wrap=not last, overflow="fold")
    for row in listed:
        table.add_row(*(Text(visible(cell, limit=None)) for cell in row))
    drawn = io.StringIO()
    Console(file=drawn, width=shutil.get_terminal_size((100, 24)).columns, highlight=False).print(
        Padding(table, (0, 0, 0, indent))
    )
    click.echo("\n".join(line.rstrip() for line in drawn.getvalue().rstrip("\n").split("\n")))
