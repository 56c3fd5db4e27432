"""Output of the verbs that do runs: missing data, failures, scores, the next command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import click

from bench.base.errors import RunFailed
from bench.base.grid import GridColumn, grid
from bench.base.printing import print_grid
from bench.base.terminal import warn
from bench.base.text import format_duration, list_names, with_variant
from bench.cli.errors import show_error
from bench.cli.options import print_json
from bench.compare.formatting import suite_scores
from bench.compare.statistics.rows import values_apart
from bench.method.budget import STEPS, budget_of
from bench.papers import PaperPart
from bench.records import RunRecord, RunsFolder
from bench.records.record import AVERAGE
from bench.run.needs import missing_sets
from bench.run.planned import PlannedRun
from bench.run.session import Session
from bench.score.suites import name_average


def print_missing_sets(runs: Sequence[PlannedRun]) -> int:
    """Print a line for every missing set, with how to get it.

    Returns the exit code: 1 if a set is missing, else 0.
    """
    missing = missing_sets(runs)
    for error in missing:
        show_error(error, label="missing")
    if not missing:
        return 0
    if any(run.task_data for run in runs):
        click.echo(
            "the other sets are scored; a suite with a missing set gets no average", err=True
        )
    return 1


def execute_and_report(
    session: Session, runs: Sequence[PlannedRun], *, as_json: bool = False
) -> tuple[list[RunRecord], int]:
    """Execute the runs and print each failure, and with ``as_json`` each record; of several runs
    also which ones failed.

    Returns the records, and the worst exit code of a run.
    """
    records = []
    failed = []
    worst = 0
    for end in session.run_all(runs):
        if end.record is not None:
            records.append(end.record)
            if as_json:
                print_json([end.record.to_json()])
        elif isinstance(end.error, RunFailed):
            worst = max(worst, end.error.exit_code)
            show_error(end.error)
            failed.append(end.run.run_id)
    if failed and len(runs) > 1:
        warn(f"{len(failed)} of {len(runs)} runs failed: {list_names(failed)}")
    return records, worst


def print_scores(
    records: Sequence[RunRecord], store: RunsFolder, part: PaperPart | None = None
) -> None:
    """Print the scores of each run, the place of the records, and the next command.

    ``part``: the printed table or figure that was run again.
    """
    rows = []
    differ = values_apart(records)
    for record in records:
        values = differ.get(record.run_id, "")
        for suite, average, tasks in suite_scores(record):
            rows.append((record.run_id, values, suite, average, ", ".join(tasks)))
    columns = (
        "run",
        GridColumn("values", wrap=16),
        "suite",
        GridColumn(AVERAGE, right=True),
        GridColumn("tasks", wrap=24),
    )
    print_grid(grid(columns, rows, notes=_named_averages(records)))
    if len(records) > 1:
        click.echo(f"\nrecords: {store.path}")
    else:
        click.echo(f"\nrecord: {store.folder(records[0].run_id)}")
    click.echo(f"next: {_command_after_runs(records, store, part)}")


FEW_STEPS = 100
"""A budget of at most so many steps measures the time of a step."""


def print_whole_times(runs: Sequence[PlannedRun], records: Sequence[RunRecord]) -> None:
    """Print for each row that was trained for a few steps how long its whole training would take.

    Seconds of steps are multiplied, without dev scores and the scores of suites.
    """
    by_id = {record.run_id: record for record in records}
    measured: dict[str, str] = {}
    for run in runs:
        record = by_id.get(run.run_id)
        budget = budget_of(run.recipe)
        if record is None or record.training is None or run.whole_steps is None:
            continue
        is_short = budget is not None and budget.unit == STEPS and budget.amount <= FEW_STEPS
        seconds = record.cost.train_seconds
        if not is_short or not seconds or run.whole_steps <= record.training.steps:
            continue
        of_step = seconds / record.training.steps
        name = with_variant(run.method, run.variant)
        measured.setdefault(
            f"{name} on {run.backbone.short}",
            f"its {run.whole_steps:,} steps would take {format_duration(of_step * run.whole_steps)}"
            f" here, at {of_step:.3g} s per step, without evaluations",
        )
    for row, line in measured.items():
        click.echo(f"{row}: {line}")


def _named_averages(records: Sequence[RunRecord]) -> list[str]:
    """Return a line for each average that has a name: the tasks that it is a mean of."""
    lines: dict[str, None] = {}
    for record in records:
        for score in record.scores:
            if score.task != AVERAGE:
                continue
            holds = name_average(score.suite, score.protocol)
            if holds:
                lines[f"{AVERAGE} of {score.protocol} is the mean of {holds}"] = None
    return list(lines)


def _command_after_runs(
    records: Sequence[RunRecord], store: RunsFolder, part: PaperPart | None
) -> str:
    """Return the next command of a person: a comparison of several rows or with a printed table,
    else the run's page.
    """
    rows = {(record.method, record.variant, record.backbone) for record in records}
    words = ["bench", "runs", records[-1].run_id]
    if len(rows) > 1:
        words = ["bench", "compare"]
    if part is not None and part.prints_scores:
        words = ["bench", "compare", "--paper", part.name]
    if str(store.path) != "runs":
        words += ["--runs", str(store.path)]
    return shlex.join(words)
