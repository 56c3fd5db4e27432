"""Slurm: an array of jobs, one for each run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.base.errors import BenchError
from bench.base.files import write_or_fail
from bench.run.batch import ClusterJob, EngineSilent, JobBatch
from bench.run.target import Target

BEFORE_LIMIT = 120
"""Seconds before the time limit at which a worker is asked to save its state."""
PREFIX = "bench-"
RESERVED = ("array", "chdir", "job-name", "output", "error", "open-mode", "wrap", "parsable")
PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
SECONDS = 60.0
"""Time after which a command counts as silent."""
SCRIPT = """\
folder={folder}
run=$(sed -n "$(($1 + SLURM_ARRAY_TASK_ID + 1))p" "$folder/runs.txt")
exec >> "$folder/logs/$run.log" 2>&1
saved() {{ ls {runs}/"$run"/state {runs}/"$run"/predictions 2> /dev/null; }}
stop() {{ stopped=${{stopped:-$1}}; kill -TERM "$child" 2> /dev/null; }}
trap 'stop limit' USR1
trap 'stop cancelled' TERM
before=$(saved)
attempt=${{SLURM_RESTART_COUNT:-0}}
last=$((attempt + {retries}))
while :; do
    attempt=$((attempt + 1))
    job="${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"
    export BENCH_JOB="slurm $job ${{SLURMD_NODENAME:-?}} $attempt"
    sh "$folder/worker.sh" "$run" &
    child=$!
    wait "$child"; code=$?
    while kill -0 "$child" 2> /dev/null; do wait "$child"; code=$?; done
    [ -n "$stopped" ] && break
    # again only if a signal killed it, and not too often
    [ "$code" -gt 130 ] && [ "$attempt" -le "$last" ] || exit "$code"
done
[ "$stopped" = limit ] || exit 130
case $code in 0|1|2) exit "$code";; esac
if [ "$(saved)" = "$before" ]; then
    echo "error: the time limit came before anything new was saved;" \\
        "a longer time=... in --on slurm, or BENCH_SAVE_SECONDS"
    exit 1
fi
for _ in 1 2 3 4 5; do
    # it sleeps until Slurm ends this job
    scontrol requeue "$job" && exec sleep 60
    sleep 2
