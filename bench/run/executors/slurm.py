"""Slurm, through ``sbatch``, ``squeue`` and ``scancel`` alone: job arrays that Slurm queues, places and restarts.

A batch is one script; an element of an array is one run, its number in the batch being the array's index plus the script's argument. In the
job ``python -m bench.run.executors.slurm BATCH OFFSET`` attends the worker. When the time limit nears, it lets the worker save its state
and asks Slurm to queue the same job again (``scontrol requeue``: a new sbatch would escape the array's limit of jobs at once).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError
from bench.base.files import write_or_fail
from bench.run.executors import worker

if TYPE_CHECKING:
    from bench.run.jobs import Batch, QueueState, Resources

BEFORE_LIMIT = 120  # seconds before the time limit at which a worker is asked to save its state
PREFIX = "bench-"
OURS = (
    "array",
    "chdir",
    "job-name",
    "output",
    "error",
    "open-mode",
    "wrap",
    "parsable",
)  # options that the script needs for itself
PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
MOST = 50_000  # elements that are tried as one array; what the cluster allows is found by trying
SECONDS = 30.0  # until a command counts as silent
LOOKS_WITHIN = 15.0  # seconds until a node has looked; sbatch --wait asks after 2 and after 10
UNSEEN = 100  # exit code of that look at the first path, 101 at the second
WHERE = (
    "partition",
    "account",
    "qos",
    "constraint",
    "reservation",
    "nodelist",
    "exclude",
    "clusters",
)  # options that choose nodes
LACKS = "sinfo shows what the cluster has; --slurm, --gpus, --cpus, --memory"


def check(resources: Resources, connect: bool = True) -> str | None:
    """Raises BenchError where an option cannot be passed on, or, to ``connect``, no sbatch is here."""
    for key, value in resources.options:
        if not re.fullmatch("[a-z][a-z0-9-]*", key) or "\n" in value:
            raise BenchError(
                f"--slurm {key}={value!r}: no option of sbatch",
                "--slurm partition=gpu,time=4:00:00",
            )
        if key in OURS:
            raise BenchError(
                f"--slurm {key}: the script sets that itself",
                "--parallel N for the number of jobs at once" if key == "array" else None,
            )
    if resources.memory is not None and not re.fullmatch(r"[0-9]+[KMGT]?", resources.memory):
        raise BenchError(
            f"--memory {resources.memory}: expected a number with K, M, G or T", "--memory 16G"
        )
    if connect and shutil.which("sbatch") is None:
        raise BenchError(
            "--executor slurm: no sbatch on this machine",
            "run this where jobs are submitted; --dry-run prints the script here; or --commands, and submit the lines",
        )
    return None


def script(batch: Batch) -> str:
    """The job of one element; what it is submitted with stands in a comment."""
    resources = batch.resources
    options = {
        "output": "slurm.log",
        "open-mode": "append",
        "nodes": "1",
        "ntasks": "1",
        "requeue": "",
        "signal": f"B:USR1@{BEFORE_LIMIT}",
    }
    if resources.cpus is not None:
        options["cpus-per-task"] = str(resources.cpus)
    if resources.gpus is not None:
        options["gres"] = f"gpu:{resources.gpus}"
    if resources.memory is not None:
        options["mem"] = resources.memory
    options |= dict(resources.options)
    lines = [
        f"#SBATCH --{key}" + (f"={_quoted(value)}" if value else "")
        for key, value in options.items()
    ]
    variables = [
        f"export {key}={shlex.quote(value)}" for key, value in sorted(batch.environment.items())
    ]
    arguments = [
        " ".join(shlex.quote(word).splitlines())
        for word in submission(batch, 0, len(batch.runs), resources.parallel)
    ]
    return "\n".join(
        [
            "#!/bin/sh",
            *lines,
            f"# submitted as: {' '.join(arguments)}  ({len(batch.runs)} runs; as many arrays as the cluster's MaxArraySize asks for)",
            f"# each job attends:  bench run {shlex.join(batch.arguments)} --only RUN_ID",
            *variables,
            f'exec {shlex.quote(batch.python)} -P -m bench.run.executors.slurm {shlex.quote(str(batch.folder))} "$1"',
            "",
        ]
    )


def _quoted(value: str) -> str:
    """As sbatch reads a line of a script: in double quotes, a backslash before what ends them."""
    return value if PLAIN.fullmatch(value) else '"' + re.sub(r'([\\"])', r"\\\1", value) + '"'


def submission(
    batch: Batch, offset: int, count: int, parallel: int | None, after: str | None = None
) -> list[str]:
    """The command that queues ``count`` runs of a batch from number ``offset`` on."""
    limit = f"%{parallel}" if parallel is not None else ""
    depends = [f"--dependency=afterany:{after}"] if after is not None else []
    return [
        "sbatch",
        "--parsable",
        f"--job-name={PREFIX}{batch.name}.{offset}",
        f"--array=0-{count - 1}{limit}",
        f"--chdir={batch.folder}",
        *depends,
        str(batch.folder / "job.sh"),
        str(offset),
    ]


def submit(batch: Batch) -> str:
    """Raises BenchError with what sbatch says, and with how much was queued before it said so."""
    write_or_fail(batch.folder / "job.sh", script(batch).encode())
    unknown = [*check_granted(batch), *check_visible(batch)]
    total, most, offset, jobs = len(batch.runs), min(len(batch.runs), MOST), 0, list[str]()
    while offset < total:
        size, limit, after = _share(total, most, offset, batch.resources.parallel, jobs)
        done = _call(submission(batch, offset, size, limit, after), 120)
        if done.returncode == 0:
            jobs.append(done.stdout.strip().partition(";")[0])
            offset += size
            continue
        said = _said(done)
        if "array" in said.lower() and most > 1:
            most = 1000 if most > 1000 else most // 2
            continue
        queued = f"; {offset} of {total} runs were queued before" if offset else ""
        raise BenchError(f"sbatch refuses: {said}{queued}", LACKS)
    return "; ".join(
        [
            f"job{'s' if len(jobs) > 1 else ''} {', '.join(jobs[:5])}{', ...' if len(jobs) > 5 else ''}",
            *unknown,
        ]
    )


def check_granted(batch: Batch) -> list[str]:
    """Raises BenchError for what no node has: sbatch itself may queue such a job, which then waits for ever. Words where it is not known."""
    done = _call(["sbatch", "--test-only", str(batch.folder / "job.sh"), "0"], 120)
    if done.returncode == 0:
        return []
    if (
        "not available" in _said(done)
        and _call(["sbatch", "--test-only", *_where(batch), "--wrap=true"], 120).returncode
    ):
        return ["no node is up now, so whether one has what is asked is not known"]
    raise BenchError(f"sbatch refuses: {_said(done)}", LACKS)


def check_visible(batch: Batch) -> list[str]:
    """Raises BenchError where a node does not see the batch, the data, or this Python: a job of one core asks. Words where none ran in time."""
    paths, name = batch.needed(), f"{PREFIX}looks.{batch.name}"
    look = "; ".join(
        f"test -e {shlex.quote(path)} || exit {UNSEEN + i}" for i, path in enumerate(paths)
    )
    asked = [
        "--chdir=/",
        "--output=/dev/null",
        "--ntasks=1",
        "--mem=100M",
        "--time=1",
        *_where(batch),
        f"--wrap={look}",
    ]
    done = _call(["sbatch", "--wait", f"--job-name={name}", *asked], LOOKS_WITHIN)
    if done.returncode == 0:
        return []
    if UNSEEN <= done.returncode < UNSEEN + len(paths):
        raise BenchError(
            f"a node of Slurm does not see {paths[done.returncode - UNSEEN]}",
            "folders that all nodes share: --runs, --data",
        )
    _call(["scancel", f"--name={name}"], SECONDS)
    return [f"no node has said whether it sees {batch.folder.parents[1]} ({_said(done)})"]


def _where(batch: Batch) -> list[str]:
    return [f"--{key}={value}" for key, value in batch.resources.options if key in WHERE]


def _said(done: subprocess.CompletedProcess[str]) -> str:
    """What sbatch refuses, in one line."""
    text = re.sub(
        "sbatch: error:|Batch job submission failed:|allocation failure:", "", done.stderr
    )
    return " ".join(text.split()).strip(" :") or f"exit code {done.returncode}"


def _share(
    total: int, most: int, offset: int, parallel: int | None, jobs: Sequence[str]
) -> tuple[int, int | None, str | None]:
    """(size of the next array, its jobs at once, the array it waits for). All arrays together keep to ``parallel``."""
    arrays = -(-total // most)
    size = min(most, total - offset, -(-total // arrays))
    if parallel is None:
        return size, None, None
    lanes = min(arrays, parallel)
    lane = len(jobs) % lanes
    limit = parallel // lanes + (lane < parallel % lanes)
    return size, limit, jobs[-lanes] if len(jobs) >= lanes else None


def places(batches: Sequence[Batch]) -> dict[tuple[str, int], QueueState]:
    """What squeue says of every job of this user, asked once. Raises EngineSilent."""
    from bench.run.jobs import EngineSilent, QueueState

    try:
        done = _call(
            [
                "squeue",
                "--noheader",
                "--array",
                f"--user={os.getuid()}",
                "--format=%F|%K|%T|%N|%r|%j",
            ],
            SECONDS,
        )
    except FileNotFoundError:
        raise EngineSilent("no squeue on this machine", "ask where jobs are submitted") from None
    if done.returncode:
        raise EngineSilent(
            f"squeue did not answer: {' '.join(done.stderr.split())[:160]}", "the same again, later"
        )
    known = {PREFIX + batch.name: batch.name for batch in batches}
    queue: dict[tuple[str, int], QueueState] = {}
    for line in done.stdout.splitlines():
        job, index, state, node, why, name = [*line.split("|", 5), "", "", "", "", ""][:6]
        name, _, offset = name.rpartition(".")
        batch = known.get(name)
        if batch is None or not index.isdigit():
            continue
        number = int(index) + (int(offset) if offset.isdigit() else 0)
        queued = state in ("PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")
        queue[batch, number] = QueueState(
            "queued" if queued else "running",
            f"{job}_{index}",
            node,
            why if queued and why != "None" else "",
        )
    return queue


def cancel(batches: Sequence[Batch], which: Sequence[tuple[str, int]]) -> None:
    """scancel; each job's worker gets SIGTERM, and saves its state."""
    from bench.run.jobs import EngineSilent

    wanted = set(which)
    names = [place.job for key, place in places(batches).items() if key in wanted]
    for start in range(0, len(names), 500):
        done = _call(["scancel", *names[start : start + 500]], SECONDS)
        if done.returncode and "Invalid job id" not in done.stderr:
            raise EngineSilent(f"scancel: {' '.join(done.stderr.split())[:160]}", "the same again")


