"""Numbers that papers printed: papers, checkpoints, tables with remarks, the audit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import click

from bench.base.grid import Grid, GridCell, GridColumn, grid
from bench.base.printing import print_grid
from bench.base.text import list_names, plural
from bench.cli.options import check_known_names, print_facts, print_json, say
from bench.cli.printed_part import STD, cell_text, print_more, print_part
from bench.papers import (
    BY_MTEB,
    PAPERS,
    Checkpoint,
    PrintedRow,
    ReferenceResult,
    released_for,
    results,
    rows,
    scored_from,
    tables,
)
from bench.papers.audit import remarks
from bench.papers.checkpoints import released_checkpoints
from bench.papers.remark import KINDS, Remark, as_data

COMPUTED = ("copied", "text: ", "same ", "best Avg.", "abstract and text claim")
"""Beginnings of the recorded notes that the audit computes as well."""

PLACES_READ = {
    "README": "read from a README",
    "model card": "read from model cards",
    "result files": "read from result files",
    "picture": "read from a picture by eye",
    "conversion": "read from a conversion of the paper by a third party",
    "transcription": "read from a transcription by a third party",
    "issue": "read from an issue of the repository",
}
"""``read`` of a printed number -> its words."""
LONG = ("differs", "copied")
"""Kinds with hundreds of remarks."""


def print_checkpoints(as_json: bool) -> None:
    """Print the models that authors released, and how each is scored."""
    if as_json:
        for checkpoint in released_checkpoints():
            print_json([{**asdict(checkpoint), "printed": checkpoint.printed}])
        return
    lines = []
    for checkpoint in released_checkpoints():
        lines.append(
            (
                checkpoint.hub,
                f"{checkpoint.paper}:{checkpoint.table}",
                checkpoint.printed,
                _scoring(checkpoint),
                ", ".join(checkpoint.scored_in),
                checkpoint.note,
            )
        )
    columns = (
        "hub",
        "table",
        "Avg.",
        GridColumn("scored by", wrap=20),
        GridColumn("also scored in", wrap=10, drop=2),
        GridColumn("note", wrap=20, drop=1),
    )
    print_grid(grid(columns, lines, whole="--json"))


def _scoring(checkpoint: Checkpoint) -> str:
    """Return the method that scores a checkpoint, with its recipe values and prefix."""
    words = [checkpoint.ours, *(f"{key}={value}" for key, value in checkpoint.set.items())]
    text = " ".join(words)
    if checkpoint.prefix:
        text += f", a prefix of {checkpoint.prefix}"
    return text


def print_papers() -> None:
    """Print the papers, and a line for each of their tables."""
    lines = []
    for paper, table in tables():
        numbers = results(paper=paper, table=table)
        lines.append(
            (
                f"{paper}:{table}",
                str(len(rows(numbers, by_metric=False))),
                ", ".join(dict.fromkeys(number.metric for number in numbers)),
                ", ".join(dict.fromkeys(number.setting for number in numbers)),
            )
        )
    columns = (
        "table",
        GridColumn("rows", right=True),
        GridColumn("metric", wrap=12),
        GridColumn("settings", wrap=12),
    )
    note = "one table: bench references PAPER:TABLE; all remarks: bench references --audit"
    print_facts(PAPERS.items())
    click.echo()
    print_grid(grid(columns, lines, notes=[note]))


def print_printed_tables(numbers: Sequence[ReferenceResult], *, everything: bool) -> None:
    """Print the tables that have these numbers, by setting and backbone, with these cells alone.

    ``everything``: with all remarks and sources below each part.
    """
    parts: dict[tuple[str, str], dict[str, list[PrintedRow]]] = {}
    for row in rows(numbers, by_metric=False):
        table_parts = parts.setdefault((row.first.paper, row.first.table), {})
        table_parts.setdefault(_part_name(row.first), []).append(row)
    for (paper, table), table_parts in parts.items():
        say(f"{paper}, table {table}", style="bold")
        say(f"{PAPERS[paper]}{_places_read(table_parts)}", hang=2)
        for name, part in table_parts.items():
            if everything:
                print_grid(_part_grid(name, part), blank=True)
            else:
                print_part(name, part)
        if everything or len(parts) > 1:
            click.echo()
    names = [f"{paper}:{table}" for paper, table in parts]
    if not everything:
        print_more(names[0] if len(names) == 1 else "")
        return
    click.echo(STD)
    click.echo("numbers that other papers publish differently: --audit --kind differs")


def _part_name(cell: ReferenceResult) -> str:
    """Return the heading of a row's part of its table: setting and backbone.

    Models that mteb scored each have a backbone of their own; they share one part.
    """
    if cell.metric == BY_MTEB:
        return "finished models" if cell.setting == "none" else cell.setting
    return ", ".join(filter(None, (cell.setting, cell.backbone)))


def _places_read(table_parts: Mapping[str, Sequence[PrintedRow]]) -> str:
    """Return the sources of a table in brackets; "" for the paper itself, or if not known."""
    places: dict[str, None] = {}
    for part in table_parts.values():
        places |= dict.fromkeys(PLACES_READ[row.first.read] for row in part if row.first.read)
    return f" ({'; '.join(places)})" if places else ""


def _part_grid(title: str, part: Sequence[PrintedRow]) -> Grid:
    """Lay out a part of a table as printed, with the audit's remarks and the notes on its rows."""
    places: dict[str, dict[str, None]] = {}
    tasks = list(dict.fromkeys(cell.task for row in part for cell in row.cells))
    lines: list[list[GridCell | str]] = []
    for row in part:
        name = row.first.label
        for note in _row_notes(row):
            places.setdefault(note, {})[name] = None
        cells = {}
        for cell in row.cells:
            cells[cell.task] = GridCell(text=cell_text(cell))
            for note in _cell_notes(cell):
                places.setdefault(note, {})[f"{name}, {cell.task}"] = None
        lines.append([name, *(cells.get(task, GridCell()) for task in tasks)])
    columns = [GridColumn("row", wrap=24)]
    for task in tasks:
        is_average = task == "Avg."
        columns.append(GridColumn(task, right=True, drop=0 if is_average else 1))
    notes = [f"{list_names(noted, len(noted))}: {note}" for note, noted in places.items()]
    return grid(columns, lines, title=title, notes=notes, whole="--json")


