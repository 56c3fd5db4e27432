"""``bench runs``: the runs of a folder, newest first, with what engines have queued or running."""

from __future__ import annotations

import glob
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import UnknownName
from bench.cli.columns import width
from bench.cli.options import comma_list, json_option, json_text, runs_option, warn
from bench.cli.show import NO_RECORD, RUNNING, as_it_stands, show

if TYPE_CHECKING:
    from bench.run.jobs import Job
    from bench.runs import RunRecord, RunsFolder


NEWEST = 30  # runs that are listed without --all
QUEUED = "queued"


@click.command()
@click.argument("name", required=False)
@runs_option
@click.option("--status", help="Only these: finished, failed, interrupted, running, queued.")
@click.option("--method", help="Only these methods; METHOD+VARIANT is only that variant.")
@click.option("--all", "everything", is_flag=True, help=f"All of them, not the newest {NEWEST}.")
@json_option
@click.pass_context
def runs(
    context: click.Context,
    name: str | None,
    runs: Path | None,
    status: str | None,
    method: str | None,
    everything: bool,
    as_json: bool,
) -> None:
    """The runs of the folder, newest first, with what Slurm and Ray have queued; with a NAME everything about one.

    Example: bench runs --status failed,interrupted
    """
    from bench.runs import RunsFolder
    from bench.runs.record import STATUSES

    store = RunsFolder(runs)
    answered = queued(store)
    queue = answered or {}
    if name is not None:
        if as_json or not print_job(name, store, queue):
            context.invoke(show, reference=name, runs=runs, as_json=as_json)
        return
    states = (*STATUSES, RUNNING, QUEUED)
    for state in comma_list(status):
        if state not in states:
            raise UnknownName("status", state, states)
    records, damaged = store.records()
    others = {*store.without_record(), *queue} - {record.run_id for record in records}
    records = [
        as_it_stands(run, store, queue)
        for run in (*records, *map(placeholder_record, sorted(others)))
    ]
    wanted = comma_list(status) or states
    chosen = [
        r
        for r in records
        if r.status in wanted
        and (not method or {r.method, r.method_name, r.label} & {*comma_list(method)})
    ]
    chosen.sort(key=lambda record: (record.provenance.created, record.run_id), reverse=True)
    for error in damaged:
        warn(f"left out, damaged: {error.message}")
    if as_json:
        for record in chosen:
            click.echo(json_text(summary(record, queue)))
        return
    if answered is not None:
        warn_of_lost(store, queue)
    if not chosen:
        click.echo(f"no {'such run' if records else 'run'} in {store.path}; bench run makes them")
        return
    shown = chosen if everything else chosen[:NEWEST]
    _print(shown)
    if len(shown) < len(chosen):
        click.echo(
            f"and {len(chosen) - len(shown):,} older: bench runs --all, or --status, --method"
        )
    if listed := [record.run_id for record in shown if record.run_id in queue]:
        _, job = queue[listed[-1]]
        click.echo(f"cancel {listed[-1]}: {job.cancel}\nlog: {shlex.quote(str(job.log))}")


def queued(store: RunsFolder) -> dict[str, tuple[str, Job]] | None:
    """Run id -> (engine, job); None, and a warning, where an engine does not answer."""
    from bench.run import jobs

    try:
        return jobs.queue(store)
    except jobs.EngineSilent as error:
        warn(error.message)
        return None


def print_job(name: str, store: RunsFolder, queue: Mapping[str, tuple[str, Job]]) -> bool:
    """What an engine has of a run, or its last log; returns whether there is nothing else to show of it."""
    from bench.run.jobs import FOLDER

    logs = sorted((store.path / FOLDER).glob(f"*/logs/{glob.escape(name)}.log"))
    if name in queue:
        engine, job = queue[name]
        click.echo(f"{job.state}: {job.describe(engine)}\ncancel: {job.cancel}")
        logs = [job.log]
    if logs:
        click.echo(f"log: {shlex.quote(str(logs[-1]))}")
    return bool(logs) and name not in store.ids()


