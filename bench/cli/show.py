"""``bench show``: everything about one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from bench.cli.columns import visible_indent
from bench.cli.options import json_option, json_text, runs_option

if TYPE_CHECKING:
    from rich.console import Console

    from bench.runs import RunRecord, RunsFolder
    from bench.show.tables.report import Section


NO_RECORD = "ended before its record was written; its command goes on from the last state"
RUNNING = "running"  # as a list says it; a record is never of a run that is not at its end


@click.command()
@click.argument("reference", metavar="RUN")
@runs_option
@json_option
def show(reference: str, runs: Path | None, as_json: bool) -> None:
    """Everything about one run: scores, recipe with sources, training, cost, where it comes from and where it lies.

    RUN is an id, its beginning, or a path.   Example: bench show simcse-builtin-s42
    """
    from bench.base.errors import BenchError
    from bench.runs import RunsFolder
    from bench.runs.store import read_record

    store = RunsFolder(runs)
    if reference in store.without_record():
        raise BenchError(f"{reference} {NO_RECORD}", "run its command again")
    file = store.record_file(reference)
    here = RunsFolder(file.parent.parent)
    record = as_it_stands(read_record(file), here)
    if as_json:
        click.echo(json_text(record.to_json(), indent=1))
        return
    from rich.console import Console

    end = here.ended(record.run_id)
    _print(record, file.parent, Console(highlight=False, markup=False, emoji=False), end.hint if end else "")


def as_it_stands(record: RunRecord, store: RunsFolder) -> RunRecord:
    """The record of a run that may be worked on now, or whose process died: neither could be written into it."""
    if (end := store.ended(record.run_id)) is not None:
        return replace(record, status="interrupted", error=end.words)
    if record.status != "finished" and store.worked_on_by(record.run_id):
        return replace(record, status=RUNNING, error=None)
    return record


def _print(record: RunRecord, folder: Path, console: Console, hint: str = "") -> None:
    from rich.text import Text

    from bench.compare.formatting import visible
    from bench.show.tables import report

    def text(words: str, style: str = "") -> Text:
        return Text(visible(words, console.encoding), style)

    console.print(
        Text.assemble((record.run_id, "bold"), f"  {record.status}, {record.provenance.created[:16].replace('T', ' ')}")
    )
    console.print(text(report.what(record)))
    if record.error:
        console.print(Text.assemble(("error: ", "bold"), text(record.error)))
    if hint:
        console.print(Text.assemble(("try: ", "bold"), text(hint)))
    for section in (*report.score_sections(record), *report.shift_sections(record), *report.fact_sections(record, folder)):
        print_section(section, console)
    if record.provenance.command:
        console.print(Text("\nthe command", "bold"))
        console.print(
            Text(visible(record.provenance.command, console.encoding, limit=None)), soft_wrap=True
        )  # one line, so that it can be copied
    console.print(Text("\nits files", "bold"))
    console.print(Text(visible(str(folder), console.encoding, limit=None)), soft_wrap=True)
    for line in report.files(folder):
        console.print(Text("  " + visible(line, console.encoding)))


def print_section(section: Section, console: Console) -> None:
    """Its title, and its rows below it."""
    from rich.table import Table
    from rich.text import Text

    from bench.compare.formatting import visible

    console.print(Text.assemble("\n", (visible(section.title, console.encoding), "bold")))
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=bool(section.heading), header_style="dim")
    for i, heading in enumerate(section.heading or section.rows[0]):
        right = i in section.numbers
        grid.add_column(heading if section.heading else "", justify="right" if right else "left", no_wrap=right, overflow="fold")
    for row in section.rows:
        grid.add_row(*(Text(visible_indent(cell, console.encoding)) for cell in row))
    console.print(grid)
