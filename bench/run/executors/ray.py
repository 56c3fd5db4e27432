"""Ray: each run is a task that starts a worker's command line and attends it. The driver, this process, stays with its runs.

Ray queues, places and restarts; a driver that dies takes its runs with it, each with its last state. Other drivers and ``bench cancel`` find a
driver by the lease that it holds on its batch's folder, and what it was asked to cancel in ``cancel/`` there.

With ``--return`` no folder is shared: a task works in a folder of its node, which it returns as an archive, and the driver takes it in.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError, RunFailed, one_line
from bench.base.lease import lease_of, owner_of, take
from bench.run.executors import worker

if TYPE_CHECKING:
    from bench.run.jobs import Batch, QueueState, Resources

STAYS = True  # the command stays until the runs have ended
LOOK_EVERY = 1.0
BUSY_AGAIN = 5.0  # seconds until a run that another process owns is looked at again; nothing of the cluster is held meanwhile
ENDS_WITHIN = 60.0
HEAD_EVERY = 10.0  # seconds between two looks at the cluster's head
UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class WorkerDied(Exception):
    """A worker that was killed: Ray starts the task again, on whichever node."""


def check(resources: Resources, connect: bool = True) -> str | None:
    """Connect, and raise BenchError where that cannot be or the cluster lacks what is asked: Ray would wait for ever."""
    memory = _bytes(resources.memory)
    if not connect:
        return None
    try:
        import ray
    except ImportError:
        raise BenchError(
            "--executor ray: Ray is not installed",
            "pip install 'sentence-bench[ray]', in the version of the cluster",
        ) from None
    asked = os.environ.get("RAY_ADDRESS") or "auto"
    if not ray.is_initialized():
        _check_port(asked)
        try:
            ray.init(
                address=asked, log_to_driver=False, logging_level=logging.ERROR, namespace="bench"
            )
        except (ConnectionError, ValueError) as error:
            raise BenchError(
                f"no Ray cluster at {asked}: {one_line(error, 120)}",
                "ray start --head, or RAY_ADDRESS=HOST:PORT",
            ) from None
        except RuntimeError as error:
            what = "of another version" if "ersion mismatch" in str(error) else "cannot be used"
            raise BenchError(
                f"the Ray cluster at {asked} is {what}: {one_line(error, 200)}",
                "the same Ray and Python here as there",
            ) from None
    wanted = {"CPU": resources.cpus or 1, "GPU": resources.gpus or 0, "memory": memory}
    alive = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(all(node.get(key, 0) >= value for key, value in wanted.items()) for node in alive):
        most = {key: max((node.get(key, 0) for node in alive), default=0) for key in wanted}
        lacks = next((key for key, value in wanted.items() if most[key] < value), "CPU")
        shown = {
            "CPU": f"--cpus {wanted['CPU']}",
            "GPU": f"--gpus {wanted['GPU']}",
            "memory": f"--memory {resources.memory}",
        }[lacks]
        has = f"{most[lacks] / 2**30:.1f} GiB" if lacks == "memory" else f"{most[lacks]:.0f}"
        raise BenchError(
            f"{shown}: no node of the Ray cluster has that for one run; the most is {has}",
            "ask for less, or add a node",
        )
    return asked


def _check_port(address: str) -> None:
    """Raises BenchError where nobody listens there: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError as error:
        raise BenchError(
            f"no Ray cluster at {address}: {error.strerror or error}",
            "RAY_ADDRESS=HOST:PORT of its head",
        ) from None


def _bytes(memory: str | None) -> int:
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
    memory = {"memory": _bytes(asked.memory)} if asked.memory else {}
    return {
        "num_cpus": asked.cpus or 1,
        "num_gpus": asked.gpus or 0,
        "max_retries": batch.retries,
        **memory,
    }


def submit(batch: Batch) -> str:
    """Nothing is started yet: this process becomes the batch's driver. Raises BenchError where a node does not see its folders."""
    (batch.folder / "cancel").mkdir(exist_ok=True)
    check_visible(batch)
    take(batch.folder, alone=False)
    return f"this process stays with {'them' if len(batch.runs) > 1 else 'it'}"


