"""Print a Grid: rich lays out its table, between its title and its notes.

Nothing is cut. Texts fold in the columns that say so. If that is not enough, less important columns
are left out and named below the table; what is then still too wide makes longer lines.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bench.base.foreign_text import encodable, make_visible
from bench.base.grid import BEST_SIGN, INDENT, Grid, GridCell
from bench.base.terminal import NO_TERMINAL, terminal_width
from bench.base.text import list_names

STYLES = {"best": "bold", "strong": "bold", "second": "underline", "dim": "dim"}
"""Emphasis of a cell -> its style on a terminal."""
LONGEST_WORD = 24
"""A column is left out rather than that words of so many characters are broken in another."""
MOST_NAMES = 20
"""Columns that were left out are named up to so many."""


def make_console(*, indent: int = 0, stderr: bool = False) -> Console:
    """Make a console for texts that may come from others: none acts as markup.

    It is as wide as the terminal, less ``indent``; without one each row is one line.
    """
    return Console(
        file=sys.stderr if stderr else sys.stdout,
        width=max(1, terminal_width() - indent),
        highlight=False,
        markup=False,
        emoji=False,
    )


def print_grid(table: Grid, indent: int = 0, *, blank: bool = False, stderr: bool = False) -> None:
    """Print a table. ``blank``: print an empty line before it."""
    console = make_console(indent=indent, stderr=stderr)
    text = drawn_text(draw_grid(table, console, console.width), console)
    if blank:
        console.print()
    print(textwrap.indent(text, " " * indent), file=console.file)


def drawn_text(drawn: RenderableType, console: Console) -> str:
    """Return the console's output, without blanks at the ends of lines."""
    with console.capture() as printed:
        console.print(drawn, crop=False)
    lines = printed.get().rstrip("\n").split("\n")
    return "\n".join(line.rstrip() for line in lines)


def draw_grids(tables: Iterable[Grid], console: Console, width: int) -> Group:
    """Draw tables below one another, each at most ``width`` wide if that is possible."""
    parts: list[RenderableType] = []
    for table in tables:
        if parts:
            parts.append(Text(""))
        parts.append(draw_grid(table, console, width))
    return Group(*parts)


def draw_grid(table: Grid, console: Console, width: int) -> Group:
    """Draw a table at most ``width`` wide, if that is possible, with its title and its notes."""
    parts: list[RenderableType] = []
    if table.lead:
        parts += [Text(_visible(table.lead, console), "bold"), Text("")]
    if table.title:
        parts.append(Text(_visible(table.title, console), "bold"))
    columns, left_out = _draw_columns(table, console, width)
    parts.append(columns)
    if table.lead:
        parts.append(Text(""))
    notes = list(table.notes)
    if table.key and console.color_system is not None:  # else no text is bold
        notes.append(table.key)
    if left_out:
        names = list_names(left_out, MOST_NAMES)
        notes.append(f"not shown at {width} columns: {names} ({table.whole})")
    parts += [Text(_visible(note, console), "dim") for note in notes]
    if table.below:
        parts += [Text(""), draw_grid(table.below, console, width)]
    return Group(*parts)


def _draw_columns(table: Grid, console: Console, width: int) -> tuple[Table, list[str]]:
    """Draw the columns that have room, and return the names of the others."""
    drawn = [_draw_column(table, number, console) for number in range(len(table.columns))]
    least = []
    unbroken = []
    for column, cells in zip(table.columns, drawn, strict=True):
        widest, word = _widths(cells, console)
        least.append(min(widest, column.wrap or widest))
        whole = max(min(word, LONGEST_WORD), column.whole)
        unbroken.append(max(least[-1], min(widest, whole)))
    shown = list(range(len(drawn)))
    while len(shown) > 1 and sum(unbroken[i] for i in shown) > width:
        droppable = [i for i in shown if table.columns[i].drop]
        if not droppable:
            break
        shown.remove(max(droppable, key=lambda i: (table.columns[i].drop, i)))
    total = sum(least[i] for i in shown)
    laid_out = Table(
        box=None,
        padding=0,
        show_header=any(column.name for column in table.columns),
        width=total if total > width else None,
    )
    for i in shown:
        column = table.columns[i]
        laid_out.add_column(
            drawn[i][0],
            header_style="dim",
            justify="right" if column.right else "left",
            no_wrap=not column.wrap,
            overflow="fold",
        )
    for row in range(len(table.rows)):
        laid_out.add_row(*(drawn[i][row + 1] for i in shown))
    names = [_visible(column.name, console) for column in table.columns]
    return laid_out, [name for i, name in enumerate(names) if i not in shown]


def _widths(cells: Sequence[Padding], console: Console) -> tuple[int, int]:
    """Return the width of a column that does not fold, and of its longest word."""
    unbounded = console.options.update_width(NO_TERMINAL)
    sizes = [console.measure(cell, options=unbounded) for cell in cells]
    return max(size.maximum for size in sizes), max(size.minimum for size in sizes)


def _draw_column(table: Grid, number: int, console: Console) -> list[Padding]:
    """Draw the heading of a column and its cells, with the blanks after the column before.

    Columns of numbers are one blank apart, others two. Of numbers, a shorter tail gets blanks, so
    that digits are aligned.
    """
    column = table.columns[number]
    left = 0
    if number > 0:
        left = 1 if column.right and table.columns[number - 1].right else 2
    tails = [_tail(row[number], console.encoding) for row in table.rows]
    widest = max(map(cell_len, tails), default=0) if column.right else 0
    drawn = [Padding(Text(_visible(column.name, console)), (0, 0, 0, left))]
    for row, tail in zip(table.rows, tails, strict=True):
        cell = row[number]
        text = Text(INDENT * row.indent if number == 0 else "")
        text.append(_visible(cell.main, console), STYLES.get(cell.emphasis))
        text.append(tail)
        drawn.append(Padding(text, (0, max(0, widest - cell_len(tail)), 0, left)))
    return drawn


def _tail(cell: GridCell, encoding: str) -> str:
    """Return what follows a cell's text: spread and sign."""
    tail = f" ± {cell.half}" if cell.half else ""
    if cell.may_be_best:
        tail += f" {BEST_SIGN}"
    return encodable(tail, encoding)


def _visible(text: str, console: Console) -> str:
    return make_visible(text, console.encoding, limit=None)