done
exit 1
"""


def check_slurm(target: Target, connect: bool) -> None:
    """Raise BenchError for an option that cannot be passed on and, with ``connect``, if there is no
    sbatch here.
    """
    for key, value in target.options:
        if not re.fullmatch("[a-z][a-z0-9-]*", key) or "\n" in value or key in RESERVED:
            raise BenchError(
                f"--on slurm:{key}={value!r}: not an option of sbatch, or one that the script sets",
                "parallel=N is the number of jobs at once",
            )
    if connect and shutil.which("sbatch") is None:
        raise BenchError(
            "--on slurm: no sbatch on this machine",
            "run this on a machine that submits jobs; --dry-run prints the script here, --on "
            "commands a command for each run",
        )


def slurm_script(batch: JobBatch) -> str:
    """Return the script of one element; its argument is the number of the array's first run in the
    batch.
    """
    target = batch.target
    options = {
        "output": "/dev/null",  # the script writes a log for each run
        "nodes": "1",
        "ntasks": "1",
        "requeue": "",
        "signal": f"B:USR1@{BEFORE_LIMIT}",
        "cpus-per-task": target.cpus,
        "gres": target.gpus and f"gpu:{target.gpus}",
        "mem": target.memory,
        **dict(target.options),
    }
    lines = ["#!/bin/sh"]
    for key, value in options.items():
        if value:
            lines.append(f"#SBATCH --{key}={_quoted(str(value))}")
        elif value is not None:
            lines.append(f"#SBATCH --{key}")
    submission = shlex.join(_submission(batch, 0, len(batch.runs)))
    lines.append("# submitted as: " + submission.replace("\n", " "))
    script = SCRIPT.format(
        folder=shlex.quote(str(batch.folder)),
        runs=shlex.quote(str(batch.folder.parents[1])),
        retries=target.retries,
    )
    return "\n".join([*lines, script])


def _quoted(value: str) -> str:
    """Quote a value as sbatch reads it in a script: in double quotes, with a backslash before
    quotes and backslashes. A plain one is unchanged.
    """
    if PLAIN.fullmatch(value):
        return value
    escaped = re.sub(r'([\\"])', r"\\\1", value)
    return f'"{escaped}"'


def _submission(batch: JobBatch, first: int, size: int, after: str | None = None) -> list[str]:
    """Return the command that queues ``size`` runs of a batch from number ``first`` on.

    ``after``: the array to wait for.
    """
    array = f"0-{size - 1}"
    if batch.target.parallel:
        array += f"%{batch.target.parallel}"
    command = ["sbatch", "--parsable", f"--job-name={PREFIX}{batch.name}.{first}"]
    command += [f"--array={array}", "--chdir=/"]
    if after:
        command.append(f"--dependency=afterany:{after}")
    return [*command, str(batch.folder / "job.sh"), str(first)]


def submit_batch(batch: JobBatch) -> list[str]:
    """Queue the batch as one array, or as several if it is larger than the cluster's MaxArraySize.

    Returns their ids.

    With ``parallel`` each array waits for the one before. Raises BenchError with sbatch's own
    message.
    """
    write_or_fail(batch.folder / "job.sh", slurm_script(batch).encode())
    shown = re.search(r"MaxArraySize\s*=\s*(\d+)", _call(["scontrol", "show", "config"]).stdout)
    most = int(shown[1]) if shown else len(batch.runs)
    jobs: list[str] = []
    for first in range(0, len(batch.runs), most):
        after = jobs[-1] if jobs and batch.target.parallel else None
        done = _call(_submission(batch, first, min(most, len(batch.runs) - first), after))
        if done.returncode:
            message = re.sub("sbatch: error:|Batch job submission failed:", "", done.stderr)
            queued = ""
            if jobs:
                queued = f"; {first} of {len(batch.runs)} runs are queued as {', '.join(jobs)}"
            else:
                shutil.rmtree(batch.folder, ignore_errors=True)
            raise BenchError(
                f"sbatch refused: {' '.join(message.split())}{queued}",
                "sinfo shows what the cluster has; gpus, cpus, memory and options of sbatch go "
                "into --on slurm:...",
            )
        jobs.append(done.stdout.strip().partition(";")[0])
    return jobs


def slurm_queue(batches: Mapping[Path, Sequence[str]]) -> dict[str, ClusterJob]:
    """Ask squeue once for this user's jobs. Raises EngineSilent."""
    done = _call(
        [
            "squeue",
            "--noheader",
            "--array",
            f"--user={os.getuid()}",
            "--format=%F_%K|%T|%N|%r|%j",
        ]
    )
    if done.returncode:
        raise EngineSilent(
            f"squeue: {' '.join(done.stderr.split())[:160]}; what is queued or running on Slurm "
            "is unknown",
            "give the same command again later, on a machine that submits jobs",
        )
    by_name = {PREFIX + folder.name: folder for folder in batches}
    jobs: dict[str, ClusterJob] = {}
    for line in done.stdout.splitlines():
        fields = line.split("|", 4)
        fields += [""] * (5 - len(fields))
        name, state, node, why, job_name = fields
        batch_name, _, first = job_name.rpartition(".")
        index = name.rpartition("_")[2]
        if batch_name not in by_name or not (first + index).isdigit():
            continue
        folder = by_name[batch_name]
        run_id = batches[folder][int(first) + int(index)]
        waits = state in ("PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")
        detail = ""
        if waits and why != "None":
            detail = f"({why})"
        elif node:
            detail = f"on {node}"
        jobs[run_id] = ClusterJob(
            state="queued" if waits else "running",
            name=name,
            detail=detail,
            cancel=f"scancel {name}",
            log=folder / "logs" / f"{run_id}.log",
        )
    return jobs


def _call(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command without a shell. One that is missing or does not answer in time has failed."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        why = f"{command[0]} did not answer within {SECONDS:.0f} s"
    except OSError as error:
        why = f"{command[0]}: {error.strerror}"
    return subprocess.CompletedProcess(list(command), 1, "", why)
