"""Runs on other machines: what ``bench run`` prepares and hands to an engine or to the user; ``bench logs``, ``status`` and ``cancel``."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import BenchError, printable
from bench.cli.options import json_option, json_text, runs_option, warn

if TYPE_CHECKING:
    from bench.cli.progress import RunReporter
    from bench.run.jobs import Batch, Queued, Resources, RunState
    from bench.run.plan import PlannedRun
    from bench.runs import RunsFolder


LOOK_EVERY = 2.0  # seconds between two looks at the runs of another driver
NOT_TOLD = {
    "executor",
    "gpus",
    "cpus",
    "memory",
    "parallel",
    "retries",
    "slurm",
    "returns",
    "commands",
    "only",
    "words",
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
"""Options of ``bench run`` that a worker is not given as they were typed: they are about the submission, or are settled there."""


def settle_device(device: str, precision: str, gpus: int | None) -> tuple[str, str, int | None]:
    """Device, precision and GPUs of runs on other machines: of what is asked, never of this machine. Raises BenchError."""
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
        f"device {kind}{chosen}: of what is asked ({f'--gpus {gpus}' if gpus else 'no --gpus'}), not of this machine",
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
            name in NOT_TOLD
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


def as_queued(run: PlannedRun) -> Queued:
    from bench.run.estimates import corpus_rows, known_steps
    from bench.run.jobs import Queued, planned_words

    steps = None
    if run.corpus is not None and run.plugin.cls.fitted != "pass":
        steps = known_steps(run.recipe, corpus_rows(run))
    return Queued(run.run_id, planned_words(run), steps)


def check_visible(store: RunsFolder, data: Path | None, returns: bool) -> None:
    """Raises BenchError where a folder is one that no other machine can see. What its locks are worth is told."""
    from bench.base.lease import mount_of, probe

    for folder, option in ((None if returns else store.path, "--runs"), (data, "--data")):
        if (
            folder is not None
            and str(folder.absolute()).startswith(("/proc/", "/sys/", "/dev/"))
            and mount_of(folder)[0] in ("tmpfs", "devtmpfs", "proc", "sysfs")
        ):
            raise BenchError(
                f"{option} {folder} is in this machine's memory: no worker elsewhere sees it",
                f"{option} DIR on a file system that all machines share",
            )
    if (line := probe(store.path)) is not None:
        click.echo(line, err=True)


def hand_over(
    name: str,
    planned: Sequence[PlannedRun],
    store: RunsFolder,
    arguments: Sequence[str],
    resources: Resources,
    *,
    retries: int,
    fresh: bool,
    reporter: RunReporter,
) -> tuple[Batch | None, list[PlannedRun]]:
    """Queue what of the plan is neither done nor queued. Returns the new batch, None where there is nothing to queue, and the runs that
    were queued or running before. Raises BenchError."""
    from bench.run import jobs
    from bench.run.executors.local import is_scored

    engine = jobs.engine(name)
    address = engine.check(resources)
    with jobs.submitting(store):
        known = jobs.Jobs(store)
        places = jobs.ask(known.places)
        queued = [run for run in planned if run.run_id in places]
        if fresh and queued:
            more = f", and {len(queued) - 1} more" if len(queued) > 1 else ""
            raise BenchError(
                f"--fresh: {queued[0].run_id} is {places[queued[0].run_id].state}{more}",
                f"bench cancel --runs {store.path} --all, then this again",
            )
        records = {run.run_id: store.get(run.run_id, run.fingerprint) for run in planned}
        done = (
            []
            if fresh
            else [
                run
                for run in planned
                if run.run_id not in places and jobs.is_done(run, records[run.run_id], is_scored)
            ]
        )
        left = {run.run_id for run in (*queued, *done)}
        todo = [run for run in planned if run.run_id not in left]
        parts = [
            f"{len(done)} finished already" if done else "",
            f"{len(queued)} queued or running already" if queued else "",
        ]
        told = "; ".join(filter(None, parts))
        if not todo:
            click.echo(f"nothing to submit: {told}", err=True)
            return None, queued
        for run in todo:
            record = records[run.run_id]
            if (
                resources.returns
                and not fresh
                and record is not None
                and record.status == "finished"
            ):
                raise BenchError(
                    f"--return: {run.run_id} is here and lacks only scores; a node would train it again",
                    "without both options the same command scores it here; --fresh trains it again",
                )
        prepare_corpora(todo, reporter)
        if fresh:
            start_afresh(todo, store, reporter)
        batch = jobs.new_batch(
            known, name, [as_queued(run) for run in todo], arguments, resources, retries, address
        )
        batch.write()
        try:
            words = engine.submit(batch)
        except BenchError as error:
            if "were queued before" not in error.message:
                jobs.forget(batch)
            raise
    click.echo(
        f"submitted to {name}: {len(todo)} run{'s' * (len(todo) > 1)}, {words}"
        + (f"; {told}" if told else ""),
        err=True,
    )
    return batch, queued


def start_afresh(planned: Sequence[PlannedRun], store: RunsFolder, reporter: RunReporter) -> None:
    """What ``--fresh`` means: once, before anything is queued, so that a run that is started again goes on."""
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
    data: Path | None,
    retries: int,
    fresh: bool,
    dry_run: bool,
    commands: bool,
    reporter: RunReporter,
) -> int:
    """What ``bench run`` does with --commands or a remote executor; returns the exit code."""
    from bench.run import jobs

    name = context.params["executor"]
    check_visible(store, data, resources.returns)
    if not dry_run:
        plugins = jobs.keep_plugins(plugins, store.path / jobs.FOLDER / "plugins")
    arguments = worker_arguments(context, store, device, precision, resources.gpus, plugins)
    if commands and dry_run:
        raise BenchError("--commands runs nothing as it is", "leave --dry-run out")
    if commands:
        prepare_corpora(planned, reporter)
        batch = jobs.new_batch(
            jobs.Jobs(store),
            "commands",
            [as_queued(run) for run in planned],
            arguments,
            resources,
            0,
        )
        for number in range(len(batch.runs)):
            click.echo(batch.shell_line(number))
        return 0
    if dry_run:
        batch = jobs.new_batch(
            jobs.Jobs(store),
            name,
            [as_queued(run) for run in planned],
            arguments,
            resources,
            retries,
        )
        click.echo(jobs.engine(name).script(batch), nl=False)
        return 0
    hand = partial(
        hand_over,
        name,
        store=store,
        arguments=arguments,
        resources=resources,
        retries=retries,
        reporter=reporter,
    )
    if getattr(jobs.engine(name), "STAYS", False):
        return stay(name, planned, store, hand, fresh)
    hand(planned, fresh=fresh)
    where = "" if str(store.path) == "runs" else f" --runs {shlex.quote(str(store.path))}"
    click.echo(f"next: bench status --watch{where}", err=True)
    return 0


def stay(
    name: str,
    planned: Sequence[PlannedRun],
    store: RunsFolder,
    hand: Callable[..., tuple[Batch | None, list[PlannedRun]]],
    fresh: bool,
) -> int:
    """Of an engine whose driver stays with its runs: until each has ended, also those of another driver; if that dies, they go on here.

    Returns the exit code: 1 where a run failed, 130 where all of it was cancelled.
    """
    from bench.base.signals import stop_signals
    from bench.run import jobs

    engine: Any = jobs.engine(name)
    ended: dict[str, dict[str, Any]] = {}
    with stop_signals(insistent=False) as should_stop:
        while left := [run for run in planned if run.run_id not in ended]:
            batch, others = hand(left, fresh=fresh)
            fresh = False
            if batch is not None:
                ended |= engine.follow(
                    batch, partial(click.echo, err=True), should_stop, partial(take_in, store)
                )
            if should_stop() or (batch is None and not others):
                break
            if others:
                click.echo(
                    f"{len(others)} of another driver: waiting until they have ended, with nothing of the cluster",
                    err=True,
                )
            while others and not should_stop():
                time.sleep(LOOK_EVERY)
                places = jobs.Jobs(store).places()
                others = [run for run in others if run.run_id in places]
    outcomes = [state["outcome"] for state in ended.values()]
    failed = sum(outcome in ("failed", "refused") for outcome in outcomes)
    cancelled = outcomes.count("cancelled")
    if ended:
        parts = [
            f"{outcomes.count('done')} finished",
            f"{failed} failed" if failed else "",
            f"{cancelled} cancelled, the same command goes on with them" if cancelled else "",
        ]
        click.echo(", ".join(filter(None, parts)), err=True)
    return 130 if should_stop() or cancelled else int(bool(failed))


def take_in(store: RunsFolder, run_id: str, archive: bytes) -> str | None:
    """Put a run that came back from a node into the runs folder, where all that is verified of a submission agrees. Returns why not."""
    from bench.runs.intact import checkpoint_problem, put_run, unpack_run
    from bench.verify.identity import verify_run

    try:
        with (
            store.lock(run_id),
            tempfile.TemporaryDirectory(prefix=".back-", dir=store.path) as aside,
        ):
            run = Path(aside) / run_id
            unpack_run(archive, run)
            report = verify_run(run)
            if report.differences:
                return "; ".join(
                    f"{difference.kind} of {difference.what}: {difference.why}"
                    for difference in report.differences[:3]
                )
            if (
                report.record is not None
                and report.record.checkpoint
                and (lost := checkpoint_problem(report.record, run))
            ):
                return lost.replace(f"{run}/", "")
            put_run(run, store.folder(run_id))
    except BenchError as error:
        return error.message
    except OSError as error:
        return f"cannot write {store.path}: {error.strerror or error}"
    return None


def job_here() -> dict[str, Any] | None:
    """The engine, job, node and attempt that this process is the worker of, as its attendant says; None: of nobody."""
    try:
        job = json.loads(os.environ.get("BENCH_JOB") or "null")
    except ValueError:
        return None
    if not isinstance(job, dict):
        return None
    if (attendant := job.pop("attendant", None)) is not None and "LOCAL_RANK" not in os.environ:
        from bench.run.executors.worker import end_with

        end_with(int(attendant))
    return job


# --- ``bench logs``: what the workers of a run said on other machines ---


@click.command()
@click.argument("run")
@runs_option
def logs(run: str, runs: Path | None) -> None:
    """What the workers of RUN said, on whichever machine, from the first attempt to the last. RUN may be the beginning of an id.

    Example: bench logs simcse-builtin-s1
    """
    from bench.run.jobs import Jobs
    from bench.runs import RunsFolder

    jobs = Jobs(RunsFolder(runs))
    batch, number = jobs.newest[jobs.find(run)]
    try:
        text = batch.log(number).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise BenchError(
            f"{batch.runs[number].run_id}: no worker of it has begun yet", "bench status"
        ) from None
    click.echo(printable(text, keep="\n\t"), nl=False)


# --- ``bench status``: the runs that were handed to an engine, and what has become of each ---


EVERY = 10.0  # seconds between two questions to an engine
ORDER = ("running", "queued", "lost", "failed", "interrupted", "unknown", "finished")
SHOWN = 30  # runs of one state that are listed where not all are asked for


@click.command()
@runs_option
@click.option(
    "--watch", is_flag=True, help=f"Again every {EVERY:.0f} s, until nothing is queued or running."
)
@click.option("--all", "everything", is_flag=True, help=f"Every run, not {SHOWN} of each state.")
@json_option
def status(runs: Path | None, watch: bool, everything: bool, as_json: bool) -> None:
    """Of every run that was handed to Slurm or Ray: queued, running and where, finished, failed, interrupted or lost, and why.

    Example: bench status --runs /shared/runs --watch
    """
    from bench.runs import RunsFolder

    store, before = RunsFolder(runs), ""
    while True:
        told, silent = look(store)
        if not told:
            raise BenchError(
                f"no run of {store.path} was handed to an engine",
                "bench run ... --executor slurm, or --runs DIR; bench runs lists all runs",
            )
        if silent:
            warn(f"{silent}; what is queued or running is not known now")
        text = (
            json_text([asdict(standing) for standing in told])
            if as_json
            else draw_status(told, everything)
        )
        if text != before:
            click.echo(text)
        before = text
        if not watch or not (
            silent or any(standing.state in ("queued", "running") for standing in told)
        ):
            return
        time.sleep(EVERY)


def look(store: RunsFolder) -> tuple[list[RunState], str | None]:
    """What has become of every run; and why an engine was silent, where it was."""
    from bench.run.jobs import EngineSilent, Jobs, ask, standings

    jobs = Jobs(store)
    try:
        return standings(jobs, places=ask(jobs.places, times=2)), None
    except EngineSilent as error:
        return standings(jobs, silent=error.message), error.message


def draw_status(told: list[RunState], everything: bool) -> str:
    """One line of counts, then a line a run: what goes on or went wrong first."""
    counts = Counter(standing.state for standing in told)
    lines = [", ".join(f"{counts[state]} {state}" for state in ORDER if counts[state])]
    wide = min(60, max(len(standing.run_id) for standing in told))
    for state in ORDER:
        of_state = [standing for standing in told if standing.state == state]
        shown = of_state if everything else of_state[:SHOWN]
        lines += [
            f"  {standing.run_id:<{wide}}  {' '.join(standing.words().split())}"
            for standing in shown
        ]
        if len(shown) < len(of_state):
            lines.append(f"  and {len(of_state) - len(shown):,} more {state}: bench status --all")
    return "\n".join(
        "".join(c if c.isprintable() or c == "\n" else " " for c in line) for line in lines
    )


# --- ``bench cancel``: end runs that are queued or running on other machines ---


PATIENCE = 60.0  # seconds in which every run ends


@click.command()
@click.argument("names", metavar="[RUN]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every run that is queued or running.")
@runs_option
def cancel(names: tuple[str, ...], everything: bool, runs: Path | None) -> None:
    """End runs that are queued or running on other machines. Each saves its state: the same bench run goes on with it.

    Example: bench cancel --all
    """
    from bench.run.jobs import Jobs, ask, engine
    from bench.runs import RunsFolder

    if bool(names) == everything:
        raise BenchError("which runs?", "bench cancel RUN ..., or bench cancel --all")
    jobs = Jobs(RunsFolder(runs))
    wanted = set(jobs.newest) if everything else {jobs.find(name) for name in names}

    def left() -> set[str]:
        return wanted & set(ask(jobs.places))

    going = left()
    for name in {jobs.newest[run][0].engine for run in going}:
        which = [
            (batch.name, number)
            for run, (batch, number) in jobs.newest.items()
            if run in going and batch.engine == name
        ]
        engine(name).cancel([batch for batch in jobs.batches if batch.engine == name], which)
    count, until, pause = len(going), time.monotonic() + PATIENCE, 0.5
    for run in going:
        batch, number = jobs.newest[run]
        batch.set_cancelled(number)
    while going and time.monotonic() < until:
        time.sleep(pause)
        pause, going = min(pause * 2, 10.0), left()
    click.echo(
        f"{count - len(going)} run{'s' * (count - len(going) != 1)} ended"
        if count
        else "nothing of that is queued or running"
    )
    if going:
        raise BenchError(
            f"{len(going)} have not ended within {PATIENCE:.0f} s: {', '.join(sorted(going)[:3])}",
            "bench status; bench cancel again",
        )
