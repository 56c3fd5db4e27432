"""Runs on other machines: prepared here, and handed to an engine or printed as commands."""

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
from bench.records import RunsFolder
from bench.run import jobs
from bench.run.config import (
    Plan,
)
from bench.run.execute import tokenised
from bench.run.plan import PlannedRun
from bench.session.messages import warn

if TYPE_CHECKING:
    pass


def run_elsewhere(
    plan: Plan, planned: Sequence[PlannedRun], store: RunsFolder, dry_run: bool
) -> int:
    """Commands, or jobs of an engine, for the runs of a settled plan; returns the exit code. Raises BenchError.

    Slurm needs no process of ours; with Ray this process stays until its runs have ended.
    """
    config = plan.runs[0]
    target = config.target
    warn(
        f"device {config.device}, precision {config.precision}: from the options, not this machine"
    )
    if dry_run and target.name == "commands":
        raise BenchError("--on commands only prints commands", "leave --dry-run out")
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
            write_or_fail(Path(target.file), lines.encode(), "leave file= out to print them")
        return 0
    with ExitStack() as driving:
        with RunsFolder(store.path / jobs.FOLDER).lock("submission", wait_seconds=300):
            remaining = jobs.to_submit(planned, store, config.fresh)
            others = f"{len(planned) - len(remaining)} finished, queued or running"
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


def prepared(plan: Plan, planned: Sequence[PlannedRun], store: RunsFolder) -> jobs.Batch:
    """The batch of these runs, on disk. Corpora are tokenised here, so that no worker does it while it holds a GPU."""
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
        warn(f"tokenising {corpus.name} for {backbone.name}, unless that was done before")
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
    """Wait until the runs of Ray have ended; returns 1 if one failed, 130 if some were cancelled."""
    with stop_signals(insistent=False) as should_stop:
        ended = Counter(jobs.follow(batch, partial(click.echo, err=True), should_stop).values())
    counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(ended.items()))
    warn(counted + "; the same command continues them" * bool(ended["cancelled"]))
    return 130 if ended["cancelled"] else int(bool(ended["failed"]))