def check_visible(batch: Batch) -> None:
    """Raises BenchError where a node that could get a run does not see the batch, the data, or this Python."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    look = ray.remote(num_cpus=0, max_retries=1)(unseen_paths)
    asked = {
        node["NodeManagerHostname"]: look.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        ).remote(batch.needed())
        for node in ray.nodes()
        if node["Alive"] and node["Resources"].get("CPU", 0) >= 1
    }
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
                "folders that all nodes share: --runs, --data; or --return, where they do not share --runs",
            )


def unseen_paths(paths: Sequence[str]) -> list[str]:
    """A task: which of these paths are not on its node."""
    return [path for path in paths if not os.path.exists(path)]


def attend(batch: str, about: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """A task: one run. Raises WorkerDied where its worker was killed. Of a run that returns also its ``archive`` and its ``log``."""
    import ray

    from bench.runs.intact import pack_run

    if (
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):  # as in all that a script starts in the background; Ray cancels by it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    context = ray.get_runtime_context()
    job = {
        "engine": "ray",
        "job": context.get_task_id(),
        "node": f"{socket.gethostname()} {context.get_node_id()[:8]}",
    }
    folder, about = (
        (Path(batch), about)
        if about["files"] is None
        else at_home(Path(batch), about, run["run_id"])
    )
    file = folder / "runs" / f"{run['run_id']}.json"
    try:
        state = worker.attend(folder, about, run, job, lambda: None, restarts=False)
    except KeyboardInterrupt:  # how Ray cancels a task
        worker.write_state(
            file, worker.read_state(file) | {"outcome": "cancelled", "why": "cancelled"}
        )
        raise
    if state["outcome"] == "died":
        raise WorkerDied(state.get("why"))
    if about["files"] is None or state["outcome"] == "busy":
        return state
    runs, log = folder.parents[1], folder / "logs" / f"{run['run_id']}.log"
    made = pack_run(runs / run["run_id"]) if (runs / run["run_id"] / "run.json").is_file() else None
    state |= {"archive": made, "log": log.read_bytes()}
    shutil.rmtree(runs, ignore_errors=True)
    return state


def at_home(batch: Path, about: dict[str, Any], run_id: str) -> tuple[Path, dict[str, Any]]:
    """The folder of a batch in a runs folder of this node's own, for one run, and what its worker is told there."""
    from bench.run.jobs import worker_environment

    own = Path(tempfile.gettempdir()) / f"bench-{os.getuid()}-{about['home']}"
    own.mkdir(mode=0o700, exist_ok=True)
    if own.lstat().st_uid != os.getuid():
        raise PermissionError(f"{own} is another user's")
    runs, old = own / run_id, str(batch.parents[1])
    for name in ("logs", "runs"):
        (runs / batch.parent.name / batch.name / name).mkdir(parents=True, exist_ok=True)
    for name, content in about["files"].items():
        (runs / name).parent.mkdir(parents=True, exist_ok=True)
        (runs / name).write_bytes(content)
    words = [
        str(runs) + word.removeprefix(old)
        if word == old or word.startswith(f"{old}/{batch.parent.name}/")
        else word
        for word in about["arguments"]
    ]
    here = {
        name: value
        for name, value in worker_environment().items()
        if name in ("PYTHONPATH", "BENCH_CACHE")
    }
    here["TMPDIR"] = tempfile.gettempdir()
    directory = about["directory"] if os.path.isdir(about["directory"]) else str(runs)
    told = {
        "python": sys.executable,
        "arguments": words,
        "environment": {**about["environment"], **here},
        "directory": directory,
    }
    return runs / batch.parent.name / batch.name, about | told


def follow(
    batch: Batch,
    say: Callable[[str], None],
    should_stop: Callable[[], bool],
    take_in: Callable[[str, bytes], str | None],
) -> dict[str, dict[str, Any]]:
    """Until every run of the batch has ended; run id -> how. ``should_stop``: cancel them all, each saves its state. ``take_in``: the archive
    of a run that came back; says why not."""
    import ray

    from bench.runs import RunsFolder

    store = RunsFolder(batch.folder.parents[1])
    about = ray.put(
        {
            "python": batch.python,
            "arguments": list(batch.arguments),
            "environment": dict(batch.environment),
            "directory": batch.directory,
            "retries": batch.retries,
            **files_to_send(batch),
        }
    )
    task = ray.remote(attend).options(**options(batch), retry_exceptions=[WorkerDied])
    waiting = list(range(len(batch.runs)))
    later: list[tuple[float, int]] = []  # runs that another process owns
    going: dict[Any, int] = {}
    ended: dict[str, dict[str, Any]] = {}
    most, until, look = batch.resources.parallel or len(waiting), float("inf"), time.monotonic()
    try:
        while waiting or going or later:
            now = time.monotonic()
            if now > look:
                check_head()
                look = now + HEAD_EVERY
            if should_stop() and until == float("inf"):
                until = now + ENDS_WITHIN
                for number in [*waiting, *(number for _, number in later)]:
                    ended[batch.runs[number].run_id] = _cancelled(batch, number)
                waiting, later = [], []
                for ref in going:
                    ray.cancel(ref)
            for number in _asked(batch):
                for ref in [ref for ref, at_work in going.items() if at_work == number]:
                    ray.cancel(ref)
                if number in waiting:
                    waiting.remove(number)
                    ended[batch.runs[number].run_id] = _cancelled(batch, number)
            for at, number in [retry for retry in later if retry[0] <= now]:
                later.remove((at, number))
                owned = store.worked_on_by(batch.runs[number].run_id)
                later.append((now + BUSY_AGAIN, number)) if owned else waiting.append(number)
            while waiting and len(going) < most:
                number = waiting.pop(0)
                going[task.remote(str(batch.folder), about, asdict(batch.runs[number]))] = number
            ready: list[Any] = []
            if going:
                ready = ray.wait(list(going), num_returns=min(len(going), 100), timeout=LOOK_EVERY)[
                    0
                ]
            elif later:
                time.sleep(LOOK_EVERY)
            for ref in ready:
                number = going.pop(ref)
                state = _arrived(_result(ref, batch, number), batch, number, take_in)
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
        for number, queued in enumerate(batch.runs):
            if (
                batch.state(number).get("outcome", "") is None
                and ended.get(queued.run_id, {}).get("outcome") == "failed"
            ):
                worker.write_state(batch.state_file(number), ended[queued.run_id])
    finally:
        if (lease := lease_of(batch.folder)) is not None:
            lease.release()
    return ended


