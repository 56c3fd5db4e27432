"""The attendant of a worker: starts ``bench run ... --only RUN`` on the node that an engine chose, and says how it ended.

It starts a worker that was killed again, passes a stop on to it once, keeps its log, and writes
``runs/RUN.json`` of the batch. What a run is, and whether it is finished, stands in the run's own folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

GRACE = 55.0  # seconds that a worker has to save its state after it was asked to stop
BUSY = 75  # exit code of a worker whose run another process owns
LOOK_EVERY = 0.5


def attend(
    batch: Path,
    about: Mapping[str, Any],
    run: Mapping[str, Any],
    job: Mapping[str, Any],
    stop: Callable[[], str | None],
    restarts: bool = True,
) -> dict[str, Any]:
    """Work on one run until it is finished, failed or stopped; returns what ``runs/RUN.json`` of the folder ``batch`` then says.

    ``about``: what ``batch.json`` says; ``run``: what it says of this one. ``job``: engine, job and node, for the record. ``stop``: why the
    worker is to end now; None: it is not. ``outcome`` is "done", "failed" (the run itself, not to be tried again), "refused" (by the
    worker, before anything was begun), "died" (where not ``restarts``), "busy" (another process owns the run), or what ``stop`` said.
    """
    file = batch / "runs" / f"{run['run_id']}.json"
    state = read_state(file)
    if "outcome" in state and state["outcome"] is None:  # the one before it ended with its node
        state["deaths"] = state.get("deaths", 0) + 1
        state["why"] = "its node or its attendant was lost"
    folder, log = batch.parents[1] / run["run_id"], batch / "logs" / f"{run['run_id']}.log"
    command = worker_command(about["python"], about["arguments"], run["run_id"], run["planned"])
    while True:
        if state.get("deaths", 0) > about["retries"]:
            why = f"its worker ended {state['deaths']} times, at last: {state.get('why') or 'without a word'}"
            mark_failed(batch.parents[1], run["run_id"], why)
            return write_state(file, state | {"outcome": "failed", "why": why})
        if reason := stop():
            return write_state(file, state | {"outcome": reason})
        state |= {
            "attempts": state.get("attempts", 0) + 1,
            "outcome": None,
            **job,
            "host": socket.gethostname(),
        }
        write_state(file, state)
        told = {**job, "attempts": state["attempts"], "attendant": os.getpid()}
        began = log.stat().st_size if log.exists() else 0
        code, reason = run_command(
            command,
            {**about["environment"], "BENCH_JOB": json.dumps(told)},
            about["directory"],
            log,
            stop,
        )
        outcome, said = outcome_of(code, reason, folder), last_error(log, began)
        if (
            outcome == "died" and code == 1 and said
        ):  # it could say why, but not record it: a full disk
            outcome = "failed"
        why = f"stopped ({reason})" if reason and outcome == reason else words_of(code)
        state |= {
            "outcome": outcome,
            "why": None if outcome == "done" else said or why,
            "code": code,
        }
        if outcome == "died":
            state |= {"deaths": state.get("deaths", 0) + 1, "why": why}
            if restarts:
                continue
        return write_state(file, state)


def worker_command(python: str, arguments: Sequence[str], run_id: str, planned: str) -> list[str]:
    """The command line of the worker of one run."""
    return [python, "-P", "-m", "bench", "run", *arguments, "--only", run_id, "--planned", planned]


def outcome_of(code: int, reason: str | None, folder: Path) -> str:
    """What an exit code means, with what the run's record says."""
    if code == BUSY:
        return "busy"
    status = read_state(folder / "run.json").get("status")
    if code in (0, 1) and status == "finished":
        return "done"
    if code == 1 and status == "failed":
        return "failed"
    if code == 2:
        return "refused"
    return reason if reason is not None else "died"


def words_of(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return f"ended by {signal.Signals(-code).name}"
    return f"ended by signal {-code}"


def run_command(
    command: Sequence[str],
    environment: Mapping[str, str],
    directory: str,
    log: Path,
    stop: Callable[[], str | None],
) -> tuple[int, str | None]:
    """The exit code (minus the signal's number) and why it was asked to end. What it says goes to the end of ``log``."""
    with open(log, "ab") as out:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=directory,
            env={**os.environ, **environment},
            start_new_session=True,
        )
    reason, until = None, float("inf")
    try:
        while not _ended(child, LOOK_EVERY):
            if reason is None and (reason := stop()):
                until = time.monotonic() + GRACE
                child.terminate()
            if time.monotonic() > until:
                _kill_group(child)
    except BaseException:  # an engine that stops the attendant by an exception
        child.terminate()
        if not _ended(child, GRACE):
            _kill_group(child)
        raise
    finally:
        child.poll()
        _kill_group(child)  # ranks that outlived it
    return child.wait(), reason


def _ended(child: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait so long at most, without asking again and again."""
    if child.poll() is not None:
        return True
    try:
        handle = os.pidfd_open(child.pid)
    except (OSError, AttributeError):
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(seconds)
        return child.poll() is not None
    try:
        waiting = select.poll()
        waiting.register(handle, select.POLLIN)
        waiting.poll(seconds * 1000)
    finally:
        os.close(handle)
    return child.poll() is not None


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


def end_with(attendant: int) -> None:
    """For a worker: end as by SIGTERM, at which it saves its state, when the process that attends it is gone, however it went."""

    def look() -> None:
        while os.getppid() == attendant:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=look, name="attendant", daemon=True).start()


def read_state(file: Path) -> dict[str, Any]:
    """What a file of JSON says; nothing where it cannot be read."""
    try:
        state = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def write_state(file: Path, state: Mapping[str, Any]) -> dict[str, Any]:
    """Whole or not at all; a full disk costs what is told of a run, and not the run."""
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        aside.write_text(json.dumps(dict(state)))
        aside.replace(file)
    return dict(state)


def last_error(log: Path, start: int) -> str | None:
    """The last line of a log, from a byte on, that begins with "error: "."""
    try:
        with open(log, "rb") as file:
            file.seek(max(start, os.path.getsize(log) - 8192))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    return next(
        (line.removeprefix("error: ") for line in reversed(lines) if line.startswith("error: ")),
        None,
    )


def progress(folder: Path) -> list[str]:
    """What changes when a run comes further: its states, and how many scores its record has."""
    try:
        states = sorted(name for name in os.listdir(folder / "state") if name.startswith("step-"))
    except OSError:
        states = []
    record = read_state(folder / "run.json")
    return [*states, f"{len(record.get('scores', ()))} scores", str(bool(record.get("training")))]


def mark_failed(runs: Path, run_id: str, why: str) -> None:
    """Write into the run's record, where there is one and nobody works on it, that it has failed."""
    from msgspec.structs import replace

    from bench.base.errors import BenchError
    from bench.runs import RunsFolder

    store = RunsFolder(runs)
    with contextlib.suppress(BenchError), store.lock(run_id):
        if (record := store.get(run_id)) is not None and record.status != "finished":
            store.write(replace(record, status="failed", error=why))
