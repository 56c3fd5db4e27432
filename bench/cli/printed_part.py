"""A published table on a terminal: three letters for its rows, and the remarks that matter below.

``c`` is a row copied from another paper, ``r`` one with a released checkpoint, ``!`` one with a
remark. All notes are in :func:`bench.cli.printed_tables.print_printed_tables` with
``everything``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import click

from bench.base.grid import GridCell, GridColumn, grid
from bench.base.printing import print_grid
from bench.cli.options import say
from bench.papers import PrintedRow, ReferenceResult, released_for
from bench.papers.audit import remarks
from bench.papers.remark import format_printed

COPIED = "c"
RELEASED = "r"
REMARK = "!"
MEANING = {
    COPIED: "copied from another paper",
    RELEASED: "released checkpoint",
    REMARK: "see below the rows",
}
MATTER = ("average", "impossible", "same", "claim", "quoted", "best", "protocol")
"""Kinds of remarks that a reader of the table should see."""
NOT_FIRST = "text form"
"""Begins a part of a remark on the protocol that is shown with --all only."""


@dataclass
class PrintedLetters:
    """The letters that rows were printed with, to be explained below them, and if any has a ±."""

    used: set[str] = field(default_factory=set)
    has_std: bool = False


def print_part(title: str, part: Sequence[PrintedRow], letters: PrintedLetters) -> None:
    """Print rows of one setting and backbone, and the remarks on them.

    ``letters`` gets what is to be explained.
    """
    tasks = list(dict.fromkeys(cell.task for row in part for cell in row.cells))
    lines = []
    found: dict[str, None] = {}
    for row in part:
        on_row = list(_remark_lines(row))
        marks = _letters_of(row, bool(on_row))
        letters.used.update(marks)
        letters.has_std = letters.has_std or any(cell.std is not None for cell in row.cells)
        found |= dict.fromkeys(on_row)
        cells = {cell.task: GridCell(text=cell_text(cell)) for cell in row.cells}
        numbers = [cells.get(task, GridCell()) for task in tasks]
        lines.append([GridCell(text=row.first.label), GridCell(text=marks), *numbers])
    columns = [GridColumn("row", wrap=24), GridColumn("")]
    for task in tasks:
        is_average = task == "Avg."
        drop = 0 if is_average else 1
        columns.append(GridColumn(task, right=True, drop=drop))
    print_grid(grid(columns, lines, title=title, whole="--json"), blank=True)
    for remark in found:
        say(f"{REMARK} {remark}", hang=2)


def _letters_of(row: PrintedRow, has_remark: bool) -> str:
    """Return "cr!": the letters of a row."""
    marks = "" if row.first.own_result else COPIED
    if any(released_for(cell) is not None for cell in row.cells):
        marks += RELEASED
    if has_remark:
        marks += REMARK
    return marks


def print_letters(letters: PrintedLetters, name: str) -> None:
    """Explain the letters that were printed, and say where all notes are.

    ``name``: "PAPER:TABLE", for the command that shows conflicts with other papers; "" for all.
    """
    shown = [f"{letter}: {text}" for letter, text in MEANING.items() if letter in letters.used]
    click.echo()
    if shown:
        say("    ".join(shown))
    if letters.has_std:
        say("±: over the draws of CxC-STS, over seeds elsewhere")
    say("Sources, checkpoints, text forms and every remark: --all")
    words = " ".join(filter(None, ("bench references", name, "--audit --kind differs")))
    say(f"Conflicts with other papers: {words}", hang=2)


def cell_text(cell: ReferenceResult) -> str:
    """Write a number as it is published, with its standard deviation if it has one."""
    if cell.std is None:
        return cell.printed
    return f"{cell.printed} ± {format_printed(cell.std, cell.metric)}"


def _remark_lines(row: PrintedRow) -> Iterator[str]:
    """Yield "LABEL, TASK: text" for each remark on the row, or a cell of it, that matters."""
    for cell in row.cells:
        for remark in remarks(cell):
            if remark.kind not in MATTER:
                continue
            parts = remark.why.split("; ")
            if remark.kind == "protocol":
                parts = [part for part in parts if not part.startswith(NOT_FIRST)]
            if parts:
                place = ", ".join(filter(None, (row.first.label, remark.task)))
                yield f"{place}: {'; '.join(parts)}"