def check_head() -> None:
    """Raises RunFailed where the head began anew without what it knew: it has forgotten this driver, whose tasks would never end."""
    import ray

    try:
        private: Any = ray
        known = private._private.worker.global_worker.gcs_client
        same = private._raylet.GcsClient(address=known.address).cluster_id == known.cluster_id
    except Exception:  # it is silent: Ray ends this process where it stays so; or another Ray, which has no such names
        return
    if not same:
        raise RunFailed(
            "the head of the Ray cluster was restarted and knows nothing of its tasks",
            "the same command, once its nodes are back",
        )


def files_to_send(batch: Batch) -> dict[str, Any]:
    """Of runs that return: the files of --plugin, by their place below the runs folder, and the name of their folder on a node."""
    if not batch.resources.returns:
        return {"files": None}
    runs = batch.folder.parents[1]
    plugins = [
        path
        for file in batch.given("--plugin")
        for path in Path(file).parent.rglob("*")
        if path.is_file()
    ]
    files = {path.relative_to(runs).as_posix(): path.read_bytes() for path in plugins}
    return {
        "files": files,
        "home": hashlib.sha256(f"{socket.gethostname()} {runs}".encode()).hexdigest()[:12],
    }


def _arrived(
    state: dict[str, Any], batch: Batch, number: int, take_in: Callable[[str, bytes], str | None]
) -> dict[str, Any]:
    """How a run ended whose log and archive came back, once they are in their places."""
    if "archive" not in state:
        return state
    archive, said = state.pop("archive"), state.pop("log")
    with contextlib.suppress(OSError), open(batch.log(number), "ab") as log:
        log.write(said)
    if archive is not None and (why := take_in(batch.runs[number].run_id, archive)):
        state |= {"outcome": "failed", "why": f"what came back is refused: {why}"}
    return worker.write_state(batch.state_file(number), state)


def _result(ref: Any, batch: Batch, number: int) -> dict[str, Any]:
    """How a task ended, with what its attendant wrote."""
    import ray

    try:
        state: dict[str, Any] = ray.get(ref)
        return state
    except ray.exceptions.TaskCancelledError:
        return _cancelled(batch, number)
    except Exception as error:  # the last of its retries
        cause = getattr(error, "cause", error)
        if isinstance(cause, KeyboardInterrupt) or "KeyboardInterrupt" in type(error).__name__:
            return _cancelled(batch, number)
        why = f"its worker died {batch.retries + 1} times, at last: {one_line(cause, 120)}"
        state = worker.write_state(
            batch.state_file(number), batch.state(number) | {"outcome": "failed", "why": why}
        )
        worker.mark_failed(batch.folder.parents[1], batch.runs[number].run_id, why)
        return state


def _cancelled(batch: Batch, number: int) -> dict[str, Any]:
    return worker.write_state(
        batch.state_file(number), batch.state(number) | {"outcome": "cancelled", "why": "cancelled"}
    )


def _asked(batch: Batch) -> list[int]:
    """Which runs ``bench cancel`` wants to end."""
    try:
        names = os.listdir(batch.folder / "cancel")
    except OSError:
        return []
    for name in names:
        (batch.folder / "cancel" / name).unlink(missing_ok=True)
    return [int(name) for name in names if name.isdigit() and int(name) < len(batch.runs)]


def places(batches: Sequence[Batch]) -> dict[tuple[str, int], QueueState]:
    """Of every driver that lives: what of its batch has not ended."""
    from bench.run.jobs import QueueState

    places = {}
    for batch in batches:
        if (driver := owner_of(batch.folder)) is None:
            continue
        for number in range(len(batch.runs)):
            state = batch.state(number)
            if state.get("outcome", "") is None:
                places[batch.name, number] = QueueState(
                    "running", str(state.get("job", "")), str(state.get("node", ""))
                )
            elif not state or state["outcome"] in ("busy", "died"):
                places[batch.name, number] = QueueState("queued", "", "", f"its driver is {driver}")
    return places


def cancel(batches: Sequence[Batch], which: Sequence[tuple[str, int]]) -> None:
    """Ask the drivers; each looks every second."""
    by_name = {batch.name: batch for batch in batches}
    for name, number in which:
        (by_name[name].folder / "cancel" / str(number)).touch()
