"""A published table on a terminal, with the remarks that matter below.

All notes are in :func:`bench.cli.printed_tables.print_printed_tables` with ``everything``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from bench.base.grid import GridCell, GridColumn, grid
from bench.base.printing import print_grid
from bench.base.text import list_names
from bench.cli.options import say
from bench.papers import PrintedRow, ReferenceResult, released_for
from bench.papers.audit import remarks
from bench.papers.remark import format_printed

STD = "±: over the draws of CxC-STS, over seeds elsewhere"
MATTER = ("average", "impossible", "same", "claim", "quoted", "best", "protocol")
"""Kinds of remarks that a reader of the table should see."""
NOT_FIRST = "text form"
"""Begins a part of a remark on the protocol that is shown with --all only."""


def print_part(title: str, part: Sequence[PrintedRow]) -> None:
    """Print rows of one setting and backbone, and the remarks on them."""
    tasks = list(dict.fromkeys(cell.task for row in part for cell in row.cells))
    lines = []
    for row in part:
        cells = {cell.task: GridCell(text=cell_text(cell)) for cell in row.cells}
        numbers = [cells.get(task, GridCell()) for task in tasks]
        lines.append([GridCell(text=row.first.label), *numbers])
    columns = [GridColumn("row", wrap=24)]
    for task in tasks:
        is_average = task == "Avg."
        drop = 0 if is_average else 1
        columns.append(GridColumn(task, right=True, drop=drop))
    print_grid(
        grid(columns, lines, title=title, notes=list(_notes(part)), whole="--json"), blank=True
    )


def _notes(part: Sequence[PrintedRow]) -> Iterator[str]:
    """Yield which rows are copied and which have a released checkpoint, and the remarks that
    matter."""
    copied = [row.first.label for row in part if not row.first.own_result]
    if copied:
        yield f"copied from another paper: {list_names(dict.fromkeys(copied), len(copied))}"
    released = [
        row.first.label for row in part if any(released_for(cell) is not None for cell in row.cells)
    ]
    if released:
        yield f"released checkpoint: {list_names(dict.fromkeys(released), len(released))}"
    if any(cell.std is not None for row in part for cell in row.cells):
        yield STD
    yield from dict.fromkeys(line for row in part for line in _remark_lines(row))


def print_more(name: str) -> None:
    """Say where all notes are.

    ``name``: "PAPER:TABLE", for the command that shows conflicts with other papers; "" for all.
    """
    click.echo()
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
