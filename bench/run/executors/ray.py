"""Ray: each run is a task that starts a worker's command line and attends it. The driver, this process, stays with its runs.

Ray queues, places and restarts; a driver that dies takes its runs with it, each with its last state. Other drivers and ``bench cancel`` find a
driver by the lease that it holds on its batch's folder, and what it was asked to cancel in ``cancel/`` there.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.run.jobs import Batch, Place, Resources

STAYS = True  # the command stays until the runs have ended
LOOK_EVERY = 1.0
BUSY_AGAIN = 5.0  # seconds until a run that another process owns is looked at again; nothing of the cluster is held meanwhile
ENDS_WITHIN = 60.0
UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class WorkerDied(Exception):
    """A worker that was killed: Ray starts the task again, on whichever node."""


def check(resources: Resources) -> str | None:
    """Connect, and raise BenchError where that cannot be or the cluster lacks what is asked: Ray would wait for ever."""
    from bench.base.errors import BenchError, one_line

    try:
        import ray
    except ImportError:
        raise BenchError(
            "--executor ray: Ray is not installed", "pip install 'sentence-bench[ray]', in the version of the cluster"
        ) from None
    asked = os.environ.get("RAY_ADDRESS") or "auto"
    if not ray.is_initialized():
        _check_port(asked)
        try:
            ray.init(address=asked, log_to_driver=False, logging_level=logging.ERROR, namespace="bench")
        except (ConnectionError, ValueError) as error:
            raise BenchError(
                f"no Ray cluster at {asked}: {one_line(error, 120)}", "ray start --head, or RAY_ADDRESS=HOST:PORT"
            ) from None
        except RuntimeError as error:
            what = "of another version" if "ersion mismatch" in str(error) else "cannot be used"
            raise BenchError(
                f"the Ray cluster at {asked} is {what}: {one_line(error, 200)}", "the same Ray and Python here as there"
            ) from None
    wanted = {"CPU": resources.cpus or 1, "GPU": resources.gpus or 0, "memory": _bytes(resources.memory)}
    alive = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(all(node.get(key, 0) >= value for key, value in wanted.items()) for node in alive):
        most = {key: max((node.get(key, 0) for node in alive), default=0) for key in wanted}
        lacks = next((key for key, value in wanted.items() if most[key] < value), "CPU")
        shown = {"CPU": f"--cpus {wanted['CPU']}", "GPU": f"--gpus {wanted['GPU']}", "memory": f"--memory {resources.memory}"}[
            lacks
        ]
        has = f"{most[lacks] / 2**30:.1f} GiB" if lacks == "memory" else f"{most[lacks]:.0f}"
        raise BenchError(
            f"{shown}: no node of the Ray cluster has that for one run; the most is {has}", "ask for less, or add a node"
        )
    return asked


def _check_port(address: str) -> None:
    """Raises BenchError where nobody listens there: Ray itself would try for minutes."""
    from bench.base.errors import BenchError

    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError as error:
        raise BenchError(f"no Ray cluster at {address}: {error.strerror or error}", "RAY_ADDRESS=HOST:PORT of its head") from None


def _bytes(memory: str | None) -> int:
    from bench.base.errors import BenchError

    if memory is None:
        return 0
    unit = UNITS.get(memory[-1:].upper())
    number = memory[:-1] if unit else memory
    if not number.isdigit():
        raise BenchError(f"--memory {memory}: expected a number with K, M, G or T", "--memory 16G")
    return int(number) * (unit or 2**20)


def script(batch: Batch) -> str:
    """What would be started, for ``--dry-run``."""
    lines = [
        f"# {len(batch.runs)} tasks of Ray, each with {options(batch)}",
        *(batch.shell_line(i) for i in range(len(batch.runs))),
    ]
    return "\n".join(lines) + "\n"


def options(batch: Batch) -> dict[str, Any]:
    """Of the task of one run."""
    asked = batch.resources
    found: dict[str, Any] = {"num_cpus": asked.cpus or 1, "num_gpus": asked.gpus or 0, "max_retries": batch.retries}
    return found | ({"memory": _bytes(asked.memory)} if asked.memory else {})


def submit(batch: Batch) -> str:
    """Nothing is started yet: this process becomes the batch's driver. Raises BenchError where a node does not see its folders."""
    from bench.base.lease import take

    (batch.folder / "cancel").mkdir(exist_ok=True)
    check_visible(batch)
    take(batch.folder, alone=False)
    return f"this process stays with {'them' if len(batch.runs) > 1 else 'it'}"


