"""Ray: each run is a task that starts a worker's command line. The driver, this process, stays until its runs have ended.

Ray queues, places and restarts; a driver that dies takes its runs with it, each with its last state saved.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.base.errors import BenchError, RunFailed, one_line
from bench.run.config import Target
from bench.run.jobs import Batch, Job
from bench.runs import RunsFolder

LOOK_EVERY = (
    2.0  # seconds between two looks at the cluster's head and at what was asked of this process
)
ENDS_WITHIN = 60.0  # seconds that a worker has to save its state after it was asked to stop
UNITS = {"K": 2**10, "": 2**20, "M": 2**20, "G": 2**30, "T": 2**40}


class WorkerKilled(Exception):
    """A worker that a signal ended: Ray starts the task again, on any node."""


def check(target: Target, connect: bool = True) -> None:
    """Connect to $RAY_ADDRESS or the cluster of this machine, else start one here.

    Raises BenchError where that cannot be, or where no node has the resources: Ray would wait for ever.
    """
    requested = _requested(target)
    if not connect:
        return
    try:
        import ray
    except ImportError:
        raise BenchError(
            "--on ray: Ray is not installed",
            "pip install 'sentence-bench[ray]', in the version of the cluster",
        ) from None
    address = os.environ.get("RAY_ADDRESS") or "this machine"
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        if port.isdigit():  # Ray itself would try for minutes
            socket.create_connection((host, int(port)), timeout=5).close()
        if not ray.is_initialized():
            ray.init(log_to_driver=False, logging_level=logging.ERROR, namespace="bench")
    except (OSError, ValueError, RuntimeError) as error:
        raise BenchError(
            f"the Ray cluster at {address} cannot be used: {one_line(error, 200)}",
            "RAY_ADDRESS=HOST:PORT of its head; the same Ray and Python here as there",
        ) from None
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(all(node.get(key, 0) >= n for key, n in requested.items()) for node in nodes):
        needs = ", ".join(f"{n:,} {key}" for key, n in requested.items())
        raise BenchError(f"--on ray: no node of the cluster has {needs} for a run", "ask for less")


def _requested(target: Target) -> dict[str, int]:
    """Of one run, by Ray's names. Raises BenchError for a memory that is not one."""
    requested = {"CPU": target.cpus or 1, "GPU": target.gpus or 0}
    if target.memory is None:
        return requested
    if not (match := re.fullmatch("([0-9]+)([KMGT]?)", target.memory)):
        text = f"--on ray:memory={target.memory}: expected a number with K, M, G or T"
        raise BenchError(text, "memory=16G")
    return {**requested, "memory": int(match[1]) * UNITS[match[2]]}


def _options(target: Target) -> dict[str, Any]:
    """Of the task of one run."""
    names = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
    resources = {names[key]: n for key, n in _requested(target).items()}
    return {**resources, "max_retries": target.retries}


def script(batch: Batch) -> str:
    """What would be started, for ``--dry-run``."""
    head = f"# {len(batch.runs)} tasks of Ray, each with {_options(batch.target)}"
    return "\n".join([head, *(shlex.join(batch.command(run)) for run in batch.runs), ""])


def work(command: list[str], log: str) -> int:
    """A task: the worker of one run; returns its exit code. Raises WorkerKilled where a signal ended it."""
    import ray

    # ignored in everything that a script starts in the background; Ray cancels a task by it
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    context = ray.get_runtime_context()
    node = f"{socket.gethostname()}/{context.get_node_id()[:8]}"
    file = Path(log)
    attempt = file.read_bytes().count(b"\nattempt ") + 1 if file.exists() else 1
    job = f"ray {context.get_task_id()} {node} {attempt}"
    with file.open("ab") as out:
        out.write(f"\nattempt {attempt} on {node}\n".encode())
        out.flush()
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, "BENCH_JOB": job},
            start_new_session=True,
        )
    try:
        code = child.wait()
    except BaseException:  # Ray cancels the task
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(ENDS_WITHIN - 5)
        raise
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)  # also the ranks that outlived it
    if code < 0 or code > 130:
        raise WorkerKilled(f"its worker ended with exit code {code}")
    return code


def follow(
    batch: Batch, say: Callable[[str], None], should_stop: Callable[[], bool]
) -> dict[str, str]:
    """Until every run of the batch has ended; run id -> "finished", "failed" or "cancelled".

    ``should_stop``: cancel all of them; each saves its state. A task that has not ended then ends with this process.
    """
    import ray

    task, options = ray.remote(work), _options(batch.target)
    logs, ended = batch.folder / "logs", dict[str, str]()
    waiting, going = list(batch.runs), dict[Any, str]()
    most = batch.target.parallel or len(waiting)

    def note_ends(count: int, seconds: float) -> None:
        for ref in ray.wait(list(going), num_returns=count, timeout=seconds)[0]:
            run_id = going.pop(ref)
            ended[run_id] = _outcome(ref)
            with contextlib.suppress(BenchError):  # a full disk
                batch.write_runs([*going.values(), *waiting])
            log = f"; see {logs}/{run_id}.log" if ended[run_id] == "failed" else ""
            say(f"{run_id}: {ended[run_id]} ({len(ended)} of {len(batch.runs)}){log}")

    while (waiting or going) and not should_stop():
        check_head()
        while waiting and len(going) < most:
            run_id = waiting.pop(0)
            named = task.options(name=run_id, retry_exceptions=[WorkerKilled], **options)
            going[named.remote(batch.command(run_id), f"{logs}/{run_id}.log")] = run_id
        note_ends(1, LOOK_EVERY)
    if going:
        for ref in going:
            ray.cancel(ref)
        note_ends(len(going), ENDS_WITHIN)
    return ended | dict.fromkeys([*waiting, *going.values()], "cancelled")


def _outcome(ref: Any) -> str:
    """How a task ended. Why a run failed stands in its record, or in its log."""
    import ray

    try:
        code = ray.get(ref)
    except Exception as error:  # cancelled, or the last of its retries
        names = f"{type(error).__name__} {type(getattr(error, 'cause', error)).__name__}"
        cancelled = "TaskCancelled" in names or "KeyboardInterrupt" in names
        return "cancelled" if cancelled else "failed"
    return {0: "finished", 130: "cancelled"}.get(code, "failed")


def check_head() -> None:
    """Raises RunFailed where the head was restarted without its data: it has forgotten this driver, whose tasks would never end."""
    import ray

    try:
        private: Any = ray
        known = private._private.worker.global_worker.gcs_client
        same = private._raylet.GcsClient(address=known.address).cluster_id == known.cluster_id
    except (
        Exception
    ):  # silent: Ray ends this process if it stays so; or another Ray without these names
        return
    if not same:
        raise RunFailed(
            "the head of the Ray cluster was restarted and knows nothing of its tasks",
            "the same command, once its nodes are back",
        )


def queue(batches: Mapping[Path, Sequence[str]]) -> dict[str, Job]:
    """The runs that living drivers have not seen end: a driver removes a run that has ended from its ``runs.txt``."""
    jobs: dict[str, Job] = {}
    for folder, runs in batches.items():
        if (driver := RunsFolder(folder.parent).worked_on_by(folder.name)) is None:
            continue
        store, (host, _, process) = RunsFolder(folder.parents[1]), driver.rpartition(":")
        cancel = f"kill -INT {process}, on {host}: Ctrl-C for all runs of that command"
        for run_id in runs:
            state = "running" if store.worked_on_by(run_id) else "queued"
            log = folder / "logs" / f"{run_id}.log"
            jobs[run_id] = Job("ray", state, f"driver {driver}", "", cancel, log)
    return jobs
