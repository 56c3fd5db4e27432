"""Slurm: an array of jobs, one for each run.

It is used through ``sbatch``, ``squeue`` and ``scontrol`` alone. The script of an element of the
array starts the worker, starts it again if it was killed, and, when the time limit is near, lets it
save its state and asks Slurm to queue the same job again (a new ``sbatch`` would escape the array's
limit of jobs at once).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.base.errors import BenchError
from bench.base.files import write_or_fail
from bench.base.reading import SETTINGS_BYTES, read_plain_file
from bench.records import RunsFolder
from bench.run.done import is_finished
from bench.run.planned import PlannedRun
from bench.run.session import Session
from bench.run.target import Target
from bench.run.workers import JOBS_FOLDER, JobBatch, prepare_workers

BEFORE_LIMIT = 120
"""Seconds before the time limit at which a worker is asked to save its state."""
PREFIX = "bench-"
RESERVED = ("array", "chdir", "job-name", "output", "error", "open-mode", "wrap", "parsable")
PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
SECONDS = 60.0
"""Time after which a command counts as silent."""
SCRIPT = """\
folder={folder}
run=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" "$folder/runs.txt")
exec >> "$folder/logs/$run.log" 2>&1
saved() {{
    ls -R {runs}/"$run"/state {runs}/"$run"/predictions
    # the first bytes of a state hold its step
    head -c 1000000 {runs}/"$run"/state/state.pt | cksum
}} 2> /dev/null
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
    """Return the script of an element of the array, which does one run."""
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
    submission = shlex.join(_submission(batch))
    lines.append("# submitted as: " + submission.replace("\n", " "))
    script = SCRIPT.format(
        folder=shlex.quote(str(batch.folder)),
        runs=shlex.quote(str(batch.folder.parents[1])),
        retries=target.retries,
    )
    return "\n".join([*lines, script])


def preview_jobs(session: Session, runs: Sequence[PlannedRun]) -> str:
    """Return the scripts of Slurm and of its workers, without submitting them."""
    batch = JobBatch.new(session.store, runs, session.target)
    return f"{slurm_script(batch)}\n# {batch.folder / 'worker.sh'}\n{batch.worker}"


def _quoted(value: str) -> str:
    """Quote a value as sbatch reads it in a script: in double quotes, with a backslash before
    quotes and backslashes. A plain one is unchanged.
    """
    if PLAIN.fullmatch(value):
        return value
    escaped = re.sub(r'([\\"])', r"\\\1", value)
    return f'"{escaped}"'


def _submission(batch: JobBatch) -> list[str]:
    """Return the command that queues the runs of a batch."""
    array = f"0-{len(batch.runs) - 1}"
    if batch.target.parallel:
        array += f"%{batch.target.parallel}"
    command = ["sbatch", "--parsable", f"--job-name={PREFIX}{batch.name}"]
    return [*command, f"--array={array}", "--chdir=/", str(batch.folder / "job.sh")]


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


def submit_batch(batch: JobBatch) -> str:
    """Queue the batch as one array; returns its id. Raises BenchError with sbatch's own message."""
    write_or_fail(batch.folder / "job.sh", slurm_script(batch).encode())
    done = _call(_submission(batch))
    if done.returncode:
        shutil.rmtree(batch.folder, ignore_errors=True)
        message = re.sub("sbatch: error:|Batch job submission failed:", "", done.stderr)
        raise BenchError(
            f"sbatch refused: {' '.join(message.split())}",
            "sinfo shows what the cluster has; gpus, cpus, memory and options of sbatch go "
            "into --on slurm:..., and an array has as many runs as --method and --seeds choose",
        )
    return done.stdout.strip().partition(";")[0]


def queued_runs(store: RunsFolder) -> set[str]:
    """Return the ids of the runs of this folder that Slurm has queued or running.

    squeue is asked once, if any were submitted. Raises BenchError if it does not answer.
    """
    submitted: dict[str, list[str]] = {}
    for file in (store.path / JOBS_FOLDER).glob("slurm-*/runs.txt"):
        submitted[PREFIX + file.parent.name] = _runs_in(file)
    if not submitted:
        return set()
    user = f"--user={os.getuid()}"
    done = _call(["squeue", "--noheader", "--array", user, "--format=%F_%K|%j"])
    if done.returncode:
        raise BenchError(
            f"squeue: {' '.join(done.stderr.split())[:160]}; what is queued or running on Slurm "
            "is unknown",
            "give the same command again later, on a machine that submits jobs",
        )
    queued = set()
    for line in done.stdout.splitlines():
        job, _, name = line.partition("|")
        index = job.rpartition("_")[2]
        if name in submitted and index.isdigit():
            queued.add(submitted[name][int(index)])
    return queued


def _runs_in(file: Path) -> list[str]:
    try:
        return read_plain_file(file, SETTINGS_BYTES).decode("utf-8").split()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise BenchError(f"{file} cannot be read: {why}", "remove its folder") from None


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
