"""Runs that one command hands to workers, and their state at Slurm."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.base.errors import BenchError
from bench.base.files import write_or_fail
from bench.run.plan_toml import Plan
from bench.run.target import Target
from bench.run.workers import WORKER, worker_environment

JOBS_FOLDER = ".jobs"


@dataclass(frozen=True)
class JobBatch:
    """The runs that one command hands to workers."""

    folder: Path
    runs: tuple[str, ...]
    target: Target

    @property
    def name(self) -> str:
        return self.folder.name

    def command(self, run_id: str) -> list[str]:
        """Return the worker's command line for one run."""
        return ["sh", str(self.folder / "worker.sh"), run_id]

    @property
    def worker(self) -> str:
        """The content of worker.sh."""
        return WORKER.format(
            directory=shlex.quote(os.getcwd()),
            variables="\n".join(
                f"export {key}={shlex.quote(value)}"
                for key, value in sorted(worker_environment(self.target.cpus).items())
            ),
            command=shlex.join(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "bench",
                    "run",
                    "--wait",
                    "--plain",
                    "--plan",
                    f"{self.folder}/plan.toml",
                    "--runs",
                    str(self.folder.parents[1]),
                ]
            ),
        )

    def write(self, plan: Plan) -> None:
        """Write the files of the batch. Raises BenchError if one cannot be written."""
        names = "".join(f"{run}\n" for run in self.runs)
        write_or_fail(self.folder / "runs.txt", names.encode())
        plan.write(self.folder / "plan.toml")
        write_or_fail(self.folder / "worker.sh", self.worker.encode())
        (self.folder / "logs").mkdir(exist_ok=True)


@dataclass(frozen=True)
class ClusterJob:
    """A run that Slurm has.

    ``cancel`` is the command of Slurm that cancels it; ``log``: the output of its workers.
    """

    state: str  # "queued" or "running"
    name: str  # "12_3"
    detail: str  # the node, or why it is queued
    cancel: str
    log: Path

    def describe(self) -> str:
        return " ".join(filter(None, ["slurm", self.name, self.detail]))


class EngineSilent(BenchError):
    """Slurm, which did not answer, so that its jobs are unknown."""
