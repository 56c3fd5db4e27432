"""``bench run``: runs here, in several processes, or handed to Slurm."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from bench.base.errors import BenchError
from bench.base.terminal import warn
from bench.base.text import plural
from bench.cli.dry_run import print_plan
from bench.cli.errors import show_error
from bench.cli.options import print_json
from bench.cli.plan_facts import plan_sentence
from bench.cli.run_options import GroupedCommand, plan_of, run_options
from bench.cli.run_output import (
    execute_and_report,
    print_missing_sets,
    print_scores,
    print_whole_times,
)
from bench.papers import PaperPart, find_part
from bench.run.local import run_locally
from bench.run.plan_toml import Plan
from bench.run.planned import PlannedRun
from bench.run.progress import terminal_reporter
from bench.run.ranks import follow_first_rank, launch, rank_process
from bench.run.session import FOR_EVER, Session
from bench.run.slurm import check_slurm, preview_jobs, submit_jobs
from bench.run.target import parse_target
from bench.run.workers import find_planned, stop_with_parent, write_commands


@click.command(cls=GroupedCommand)
@click.argument("targets", metavar="[METHOD | FILE.py | RECIPE.toml]...", nargs=-1)
@run_options
def run(
    targets: tuple[str, ...],
    plan_file: Path | None,
    paper: str | None,
    only: str | None,
    wait: bool,
    dry_run: bool,
    everything: bool,
    to: Path | None,
    as_json: bool,
    plain: bool,
    verbose: bool,
    **options: Any,
) -> None:
    """Train methods and score them; one record per run in the runs folder.

    METHOD is a name of bench methods, with a variant as METHOD+VARIANT. FILE.py defines methods or
    suites. RECIPE.toml is a recipe, as bench search writes it. Give the command again to continue:
    finished runs are not repeated.

    \b
    Example:  bench run simcse --suite sts --data DIR --corpus wiki.txt.xz
              bench run my_loss.py simcse --suite check --corpus builtin
              bench run simcse --set temperature=0.03,0.05 --dry-run --to plan.toml
              bench run --plan plan.toml --on slurm:gpus=1,time=4:00:00
    """
    plan = plan_of(options, targets, plan_file, paper)
    with plan.terms():
        target = parse_target(plan.runs[0].on)
    if not dry_run:
        for option, is_given in (("--to", to is not None), ("--all", everything)):
            if is_given:
                raise BenchError(f"{option} needs --dry-run", "--dry-run shows or writes the plan")
    if target.elsewhere and as_json:
        raise BenchError(f"--json cannot be combined with --on {target.name}", "leave --json out")
    if target.elsewhere or target.name == "local":
        for option, is_given in (("--only", only is not None), ("--fresh", plan.runs[0].fresh)):
            if is_given:
                raise BenchError(
                    f"{option} cannot be combined with --on local, slurm or commands",
                    f"leave {option} out",
                )
    if wait:
        plan = plan.with_values(wait_seconds=FOR_EVER)
    part = find_part(paper) if paper else None
    with rank_process(plan.runs[0].device, show_error) as process:
        if dry_run or target.elsewhere:
            code = _run_later(
                plan, part, dry_run=dry_run, everything=everything, to=to, as_json=as_json
            )
        else:
            plan = plan.with_values(device=process.device)
            reporter = terminal_reporter(plain or as_json, verbose)
            session = Session.begin(plan, reporter, ranks=process.ranks)
            if target.name == "local":
                code = _run_locally(session, as_json, part)
            else:
                code = _run_here(session, only, as_json, part)
        process.exit_code = code
    raise click.exceptions.Exit(code)


def _run_here(session: Session, only: str | None, as_json: bool, part: PaperPart | None) -> int:
    """Do the runs in this process, or start the processes that do; returns the exit code.

    ``only``: the run that this worker does.
    """
    if only is not None:
        stop_with_parent()
    runs = session.plan_runs().runs
    if only is not None:
        runs = (find_planned(runs, only),)
    if session.target.ranks > 1 and session.ranks is None:
        return launch(sys.argv[1:], session.target.ranks)
    missing = print_missing_sets(runs)
    if session.ranks is not None and not session.ranks.lead:
        follow_first_rank(runs, session.config, session.ranks)
        return 0
    if only is None:
        warn(plan_sentence(runs))
    with session.reporter.display():
        records, worst = execute_and_report(session, runs, as_json=as_json)
    if records and not as_json:
        print_scores(records, session.store, part)
        print_whole_times(runs, records)
    return max(worst, missing)


def _run_locally(session: Session, as_json: bool, part: PaperPart | None) -> int:
    """Do several runs at once on this machine; returns the exit code."""
    runs = session.plan_runs().runs
    missing = print_missing_sets(runs)
    command = shlex.join(["bench", *sys.argv[1:]])
    ended = run_locally(session, runs, command, partial(click.echo, err=True))
    records = []
    for run in runs:
        record = session.store.get(run.run_id, run.fingerprint)
        if record is not None and record.status == "finished":
            records.append(record)
    if as_json:
        print_json([record.to_json() for record in records])
    elif records:
        print_scores(records, session.store, part)
        print_whole_times(runs, records)
    return max(_end_of_workers(ended), missing)


def _run_later(
    plan: Plan,
    part: PaperPart | None,
    *,
    dry_run: bool,
    everything: bool,
    to: Path | None,
    as_json: bool,
) -> int:
    """Show a plan, write it, or hand its runs to workers; returns the exit code."""
    target = parse_target(plan.runs[0].on)
    if target.name == "slurm":
        check_slurm(target, connect=not dry_run)
    session = Session.begin(plan, only_look=dry_run)
    prepared = session.plan_runs()
    missing = print_missing_sets(prepared.runs)
    if to is not None:
        plan.write(to)
        click.echo(f"next: bench run --plan {shlex.quote(str(to))}", err=as_json)
        return missing
    if not session.target.elsewhere:
        print_plan(prepared, session, as_json=as_json, everything=everything, part=part)
        return missing
    return max(_run_elsewhere(session, prepared.runs), missing)


def _run_elsewhere(session: Session, runs: Sequence[PlannedRun]) -> int:
    """Print commands, or hand the runs to Slurm; returns the exit code. Raises BenchError."""
    config = session.config
    warn(
        f"workers train on {config.device} in {config.precision}: gpus=N in --on, --device and "
        "--precision decide, not this machine"
    )
    command = shlex.join(["bench", *sys.argv[1:]])
    if session.target.name == "commands":
        if session.only_look:
            raise BenchError("--on commands only prints commands", "leave --dry-run out")
        click.echo(write_commands(session, runs, command), nl=False)
        return 0
    if session.only_look:
        click.echo(preview_jobs(session, runs), nl=False)
        return 0
    submitted, job = submit_jobs(session, runs, command)
    others = f"{len(runs) - submitted} finished, queued or running"
    if not submitted:
        warn(f"nothing to submit: {others}")
        return 0
    warn(f"submitted {plural(submitted, 'run')} to Slurm as job {job}; {others}")
    words = ["bench", "runs"]
    if str(session.store.path) != "runs":
        words += ["--runs", str(session.store.path)]
    warn(f"next: {shlex.join(words)}")
    return 0


def _end_of_workers(ended: Counter[str]) -> int:
    """Print how many runs ended how; returns 1 if one failed, 130 if some were cancelled."""
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(ended.items()))
    if ended["cancelled"]:
        warn(f"{counts}; the same command continues them")
        return 130
    warn(counts)
    return 1 if ended["failed"] else 0