def _call(command: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    """No shell. A command that says nothing for so long is one that failed."""
    try:
        return subprocess.run(
            list(command), capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(
            list(command), 1, "", f"{command[0]}: nothing within {seconds:.0f} s"
        )


# --- in a job ---

ORPHANED = "lost its step daemon"  # which Slurm finds out some minutes later
STILL = 2  # jobs in a row that brought no new state, after which a run has failed


def main(batch: Path, offset: int) -> int:
    """Attend one element of an array until it has ended; the exit code is that of the job."""
    array, index = os.environ["SLURM_ARRAY_JOB_ID"], os.environ["SLURM_ARRAY_TASK_ID"]
    number, asked, parent = int(index) + offset, list[str](), os.getppid()
    signal.signal(signal.SIGTERM, lambda number, frame: asked.append("cancelled"))
    signal.signal(signal.SIGUSR1, lambda number, frame: asked.append("time limit"))

    def stop() -> str | None:
        if asked:
            return asked[0]
        return ORPHANED if os.getppid() != parent else None

    job = {
        "engine": "slurm",
        "job": f"{array}_{index}",
        "node": os.environ.get("SLURMD_NODENAME", ""),
    }
    about = json.loads((batch / "batch.json").read_bytes())
    state = worker.attend(batch, about, about["runs"][number], job, stop)
    if state["outcome"] in ("time limit", "busy", ORPHANED):
        return again(batch, number, state, f"{array}_{index}", asked)
    return {"done": 0, "cancelled": 130}.get(state["outcome"], 1)


def again(
    batch: Path,
    number: int,
    state: dict[str, Any],
    job: str,
    asked: list[str],
    command: Sequence[str] = ("scontrol", "requeue"),
) -> int:
    """Queue this very job again, unless two jobs in a row brought nothing new: then the run has failed."""
    run_id = json.loads((batch / "batch.json").read_bytes())["runs"][number]["run_id"]
    file, now = batch / "runs" / f"{run_id}.json", worker.progress(batch.parents[1] / run_id)
    if (
        state["outcome"] == "time limit"
    ):  # else another process goes on with it, or the node is to blame
        state["still"] = (
            state.get("still", 0) + 1
            if now == state.get("progress", worker.progress(Path()))
            else 0
        )
        state["progress"] = now
    if state.get("still", 0) >= STILL:
        why = f"{STILL} jobs in a row ended at the time limit without a new state"
        state |= {
            "outcome": "failed",
            "why": f"{why}; a longer --slurm time=..., or BENCH_SAVE_SECONDS",
        }
        worker.write_state(file, state)
        worker.mark_failed(batch.parents[1], run_id, state["why"])
        return 1
    worker.write_state(file, state | {"outcome": "requeued", "why": state["outcome"]})
    for _ in range(5):
        asked.clear()
        done = _call([*command, job], SECONDS)
        if done.returncode == 0:
            time.sleep(60 if state["outcome"] != ORPHANED else 0)  # until Slurm ends this job
            return 0
        time.sleep(2)
    why = f"{state['outcome']}; not queued again: {' '.join(done.stderr.split())[:120]}"
    worker.write_state(file, state | {"outcome": "interrupted", "why": why})
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
