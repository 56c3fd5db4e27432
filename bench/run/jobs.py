"""Runs on other machines: what an engine is given, and what it has queued.

An engine (``slurm``, ``ray``) gets one job a run; ``--on commands`` prints a command for each. What belongs to them is in ``RUNS/.jobs/ENGINE-TIME-ID/``:

    runs.txt           the ids of the runs, one a line; of Ray those that its driver has not seen end
    plan.toml          what the workers are handed: the config of these runs
    worker.sh          does one of the runs, anywhere
    plugins/           copies of plugin files
    logs/RUN.log       the output of a run's workers, from the first attempt to the last
    job.sh             Slurm's script

A worker is a command line, ``sh worker.sh RUN_ID``. The run's own folder says what is done, its lock
who works on it, and the engine what is queued.
"""

from __future__ import annotations

import importlib
import os
import secrets
import shlex
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.base import PLACE
from bench.base.errors import BenchError
from bench.base.files import default_cache, write_or_fail
from bench.base.text import list_names
from bench.run.config import ENGINES, Plan, Target, write_plan
from bench.run.executors.local import job_here
from bench.run.plan import PlannedRun
from bench.runs import RunsFolder

FOLDER = ".jobs"
VARIABLES = (
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "TMPDIR",
    "TOKENIZERS_PARALLELISM",
    "XDG_CACHE_HOME",
    "OMP_NUM_THREADS",
)
VARIABLES_BEGIN = ("BENCH_", "HF_", "TRANSFORMERS_", "TORCH_", "ONEDNN_", "MKL_", "ATEN_")


WORKER = """\
#!/bin/sh
# sh worker.sh RUN: one run of this plan, from any folder and with an empty environment
cd {directory} || exit 1
{variables}
exec {command} --only "$1"
"""


@dataclass(frozen=True)
class Batch:
    """The runs that one command hands to an engine."""

    folder: Path
    runs: tuple[str, ...]
    target: Target

    @property
    def name(self) -> str:
        return self.folder.name

    def command(self, run_id: str) -> list[str]:
        """The worker's command line for one run."""
        return ["sh", str(self.folder / "worker.sh"), run_id]

    @property
    def worker(self) -> str:
        """The content of worker.sh."""
        variables = sorted(worker_environment(self.target.cpus).items())
        command = [sys.executable, "-P", "-m", "bench", "run", "--wait", "--plain"]
        command += ["--plan", str(self.folder / "plan.toml"), "--runs", str(self.folder.parents[1])]
        return WORKER.format(
            directory=shlex.quote(os.getcwd()),
            variables="\n".join(f"export {key}={shlex.quote(value)}" for key, value in variables),
            command=shlex.join(command),
        )

    def write(self, plan: Plan) -> None:
        """Raises BenchError where a file cannot be written."""
        self.write_runs(self.runs)
        write_plan(self.folder / "plan.toml", plan)
        write_or_fail(self.folder / "worker.sh", self.worker.encode())
        (self.folder / "logs").mkdir(exist_ok=True)

    def write_runs(self, runs: Sequence[str]) -> None:
        lines = "".join(f"{run}\n" for run in runs)
        write_or_fail(self.folder / "runs.txt", lines.encode())


@dataclass(frozen=True)
class Job:
    """A run that an engine has. ``cancel`` is the engine's own command; ``log``: the output of its workers."""

    engine: str
    state: str  # "queued" or "running"
    name: str  # "12_3" for Slurm; Ray's has that of its driver, "HOST:PID"
    detail: str  # the node, or why it is queued
    cancel: str
    log: Path

    def describe(self) -> str:
        return " ".join(filter(None, [self.engine, self.name, self.detail]))


class EngineSilent(BenchError):
    """An engine that did not answer: what it has is unknown."""


def engine(name: str) -> Any:
    """The module of an engine, which knows commands and resources, and nothing of methods. It has

    - ``check(target, connect=True)``: raises BenchError for options that the engine lacks; with ``connect`` also where none is here
    - ``script(batch) -> str``: what would be submitted, for ``--dry-run``
    - ``queue(batches) -> {run id: Job}``: all that is queued or running of batches (folder -> ids); raises EngineSilent
    """
    return importlib.import_module(f"bench.run.executors.{name}")


def new_batch(store: RunsFolder, runs: Sequence[str], target: Target) -> Batch:
    name = f"{target.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
    return Batch((store.path / FOLDER / name).absolute(), tuple(runs), target)


def batches(store: RunsFolder, name: str) -> dict[Path, list[str]]:
    """Folder -> ids of the runs, of every batch of an engine, oldest first."""
    files = sorted((store.path / FOLDER).glob(f"{name}-*/runs.txt"))
    return {file.parent: file.read_text(encoding="utf-8").split() for file in files}


def queue(store: RunsFolder) -> dict[str, Job]:
    """Run id -> job, of all runs that engines have queued or running. Raises EngineSilent."""
    jobs: dict[str, Job] = {}
    for name in ENGINES:
        if submitted := batches(store, name):
            jobs |= engine(name).queue(submitted)
    return jobs


# --- workers ---


def only(planned: Sequence[PlannedRun], run_id: str) -> PlannedRun:
    """The run of that id. Raises BenchError where the plan has none, as on a machine with another plugin or corpus."""
    for run in planned:
        if run.run_id == run_id:
            return run
    raise BenchError(
        f"--only {run_id}: the plan has no such run here; it has {list_names(r.run_id for r in planned)}",
        "the same plugin, backbone, corpus, precision and version as where the plan was made",
    )


def worker_environment(cpus: int | None = None) -> dict[str, str]:
    """The variables that a worker's result or files depend on. No token is among them: workers open no connection."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if (name in VARIABLES or name.startswith(VARIABLES_BEGIN))
        and "TOKEN" not in name.replace("TOKENIZERS", "")
        and name not in ("BENCH_RUNS", "BENCH_DATA", "BENCH_JOB")
    }
    folders = filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))
    absolute = dict.fromkeys([str(PLACE), *map(os.path.abspath, folders)])
    variables |= {"PYTHONPATH": os.pathsep.join(absolute)}
    variables |= {"BENCH_CACHE": str(default_cache().absolute())}
    return variables | ({} if cpus is None else {"OMP_NUM_THREADS": str(cpus)})


def stop_with_parent() -> None:
    """A worker stops, with its state saved, when the process that started it is gone, however that ended."""
    if job_here() and "LOCAL_RANK" not in os.environ:
        threading.Thread(target=_stop_with, args=(os.getppid(),), daemon=True).start()


def _stop_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


def copy_plugins(files: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Copies of plugin files, and of the recipes next to them, below ``folder``: editing one changes no queued run."""
    copies = []
    for number, file in enumerate(map(Path, files)):
        copy = folder.absolute() / str(number) / file.name
        write_or_fail(copy, file.read_bytes())
        for recipe in (file.parent / "recipes").glob("*.toml"):
            write_or_fail(copy.parent / "recipes" / recipe.name, recipe.read_bytes())
        copies.append(str(copy))
    return tuple(copies)
