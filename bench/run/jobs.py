"""Runs on other machines: the jobs that Slurm is given, and those that it has queued.

Slurm gets one job for each run; ``--on commands`` prints a command for each. Their files are in
``RUNS/.jobs/ENGINE-TIME-ID/``:

    runs.txt           the ids of the runs, one on each line
    plan.toml          the config of these runs, which the workers read
    worker.sh          does one of the runs, on any machine
    plugins/           copies of plugin files
    logs/RUN.log       the output of a run's workers, from the first attempt to the last
    job.sh             Slurm's script

A worker is a command line, ``sh worker.sh RUN_ID``. The folder of the run says what is done, its
lock who is working on it, and Slurm what is queued.

Slurm is used through ``sbatch``, ``squeue`` and ``scontrol`` alone: one array for a plan, each
element one run. The script of an element starts the worker, starts it again if it was killed, and,
when the time limit is near, lets it save its state and asks Slurm to queue the same job again (a
new ``sbatch`` would escape the array's limit of jobs at once).
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from bench.base.errors import BenchError
from bench.base.reading import SETTINGS_BYTES, read_plain_file
from bench.method.context import SilentReporter
from bench.records import RunsFolder
from bench.run.batch import JOBS_FOLDER, ClusterJob, JobBatch
from bench.run.done import is_finished
from bench.run.execute import forget
from bench.run.planned import PlannedRun
from bench.run.slurm import slurm_queue
from bench.run.target import Target


def new_batch(store: RunsFolder, runs: Sequence[str], target: Target) -> JobBatch:
    name = f"{target.name}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(3).hex()}"
    return JobBatch((store.path / JOBS_FOLDER / name).absolute(), tuple(runs), target)


def submitted_batches(store: RunsFolder) -> dict[Path, list[str]]:
    """Folder -> ids of the runs, of every batch that Slurm was given, oldest first."""
    found: dict[Path, list[str]] = {}
    for file in sorted((store.path / JOBS_FOLDER).glob("slurm-*/runs.txt")):
        try:
            found[file.parent] = read_plain_file(file, SETTINGS_BYTES).decode("utf-8").split()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise BenchError(f"{file} cannot be read: {why}", "remove its folder") from None
    return found


def queued_jobs(store: RunsFolder) -> dict[str, ClusterJob]:
    """Run id -> job, of all runs that Slurm has queued or running. Raises EngineSilent."""
    submitted = submitted_batches(store)
    return slurm_queue(submitted) if submitted else {}


def to_submit(
    planned: Sequence[PlannedRun], store: RunsFolder, fresh: bool
) -> Sequence[PlannedRun]:
    """Return the runs that are not finished and not queued.

    With ``fresh`` all of them, and their results are removed now, because a requeued run resumes.
    Raises BenchError for ``fresh`` if one is queued.
    """
    queued = queued_jobs(store)
    if not fresh:
        return [r for r in planned if r.run_id not in queued and not is_finished(r, store)]
    for run in planned:
        if (job := queued.get(run.run_id)) is not None:
            raise BenchError(
                f"--fresh: {run.run_id} is {job.state}: {job.describe()}",
                f"cancel first: {job.cancel}",
            )
    for run in planned:
        with store.lock(run.run_id):
            forget(run, store, SilentReporter())
    return planned
