"""``bench runs [RUN]``: the runs of a folder, newest first, with what engines have queued; with a name, everything about one."""

from __future__ import annotations

import glob
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from bench.base.terminal import warn
from bench.base.text import list_names, value_text, visible
from bench.board.repeat import repeat
from bench.cli.free import free_space
from bench.cli.options import (
    check_known_names,
    json_option,
    json_text,
    print_columns,
    print_facts,
    print_grid,
    print_json,
    runs_option,
    say,
)
from bench.compare.formatting import heads, suite_scores
from bench.records.record import AVERAGE, STATUSES, Cost, Provenance, RunRecord
from bench.records.store import RunsFolder, read_record
from bench.run import jobs
from bench.run.config import ENGINES
from bench.session.values import comma_list
from bench.show.grid import Cell, Column, Grid, grid
from bench.show.tables import report

NEWEST = 30  # runs that are listed without --all
QUEUED, RUNNING = "queued", "running"  # states of a run now; no record stores them
MAIN = ("batch_size", "learning_rate", "epochs", "max_steps", "max_seq_length", "temperature")
"""Recipe values on the first screen, with those that the command set."""
COSTS = ("trainable parameters", "trainable parts", "train time", "peak memory", "device")
"""Costs on the first screen."""
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
@click.option(
    "--free",
    is_flag=True,
    help="List what runs take on the disk, and remove stored vectors after a question.",
)
@click.option("--yes", is_flag=True, help="With --free: remove them without a question.")
@json_option
def runs(
    name: str | None,
    runs: Path | None,
    status: str | None,
    method: str | None,
    everything: bool,
    free: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """The runs of a folder, newest first, with what Slurm and Ray have queued; with RUN its scores, recipe, training and cost.

    RUN is an id, its beginning, or a path.

    \b
    Example:  bench runs --status failed,interrupted
              bench runs simcse-builtin-s42 --all
    """
    store = RunsFolder(runs)
    if free:
        free_space(store, yes)
        return
    try:
        queue, silent = jobs.queue(store), False
    except jobs.EngineSilent as error:
        warn(error.message)
        queue, silent = {}, True
    if name is not None:
        if as_json or not print_job(name, store, queue):
            show(name, runs, everything=everything, as_json=as_json)
        return
    states, methods = comma_list(status), {*comma_list(method)}
    check_known_names("status", states, (*STATUSES, RUNNING, QUEUED))
    records, damaged = store.records()
    records += [
        replace(NOT_STARTED, run_id=run_id)
        for run_id in sorted(queue.keys() - {record.run_id for record in records})
    ]
    chosen = sorted(
        (
            record
            for record in (as_it_stands(record, store, queue) for record in records)
            if (not states or record.status in states)
            and (not methods or methods & {record.method, record.method_name, record.label})
        ),
        key=lambda record: (record.provenance.created, record.run_id),
        reverse=True,
    )
    for problem in damaged:
        warn(f"left out, damaged: {problem.message}")
    if as_json:
        print_json(summary(record, queue) for record in chosen)
        return
    if not silent:
        warn_of_lost(store, queue)
    if not chosen:
        click.echo(f"no {'such run' if records else 'run'} in {store.path}; bench run makes them")
        return
    shown = chosen if everything else chosen[:NEWEST]
    older = len(chosen) - len(shown)
    note = f"and {older:,} older: bench runs --all, or --status, --method"
    print_grid(run_grid(shown, [note] if older else []))
    for run_id in [record.run_id for record in shown if record.run_id in queue][-1:]:
        job = queue[run_id]
        click.echo(f"cancel {run_id}: {job.cancel}\nlog: {shlex.quote(str(job.log))}")


def print_job(name: str, store: RunsFolder, queue: Mapping[str, jobs.Job]) -> bool:
    """Print the job of a run, or its last log; returns whether there is nothing else to show."""
    logs = sorted((store.path / jobs.FOLDER).glob(f"*/logs/{glob.escape(name)}.log"))
    if name in queue:
        job = queue[name]
        click.echo(f"{job.state}: {job.describe()}\ncancel: {job.cancel}")
        logs = [job.log]
    if logs:
        click.echo(f"log: {shlex.quote(str(logs[-1]))}")
    return bool(logs) and name not in store.ids()


def warn_of_lost(store: RunsFolder, queue: Mapping[str, jobs.Job]) -> None:
    """Warn of runs that were submitted, have not started, and are no longer queued."""
    batches = [runs for engine in ENGINES for runs in jobs.batches(store, engine).values()]
    if lost := set().union(*batches) - {*store.ids(), *queue}:
        warn(
            f"{list_names(sorted(lost), 1)}: submitted, never started, no longer queued; "
            "the same bench run submits again"
        )


def summary(record: RunRecord, queue: Mapping[str, jobs.Job]) -> dict[str, Any]:
    """An item of the list, for JSON."""
    job = queue.get(record.run_id)
    return {
        "run_id": record.run_id,
        "status": record.status,
        "created": record.provenance.created,
        "method": record.method,
        "variant": record.variant,
        "setting": record.setting,
        "backbone": record.backbone,
        "seed": record.seed,
        "averages": [
            {"suite": s.suite, "protocol": s.protocol, "text": s.text, "value": s.value}
            for s in record.scores
            if s.task == AVERAGE
        ],
        "error": record.error,
        "job": job
        and {"engine": job.engine, "name": job.name, "cancel": job.cancel, "log": str(job.log)},
    }


def when(record: RunRecord) -> str:
    return record.provenance.created[:16].replace("T", " ")


def run_grid(records: Sequence[RunRecord], notes: Sequence[str]) -> Grid:
    """A line for each run: each suite's average, or how the run ended."""
    rows = []
    for record in records:
        finished = record.status == "finished"
        result = heads(record) if finished else record.error or heads(record)
        texts = (record.run_id, record.status, result, when(record))
        rows.append([Cell(text=text, emphasis="" if finished else "strong") for text in texts])
    return grid(
        ("run", "status", Column("result", wrap=16), Column("when", drop=1)), rows, notes=notes
    )


# --- one run ---


def show(reference: str, runs: Path | None, *, everything: bool, as_json: bool) -> None:
    """A screenful about one run, or all its tables. ``runs`` is the folder, if one was given."""
    file = RunsFolder(runs).record_file(reference)
    record = as_it_stands(read_record(file), RunsFolder(file.parent.parent))
    if as_json:
        click.echo(json_text(record.to_json(), indent=1))
        return
    say(f"{record.run_id}  {record.status}, {when(record)}")
    say(report.what(record))
    if record.error:
        say(f"{'not scored' if record.status == 'finished' else 'error'}: {record.error}")
    if everything:
        print_tables(record, file.parent)
    else:
        print_summary(record, file.parent, f" --runs {shlex.quote(str(runs))}" if runs else "")


def as_it_stands(
    record: RunRecord, store: RunsFolder, queue: Mapping[str, jobs.Job] | None = None
) -> RunRecord:
    """The record with the status that the run has now: queued or running, which no record stores."""
    if queue and record.run_id in queue:
        job = queue[record.run_id]
        return replace(record, status=job.state, error=job.describe())
    return (
        replace(record, status=RUNNING, error=None)
        if record.status != "finished" and store.worked_on_by(record.run_id)
        else record
    )


def print_summary(record: RunRecord, folder: Path, runs: str) -> None:
    """At most 40 lines, even for a run of all suites. ``runs``: the option --runs, if it was given."""
    click.echo()
    print_columns([(name, value, ", ".join(tasks)) for name, value, tasks in suite_scores(record)])
    values = [
        f"{key} {value_text(recipe_value.value)}"
        for key, recipe_value in record.recipe.items()
        if recipe_value.value is not None and (key in MAIN or recipe_value.source.startswith("--"))
    ]
    click.echo()
    print_facts(
        [
            ("model", report.model(record)),
            ("recipe", ", ".join(values)),
            *report.training(record, folder),
            ("cost", ", ".join(" ".join(cost) for cost in report.cost(record) if cost[0] in COSTS)),
            ("folder", str(folder)),
        ]
    )
    click.echo()
    click.echo(visible(repeat([record]), limit=None))
    say(f"everything: bench runs {record.run_id}{runs} --all")


def print_tables(record: RunRecord, folder: Path) -> None:
    """All numbers of each task, the recipe with its sources, overlap of the corpus with the test data, cost, provenance and files."""
    for table in (
        *report.score_grids(record),
        report.recipe(record),
        report.overlap_grid(record.provenance.corpus.overlap),
        report.facts_grid("training", report.training(record, folder)),
        report.facts_grid("cost", report.cost(record)),
        report.facts_grid("provenance", report.provenance(record)),
    ):
        if table.rows:
            print_grid(table, blank=True)
