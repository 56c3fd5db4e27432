"""Planned runs, one after the other, and the scores that they end with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from bench.base.devices import device_line
from bench.base.errors import OutOfMemory, RunFailed, RunLocked
from bench.cli import show_error
from bench.cli.columns import print_grid
from bench.cli.options import json_text
from bench.compare.formatting import heads, suite_scores
from bench.method import Value
from bench.run.execute import execute
from bench.run.plan import with_value
from bench.runs.record import AVERAGE
from bench.show.grid import Column, grid

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
    ranks: Ranks | None = None,
) -> tuple[list[RunRecord], int]:
    """Every planned run in turn; one that fails is reported, and the others go on. Returns the records and the exit code.

    With ``config.wait_seconds`` a run that another process works on comes after the others, and is then waited for: several processes
    with the same runs do each of them once. Raises DeviceLost, and RunFailed where the ranks of a training no longer agree: then this
    process can do no other run.
    """
    records: list[RunRecord] = []
    worst, noted = 0, set[str]()
    turns = list(enumerate(planned, 1))
    reporter.plan(planned)
    for wait in (0.0, config.wait_seconds):
        locked = []
        for number, run in turns:
            reporter.start(run.run_id, number)
            reporter.note(device_line(config.device, run.precision))
            for note in dict.fromkeys(run.notes):
                if note not in noted:
                    reporter.note(note)
            noted.update(run.notes)
            try:
                patient = replace(config, wait_seconds=wait)
                record, worked = execute_with_less_memory(run, store, patient, reporter, ranks)
            except (RunFailed, RunLocked) as error:
                if ranks and ranks.broken:
                    raise
                if isinstance(error, RunLocked) and wait < config.wait_seconds:
                    locked.append((number, run))
                    continue
                worst = max(worst, error.exit_code)
                show_error(error)
                continue
            records.append(record)
            reporter.done(outcome(record, worked))
            if as_json:
                click.echo(json_text(record.to_json()))
        turns = locked
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


def show_result(records: Sequence[RunRecord], store: RunsFolder) -> None:
    """The scores of each run; where the records are; and the next command."""
    rows = [
        (record.run_id, suite, average, ", ".join(tasks))
        for record in records
        for suite, average, tasks in suite_scores(record)
    ]
    print_grid(grid(["run", "suite", Column(AVERAGE, right=True), Column("tasks", wrap=24)], rows))
    click.echo()
    where = store.folder(records[0].run_id) if len(records) == 1 else store.path
    click.echo(f"{'records' if len(records) > 1 else 'record'}: {where}")
    folder = f" --runs {store.path}" if str(store.path) != "runs" else ""
    click.echo(f"next: bench runs {records[-1].run_id}{folder}")
