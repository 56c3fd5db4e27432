"""Runs that were handed to an engine, which queues, places and restarts them: one folder a submission, ``RUNS/.jobs/NAME/``.

    batch.json         what was asked: the engine, the command line of a worker, the runs
    runs/RUN.json      of each run that was begun: how often, on which node, how it ended (written by its attendant, see ``executors/worker.py``)
    logs/RUN.log       what its workers said
    plugins/           the files of --plugin as they were then

A worker is a command line, ``bench run <same options> --only RUN_ID``, and nothing else is handed over. The truth about a run is its own
folder; what is queued or running the engine is asked.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import secrets
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, cast

from bench.base.errors import BenchError, RunLocked, UnknownName
from bench.base.files import default_cache, write_or_fail
from bench.run.executors.worker import read_state, worker_command, write_state
from bench.run.plan import PlannedRun, determinants
from bench.runs import RunRecord, RunsFolder
from bench.runs.intact import read_curve
from bench.runs.store import means_several

ENGINES = ("slurm", "ray")  # each is a module beside executors/local.py
FOLDER = ".jobs"
KEPT = (
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "TMPDIR",
    "TOKENIZERS_PARALLELISM",
    "XDG_CACHE_HOME",
    "OMP_NUM_THREADS",
)
KEPT_BEGINNINGS = ("BENCH_", "HF_", "TRANSFORMERS_", "TORCH_", "ONEDNN_", "MKL_", "ATEN_")


@dataclass(frozen=True)
class Resources:
    """What is asked of an engine for each run, and of its queue."""

    gpus: int | None = None
    cpus: int | None = None
    memory: str | None = None  # as typed: "16G"
    parallel: int | None = None  # runs at once
    options: tuple[tuple[str, str], ...] = ()  # the engine's own, passed on
    returns: bool = False  # no folder is shared: a run comes back as an archive


@dataclass(frozen=True)
class Queued:
    """A run of a batch. ``planned``: what its name is of, see :func:`planned_words`; ``steps`` of its training, where that is known."""

    run_id: str
    planned: str
    steps: int | None = None


@dataclass(frozen=True)
class Batch:
    """What was handed over at one time."""

    folder: Path
    engine: str
    created: str
    directory: str  # where the command was given
    python: str
    environment: Mapping[str, str]
    arguments: tuple[str, ...]  # of ``bench run``, the same for every run
    runs: tuple[Queued, ...]
    retries: int = 3
    resources: Resources = field(default_factory=Resources)
    address: str | None = None  # of the engine

    @property
    def name(self) -> str:
        return self.folder.name

    def command(self, number: int) -> list[str]:
        """The worker's command line for one run."""
        return worker_command(
            self.python, self.arguments, self.runs[number].run_id, self.runs[number].planned
        )

    def shell_line(self, number: int) -> str:
        """The same as a line for ``sh``, from any folder and with an empty environment."""
        variables = " ".join(
            f"{name}={shlex.quote(value)}" for name, value in sorted(self.environment.items())
        )
        return f"cd {shlex.quote(self.directory)} && {variables} {shlex.join(self.command(number))}"

    def given(self, option: str) -> list[str]:
        """What follows an option on the worker's command line, each time that it stands there."""
        return [value for word, value in pairwise(self.arguments) if word == option]

    def needed(self) -> list[str]:
        """Paths that a worker's machine has to see."""
        data = self.given("--data")
        return (
            data
            if self.resources.returns
            else [str(self.folder / "batch.json"), self.python, self.directory, *data]
        )

    def log(self, number: int) -> Path:
        return self.folder / "logs" / f"{self.runs[number].run_id}.log"

    def state_file(self, number: int) -> Path:
        return self.folder / "runs" / f"{self.runs[number].run_id}.json"

    def state(self, number: int) -> dict[str, Any]:
        """What the attendant of a run last wrote; nothing where it was not begun."""
        return read_state(self.state_file(number))

    def set_cancelled(self, number: int) -> None:
        """Of a run that was cancelled before it began: nobody else would say so."""
        if not self.state(number):
            write_state(
                self.state_file(number),
                {"outcome": "cancelled", "why": "cancelled before it began"},
            )

    def write(self) -> None:
        content = {**asdict(self), "folder": None}
        write_or_fail(self.folder / "batch.json", json.dumps(content, indent=1).encode() + b"\n")
        for name in ("logs", "runs"):
            (self.folder / name).mkdir(exist_ok=True)


