"""Runs on other machines: what ``bench run --on`` prepares and hands to an engine, or prints as commands."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import BenchError
from bench.base.files import write_or_fail
from bench.base.signals import stop_signals
from bench.base.text import plural
from bench.cli.options import warn
from bench.run import jobs
from bench.run.plan_file import Plan
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
        click.echo(jobs.engine(target.name).script(batch), nl=False)
        return 0
    gpus = target.gpus or 1
    plugins = jobs.copy_plugins(config.plugins, store.path / jobs.FOLDER / "plugins")
    plan = plan.replaced(
        on=f"torchrun:{gpus}" if gpus > 1 else "here",
        offline=True,
        fresh=False,
        plugins=plugins,
        command=shlex.join(["bench", *sys.argv[1:]]),
    )
    if target.name == "commands":
        prepare_corpora(planned)
        batch = jobs.new_batch(store, [run.run_id for run in planned], target)
        batch.write(plan)
        lines = "".join(f"{batch.shell_line(run)}\n" for run in batch.runs)
        if target.file is None:
            click.echo(lines, nl=False)
        else:
            write_or_fail(Path(target.file), lines.encode(), "leave file= out: they are printed")
        return 0
    with ExitStack() as driving:
        with jobs.submitting(store):
            remaining, others = to_submit(planned, store, config.fresh)
            if not remaining:
                warn(f"nothing to submit: {others}")
                return 0
            prepare_corpora(remaining)
            if config.fresh:
                start_afresh(remaining, store)
            batch = jobs.new_batch(store, [run.run_id for run in remaining], target)
            batch.write(plan)
            if target.name == "slurm":
                from bench.run.executors import slurm

                where = f"as job {', '.join(slurm.submit(batch))}"
            else:
                driving.enter_context(RunsFolder(batch.folder.parent).lock(batch.name))
                where = "and stays with them; Ctrl-C cancels them"
        count, more = plural(len(remaining), "run"), f"; {others}" if others else ""
        warn(f"submitted {count} to {target.name} {where}{more}")
        folder = "" if str(store.path) == "runs" else f" --runs {shlex.quote(str(store.path))}"
        warn(f"next: bench runs{folder}")
        return 0 if target.name == "slurm" else stay(batch)


def prepare_corpora(planned: Sequence[PlannedRun]) -> None:
    """Tokenise each corpus once for each tokenizer, here: no worker holds a GPU while it does that, or waits for another that does."""
    from bench.backbones import load
    from bench.data.corpora.token_cache import as_text, tokenise
    from bench.run.provenance import tokenizer_key

    done: set[tuple[str, str, str]] = set()
    for run in planned:
        cls: Any = run.plugin.cls
        kind = getattr(cls, "trains_on", None)
        if run.corpus is None or kind is None or (kind == "ids" and cls.own_backbone is not None):
            continue
        columns = ",".join(run.corpus.columns) + str(run.corpus.column)
        key = run.corpus.sha256, columns, "text" if kind == "text" else run.backbone.revision
        if key in done:
            continue
        done.add(key)
        if kind == "text":
            as_text(run.corpus)
            continue
        warn(f"tokenises {run.corpus.name} for {run.backbone.name}, unless that was done before")
        tokenizer = (backbone := load(run.backbone, offline=True)).tokenizer
        tokenise(run.corpus, backbone.ids, tokenizer_key(tokenizer), len(tokenizer))


def to_submit(
    planned: Sequence[PlannedRun], store: RunsFolder, fresh: bool
) -> tuple[list[PlannedRun], str]:
    """The runs that are neither finished nor queued, and what the others are. Raises BenchError for --fresh of a queued one."""
    from bench.run.executors.local import is_finished

    queued = jobs.queue(store)
    going = [run for run in planned if run.run_id in queued]
    if fresh and going:
        engine, job = queued[going[0].run_id]
        more = f", and {len(going) - 1} more" if len(going) > 1 else ""
        raise BenchError(
            f"--fresh: {going[0].run_id} is {job.state}: {job.describe(engine)}{more}",
            f"cancel first: {job.cancel}",
        )
    others = [run for run in planned if run.run_id not in queued]
    remaining = [run for run in others if fresh or not is_finished(run, store)]
    finished = len(others) - len(remaining)
    parts = [
        f"{finished} finished already" if finished else "",
        f"{len(going)} queued or running already" if going else "",
    ]
    return remaining, "; ".join(filter(None, parts))


def start_afresh(planned: Sequence[PlannedRun], store: RunsFolder) -> None:
    """``--fresh``: once, before anything is queued, so that a run that is started again goes on."""
    from bench.cli.progress import RunReporter
    from bench.run.executors.local import forget

    for run in planned:
        if store.folder(run.run_id).exists():
            with store.lock(run.run_id):
                forget(run, store, RunReporter())


def stay(batch: jobs.Batch) -> int:
    """Until the runs of Ray have ended: the exit code is 1 where one failed, 130 where some were cancelled."""
    from bench.run.executors import ray

    with stop_signals(insistent=False) as should_stop:
        ended = Counter(ray.follow(batch, partial(click.echo, err=True), should_stop).values())
    parts = [f"{count} {outcome}" for outcome, count in sorted(ended.items())]
    goes_on = "; the same command goes on with them" if ended["cancelled"] else ""
    warn(f"{', '.join(parts)}{goes_on}")
    return 130 if ended["cancelled"] else int(bool(ended["failed"]))
