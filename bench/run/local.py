"""Several runs at once on this machine: a process for each, and a card for each process.

A process is a worker as on a cluster, and does one run whole. It gets one of the machine's cards;
if there are more processes than cards, they share them evenly.
Small models leave most of a card idle, so that runs that share one end sooner than in turn.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from bench.base.files import writing
from bench.base.signals import stop_signals
from bench.run.done import is_finished
from bench.run.planned import PlannedRun
from bench.run.session import Session
from bench.run.workers import JobBatch, prepare_workers

LOOK_EVERY = 0.2
"""Seconds between two looks at the processes and at the signals to this one."""
ENDS_WITHIN = 60.0
"""Seconds that a worker has to save its state after it was asked to stop."""


@dataclass
class Worker:
    """A process that does one run."""

    run_id: str
    card: str
    """The card's name in CUDA_VISIBLE_DEVICES; "" if the process sees what this one sees."""

    process: subprocess.Popen[bytes]

    attempt: int
    """1 for the first process of the run."""


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


def cards_of(device: str) -> tuple[str, ...]:
    """Return the cards that processes take in turn, as CUDA_VISIBLE_DEVICES names them.

    ``device``: of the runs. "cuda" means every card that this process sees; a CPU, and one card by
    its number, are shared as they are: ("",).
    """
    if device != "cuda":
        return ("",)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible:
        return tuple(name.strip() for name in visible.split(",") if name.strip())
    import torch

    return tuple(str(number) for number in range(torch.cuda.device_count()))


def order_by_seed(runs: Sequence[PlannedRun]) -> list[PlannedRun]:
    """Put the runs of the first seed first, then those of the second, and so on; otherwise the
    order is the plan's.

    If the plan is stopped early, all rows have a few seeds, instead of a few rows all seeds.
    """
    seeds = list(dict.fromkeys(run.seed for run in runs))
    return sorted(runs, key=lambda run: seeds.index(run.seed))


def cores_each(count: int) -> int:
    """Return the processor cores of each of ``count`` processes, at least 1."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, (cores or 1) // count)


def work_off(
    batch: JobBatch,
    cards: Sequence[str],
    say: Callable[[str], None],
    should_stop: Callable[[], bool],
) -> dict[str, str]:
    """Do the runs of a batch in their order; run id -> "finished", "failed" or "cancelled".

    ``cards``: of each of the processes that work at once. ``say`` gets a line when a run ends. A
    worker that a signal killed is started again, up to the target's ``retries``. ``should_stop``:
    no more workers are started, and each that is at work saves its state.
    """
    free = list(cards)
    waiting = [(run_id, 1) for run_id in batch.runs]
    working: list[Worker] = []
    ended: dict[str, str] = {}
    while (waiting or working) and not should_stop():
        while waiting and free:
            run_id, attempt = waiting.pop(0)
            working.append(start_worker(batch, run_id, free.pop(0), attempt))
        for worker in list(working):
            code = worker.process.poll()
            if code is None:
                continue
            working.remove(worker)
            free.append(worker.card)
            is_killed = code < 0 or code > 130
            if is_killed and worker.attempt <= batch.target.retries:
                waiting.insert(0, (worker.run_id, worker.attempt + 1))
                continue
            ended[worker.run_id] = {0: "finished", 130: "cancelled"}.get(code, "failed")
            say(_end_of(worker.run_id, ended, batch))
        time.sleep(LOOK_EVERY)
    for worker in working:
        ended[worker.run_id] = "cancelled"
    stop_workers(working, ended)
    return ended | dict.fromkeys((run_id for run_id, _ in waiting), "cancelled")


def _end_of(run_id: str, ended: dict[str, str], batch: JobBatch) -> str:
    outcome = ended[run_id]
    log = ""
    if outcome == "failed":
        log = f"; see {batch.folder / 'logs' / run_id}.log"
    return f"{run_id}: {outcome} ({len(ended)} of {len(batch.runs)}){log}"


def start_worker(batch: JobBatch, run_id: str, card: str, attempt: int) -> Worker:
    """Start the process of a run; its output is appended to the run's log."""
    node = socket.gethostname()
    environment = {**os.environ, "BENCH_JOB": f"local {batch.name} {node} {attempt}"}
    if card:
        environment["CUDA_VISIBLE_DEVICES"] = card
    file = batch.folder / "logs" / f"{run_id}.log"
    with writing(file), file.open("ab") as log:
        log.write(f"\nattempt {attempt} on card {card or 'as here'}\n".encode())
        log.flush()
        process = subprocess.Popen(
            batch.command(run_id),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            # Ctrl-C is this process's: it asks each worker once
            start_new_session=True,
        )
    return Worker(run_id, card, process, attempt)


def stop_workers(working: Sequence[Worker], ended: dict[str, str]) -> None:
    """Ask workers to save their state, wait for them, and end those that do not answer."""
    for worker in working:
        worker.process.terminate()
    deadline = time.monotonic() + ENDS_WITHIN
    for worker in working:
        with suppress(subprocess.TimeoutExpired):
            code = worker.process.wait(max(0.0, deadline - time.monotonic()))
            if code == 0:
                ended[worker.run_id] = "finished"
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(worker.process.pid, signal.SIGKILL)
