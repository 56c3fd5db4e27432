"""``bench run``: the verb."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import BenchError
from bench.cli import show_error
from bench.cli.dry_run import show_plan
from bench.cli.options import (
    print_grid,
)
from bench.cli.run_options import GroupedCommand, plan_of, run_options
from bench.compare.formatting import suite_scores
from bench.records import RunRecord, RunsFolder
from bench.records.record import AVERAGE
from bench.run import jobs
from bench.run.config import (
    ENGINES,
    Plan,
    write_plan,
)
from bench.run.execute import follow
from bench.run.plan import PlannedRun
from bench.session.elsewhere import run_elsewhere
from bench.session.needs import checked, plan_runs
from bench.session.progress import reporting
from bench.session.ranks import launch, rank_process
from bench.session.runs import run_all
from bench.show.grid import Column, grid

if TYPE_CHECKING:
    from bench.method.ranks import Ranks


@click.command(cls=GroupedCommand)
@click.argument("targets", metavar="[METHOD | FILE.py | RECIPE.toml]...", nargs=-1)
@run_options
def run(
    targets: tuple[str, ...],
    plan_file: Path | None,
    only: str | None,
    wait: bool,
    dry_run: bool,
    everything: bool,
    to: Path | None,
    as_json: bool,
    plain: bool,
    **options: Any,
) -> None:
    """Train methods and score them; one record per run in the runs folder.

    METHOD is a name of bench methods, with a variant as METHOD+VARIANT. FILE.py defines methods or suites. RECIPE.toml is a recipe, as
    bench search writes it. Give the command
    again to continue: finished runs are not repeated.

    \b
    Example:  bench run simcse --suite sts --data DIR --corpus wiki.txt.xz
              bench run my_loss.py simcse --suite check --corpus builtin
              bench run simcse --set temperature=0.03,0.05 --dry-run --to plan.toml
              bench run --plan plan.toml --on slurm:gpus=1,time=4:00:00
    """
    plan = plan_of(targets, plan_file, options)
    if only is not None and plan.runs[0].target.elsewhere:
        raise BenchError(
            "--only cannot be combined with --on slurm, ray or commands", "leave --only out"
        )
    if wait:
        plan = plan.replaced(wait_seconds=FOR_EVER)
    with rank_process(plan.runs[0].device) as (device, ranks):
        code = (
            look(plan, dry_run, everything, to, as_json)
            if dry_run or plan.runs[0].target.elsewhere
            else do(plan.replaced(device=device), only, ranks, plain or as_json, as_json)
        )
        raise click.exceptions.Exit(code)


def do(plan: Plan, only: str | None, ranks: Ranks | None, plain: bool, as_json: bool) -> int:
    """Do the runs of a plan in this process; returns the exit code."""
    plan = checked(plan, ranks=ranks)
    config = plan.runs[0]
    if only is not None:
        jobs.stop_with_parent()
    make = partial(plan_runs, plan)
    planned = (ranks.in_turn(make) if ranks else make()).runs
    if only is not None:
        planned = (jobs.only(planned, only),)
    if config.ranks > 1 and not ranks:
        return launch(sys.argv[1:], config.ranks)
    missing, store = show_missing(planned), RunsFolder(config.runs)
    if ranks and not ranks.lead:
        follow(planned, config, ranks)
        return 0
    with reporting(plain) as reporter:
        records, code = run_all(planned, store, config, reporter, as_json, ranks=ranks)
    if not as_json and records:
        show_result(records, store)
    return max(code, missing)


def look(plan: Plan, dry_run: bool, everything: bool, to: Path | None, as_json: bool) -> int:
    """Show a plan, write it, or hand its runs to workers; returns the exit code."""
    target = plan.runs[0].target
    if target.name in ENGINES:
        jobs.check(target, connect=not dry_run)
    typed, plan = plan, checked(plan, only_look=dry_run)
    config = plan.runs[0]
    whole = plan_runs(plan, only_look=dry_run)
    missing, store = show_missing(whole.runs), RunsFolder(config.runs)
    if to is not None:
        write_plan(to, typed)
        click.echo(f"next: bench run --plan {to}")
    elif config.target.elsewhere:
        return max(run_elsewhere(plan, whole.runs, store, dry_run), missing)
    else:
        show_plan(whole, store, config, as_json, everything=everything)
    return missing


# --- runs, one after the other ---


FOR_EVER = 1e9  # seconds


def show_missing(planned: Sequence[PlannedRun]) -> int:
    """Print a line for every missing set, with how to get it; returns the exit code, 1 if a set is missing."""
    missing = {error.message: error for run in planned for error in run.missing}
    for error in missing.values():
        show_error(error, label="missing")
    if missing:
        click.echo(
            "the other sets are scored; a suite with a missing set gets no average", err=True
        )
    return int(bool(missing))


def show_result(records: Sequence[RunRecord], store: RunsFolder) -> None:
    """Print the scores of each run, where the records are, and the next command."""
    print_grid(
        grid(
            ["run", "suite", Column(AVERAGE, right=True), Column("tasks", wrap=24)],
            [
                (record.run_id, suite, average, ", ".join(tasks))
                for record in records
                for suite, average, tasks in suite_scores(record)
            ],
        )
    )
    click.echo(
        f"\nrecords: {store.path}"
        if len(records) > 1
        else f"\nrecord: {store.folder(records[0].run_id)}"
    )
    click.echo(f"next: {next_command(records, store)}")


def next_command(records: Sequence[RunRecord], store: RunsFolder) -> str:
    """The command that a person gives next: a comparison if several rows are there, else the run's own page."""
    words = ["bench", "runs", records[-1].run_id]
    if len({(record.method, record.variant, record.backbone) for record in records}) > 1:
        words = ["bench", "compare"]
    if str(store.path) != "runs":
        words += ["--runs", str(store.path)]
    return shlex.join(words)