def _cell_notes(cell: ReferenceResult) -> list[str]:
    """Return the audit's remarks on a cell, but for other papers' values of it."""
    return [remark.why for remark in remarks(cell) if remark.task and remark.kind != "differs"]


def _row_notes(row: PrintedRow) -> Iterator[str]:
    """Yield the audit's remarks on the whole row, the notes on it, and its released checkpoint."""
    for cell in row.cells:
        for remark in remarks(cell):
            if not remark.task:
                yield remark.why
        for note in cell.note.split("; "):
            if note and not note.startswith(COMPUTED):
                yield note
        checkpoint = released_for(cell)
        if checkpoint is not None:
            scored = "the paper scored a released checkpoint" if scored_from(cell) else "released"
            yield f"{scored}: {checkpoint.hub}"


def print_audit(numbers: Sequence[ReferenceResult], kinds: Sequence[str], as_json: bool) -> None:
    """Print a line for each remark, kind after kind. Raises UnknownName for an unknown kind."""
    check_known_names("kind", kinds, KINDS, "of remark")
    shown = list(kinds)
    if not kinds:
        shown = [kind for kind in KINDS if as_json or kind not in LONG]
    listed: dict[Remark, None] = {}
    for number in numbers:
        listed |= dict.fromkeys(remark for remark in remarks(number) if remark.kind in shown)
    if as_json:
        print_json(map(as_data, listed))
        return
    for kind in shown:
        of_kind = [remark for remark in listed if remark.kind == kind]
        if of_kind:
            print_grid(_audit_grid(of_kind, f"{kind}: {KINDS[kind]}"))
            click.echo()
    click.echo(f"{plural(len(numbers), 'published number')}, {plural(len(listed), 'remark')}")
    if not kinds:
        click.echo(f"not shown, because they are long: --kind {','.join(LONG)}")


def _audit_grid(listed: Sequence[Remark], title: str) -> Grid:
    """Lay out a line for each remark; cells of one row with the same remark share it."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for remark in listed:
        cell = remark.cell
        row = (f"{cell.paper}:{cell.table}", cell.setting, cell.label, cell.backbone, remark.why)
        groups.setdefault(row, []).append(remark.task)
    lines = []
    for (*names, why), tasks in groups.items():
        lines.append((*names, list_names(filter(None, dict.fromkeys(tasks)), 1), why))
    columns = (
        "table",
        GridColumn("setting", drop=2),
        GridColumn("row", wrap=16),
        GridColumn("backbone", drop=1),
        GridColumn("cell", wrap=8),
        GridColumn("remark", wrap=32),
    )
    return grid(columns, lines, title=title, whole="--json")
