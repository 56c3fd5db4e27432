"""Planned runs, one after the other, and what the user reads of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from bench.base.errors import OutOfMemory, RunFailed, RunLocked
from bench.cli import show_error
from bench.cli.columns import print_grid
from bench.cli.options import json_text
from bench.method import Value
from bench.run.executors.local import execute
from bench.run.plan import with_value
from bench.show.tables.report import heads, result_grids

if TYPE_CHECKING:
    from bench.cli.progress import RunReporter
    from bench.method.ranks import Ranks
    from bench.run.config import RunConfig
    from bench.run.plan import PlannedRun
    from bench.runs import RunRecord, RunsFolder


FOR_EVER = 1e9  # seconds


def show_missing(planned: Sequence[PlannedRun]) -> int:
    """One line for every set that is not here, and what gets it; returns the exit code, 1 where there is one."""
    missing = {error.message: error for run in planned for error in run.missing}
    for error in missing.values():
        show_error(error, label="missing")
    if missing:
        click.echo("the other sets go on; a suite that lacks one gets no average", err=True)
    return int(bool(missing))


def run_all(
    planned: Sequence[PlannedRun],
    store: RunsFolder,
    config: RunConfig,
    reporter: RunReporter,
    as_json: bool,
    *,
    shared: bool = False,
    ranks: Ranks | None = None,
) -> tuple[list[RunRecord], int]:
    """Every planned run in turn; one that fails is reported, and the others go on. Returns the records and the exit code.

    ``shared``: what another process works on is left until the others are done, and then waited for, so that several processes with the
    same runs do each of them once.
    """
    records: list[RunRecord] = []
    worst = 0
    noted: set[str] = set()
    later: list[PlannedRun] = []
    reporter.plan(planned)
    for i, planned_run in enumerate(planned, 1):
        reporter.start(planned_run.run_id, i)
        for note in planned_run.notes:
            if note not in noted:
                reporter.note(note)
        noted.update(planned_run.notes)
        try:
            record, worked = execute_with_less_memory(planned_run, store, config, reporter, ranks)
        except (RunFailed, RunLocked) as error:
            if shared and isinstance(error, RunLocked):
                reporter.note("another process works on it: the others first")
                later.append(planned_run)
                continue
            worst = max(worst, error.exit_code)
            show_error(error)
            if ranks and ranks.broken:
                if i < len(planned):
                    click.echo(f"{len(planned) - i} more runs were not started", err=True)
                break
            continue
        records.append(record)
        reporter.done(outcome(record, worked))
        if as_json:
            click.echo(json_text(record.to_json()))
    if later:
        waited, code = run_all(
            later,
            store,
            dataclasses.replace(config, wait_seconds=FOR_EVER),
            reporter,
            as_json,
            ranks=ranks,
        )
        return [*records, *waited], max(worst, code)
    return records, worst


def execute_with_less_memory(
    run: PlannedRun,
    store: RunsFolder,
    config: RunConfig,
    reporter: RunReporter,
    ranks: Ranks | None,
) -> tuple[RunRecord, bool]:
    """Execute a run; with ``--chunk auto``, one whose batch does not fit and cannot be cut becomes a run with a smaller batch."""
    try:
        return execute(run, store, config, reporter, ranks)
    except OutOfMemory:
        size, can_be_cut = run.recipe["batch_size"], run.plugin.cls.is_split()
        if config.chunk != "auto" or can_be_cut or size == 1 or ranks is not None:
            raise
    half = Value(size // 2, "--chunk auto", f"{size} did not fit into memory")
    smaller = with_value(run, "batch_size", half)
    reporter.note(
        f"batch_size {size} does not fit: {size // 2} is tried, which is another recipe (fewer negatives)"
    )
    reporter.start(smaller.run_id)
    return execute_with_less_memory(smaller, store, config, reporter, ranks)


def outcome(record: RunRecord, worked: bool) -> str:
    """ "done: sts 76.25; STS-B dev 82.50 at step 875" """
    dev = ""
    if record.training and record.training.dev_score is not None:
        dev = f"; {record.training.dev_task} {record.training.dev_score:.2f} at step {record.training.best_step}"
    return f"{'done' if worked else 'was done already, nothing repeated'}: {heads(record)}{dev}"


def show_result(records: Sequence[RunRecord], store: RunsFolder, names: Sequence[str]) -> None:
    """What these suites gave, a table for each; where the records are; and the next command."""
    for table in result_grids(records, {name.partition(":")[0] for name in names}):
        print_grid(table)
        click.echo()
    where = store.folder(records[0].run_id) if len(records) == 1 else store.path
    click.echo(f"{'records' if len(records) > 1 else 'record'}: {where}")
    folder = f" --runs {store.path}" if str(store.path) != "runs" else ""
    click.echo(f"next: bench runs {records[-1].run_id}{folder}")
