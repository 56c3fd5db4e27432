"""``bench runs``: what is kept in the runs folder, newest first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.cli.filters import json_text, say
from bench.cli.options import comma_list, json_option, runs_option
from bench.errors import UnknownName

if TYPE_CHECKING:
    from bench.runs import RunRecord, RunsFolder

RUNNING = "running"  # as a list says it; a record is never of a run that is not at its end
NO_RECORD = "ended before its record was written; its command goes on from the last state"


@click.command()
@click.argument("name", required=False)
@runs_option
@click.option("--status", help="Only these: finished, failed, interrupted, running.")
@click.option("--method", help="Only these methods.")
@json_option
@click.pass_context
def runs(
    context: click.Context, name: str | None, runs: Path | None, status: str | None, method: str | None, as_json: bool
) -> None:
    """The runs that are kept, newest first; with a NAME everything about one.

    Example: bench runs --status failed,interrupted
    """
    from bench.runs import RunsFolder
    from bench.runs.record import STATUSES

    if name is not None:
        from bench.cli.show import show

        context.invoke(show, reference=name, runs=runs, as_json=as_json)
        return
    for one in comma_list(status):
        if one not in (*STATUSES, RUNNING):
            raise UnknownName("status", one, (*STATUSES, RUNNING))
    store = RunsFolder(runs)
    records, damaged = store.records()
    records = [as_it_stands(one, store) for one in (*records, *map(unrecorded, store.without_record()))]
    wanted = comma_list(status) or (*STATUSES, RUNNING)
    chosen = [r for r in records if r.status in wanted and (not method or r.method in comma_list(method))]
    chosen.sort(key=lambda record: (record.provenance.created, record.run_id), reverse=True)
    for error in damaged:
        say(f"left out, damaged: {error.message}")
    if as_json:
        for record in chosen:
            click.echo(json_text(summary(record)))
        return
    if not chosen:
        click.echo(f"no {'such run' if records else 'run'} in {store.path}; bench run makes them")
        return
    _print(chosen)
    for record in chosen:
        if (end := store.ended(record.run_id)) is not None:
            say(f"{record.run_id} {end.words}; try: {end.hint}")


def as_it_stands(record: RunRecord, store: RunsFolder) -> RunRecord:
    """The record of a run that may be worked on now, or whose process died: neither could be written into it."""
    if (end := store.ended(record.run_id)) is not None:
        return replace(record, status="interrupted", error=end.words)
    if record.status != "finished" and store.worked_on_by(record.run_id):
        return replace(record, status=RUNNING, error=None)
    return record


def unrecorded(run_id: str) -> RunRecord:
    """In place of a record: all that is known of a run that has a training state and no record."""
    from bench.runs.record import Provenance, RunRecord

    return RunRecord(run_id=run_id, fingerprint="", status="interrupted", method="", setting="", backbone="", seed=None,
                     provenance=Provenance(created=""), error=NO_RECORD)  # fmt: skip


def summary(record: RunRecord) -> dict[str, Any]:
    """What the list says of a run, as JSON."""
    return {
        "run_id": record.run_id, "status": record.status, "created": record.provenance.created, "method": record.method,
        "variant": record.variant, "setting": record.setting, "backbone": record.backbone, "seed": record.seed,
        "averages": [{"suite": s.suite, "protocol": s.protocol, "text": s.text, "value": s.value}
                     for s in record.scores if s.task == "Avg."],
        "error": record.error,
    }  # fmt: skip


def _print(records: list[RunRecord]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from bench.tables.report import heads
    from bench.tables.words import visible

    console = Console(highlight=False, markup=False, emoji=False)
    wide = console.width >= 100
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    grid.add_column("run", no_wrap=True, min_width=min(max(len(r.run_id) for r in records), 60))  # for copying: never cut
    for heading in ("status", "Avg.", "when"):
        grid.add_column(heading, no_wrap=heading != "Avg.", overflow="fold")
    for record in records:
        what = heads(record) if record.status == "finished" else record.error or heads(record)
        when = record.provenance.created[: 16 if wide else 10].replace("T", " ")
        grid.add_row(Text(record.run_id), Text(record.status, "" if record.status == "finished" else "bold"),
                     Text(visible(what, console.encoding)), Text(when, "dim"))  # fmt: skip
    console.print(grid)