def read_batch(folder: Path) -> Batch:
    """Raises BenchError where it cannot be read."""
    try:
        content = json.loads((folder / "batch.json").read_bytes())
        runs = tuple(Queued(**entry) for entry in content["runs"])
        resources = Resources(
            **{
                **content["resources"],
                "options": tuple(map(tuple, content["resources"]["options"])),
            }
        )
        return Batch(
            **{
                **content,
                "folder": folder,
                "runs": runs,
                "arguments": tuple(content["arguments"]),
                "resources": resources,
            }
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchError(
            f"{folder / 'batch.json'} cannot be read: {' '.join(str(error).split())[:120]}"
        ) from None


@dataclass(frozen=True)
class QueueState:
    """Where an engine has a run: "queued", or "running" on ``node``; ``job`` is its name there."""

    state: str
    job: str = ""
    node: str = ""
    why: str = ""  # it is queued


class Engine(Protocol):
    """What a module of an engine has: functions that know commands and resources, and nothing of methods."""

    def check(self, resources: Resources, connect: bool = True) -> str | None:
        """Raises BenchError where nothing can be submitted: no engine here, or it lacks what is asked. Returns its address.

        Without ``connect``, for a script that is only printed, the engine need not be here: the options alone are checked.
        """

    def script(self, batch: Batch) -> str:
        """What would be submitted, for ``--dry-run``."""

    def submit(self, batch: Batch) -> str:
        """Queue every run of the batch; returns words for the user. Raises BenchError, with nothing queued or all that was said."""

    def places(self, batches: Sequence[Batch]) -> dict[tuple[str, int], QueueState]:
        """(batch name, number) -> place of all that is queued or running. Raises EngineSilent where the engine does not answer."""

    def cancel(self, batches: Sequence[Batch], which: Sequence[tuple[str, int]]) -> None:
        """End these runs: each saves its state."""


class EngineSilent(BenchError):
    """An engine that did not answer: nothing is known, and nothing is lost."""


def engine(name: str) -> Engine:
    return cast("Engine", importlib.import_module(f"bench.run.executors.{name}"))


# --- what a worker is told ---


def planned_words(run: PlannedRun) -> str:
    """What a run's name is of, in a word each: "backbone=1a2b3c4d,corpus=...,plugin=...,precision=fp32"."""
    fields = {
        key: value
        for key, value in determinants(run).items()
        if key not in ("method", "variant", "setting", "seed")
    }
    return ",".join(f"{key}={_word(value)}" for key, value in sorted(fields.items()))


def _word(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch("[a-z0-9]{1,8}", value):
        return value
    return (
        "none"
        if value in (None, {})
        else hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]
    )


NAMES = {
    "plugin": "the source of the method's plugin",
    "backbone": "the backbone's revision",
    "corpus": "the corpus",
    "precision": "the precision",
    "recipe": "the recipe",
    "dev": "the set on which checkpoints are selected",
    "places": "a file that the recipe names",
    "ranks": "the number of processes",
}


def only(planned: Sequence[PlannedRun], run_id: str, words: str | None) -> PlannedRun:
    """The run of that id. Raises BenchError where the plan has none, with what differs from the plan that made the id (``words``)."""
    for run in planned:
        if run.run_id == run_id:
            return run
    alike = [run for run in planned if run.run_id.rpartition("-")[0] == run_id.rpartition("-")[0]]
    if not alike:
        some = ", ".join(run.run_id for run in planned[:3]) + (", ..." if len(planned) > 3 else "")
        raise BenchError(
            f"--only {run_id}: these options mean no such run; they mean {some}",
            "the ids: the same command with --dry-run --all",
        )
    then = dict(part.partition("=")[::2] for part in (words or "").split(",") if part)
    differs: list[str] = []
    for run in alike:
        now = dict(part.partition("=")[::2] for part in planned_words(run).split(","))
        here = [
            f"{NAMES.get(key, key)} (then {then[key]}, here {now.get(key, 'none')})"
            for key in then
            if now.get(key, "none") != then[key]
        ]
        differs = here if not differs or len(here) < len(differs) else differs
    what = (
        f"differs from where it was planned: {'; '.join(differs)}"
        if differs
        else "something differs from where it was planned"
    )
    raise BenchError(
        f"--only {run_id}: {what}",
        f"here the id is {alike[0].run_id}; the same plugin, backbone, data and version on every machine",
    )


def worker_environment(cpus: int | None = None) -> dict[str, str]:
    """The variables that a worker's result or place depends on. No token is among them: workers open no connection."""
    import bench

    package = str(Path(bench.__file__).parents[1])
    variables = {
        name: value
        for name, value in os.environ.items()
        if (name in KEPT or name.startswith(KEPT_BEGINNINGS))
        and "TOKEN" not in name.replace("TOKENIZERS", "")
        and name not in ("BENCH_RUNS", "BENCH_DATA", "BENCH_JOB")
    }
    paths = [
        str(Path(word).absolute())
        for word in variables.get("PYTHONPATH", "").split(os.pathsep)
        if word
    ]
    variables["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([package, *paths]))
    variables["BENCH_CACHE"] = str(default_cache().absolute())
    if cpus is not None:
        variables["OMP_NUM_THREADS"] = str(cpus)
    return variables


def keep_plugins(files: Sequence[Path], folder: Path) -> list[Path]:
    """Copies of plugin files, and of the recipes beside them, below ``folder`` by their hash: editing one changes no queued run."""
    kept = []
    for file in files:
        recipes = sorted((file.parent / "recipes").glob("*.toml"))
        digest = hashlib.sha256()
        for recipe in (file, *recipes):
            digest.update(recipe.name.encode() + b"\0" + recipe.read_bytes())
        place = folder / digest.hexdigest()[:16] / file.name
        if not place.is_file():
            for recipe in recipes:
                write_or_fail(place.parent / "recipes" / recipe.name, recipe.read_bytes())
            write_or_fail(place, file.read_bytes())
        kept.append(place)
    return kept


# --- the submissions of a runs folder ---


class Jobs:
    """Every batch below ``RUNS/.jobs``, oldest first, and of each run the newest batch that has it."""

    def __init__(self, store: RunsFolder) -> None:
        self.store, self.folder = store, store.path / FOLDER
        self.batches = [
            read_batch(folder)
            for folder in sorted(path.parent for path in self.folder.glob("*/batch.json"))
        ]
        self.newest = {
            queued.run_id: (batch, i)
            for batch in self.batches
            for i, queued in enumerate(batch.runs)
        }

    def find(self, name: str) -> str:
        """The run id that ``name`` or its beginning means. Raises UnknownName, and BenchError where it means several."""
        if name in self.newest:
            return name
        run_ids = [run_id for run_id in self.newest if name and run_id.startswith(name)]
        if not run_ids:
            where = f"among those that were handed to an engine in {self.store.path}"
            raise UnknownName("run", name, self.newest, where, "bench status", begins=True)
        if len(run_ids) > 1:
            raise means_several(name, run_ids)
        return run_ids[0]

    def places(self) -> dict[str, QueueState]:
        """Run id -> where its engine has it. Each engine is asked once. Raises EngineSilent."""
        places: dict[str, QueueState] = {}
        for name in sorted({batch.engine for batch in self.batches}):
            of_engine = [batch for batch in self.batches if batch.engine == name]
            by_name = {batch.name: batch for batch in of_engine}
            for (batch, number), place in engine(name).places(of_engine).items():
                if number < len(by_name[batch].runs):
                    places[by_name[batch].runs[number].run_id] = place
        return places


@contextmanager
def submitting(store: RunsFolder) -> Iterator[None]:
    """One process at a time looks at what is queued and adds to it. Raises BenchError where another one does so for minutes."""
    folder = store.path / FOLDER
    try:
        with RunsFolder(folder).lock("submission", wait_seconds=300):
            yield
    except RunLocked as error:
        raise BenchError(
            f"another command is submitting to {folder}: {error.message}",
            "the same command again, later",
        ) from None


@dataclass(frozen=True)
class RunState:
    """What has become of one run. ``state``: queued, running, finished, failed, interrupted, lost, unknown."""

    run_id: str
    state: str
    why: str = ""
    node: str = ""
    job: str = ""
    step: int | None = None
    steps: int | None = None
    attempts: int = 0

    def words(self) -> str:
        at = f" on {self.node}" if self.node and self.state == "running" else ""
        steps = (
            ""
            if self.step is None
            else f", step {self.step}" + (f" of {self.steps}" if self.steps else "")
        )
        again = f", attempt {self.attempts}" if self.attempts > 1 else ""
        return f"{self.state}{at}{steps}{again}{': ' + self.why if self.why else ''}"


def standings(
    jobs: Jobs, silent: str | None = None, places: Mapping[str, QueueState] | None = None
) -> list[RunState]:
    """Of every run that was handed over. ``silent``: why the engine did not answer; then nothing is called lost."""
    return [
        _standing(jobs.store, batch, i, (places or {}).get(run_id), silent)
        for run_id, (batch, i) in jobs.newest.items()
    ]


def _standing(
    store: RunsFolder, batch: Batch, number: int, place: QueueState | None, silent: str | None
) -> RunState:
    queued, state = batch.runs[number], batch.state(number)
    made = RunState(
        queued.run_id,
        "",
        steps=queued.steps,
        attempts=int(state.get("attempts", 0)),
        job=str(state.get("job", "")),
    )
    record = store.get(queued.run_id)
    if place is not None and place.state == "running":
        return replace(
            made,
            state="running",
            node=place.node,
            job=place.job,
            step=step_of(store.folder(queued.run_id)),
        )
    if place is not None:
        return replace(made, state="queued", why=place.why, job=place.job)
    if working := store.worked_on_by(queued.run_id):
        return replace(
            made, state="running", node=working, step=step_of(store.folder(queued.run_id))
        )
    outcome, status, recorded = (
        state.get("outcome"),
        record and record.status,
        (record and record.error) or "",
    )
    why = str(state.get("why") or "") or recorded
    if status == "finished" and outcome != "refused":
        return replace(made, state="finished")
    if outcome in ("failed", "refused"):
        return replace(made, state="failed", why=why)
    if status == "failed":
        return replace(made, state="failed", why=recorded)
    if outcome in ("interrupted", "cancelled"):
        return replace(made, state="interrupted", why=why)
    if silent is not None:
        return replace(made, state="unknown", why=silent)
    begun = (
        f"its worker ended without a word (bench logs {queued.run_id})"
        if state
        else "it was never begun"
    )
    return replace(
        made,
        state="lost",
        why=f"{batch.engine} has it no more, and {begun}; the same bench run goes on with it",
    )


def step_of(folder: Path) -> int | None:
    """The last step that a training logged or saved."""
    logged = [int(entry["step"]) for entry in read_curve(folder)[-1:]]
    saved = [
        int(name[1])
        for path in folder.glob("state/step-*.pt")
        if (name := re.match(r"step-([0-9]+)-", path.name))
    ]
    return max([*logged, *saved], default=None)


def is_done(run: PlannedRun, record: RunRecord | None, scored: Callable[..., bool]) -> bool:
    """Is a run finished and scored on all that is asked? Its files are not looked at."""
    return (
        record is not None
        and record.status == "finished"
        and all(
            scored(record, task, known)
            for task, known in zip(run.tasks, run.task_data, strict=True)
        )
    )


def forget(batch: Batch) -> None:
    """Take back a batch of which nothing was queued."""
    shutil.rmtree(batch.folder, ignore_errors=True)


def new_batch(
    jobs: Jobs,
    name: str,
    runs: Sequence[Queued],
    arguments: Sequence[str],
    resources: Resources,
    retries: int,
    address: str | None = None,
) -> Batch:
    return Batch(
        folder=(
            jobs.folder / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"
        ).absolute(),
        engine=name,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        directory=os.getcwd(),
        python=sys.executable,
        environment=worker_environment(resources.cpus),
        arguments=tuple(arguments),
        runs=tuple(runs),
        retries=retries,
        resources=resources,
        address=address,
    )


def ask(what: Callable[[], Any], times: int = 4, pause: float = 2.0) -> Any:
    """What an engine answers, asked again where it is silent. Raises EngineSilent at last."""
    for _ in range(times - 1):
        try:
            return what()
        except EngineSilent:
            time.sleep(pause)
    return what()
