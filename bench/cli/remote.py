"""Runs on other machines: what ``bench run`` prepares and hands to an engine, or writes as commands."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import BenchError
from bench.base.files import write_or_fail
from bench.base.text import plural

if TYPE_CHECKING:
    from bench.cli.progress import RunReporter
    from bench.run.jobs import Batch, Resources
    from bench.run.plan import PlannedRun
    from bench.runs import RunsFolder


OF_SUBMISSION = {
    "executor",
    "gpus",
    "cpus",
    "memory",
    "parallel",
    "retries",
    "slurm",
    "commands",
    "only",
    "fresh",
    "wait",
    "offline",
    "dry_run",
    "as_json",
    "plain",
    "device",
    "precision",
    "plugins",
    "runs",
}
"""Options of ``bench run`` that a worker does not get as they were typed: they are about the submission, or are settled there."""


def settle_device(device: str, precision: str, gpus: int | None) -> tuple[str, str, int | None]:
    """Device, precision and GPUs of runs on other machines: from the options, never from this machine. Raises BenchError."""
    if device not in ("auto", "cuda"):
        hint = "--device cuda, or --gpus N, asks for GPUs where it runs; without it runs are on the CPU"
        raise BenchError(f"--device {device} is about this machine", hint)
    gpus = gpus or (1 if device == "cuda" else None)
    kind = "cuda" if gpus else "cpu"
    if kind == "cpu" and precision in ("fp16", "tf32"):
        raise BenchError(f"--precision {precision} needs a GPU", "--gpus 1")
    chosen = ""
    if precision == "auto":
        precision = "bf16" if gpus else "fp32"
        chosen = f", precision {precision}"
    click.echo(
        f"device {kind}{chosen}: from {f'--gpus {gpus}' if gpus else 'no --gpus'}, not from this machine",
        err=True,
    )
    return kind, precision, gpus


def check_here(device: str, precision: str) -> None:
    """Raises BenchError where a worker's machine cannot compute in the precision that its run's name is of."""
    if precision == "bf16" and device.startswith("cuda"):
        import torch

        if not torch.cuda.is_bf16_supported(including_emulation=False):
            raise BenchError(
                f"--precision bf16: {torch.cuda.get_device_name(device)} has none",
                "--precision fp32 makes another run of it",
            )


def worker_arguments(
    context: click.Context,
    store: RunsFolder,
    device: str,
    precision: str,
    gpus: int | None,
    plugins: Sequence[Path],
) -> list[str]:
    """The options of ``bench run`` that every worker gets."""
    words: list[str] = []
    for option in context.command.params:
        name = option.name or ""
        source = context.get_parameter_source(name)
        if (
            name in OF_SUBMISSION
            or not isinstance(option, click.Option)
            or source in (None, click.core.ParameterSource.DEFAULT)
        ):
            continue
        value = context.params[name]
        if option.is_flag:
            words += [option.opts[0]] if value else []
            continue
        for item in value if option.multiple else (value,):
            if item is not None:
                words += [
                    option.opts[0],
                    str(Path(item).absolute()) if isinstance(item, Path) else str(item),
                ]
    for file in plugins:
        words += ["--plugin", str(file.absolute())]
    words += [
        "--runs",
        str(store.path.absolute()),
        "--device",
        device,
        "--precision",
        precision,
        "--offline",
        "--plain",
    ]
    return words + (["--executor", "torchrun", "--gpus", str(gpus)] if gpus and gpus > 1 else [])


def prepare_corpora(planned: Sequence[PlannedRun], reporter: RunReporter) -> None:
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
        key = (
            run.corpus.sha256,
            ",".join(run.corpus.columns) + str(run.corpus.column),
            "text" if kind == "text" else run.backbone.revision,
        )
        if key in done:
            continue
        done.add(key)
        if kind == "text":
            as_text(run.corpus)
            continue
        reporter.note(
            f"tokenises {run.corpus.name} for {run.backbone.name}, unless that was done before"
        )
        backbone = load(run.backbone, offline=True)
        tokenise(
            run.corpus, backbone.ids, tokenizer_key(backbone.tokenizer), len(backbone.tokenizer)
        )


def hand_over(
    name: str,
    planned: Sequence[PlannedRun],
    store: RunsFolder,
    arguments: Sequence[str],
    resources: Resources,
    *,
    fresh: bool,
    reporter: RunReporter,
) -> int:
    """Queue the runs of a plan that are neither finished nor queued; returns the exit code. Raises BenchError.

    Slurm goes on alone; with Ray this process stays until its runs have ended.
    """
    from bench.run import jobs
    from bench.runs import RunsFolder

    with ExitStack() as driving:
        with jobs.submitting(store):
            remaining, summary = to_submit(planned, store, fresh)
            if not remaining:
                click.echo(f"nothing to submit: {summary}", err=True)
                return 0
            prepare_corpora(remaining, reporter)
            if fresh:
                start_afresh(remaining, store, reporter)
            batch = jobs.new_batch(
                store, name, [run.run_id for run in remaining], arguments, resources
            )
            batch.write()
            count = plural(len(remaining), "run")
            if name == "slurm":
                from bench.run.executors import slurm

                where = f"as job {', '.join(slurm.submit(batch))}"
            else:
                driving.enter_context(RunsFolder(batch.folder.parent).lock(batch.name))
                where = "and stays with them; Ctrl-C cancels them"
        more = f"; {summary}" if summary else ""
        click.echo(f"submitted {count} to {name} {where}{more}", err=True)
        option = "" if str(store.path) == "runs" else f" --runs {shlex.quote(str(store.path))}"
        click.echo(f"next: bench runs{option}", err=True)
        return 0 if name == "slurm" else stay(batch)


def to_submit(
    planned: Sequence[PlannedRun], store: RunsFolder, fresh: bool
) -> tuple[list[PlannedRun], str]:
    """The runs that are neither finished nor queued, and what the others are. Raises BenchError for --fresh of a queued one."""
    from bench.run import jobs
    from bench.run.executors.local import is_scored

    queued = jobs.queue(store)
    going = [run for run in planned if run.run_id in queued]
    if fresh and going:
        engine, job = queued[going[0].run_id]
        more = f", and {len(going) - 1} more" if len(going) > 1 else ""
        raise BenchError(
            f"--fresh: {going[0].run_id} is {job.state}: {job.describe(engine)}{more}",
            f"cancel first: {job.cancel}",
        )

    def done(run: PlannedRun) -> bool:
        record = store.get(run.run_id, run.fingerprint)
        scored = zip(run.tasks, run.task_data, strict=True)
        return (
            record is not None
            and record.status == "finished"
            and all(is_scored(record, task, known) for task, known in scored)
        )

    others = [run for run in planned if run.run_id not in queued]
    remaining = [run for run in others if fresh or not done(run)]
    finished = len(others) - len(remaining)
    parts = [
        f"{finished} finished already" if finished else "",
        f"{len(going)} queued or running already" if going else "",
    ]
    return remaining, "; ".join(filter(None, parts))


def stay(batch: Batch) -> int:
    """Until the runs of Ray have ended: the exit code is 1 where one failed, 130 where some were cancelled."""
    from bench.base.signals import stop_signals
    from bench.run.executors import ray

    with stop_signals(insistent=False) as should_stop:
        ended = Counter(ray.follow(batch, partial(click.echo, err=True), should_stop).values())
    parts = [f"{count} {outcome}" for outcome, count in sorted(ended.items())]
    goes_on = "; the same command goes on with them" if ended["cancelled"] else ""
    click.echo(f"{', '.join(parts)}{goes_on}", err=True)
    return 130 if ended["cancelled"] else int(bool(ended["failed"]))


def start_afresh(planned: Sequence[PlannedRun], store: RunsFolder, reporter: RunReporter) -> None:
    """``--fresh``: once, before anything is queued, so that a run that is started again goes on."""
    from bench.run.executors.local import forget

    for run in planned:
        if store.folder(run.run_id).exists():
            with store.lock(run.run_id):
                forget(run, store, reporter)


def run_elsewhere(
    context: click.Context,
    planned: Sequence[PlannedRun],
    store: RunsFolder,
    resources: Resources,
    *,
    device: str,
    precision: str,
    plugins: Sequence[Path],
    fresh: bool,
    dry_run: bool,
    commands: str | None,
    reporter: RunReporter,
) -> int:
    """``bench run`` with --commands or an engine; returns the exit code."""
    from bench.run import jobs

    name = context.params["executor"]
    if not dry_run:
        plugins = jobs.copy_plugins(plugins, store.path / jobs.FOLDER / "plugins")
    arguments = worker_arguments(context, store, device, precision, resources.gpus, plugins)
    batch = jobs.new_batch(store, name, [run.run_id for run in planned], arguments, resources)
    if commands is not None:
        prepare_corpora(planned, reporter)
        lines = "".join(f"{batch.shell_line(run.run_id)}\n" for run in planned)
        if commands == "-":
            click.echo(lines, nl=False)
        else:
            write_or_fail(Path(commands), lines.encode(), "--commands FILE; - prints them")
    elif dry_run:
        click.echo(jobs.engine(name).script(batch), nl=False)
    else:
        return hand_over(name, planned, store, arguments, resources, fresh=fresh, reporter=reporter)
    return 0
