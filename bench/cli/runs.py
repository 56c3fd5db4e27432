"""``bench runs``: the runs of a folder, newest first."""

from __future__ import annotations

import glob
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from bench.base.errors import BenchError
from bench.base.grid import Grid, GridCell, GridColumn, grid
from bench.base.printing import print_grid
from bench.base.terminal import warn
from bench.base.text import comma_list
from bench.cli.one_run import RUNNING, creation_time, print_run, with_status_now
from bench.cli.options import (
    check_known_names,
    json_option,
    print_json,
    runs_option,
)
from bench.compare.formatting import heads
from bench.compare.statistics.rows import values_apart
from bench.records.record import AVERAGE, STATUSES, RunRecord
from bench.records.store import RunsFolder, runs_of_version
from bench.run.workers import JOBS_FOLDER

NEWEST = 30
"""Runs that are listed without --all."""


@click.command()
@click.argument("name", metavar="[RUN]", required=False)
@runs_option
@click.option("--status", help="Only these: finished, failed, interrupted, running.")
@click.option("--method", help="Only these methods; METHOD+VARIANT is only that variant.")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help=f"All runs, not the newest {NEWEST}; with RUN everything about it.",
)
@json_option
def runs(
    name: str | None,
    runs: Path | None,
    status: str | None,
    method: str | None,
    everything: bool,
    as_json: bool,
) -> None:
    """List the runs of a folder, newest first.

    With RUN: its scores, recipe, training and cost.

    RUN is an id, its beginning, or a path.

    \b
    Example:  bench runs --status failed,interrupted
              bench runs simcse-builtin-s42 --all
    """
    store = RunsFolder(runs)
    if name is not None:
        for option, text in (("--status", status), ("--method", method)):
            if text is not None:
                raise BenchError(f"{option} chooses from the list of runs", f"leave {option} out")
        if as_json or not _print_log(name, store):
            print_run(name, runs, everything=everything, as_json=as_json)
        return
    states, methods = comma_list(status), comma_list(method)
    check_known_names("status", states, (*STATUSES, RUNNING))
    records, damaged = store.records()
    records = [with_status_now(record, store) for record in records]
    chosen = [record for record in records if _is_chosen(record, states, methods)]
    chosen.sort(key=lambda record: (record.provenance.created, record.run_id), reverse=True)
    for problem in damaged:
        warn(f"left out, damaged: {problem.message}")
    if as_json:
        print_json(map(_run_object, chosen))
        return
    if not chosen:
        missing = "no such run" if records else "no run"
        other = runs_of_version(store.path) or "bench run makes them"
        click.echo(f"{missing} in {store.path}; {other}")
        return
    _print_list(chosen if everything else chosen[:NEWEST], len(chosen))


def _print_list(shown: Sequence[RunRecord], total: int) -> None:
    """Print a line for each of these runs, and how many of ``total`` are left out."""
    notes = []
    older = total - len(shown)
    if older:
        notes.append(f"and {older:,} older: bench runs --all, or --status, --method")
    print_grid(_run_grid(shown, notes))


def _is_chosen(record: RunRecord, states: Sequence[str], methods: Sequence[str]) -> bool:
    """Say if a record has one of the states and one of the methods; an empty list means any."""
    if states and record.status not in states:
        return False
    names = {record.method, record.method_name, record.label}
    return not methods or not names.isdisjoint(methods)


def _print_log(name: str, store: RunsFolder) -> bool:
    """Print the last log of a run's workers; returns True if there is nothing else to show."""
    logs = list((store.path / JOBS_FOLDER).glob(f"*/logs/{glob.escape(name)}.log"))
    if not logs:
        return False
    last = max(logs, key=lambda log: log.stat().st_mtime)
    click.echo(f"log: {shlex.quote(str(last))}")
    return name not in store.ids()


def _run_object(record: RunRecord) -> dict[str, Any]:
    """Return an item of the list, for JSON."""
    averages = []
    for score in record.scores:
        if score.task == AVERAGE:
            fields = ("suite", "protocol", "value")
            averages.append({field: getattr(score, field) for field in fields})
    return {
        "run_id": record.run_id,
        "status": record.status,
        "created": record.provenance.created,
        "method": record.method,
        "variant": record.variant,
        "setting": record.setting,
        "backbone": record.backbone,
        "seed": record.seed,
        "averages": averages,
        "error": record.error,
    }


def _run_grid(records: Sequence[RunRecord], notes: Sequence[str]) -> Grid:
    """Lay out a line for each run: what sets it apart, each suite's average, or how it ended."""
    rows = []
    differ = values_apart([record for record in records if record.recipe])
    for record in records:
        result, emphasis = heads(record), ""
        if record.status != "finished":
            result, emphasis = record.error or result, "strong"
        values = differ.get(record.run_id, "")
        texts = (record.run_id, record.status, values, result, creation_time(record))
        rows.append([GridCell(text=text, emphasis=emphasis) for text in texts])
    columns = (
        "run",
        "status",
        GridColumn("values", wrap=12),
        GridColumn("result", wrap=20),
        GridColumn("when", drop=1),
    )
    return grid(columns, rows, notes=notes)