def warn_of_lost(store: RunsFolder, queue: Mapping[str, tuple[str, Job]]) -> None:
    """One line on runs that were submitted, never began, and are no longer queued."""
    from bench.run import jobs

    submitted = {
        run_id
        for engine in jobs.ENGINES
        for runs in jobs.batches(store, engine).values()
        for run_id in runs
    }
    if lost := sorted(submitted - {*store.ids(), *queue}):
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        warn(
            f"{lost[0]}{more}: submitted, never begun, and no longer queued; the same bench run submits again"
        )


def placeholder_record(run_id: str) -> RunRecord:
    """In place of a record: all that is known of a run that has a training state and no record."""
    from bench.runs.record import Cost, Provenance, RunRecord

    return RunRecord(
        run_id=run_id,
        fingerprint="",
        status="interrupted",
        method="",
        setting="",
        backbone="",
        seed=None,
        recipe={},
        scores=(),
        cost=Cost(),
        provenance=Provenance(created=""),
        error=NO_RECORD,
    )


def summary(record: RunRecord, queue: Mapping[str, tuple[str, Job]]) -> dict[str, Any]:
    """A line of the list, as JSON."""
    engine, job = queue.get(record.run_id, (None, None))
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
            if s.task == "Avg."
        ],
        "error": record.error,
        "job": job
        and {"engine": engine, "name": job.name, "cancel": job.cancel, "log": str(job.log)},
    }


LONG_ID = 48  # characters; a longer id takes from the room of its own line alone
WIDE = 100  # columns of a terminal from which on every status and the time of day are shown


def _print(records: list[RunRecord]) -> None:
    """One line a run, the id whole, so that it can be copied: what is most useful of the rest as far as the terminal is wide."""
    columns = width()
    wide = columns >= WIDE
    ids = max(
        len("run"), *(len(record.run_id) for record in records if len(record.run_id) <= LONG_ID), 0
    )
    states = max(len(record.status) for record in records) if wide else 0
    when = 16 if wide else 10
    left = columns - ids - 2 - (states + 2 if wide else 0)
    dated = left - when - 2 >= 16  # else the scores need the room
    room = left - when - 2 if dated else left

    def line(name: str, status: str, result: str, date: str) -> str:
        cells = [
            name.ljust(ids),
            *([status.ljust(states)] if wide else []),
            result.ljust(room),
            *([date] if dated else []),
        ]
        return "  ".join(cells).rstrip()

    click.secho(line("run", "status", "result", "when"), dim=True)
    for record in records:
        date = record.provenance.created[:when].replace("T", " ")
        name, over = record.run_id, max(0, len(record.run_id) - ids)
        result = _result(record, with_status=not wide, room=max(room - over, 0))
        shown = line(
            name,
            record.status,
            result + " " * max(room - over - len(result), 0) if over else result,
            date,
        )
        click.secho(shown if len(shown) <= columns else name, bold=record.status != "finished")


def _result(record: RunRecord, with_status: bool, room: int) -> str:
    """Each suite's average, as many as there is room for, and how many more there are; or how the run ended."""
    from bench.compare.formatting import visible
    from bench.show.tables.report import heads

    parts = heads(record).split(", ")
    encoding = sys.stdout.encoding or "utf-8"
    if record.status != "finished":
        words = record.error or heads(record)
        text = visible(
            f"{record.status}{': ' if words else ''}{words}" if with_status else words, encoding
        )
        if len(text) <= room:
            return text
        return text[: max(room - 3, 0)].rpartition(" ")[0].rstrip(":,; ") + "..."
    for count in range(len(parts), 0, -1):
        text = visible(
            ", ".join(parts[:count])
            + (f", {len(parts) - count} more" if count < len(parts) else ""),
            encoding,
        )
        if len(text) <= room:
            return text
    return ""