def check_visible(batch: Batch) -> None:
    """Raises BenchError where a node that could get a run does not see the batch, the data, or this Python."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    from bench.base.errors import BenchError, one_line

    look = ray.remote(num_cpus=0, max_retries=1)(unseen)
    asked = {
        node["NodeManagerHostname"]: look.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote(batch.needed())
        for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1
    }  # fmt: skip
    for name, answer in asked.items():
        try:
            lacking = ray.get(answer, timeout=60)
        except Exception as error:  # whatever a node says: bench is not there, or the node is going
            raise BenchError(
                f"the node {name} of the Ray cluster cannot run bench: {one_line(error, 160)}",
                "the same installation there as here",
            ) from None
        if lacking:
            raise BenchError(
                f"the node {name} of the Ray cluster does not see {lacking[0]}",
                "folders that all nodes share: --runs, --data",
            )


def unseen(paths: Sequence[str]) -> list[str]:
    """A task: which of these paths are not on its node."""
    return [path for path in paths if not os.path.exists(path)]


def attend(batch: str, about: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """A task: one run. Raises WorkerDied where its worker was killed."""
    import ray

    from bench.run.executors import worker

    context = ray.get_runtime_context()
    job = {"engine": "ray", "job": context.get_task_id(), "node": f"{socket.gethostname()} {context.get_node_id()[:8]}"}
    file = Path(batch) / "runs" / f"{run['run_id']}.json"
    try:
        state = worker.attend(Path(batch), about, run, job, lambda: None, restarts=False)
    except KeyboardInterrupt:  # how Ray cancels a task
        worker.write_state(file, worker.read_state(file) | {"outcome": "cancelled", "why": "cancelled"})
        raise
    if state["outcome"] == "died":
        raise WorkerDied(state.get("why"))
    return state


def follow(batch: Batch, say: Callable[[str], None], should_stop: Callable[[], bool]) -> dict[str, dict[str, Any]]:
    """Until every run of the batch has ended; run id -> how. ``should_stop``: cancel them all, each saves its state."""
    import ray

    from bench.base.lease import held
    from bench.run.executors import worker
    from bench.runs import RunsFolder

    store = RunsFolder(batch.folder.parents[1])
    about = ray.put({"python": batch.python, "arguments": list(batch.arguments), "environment": dict(batch.environment), "directory": batch.directory,
                     "retries": batch.retries})  # fmt: skip
    task = ray.remote(attend).options(**options(batch), retry_exceptions=[WorkerDied])
    waiting = list(range(len(batch.runs)))
    later: list[tuple[float, int]] = []  # runs that another process owns
    going: dict[Any, int] = {}
    ended: dict[str, dict[str, Any]] = {}
    most, until = batch.resources.parallel or len(waiting), float("inf")
    try:
        while waiting or going or later:
            now = time.monotonic()
            if should_stop() and until == float("inf"):
                until = now + ENDS_WITHIN
                for number in [*waiting, *(number for _, number in later)]:
                    ended[batch.runs[number].run_id] = _cancelled(batch, number)
                waiting, later = [], []
                _cancel(list(going))
            for number in _asked(batch):
                for ref in [ref for ref, one in going.items() if one == number]:
                    _cancel([ref])
                if number in waiting:
                    waiting.remove(number)
                    ended[batch.runs[number].run_id] = _cancelled(batch, number)
            for at, number in [one for one in later if one[0] <= now]:
                later.remove((at, number))
                owned = store.worked_on_by(batch.runs[number].run_id)
                later.append((now + BUSY_AGAIN, number)) if owned else waiting.append(number)
            while waiting and len(going) < most:
                number = waiting.pop(0)
                going[task.remote(str(batch.folder), about, asdict(batch.runs[number]))] = number
            ready: list[Any] = []
            if going:
                ready = ray.wait(list(going), num_returns=min(len(going), 100), timeout=LOOK_EVERY)[0]
            elif later:
                time.sleep(LOOK_EVERY)
            for ref in ready:
                number = going.pop(ref)
                state = _result(ref, batch, number)
                if state["outcome"] == "busy":
                    later.append((time.monotonic() + BUSY_AGAIN, number))
                    continue
                ended[batch.runs[number].run_id] = state
                say(
                    f"{batch.runs[number].run_id}: {state['outcome']}{': ' + str(state['why']) if state.get('why') else ''} ({len(ended)} of {len(batch.runs)})"
                )
            if now > until:
                for ref in going:
                    ray.cancel(ref, force=True)
                break
        for queued in batch.runs:
            file = batch.folder / "runs" / f"{queued.run_id}.json"
            if worker.read_state(file).get("outcome", "") is None and ended.get(queued.run_id, {}).get("outcome") == "failed":
                worker.write_state(file, ended[queued.run_id])
    finally:
        if (lease := held(batch.folder)) is not None:
            lease.release()
    return ended


def _cancel(refs: Sequence[Any]) -> None:
    import ray

    for ref in refs:
        ray.cancel(ref)


def _result(ref: Any, batch: Batch, number: int) -> dict[str, Any]:
    """How a task ended, with what its attendant wrote."""
    import ray

    from bench.base.errors import one_line
    from bench.run.executors import worker

    run_id = batch.runs[number].run_id
    try:
        found: dict[str, Any] = ray.get(ref)
        return found
    except ray.exceptions.TaskCancelledError:
        return _cancelled(batch, number)
    except Exception as error:  # the last of its retries
        cause = getattr(error, "cause", error)
        if isinstance(cause, KeyboardInterrupt) or "KeyboardInterrupt" in type(error).__name__:
            return _cancelled(batch, number)
        state = batch.state(number) | {
            "outcome": "failed",
            "why": f"its worker died {batch.retries + 1} times, at last: {one_line(cause, 120)}",
        }
        worker.write_state(batch.folder / "runs" / f"{run_id}.json", state)
        worker.mark_failed(batch.folder.parents[1], run_id, state["why"])
        return state


def _cancelled(batch: Batch, number: int) -> dict[str, Any]:
    from bench.run.executors import worker

    state = {**batch.state(number), "outcome": "cancelled", "why": "cancelled"}
    return worker.write_state(batch.folder / "runs" / f"{batch.runs[number].run_id}.json", state)


def _asked(batch: Batch) -> list[int]:
    """Which runs ``bench cancel`` wants to end."""
    try:
        names = os.listdir(batch.folder / "cancel")
    except OSError:
        return []
    for name in names:
        (batch.folder / "cancel" / name).unlink(missing_ok=True)
    return [int(name) for name in names if name.isdigit() and int(name) < len(batch.runs)]


def places(batches: Sequence[Batch]) -> dict[tuple[str, int], Place]:
    """Of every driver that lives: what of its batch has not ended."""
    from bench.base.lease import owner_of
    from bench.run.jobs import Place

    found = {}
    for batch in batches:
        if (driver := owner_of(batch.folder)) is None:
            continue
        for number in range(len(batch.runs)):
            state = batch.state(number)
            if state.get("outcome", "") is None:
                found[batch.name, number] = Place("running", str(state.get("job", "")), str(state.get("node", "")))
            elif not state or state["outcome"] in ("busy", "died"):
                found[batch.name, number] = Place("queued", "", "", f"its driver is {driver}")
    return found


def cancel(batches: Sequence[Batch], which: Sequence[tuple[str, int]]) -> None:
    """Ask the drivers; each looks every second."""
    by_name = {batch.name: batch for batch in batches}
    for name, number in which:
        (by_name[name].folder / "cancel" / str(number)).touch()
