"""Workers: processes that do one run each, here, on Slurm, or wherever somebody starts them.

A worker is a command line, ``sh worker.sh RUN_ID``. The folder of the run says what is done, its
lock who is working on it, and Slurm what is queued. The files of the workers of one command are in
``RUNS/.jobs/ENGINE-TIME-ID/``:

    runs.txt           the ids of the runs, one on each line
    plan.toml          the config of these runs, which the workers read
    worker.sh          does one of the runs, on any machine
    plugins/           copies of plugin files
    logs/RUN.log       the output of a run's workers, from the first attempt to the last
    job.sh             Slurm's script
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.backbones import Reference, load
from bench.base import PLACE
from bench.base.cache import default_cache
from bench.base.errors import BenchError
from bench.base.files import write_or_fail
from bench.base.plugin_files import files_of_plugin, package_of_file
from bench.base.terminal import warn
from bench.base.text import list_names
from bench.data.corpora import Corpus
from bench.method.own_vectors import own_backbone
from bench.records import RunsFolder
from bench.run.execute import job_here
from bench.run.plan_toml import Plan
from bench.run.planned import PlannedRun
from bench.run.session import Session
from bench.run.target import Target
from bench.run.weights import tokenise_for

JOBS_FOLDER = ".jobs"
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
class JobBatch:
    """The runs that one command hands to workers."""

    folder: Path
    runs: tuple[str, ...]
    target: Target

    @classmethod
    def new(cls, store: RunsFolder, runs: Sequence[PlannedRun], target: Target) -> JobBatch:
        """Return a batch with a folder of its own in a folder of runs; nothing is written."""
        moment = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        name = f"{target.name}-{moment}-{os.urandom(3).hex()}"
        folder = (store.path / JOBS_FOLDER / name).absolute()
        return cls(folder, tuple(run.run_id for run in runs), target)

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


def write_commands(session: Session, runs: Sequence[PlannedRun], command: str) -> str:
    """Prepare workers, and return a command line for each run.

    ``command``: what records say made the runs. Raises BenchError if a file cannot be written.
    """
    batch = prepare_workers(session, runs, command)
    return "".join(f"{shlex.join(batch.command(run))}\n" for run in batch.runs)


def prepare_workers(
    session: Session, runs: Sequence[PlannedRun], command: str, target: Target | None = None
) -> JobBatch:
    """Write the files of the workers that do these runs; ``command``: what records say made them.

    ``target``: another than the session's. Corpora are tokenised here, so that no worker does it
    while it holds a GPU.
    """
    for corpus, backbone in _corpora_to_tokenise(runs):
        warn(f"text {corpus.name}: tokenised for {backbone.name}, unless that was done before")
        tokenise_for(corpus, load(backbone, offline=True))
    config = session.config
    batch = JobBatch.new(session.store, runs, target or session.target)
    gpus = session.target.gpus or 1
    batch.write(
        session.plan.with_values(
            on=f"torchrun:{gpus}" if gpus > 1 else "here",
            offline=True,
            plugins=copy_plugins(config.plugins, batch.folder / "plugins"),
            command=command,
        )
    )
    return batch


def _corpora_to_tokenise(runs: Sequence[PlannedRun]) -> list[tuple[Corpus, Reference]]:
    """Return each corpus that a run reads as token ids, once for each backbone."""
    found = {}
    for run in runs:
        cls, corpus = run.plugin.cls, run.corpus
        if corpus is None or getattr(cls, "trains_on", None) != "ids":
            continue
        if own_backbone(cls) is None:
            key = (corpus.sha256, corpus.columns, corpus.column, run.backbone.revision)
            found[key] = (corpus, run.backbone)
    return list(found.values())


def find_planned(planned: Sequence[PlannedRun], run_id: str) -> PlannedRun:
    """Return the run with that id.

    Raises BenchError if the plan has none, as on a machine with another plugin or corpus.
    """
    runs = {run.run_id: run for run in planned}
    if run_id not in runs:
        raise BenchError(
            f"--only {run_id}: the plan has no such run here; it has {list_names(runs)}",
            "use the plugin, backbone, corpus, precision and version that the plan was made with",
        )
    return runs[run_id]


def worker_environment(cpus: int | None = None) -> dict[str, str]:
    """Return the environment variables that decide a worker's result or files, without tokens:
    workers open no connection.
    """
    variables = {
        name: value
        for name, value in os.environ.items()
        if (name in VARIABLES or name.startswith(VARIABLES_BEGIN))
        and "TOKEN" not in name.replace("TOKENIZERS", "")
        and name not in ("BENCH_RUNS", "BENCH_DATA", "BENCH_JOB")
    }
    folders = [folder for folder in variables.get("PYTHONPATH", "").split(os.pathsep) if folder]
    paths = dict.fromkeys([str(PLACE), *map(os.path.abspath, folders)])
    if cpus is not None:
        variables["OMP_NUM_THREADS"] = str(cpus)
    variables["PYTHONPATH"] = os.pathsep.join(paths)
    variables["BENCH_CACHE"] = str(default_cache().absolute())
    return variables


def stop_with_parent() -> None:
    """Stop this worker, with its state saved, when the process that started it is gone for any
    reason.
    """
    if job_here() and "LOCAL_RANK" not in os.environ:
        threading.Thread(target=_stop_with, args=(os.getppid(),), daemon=True).start()


def _stop_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


def copy_plugins(files: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Copy plugin files, the neighbouring files that they import, and their recipes below
    ``folder``, so that editing one changes no queued run.
    """
    copies = []
    for number, file in enumerate(map(Path, files)):
        container, _ = package_of_file(file)
        target = folder.absolute() / str(number)
        for code in files_of_plugin(file):
            copy = target / code.relative_to(container)
            write_or_fail(copy, code.read_bytes())
            for init in _inits_between(code.parent, container):
                write_or_fail(target / init.relative_to(container), init.read_bytes())
        copy = target / file.absolute().relative_to(container)
        for recipe in (file.parent / "recipes").glob("*.toml"):
            write_or_fail(copy.parent / "recipes" / recipe.name, recipe.read_bytes())
        copies.append(str(copy))
    return tuple(copies)


def _inits_between(folder: Path, container: Path) -> list[Path]:
    """Return the ``__init__`` files of a folder and of its parents below ``container``: they make
    its modules part of a package.
    """
    found = []
    while folder != container and folder.is_relative_to(container):
        if (init := folder / "__init__.py").is_file():
            found.append(init)
        folder = folder.parent
    return found
