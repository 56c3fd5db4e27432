"""``bench runs``: the runs of a folder, newest first, with what Slurm has queued."""

from __future__ import annotations

import glob
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from bench.base.grid import Grid, GridCell, GridColumn, grid
from bench.base.printing import print_grid
from bench.base.terminal import warn
from bench.base.text import comma_list, list_names
from bench.cli.one_run import RUNNING, creation_time, print_run, with_status_now
from bench.cli.options import (
    check_known_names,
    json_option,
    print_json,
    runs_option,
)
from bench.compare.formatting import heads
from bench.compare.statistics.rows import values_apart
from bench.records.record import AVERAGE, STATUSES, Cost, Provenance, RunRecord
from bench.records.store import RunsFolder
from bench.run.batch import JOBS_FOLDER, ClusterJob, EngineSilent
from bench.run.jobs import queued_jobs, submitted_batches

NEWEST = 30
"""Runs that are listed without --all."""

QUEUED = "queued"
"""The status of a run that Slurm has queued; no record stores it."""

NOT_STARTED = RunRecord(
    run_id="",
    fingerprint="",
    status=QUEUED,
    method="",
    setting="",
    backbone="",
    seed=None,
    recipe={},
    scores=(),
    cost=Cost(),
    provenance=Provenance(created=""),
)
"""The record of a queued run that has not started yet."""


@click.command()
@click.argument("name", metavar="[RUN]", required=False)
@runs_option
@click.option("--status", help="Only these: finished, failed, interrupted, running, queued.")
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
    """List the runs of a folder, newest first, with those that Slurm has queued.

    With RUN: its scores, recipe, training and cost.

    RUN is an id, its beginning, or a path.

    \b
    Example:  bench runs --status failed,interrupted
              bench runs simcse-builtin-s42 --all
    """
    store = RunsFolder(runs)
    engines_answer = True
    queue: Mapping[str, ClusterJob] = {}
    try:
        queue = queued_jobs(store)
    except EngineSilent as error:
        warn(error.message)
        engines_answer = False
    if name is not None:
        if as_json or not _print_job(name, store, queue):
            print_run(name, runs, everything=everything, as_json=as_json)
        return
    states, methods = comma_list(status), comma_list(method)
    check_known_names("status", states, (*STATUSES, RUNNING, QUEUED))
    records, damaged = store.records()
    started = {record.run_id for record in records}
    records += [replace(NOT_STARTED, run_id=run_id) for run_id in sorted(queue.keys() - started)]
    records = [with_status_now(record, store, queue) for record in records]
    chosen = [record for record in records if _is_chosen(record, states, methods)]
    chosen.sort(key=lambda record: (record.provenance.created, record.run_id), reverse=True)
    for problem in damaged:
        warn(f"left out, damaged: {problem.message}")
    if as_json:
        print_json(_run_object(record, queue) for record in chosen)
        return
    if engines_answer:
        _warn_of_lost(store, queue)
    if not chosen:
        missing = "no such run" if records else "no run"
        click.echo(f"{missing} in {store.path}; bench run makes them")
        return
    _print_list(chosen if everything else chosen[:NEWEST], len(chosen), queue)


def _print_list(shown: Sequence[RunRecord], total: int, queue: Mapping[str, ClusterJob]) -> None:
    """Print a line for each of these runs, how many of ``total`` are left out, and how to cancel
    the last queued one.
    """
    notes = []
    older = total - len(shown)
    if older:
        notes.append(f"and {older:,} older: bench runs --all, or --status, --method")
    print_grid(_run_grid(shown, notes))
    queued = [record.run_id for record in shown if record.run_id in queue]
    if queued:
        job = queue[queued[-1]]
        click.echo(f"cancel {queued[-1]}: {job.cancel}")
        click.echo(f"log: {shlex.quote(str(job.log))}")


def _is_chosen(record: RunRecord, states: Sequence[str], methods: Sequence[str]) -> bool:
    """Say if a record has one of the states and one of the methods; an empty list means any."""
    if states and record.status not in states:
        return False
    names = {record.method, record.method_name, record.label}
    return not methods or not names.isdisjoint(methods)


def _print_job(name: str, store: RunsFolder, queue: Mapping[str, ClusterJob]) -> bool:
    """Print the job of a run, or its last log; returns True if there is nothing else to show."""
    logs = sorted((store.path / JOBS_FOLDER).glob(f"*/logs/{glob.escape(name)}.log"))
    if name in queue:
        job = queue[name]
        click.echo(f"{job.state}: {job.describe()}")
        click.echo(f"cancel: {job.cancel}")
        logs = [job.log]
    if not logs:
        return False
    click.echo(f"log: {shlex.quote(str(logs[-1]))}")
    return name not in store.ids()


def _warn_of_lost(store: RunsFolder, queue: Mapping[str, ClusterJob]) -> None:
    """Warn of runs that were submitted, have not started, and are no longer queued."""
    submitted: set[str] = set()
    for runs in submitted_batches(store).values():
        submitted.update(runs)
    lost = submitted - {*store.ids(), *queue}
    if lost:
        warn(
            f"{list_names(sorted(lost), 1)}: submitted, never started, no longer queued; "
            "the same bench run submits again"
        )


def _run_object(record: RunRecord, queue: Mapping[str, ClusterJob]) -> dict[str, Any]:
    """Return an item of the list, for JSON."""
    averages = []
    for score in record.scores:
        if score.task == AVERAGE:
            fields = ("suite", "protocol", "value")
            averages.append({field: getattr(score, field) for field in fields})
    job = queue.get(record.run_id)
    job_object = None
    if job is not None:
        job_object = {
            "engine": "slurm",
            "name": job.name,
            "cancel": job.cancel,
            "log": str(job.log),
        }
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
        "job": job_object,
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
