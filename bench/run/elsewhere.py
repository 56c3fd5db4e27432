"""Runs that workers do, on other machines or later: prepared here, and handed to Slurm."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from bench.backbones import Reference, load
from bench.base.signals import stop_signals
from bench.base.terminal import warn
from bench.data.corpora import Corpus
from bench.method.own_vectors import own_backbone
from bench.records import RunsFolder
from bench.run.done import is_finished
from bench.run.local import cards_of, cores_each, order_by_seed, work_off
from bench.run.planned import PlannedRun
from bench.run.session import Session
from bench.run.slurm import queued_runs, slurm_script, submit_batch
from bench.run.target import Target
from bench.run.weights import tokenise_for
from bench.run.workers import JOBS_FOLDER, JobBatch, copy_plugins


def preview_jobs(session: Session, runs: Sequence[PlannedRun]) -> str:
    """Return the scripts of Slurm and of its workers, without submitting them."""
    batch = JobBatch.new(session.store, runs, session.target)
    return f"{slurm_script(batch)}\n# {batch.folder / 'worker.sh'}\n{batch.worker}"


def write_commands(session: Session, runs: Sequence[PlannedRun], command: str) -> str:
    """Prepare workers, and return a command line for each run.

    ``command``: what records say made the runs. Raises BenchError if a file cannot be written.
    """
    batch = prepare_workers(session, runs, command)
    return "".join(f"{shlex.join(batch.command(run))}\n" for run in batch.runs)


def submit_jobs(session: Session, runs: Sequence[PlannedRun], command: str) -> tuple[int, str]:
    """Hand the runs that are not finished or queued yet to Slurm; returns their number, and Slurm's
    id of their array.

    ``command``: what records say made the runs. Raises BenchError.
    """
    store = session.store
    with RunsFolder(store.path / JOBS_FOLDER).lock("submission", wait_seconds=300):
        queued = queued_runs(store)
        remaining = [r for r in runs if r.run_id not in queued and not is_finished(r, store)]
        if not remaining:
            return 0, ""
        return len(remaining), submit_batch(prepare_workers(session, remaining, command))


def run_locally(
    session: Session, runs: Sequence[PlannedRun], command: str, say: Callable[[str], None]
) -> Counter[str]:
    """Do runs in several processes on this machine; returns the counts of "finished", "failed" and
    "cancelled".

    ``command``: what records say made the runs. ``say`` gets a line when a run ends. The first
    SIGINT or SIGTERM stops the runs, and each saves its state.
    """
    config = session.config
    remaining = [run for run in order_by_seed(runs) if not is_finished(run, session.store)]
    finished = len(runs) - len(remaining)
    if not remaining:
        return Counter(finished=finished)
    target = session.target
    cards = cards_of(config.device)
    count = min(target.parallel or len(cards), len(remaining))
    if target.cpus is None and "OMP_NUM_THREADS" not in os.environ:
        target = replace(target, cpus=cores_each(count))
    batch = prepare_workers(session, remaining, command, target)
    with stop_signals(insistent=False) as should_stop:
        shared = [cards[number % len(cards)] for number in range(count)]
        ended = Counter(work_off(batch, shared, say, should_stop).values())
    ended["finished"] += finished
    return ended


def prepare_workers(
    session: Session, runs: Sequence[PlannedRun], command: str, target: Target | None = None
) -> JobBatch:
    """Write the files of the workers that do these runs; ``command``: what records say made them.

    ``target``: another than the session's. Corpora are tokenised here, so that no worker does it
    while it holds a GPU.
    """
    for corpus, backbone in _corpora_to_tokenise(runs):
        warn(f"text {corpus.name}: tokenised for {backbone.name}, unless that was done before")
        tokenise_for(corpus, load(backbone, offline=True))
    config = session.config
    batch = JobBatch.new(session.store, runs, target or session.target)
    gpus = session.target.gpus or 1
    batch.write(
        session.plan.with_values(
            on=f"torchrun:{gpus}" if gpus > 1 else "here",
            offline=True,
            plugins=copy_plugins(config.plugins, batch.folder / "plugins"),
            command=command,
        )
    )
    return batch


def _corpora_to_tokenise(runs: Sequence[PlannedRun]) -> list[tuple[Corpus, Reference]]:
    """Return each corpus that a run reads as token ids, once for each backbone."""
    found = {}
    for run in runs:
        cls, corpus = run.plugin.cls, run.corpus
        if corpus is None or getattr(cls, "trains_on", None) != "ids":
            continue
        if own_backbone(cls) is None:
            key = (corpus.sha256, corpus.columns, corpus.column, run.backbone.revision)
            found[key] = (corpus, run.backbone)
    return list(found.values())
