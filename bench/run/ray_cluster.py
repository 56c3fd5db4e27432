"""Ray: a task for each run."""

from __future__ import annotations

import logging
import os
import re
import shlex
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.base.errors import BenchError, RunFailed, one_line
from bench.base.extras import install_hint
from bench.records import RunsFolder
from bench.run.batch import ClusterJob, JobBatch
from bench.run.target import Target

LOOK_EVERY = (
    2.0  # seconds between two looks at the cluster's head and at the signals to this process
)
ENDS_WITHIN = 60.0  # seconds that a worker has to save its state after it was asked to stop
UNITS = {"K": 2**10, "": 2**20, "M": 2**20, "G": 2**30, "T": 2**40}


class WorkerKilled(Exception):
    """A worker that a signal ended: Ray starts the task again, on any node."""


def check_ray(target: Target, connect: bool) -> None:
    """Connect to $RAY_ADDRESS or the cluster of this machine, else start one here.

    Raises BenchError if that fails, or if no node has the resources: Ray would wait forever.
    """
    requested = _requested(target)
    if not connect:
        return
    try:
        import ray
    except ImportError:
        raise BenchError(
            "--on ray: Ray is not installed",
            install_hint("ray") + ", with Ray in the cluster's version",
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
        raise BenchError(f"--on ray: no node of the cluster has {needs} for a run", "request less")


def _requested(target: Target) -> dict[str, int]:
    """Return the resources of one run by Ray's names.

    Raises BenchError for a memory that it cannot read.
    """
    requested = {}
    requested["CPU"] = target.cpus or 1
    requested["GPU"] = target.gpus or 0
    if target.memory is None:
        return requested
    match = re.fullmatch("([0-9]+)([KMGT]?)", target.memory)
    if match is None:
        raise BenchError(
            f"--on ray:memory={target.memory}: expected a number with K, M, G or T", "memory=16G"
        )
    requested["memory"] = int(match[1]) * UNITS[match[2]]
    return requested


def _options(target: Target) -> dict[str, Any]:
    """Return Ray's options for the task of one run."""
    names = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
    options: dict[str, Any] = {names[key]: n for key, n in _requested(target).items()}
    options["max_retries"] = target.retries
    return options


def ray_script(batch: JobBatch) -> str:
    """Describe the tasks that would be started, for ``--dry-run``."""
    return "\n".join(
        [
            f"# {len(batch.runs)} tasks of Ray, each with {_options(batch.target)}",
            *(shlex.join(batch.command(run)) for run in batch.runs),
            "",
        ]
    )


def run_worker(command: list[str], log: str) -> int:
    """Run the worker of one run, as a task of Ray; return its exit code.

    Raises WorkerKilled if a signal ended it.
    """
    import ray

    # Ray cancels a task by SIGINT, which everything that a script starts in the background ignores
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    context = ray.get_runtime_context()
    node = f"{socket.gethostname()}/{context.get_node_id()[:8]}"
    file = Path(log)
    attempt = file.read_bytes().count(b"\nattempt ") + 1 if file.exists() else 1
    with file.open("ab") as out:
        out.write(f"\nattempt {attempt} on {node}\n".encode())
        out.flush()
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, "BENCH_JOB": f"ray {context.get_task_id()} {node} {attempt}"},
            start_new_session=True,
        )
    try:
        code = child.wait()
    except BaseException:  # Ray cancels the task
        child.terminate()
        with suppress(subprocess.TimeoutExpired):
            child.wait(ENDS_WITHIN - 5)
        raise
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)  # also the ranks that outlived it
    if code < 0 or code > 130:
        raise WorkerKilled(f"its worker ended with exit code {code}")
    return code


def follow_batch(
    batch: JobBatch, say: Callable[[str], None], should_stop: Callable[[], bool]
) -> dict[str, str]:
    """Wait until every run of the batch has ended; run id -> "finished", "failed" or "cancelled".

    ``should_stop``: cancel all of them; each saves its state. A task that is still running after
    that ends with this process.
    """
    import ray

    task = ray.remote(run_worker)
    options = _options(batch.target)
    logs = batch.folder / "logs"
    waiting = list(batch.runs)
    # Ray's reference of a task -> the id of its run
    going: dict[Any, str] = {}
    ended: dict[str, str] = {}
    most = batch.target.parallel or len(waiting)

    def note_ends(count: int, seconds: float) -> None:
        for ref in ray.wait(list(going), num_returns=count, timeout=seconds)[0]:
            run_id = going.pop(ref)
            ended[run_id] = _outcome(ref)
            with suppress(BenchError):  # a full disk
                batch.write_runs([*going.values(), *waiting])
            log = f"; see {logs}/{run_id}.log" if ended[run_id] == "failed" else ""
            say(f"{run_id}: {ended[run_id]} ({len(ended)} of {len(batch.runs)}){log}")

    while (waiting or going) and not should_stop():
        check_ray_head()
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
    """Say how a task ended. The reason for a failure is in the run's record or log."""
    import ray

    try:
        code = ray.get(ref)
    except Exception as error:  # cancelled, or the last of its retries
        names = f"{type(error).__name__} {type(getattr(error, 'cause', error)).__name__}"
        return "cancelled" if re.search("TaskCancelled|KeyboardInterrupt", names) else "failed"
    return {0: "finished", 130: "cancelled"}.get(code, "failed")


def check_ray_head() -> None:
    """Raise RunFailed if the head was restarted without its data: it has lost this driver, so the
    driver's tasks would never end.
    """
    import ray

    try:
        private: Any = ray
        known = private._private.worker.global_worker.gcs_client
        same = private._raylet.GcsClient(address=known.address).cluster_id == known.cluster_id
    except Exception:  # no answer (then Ray itself ends this process), or another version of Ray
        return
    if not same:
        raise RunFailed(
            "the head of the Ray cluster was restarted and has lost its tasks",
            "give the same command again once its nodes are back",
        )


def ray_queue(batches: Mapping[Path, Sequence[str]]) -> dict[str, ClusterJob]:
    """Find the runs that living drivers have not seen end: a driver removes an ended run from its
    ``runs.txt``.
    """
    jobs: dict[str, ClusterJob] = {}
    for folder, runs in batches.items():
        driver = RunsFolder(folder.parent).worked_on_by(folder.name)
        if driver is None:
            continue
        host, _, process = driver.rpartition(":")
        store = RunsFolder(folder.parents[1])
        for run_id in runs:
            jobs[run_id] = ClusterJob(
                engine="ray",
                state="running" if store.worked_on_by(run_id) else "queued",
                name=f"driver {driver}",
                detail="",
                cancel=f"kill -INT {process}, on {host}: Ctrl-C for all runs of that command",
                log=folder / "logs" / f"{run_id}.log",
            )
    return jobs
