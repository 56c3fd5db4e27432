"""Runs on other machines: what ``bench run --on`` prepares and hands to an engine, or prints as commands."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.backbones import load
from bench.base.devices import stop_signals
from bench.base.errors import BenchError
from bench.base.files import write_or_fail
from bench.base.text import plural
from bench.cli.options import warn
from bench.method import SilentReporter
from bench.run import jobs
from bench.run.config import Plan
from bench.run.execute import forget, is_finished, tokenised
from bench.runs import RunsFolder

if TYPE_CHECKING:
    from bench.run.plan import PlannedRun


def run_elsewhere(
    plan: Plan, planned: Sequence[PlannedRun], store: RunsFolder, dry_run: bool
) -> int:
    """Commands, or jobs of an engine, for the runs of a settled plan; returns the exit code. Raises BenchError.

    Slurm goes on alone; with Ray this process stays until its runs have ended.
    """
    config = plan.runs[0]
    target = config.target
    warn(
        f"device {config.device}, precision {config.precision}: from the options, not from this machine"
    )
    if dry_run and target.name == "commands":
        raise BenchError("--on commands runs nothing by itself", "leave --dry-run out")
    if dry_run:
        batch = jobs.new_batch(store, [run.run_id for run in planned], target)
        click.echo(jobs.script(batch))
        click.echo(f"# {batch.folder / 'worker.sh'}\n{batch.worker}", nl=False)
        return 0
    if target.name == "commands":
        batch = prepared(plan, planned, store)
        lines = "".join(f"{shlex.join(batch.command(run))}\n" for run in batch.runs)
        if target.file is None:
            click.echo(lines, nl=False)
        else:
            write_or_fail(Path(target.file), lines.encode(), "leave file= out: they are printed")
        return 0
    with ExitStack() as driving:
        with RunsFolder(store.path / jobs.FOLDER).lock("submission", wait_seconds=300):
            remaining = to_submit(planned, store, config.fresh)
            others = f"{len(planned) - len(remaining)} finished, queued or running already"
            if not remaining:
                warn(f"nothing to submit: {others}")
                return 0
            batch, where = prepared(plan, remaining, store), ""
            if target.name == "slurm":
                where = f" as job {', '.join(jobs.submit(batch))}"
            else:
                driving.enter_context(RunsFolder(batch.folder.parent).lock(batch.name))
        warn(f"submitted {plural(len(remaining), 'run')} to {target.name}{where}; {others}")
        folder = "" if str(store.path) == "runs" else f" --runs {shlex.quote(str(store.path))}"
        warn(f"next: bench runs{folder}")
        return 0 if target.name == "slurm" else stay(batch)


def to_submit(
    planned: Sequence[PlannedRun], store: RunsFolder, fresh: bool
) -> Sequence[PlannedRun]:
    """The runs that are neither finished nor queued; ``fresh``: all, and what they have made is removed now, for a run that is requeued
    goes on. Raises BenchError for ``fresh`` where one is queued."""
    queued = jobs.queue(store)
    if not fresh:
        waiting = [run for run in planned if run.run_id not in queued]
        return [run for run in waiting if not is_finished(run, store)]
    for run in planned:
        if (job := queued.get(run.run_id)) is not None:
            text = f"--fresh: {run.run_id} is {job.state}: {job.describe()}"
            raise BenchError(text, f"cancel first: {job.cancel}")
    for run in planned:
        with store.lock(run.run_id):
            forget(run, store, SilentReporter())
    return planned


def prepared(plan: Plan, planned: Sequence[PlannedRun], store: RunsFolder) -> jobs.Batch:
    """The batch of these runs, on the disk. Corpora are tokenised here: no worker holds a GPU while it does that."""
    config = plan.runs[0]
    corpora = {
        (run.corpus.sha256, run.corpus.columns, run.corpus.column, run.backbone.revision): (
            run.corpus,
            run.backbone,
        )
        for run in planned
        if run.corpus is not None
        and getattr(run.plugin.cls, "trains_on", None) == "ids"
        and run.plugin.cls.own_backbone is None
    }
    for corpus, backbone in corpora.values():
        warn(f"tokenises {corpus.name} for {backbone.name}, unless that was done before")
        tokenised(corpus, load(backbone, offline=True))
    batch = jobs.new_batch(store, [run.run_id for run in planned], config.target)
    gpus = config.target.gpus or 1
    batch.write(
        plan.replaced(
            on=f"torchrun:{gpus}" if gpus > 1 else "here",
            offline=True,
            fresh=False,
            plugins=jobs.copy_plugins(config.plugins, batch.folder / "plugins"),
            command=shlex.join(["bench", *sys.argv[1:]]),
        )
    )
    return batch


def stay(batch: jobs.Batch) -> int:
    """Until the runs of Ray have ended: the exit code is 1 where one failed, 130 where some were cancelled."""
    with stop_signals(insistent=False) as should_stop:
        ended = Counter(jobs.follow(batch, partial(click.echo, err=True), should_stop).values())
    parts = [f"{count} {outcome}" for outcome, count in sorted(ended.items())]
    goes_on = "; the same command goes on with them" if ended["cancelled"] else ""
    warn(f"{', '.join(parts)}{goes_on}")
    return 130 if ended["cancelled"] else int(bool(ended["failed"]))
