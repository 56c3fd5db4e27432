"""Runs on other machines: what Slurm and Ray are given, and what they have queued.

An engine gets one job for each run; ``--on commands`` prints a command for each. Their files are in ``RUNS/.jobs/ENGINE-TIME-ID/``:

    runs.txt           the ids of the runs, one on each line; with Ray only those whose end its driver has not seen
    plan.toml          the config of these runs, which the workers read
    worker.sh          does one of the runs, on any machine
    plugins/           copies of plugin files
    logs/RUN.log       the output of a run's workers, from the first attempt to the last
    job.sh             Slurm's script

A worker is a command line, ``sh worker.sh RUN_ID``. The folder of the run says what is done, its lock
who is working on it, and the engine what is queued.

Slurm is used through ``sbatch``, ``squeue`` and ``scontrol`` alone: one array for a plan, each element one run. The script of an element
starts the worker, starts it again if it was killed, and, when the time limit is near, lets it save its state and asks Slurm to queue the
same job again (a new ``sbatch`` would escape the array's limit of jobs at once).

With Ray each run is a task that starts a worker. The driver, this process, stays until its runs have ended; if it dies, its runs stop
too, each with its last state saved.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.base import PLACE
from bench.base.cache import default_cache
from bench.base.errors import BenchError, RunFailed, one_line
from bench.base.files import write_or_fail
from bench.base.import_scope import package_of_file
from bench.base.imported_code import files_of_plugin
from bench.base.reading import SETTINGS_BYTES, read_plain_file
from bench.base.text import list_names
from bench.method import SilentReporter
from bench.records import RunsFolder
from bench.run.config import Plan, Target, write_plan
from bench.run.execute import forget, is_finished, job_here
from bench.run.plan import PlannedRun

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
        """Raises BenchError where a file cannot be written."""
        self.write_runs(self.runs)
        write_plan(self.folder / "plan.toml", plan)
        write_or_fail(self.folder / "worker.sh", self.worker.encode())
        (self.folder / "logs").mkdir(exist_ok=True)

    def write_runs(self, runs: Sequence[str]) -> None:
        write_or_fail(self.folder / "runs.txt", "".join(f"{run}\n" for run in runs).encode())


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


def new_batch(store: RunsFolder, runs: Sequence[str], target: Target) -> Batch:
    name = f"{target.name}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(3).hex()}"
    return Batch((store.path / FOLDER / name).absolute(), tuple(runs), target)


def batches(store: RunsFolder, name: str) -> dict[Path, list[str]]:
    """Folder -> ids of the runs, of every batch of an engine, oldest first."""
    found: dict[Path, list[str]] = {}
    for file in sorted((store.path / FOLDER).glob(f"{name}-*/runs.txt")):
        try:
            found[file.parent] = read_plain_file(file, SETTINGS_BYTES).decode("utf-8").split()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise BenchError(f"{file} cannot be read: {why}", "remove its folder") from None
    return found


def queue(store: RunsFolder) -> dict[str, Job]:
    """Run id -> job, of all runs that engines have queued or running. Raises EngineSilent."""
    submitted = batches(store, "slurm")
    return (_slurm_queue(submitted) if submitted else {}) | _ray_queue(batches(store, "ray"))


def to_submit(
    planned: Sequence[PlannedRun], store: RunsFolder, fresh: bool
) -> Sequence[PlannedRun]:
    """The runs that are neither finished nor queued. With ``fresh`` all of them, and their results are removed now, because a requeued
    run resumes. Raises BenchError for ``fresh`` if one is queued."""
    queued = queue(store)
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


def check(target: Target, connect: bool) -> None:
    """Raises BenchError for options that the engine lacks; with ``connect`` also where there is no engine."""
    (_check_slurm if target.name == "slurm" else _check_ray)(target, connect)


def script(batch: Batch) -> str:
    """What would be submitted, for ``--dry-run``."""
    return (_slurm_script if batch.target.name == "slurm" else _ray_script)(batch)


# --- workers ---


def only(planned: Sequence[PlannedRun], run_id: str) -> PlannedRun:
    """The run with that id. Raises BenchError if the plan has none, as on a machine with another plugin or corpus."""
    runs = {run.run_id: run for run in planned}
    if run_id not in runs:
        raise BenchError(
            f"--only {run_id}: the plan has no such run here; it has {list_names(runs)}",
            "use the plugin, backbone, corpus, precision and version that the plan was made with",
        )
    return runs[run_id]


def worker_environment(cpus: int | None = None) -> dict[str, str]:
    """The variables on which a worker's result or files depend, without tokens: workers open no connection."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if (name in VARIABLES or name.startswith(VARIABLES_BEGIN))
        and "TOKEN" not in name.replace("TOKENIZERS", "")
        and name not in ("BENCH_RUNS", "BENCH_DATA", "BENCH_JOB")
    }
    folders = filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))
    return {
        **variables,
        **({} if cpus is None else {"OMP_NUM_THREADS": str(cpus)}),
        "PYTHONPATH": os.pathsep.join(dict.fromkeys([str(PLACE), *map(os.path.abspath, folders)])),
        "BENCH_CACHE": str(default_cache().absolute()),
    }


def stop_with_parent() -> None:
    """Stop this worker, with its state saved, when the process that started it is gone for any reason."""
    if job_here() and "LOCAL_RANK" not in os.environ:
        threading.Thread(target=_stop_with, args=(os.getppid(),), daemon=True).start()


def _stop_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


def copy_plugins(files: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Copies of plugin files, of the files beside them that they import, and of their recipes, below ``folder``: editing one changes no
    queued run."""
    copies = []
    for number, file in enumerate(map(Path, files)):
        container, _ = package_of_file(file)
        target = folder.absolute() / str(number)
        for code in files_of_plugin(file):
            copy = target / code.path.relative_to(container)
            write_or_fail(copy, code.path.read_bytes())
            for init in _inits_between(code.path.parent, container):
                write_or_fail(target / init.relative_to(container), init.read_bytes())
        copy = target / file.absolute().relative_to(container)
        for recipe in (file.parent / "recipes").glob("*.toml"):
            write_or_fail(copy.parent / "recipes" / recipe.name, recipe.read_bytes())
        copies.append(str(copy))
    return tuple(copies)


def _inits_between(folder: Path, container: Path) -> list[Path]:
    """The ``__init__`` files of a folder and of those above it, below ``container``: without them its modules are of no package."""
    found = []
    while folder != container and folder.is_relative_to(container):
        if (init := folder / "__init__.py").is_file():
            found.append(init)
        folder = folder.parent
    return found


# --- Slurm ---

BEFORE_LIMIT = 120  # seconds before the time limit at which a worker is asked to save its state
PREFIX = "bench-"
RESERVED = ("array", "chdir", "job-name", "output", "error", "open-mode", "wrap", "parsable")
PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
SECONDS = 60.0  # until a command counts as silent

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
    export BENCH_JOB="slurm ${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID ${{SLURMD_NODENAME:-?}} $attempt"
    sh "$folder/worker.sh" "$run" &
    child=$!
    wait "$child"; code=$?
    while kill -0 "$child" 2> /dev/null; do wait "$child"; code=$?; done
    [ -n "$stopped" ] && break
    [ "$code" -gt 130 ] && [ "$attempt" -le "$last" ] || exit "$code"  # not killed by a signal, or too often
done
[ "$stopped" = limit ] || exit 130
case $code in 0|1|2) exit "$code";; esac
if [ "$(saved)" = "$before" ]; then
    echo "error: the time limit came before anything new was saved; a longer time=... in --on slurm, or BENCH_SAVE_SECONDS"
    exit 1
fi
for _ in 1 2 3 4 5; do
    scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID" && exec sleep 60  # until Slurm ends this job
    sleep 2
done
exit 1
"""


def _check_slurm(target: Target, connect: bool) -> None:
    """Raises BenchError for an option that cannot be passed on and, with ``connect``, if there is no sbatch here."""
    for key, value in target.options:
        if not re.fullmatch("[a-z][a-z0-9-]*", key) or "\n" in value or key in RESERVED:
            raise BenchError(
                f"--on slurm:{key}={value!r}: not an option of sbatch, or one that the script sets",
                "parallel=N is the number of jobs at once",
            )
    if connect and shutil.which("sbatch") is None:
        raise BenchError(
            "--on slurm: no sbatch on this machine",
            "run this on a machine that submits jobs; --dry-run prints the script here, --on commands a command for each run",
        )


def _slurm_script(batch: Batch) -> str:
    """The job of one element; its argument is the number of the array's first run in the batch."""
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
    return "\n".join(
        [
            "#!/bin/sh",
            *(
                f"#SBATCH --{key}" + (f"={_quoted(str(value))}" if value else "")
                for key, value in options.items()
                if value is not None
            ),
            "# submitted as: "
            + shlex.join(_submission(batch, 0, len(batch.runs))).replace("\n", " "),
            SCRIPT.format(
                folder=shlex.quote(str(batch.folder)),
                runs=shlex.quote(str(batch.folder.parents[1])),
                retries=target.retries,
            ),
        ]
    )


def _quoted(value: str) -> str:
    """A value as sbatch reads it in a script: in double quotes, with a backslash before quotes and backslashes."""
    return value if PLAIN.fullmatch(value) else '"' + re.sub(r'([\\"])', r"\\\1", value) + '"'


def _submission(batch: Batch, first: int, size: int, after: str | None = None) -> list[str]:
    """The command that queues ``size`` runs of a batch from number ``first`` on."""
    return [
        "sbatch",
        "--parsable",
        f"--job-name={PREFIX}{batch.name}.{first}",
        f"--array=0-{size - 1}" + (f"%{batch.target.parallel}" if batch.target.parallel else ""),
        "--chdir=/",
        *([f"--dependency=afterany:{after}"] if after else []),
        str(batch.folder / "job.sh"),
        str(first),
    ]


def submit(batch: Batch) -> list[str]:
    """Queue the batch as one array, or as several where it is larger than the cluster's MaxArraySize; returns their ids.

    With ``parallel`` each array waits for the one before. Raises BenchError with sbatch's own message.
    """
    write_or_fail(batch.folder / "job.sh", _slurm_script(batch).encode())
    shown = re.search(r"MaxArraySize\s*=\s*(\d+)", _call(["scontrol", "show", "config"]).stdout)
    most = int(shown[1]) if shown else len(batch.runs)
    jobs: list[str] = []
    for first in range(0, len(batch.runs), most):
        after = jobs[-1] if jobs and batch.target.parallel else None
        done = _call(_submission(batch, first, min(most, len(batch.runs) - first), after))
        if done.returncode:
            message = re.sub("sbatch: error:|Batch job submission failed:", "", done.stderr)
            queued = f"; {first} of {len(batch.runs)} runs are queued as {', '.join(jobs)}"
            if not jobs:
                shutil.rmtree(batch.folder, ignore_errors=True)
            raise BenchError(
                f"sbatch refused: {' '.join(message.split())}{queued if jobs else ''}",
                "sinfo shows what the cluster has; gpus, cpus, memory and options of sbatch go into --on slurm:...",
            )
        jobs.append(done.stdout.strip().partition(";")[0])
    return jobs


def _slurm_queue(batches: Mapping[Path, Sequence[str]]) -> dict[str, Job]:
    """What squeue has of this user's jobs, asked once. Raises EngineSilent."""
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
            f"squeue: {' '.join(done.stderr.split())[:160]}; what is queued or running on Slurm is unknown",
            "give the same command again later, on a machine that submits jobs",
        )
    by_name = {PREFIX + folder.name: folder for folder in batches}
    jobs: dict[str, Job] = {}
    for line in done.stdout.splitlines():
        name, state, node, why, job_name = [*line.split("|", 4), "", "", "", ""][:5]
        batch_name, _, first = job_name.rpartition(".")
        index = name.rpartition("_")[2]
        if batch_name not in by_name or not (first + index).isdigit():
            continue
        folder = by_name[batch_name]
        run_id = batches[folder][int(first) + int(index)]
        waits = state in ("PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")
        jobs[run_id] = Job(
            engine="slurm",
            state="queued" if waits else "running",
            name=name,
            detail=f"({why})" if waits and why != "None" else node and f"on {node}",
            cancel=f"scancel {name}",
            log=folder / "logs" / f"{run_id}.log",
        )
    return jobs


def _call(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Without a shell. A command that is missing or does not answer in time counts as failed."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        why = f"{command[0]} did not answer within {SECONDS:.0f} s"
    except OSError as error:
        why = f"{command[0]}: {error.strerror}"
    return subprocess.CompletedProcess(list(command), 1, "", why)


# --- Ray ---

LOOK_EVERY = (
    2.0  # seconds between two looks at the cluster's head and at the signals to this process
)
ENDS_WITHIN = 60.0  # seconds that a worker has to save its state after it was asked to stop
UNITS = {"K": 2**10, "": 2**20, "M": 2**20, "G": 2**30, "T": 2**40}


class WorkerKilled(Exception):
    """A worker that a signal ended: Ray starts the task again, on any node."""


def _check_ray(target: Target, connect: bool) -> None:
    """Connect to $RAY_ADDRESS or the cluster of this machine, else start one here.

    Raises BenchError if that fails, or if no node has the resources: Ray would wait forever.
    """
    requested = _requested(target)
    if not connect:
        return
    try:
        import ray
    except ImportError:
        raise BenchError(
            "--on ray: Ray is not installed",
            "pip install 'sentence-bench[ray]', in the version of the cluster",
        ) from None
    address = os.environ.get("RAY_ADDRESS") or "this machine"
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        if port.isdigit():  # Ray itself would try for minutes
            socket.create_connection((host, int(port)), timeout=5).close()
        if not ray.is_initialized():
            ray.init(log_to_driver=False, logging_level=logging.ERROR, namespace="bench")
    except (OSError, ValueError, RuntimeError) as error:
        raise BenchError(
            f"the Ray cluster at {address} cannot be used: {one_line(error, 200)}",
            "RAY_ADDRESS=HOST:PORT of its head; the same Ray and Python here as there",
        ) from None
    if not any(
        all(node["Resources"].get(key, 0) >= n for key, n in requested.items())
        for node in ray.nodes()
        if node["Alive"]
    ):
        needs = ", ".join(f"{n:,} {key}" for key, n in requested.items())
        raise BenchError(f"--on ray: no node of the cluster has {needs} for a run", "request less")


def _requested(target: Target) -> dict[str, int]:
    """The resources of one run, by Ray's names. Raises BenchError for a memory that it cannot read."""
    requested = {"CPU": target.cpus or 1, "GPU": target.gpus or 0}
    if target.memory is None:
        return requested
    if not (match := re.fullmatch("([0-9]+)([KMGT]?)", target.memory)):
        raise BenchError(
            f"--on ray:memory={target.memory}: expected a number with K, M, G or T", "memory=16G"
        )
    return {**requested, "memory": int(match[1]) * UNITS[match[2]]}


def _options(target: Target) -> dict[str, Any]:
    """Of the task of one run."""
    names = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
    return {
        **{names[key]: n for key, n in _requested(target).items()},
        "max_retries": target.retries,
    }


def _ray_script(batch: Batch) -> str:
    """What would be started, for ``--dry-run``."""
    return "\n".join(
        [
            f"# {len(batch.runs)} tasks of Ray, each with {_options(batch.target)}",
            *(shlex.join(batch.command(run)) for run in batch.runs),
            "",
        ]
    )


def work(command: list[str], log: str) -> int:
    """A task: the worker of one run; returns its exit code. Raises WorkerKilled where a signal ended it."""
    import ray

    # Ray cancels a task by SIGINT, which everything that a script starts in the background ignores
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    context = ray.get_runtime_context()
    node = f"{socket.gethostname()}/{context.get_node_id()[:8]}"
    file = Path(log)
    attempt = file.read_bytes().count(b"\nattempt ") + 1 if file.exists() else 1
    with file.open("ab") as out:
        out.write(f"\nattempt {attempt} on {node}\n".encode())
        out.flush()
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, "BENCH_JOB": f"ray {context.get_task_id()} {node} {attempt}"},
            start_new_session=True,
        )
    try:
        code = child.wait()
    except BaseException:  # Ray cancels the task
        child.terminate()
        with suppress(subprocess.TimeoutExpired):
            child.wait(ENDS_WITHIN - 5)
        raise
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)  # also the ranks that outlived it
    if code < 0 or code > 130:
        raise WorkerKilled(f"its worker ended with exit code {code}")
    return code


def follow(
    batch: Batch, say: Callable[[str], None], should_stop: Callable[[], bool]
) -> dict[str, str]:
    """Wait until every run of the batch has ended; run id -> "finished", "failed" or "cancelled".

    ``should_stop``: cancel all of them; each saves its state. A task that is still running after that ends with this process.
    """
    import ray

    task, options = ray.remote(work), _options(batch.target)
    logs, ended = batch.folder / "logs", dict[str, str]()
    waiting, going = list(batch.runs), dict[Any, str]()
    most = batch.target.parallel or len(waiting)

    def note_ends(count: int, seconds: float) -> None:
        for ref in ray.wait(list(going), num_returns=count, timeout=seconds)[0]:
            run_id = going.pop(ref)
            ended[run_id] = _outcome(ref)
            with suppress(BenchError):  # a full disk
                batch.write_runs([*going.values(), *waiting])
            log = f"; see {logs}/{run_id}.log" if ended[run_id] == "failed" else ""
            say(f"{run_id}: {ended[run_id]} ({len(ended)} of {len(batch.runs)}){log}")

    while (waiting or going) and not should_stop():
        check_head()
        while waiting and len(going) < most:
            run_id = waiting.pop(0)
            named = task.options(name=run_id, retry_exceptions=[WorkerKilled], **options)
            going[named.remote(batch.command(run_id), f"{logs}/{run_id}.log")] = run_id
        note_ends(1, LOOK_EVERY)
    if going:
        for ref in going:
            ray.cancel(ref)
        note_ends(len(going), ENDS_WITHIN)
    return ended | dict.fromkeys([*waiting, *going.values()], "cancelled")


def _outcome(ref: Any) -> str:
    """How a task ended. The reason for a failure is in the run's record or log."""
    import ray

    try:
        code = ray.get(ref)
    except Exception as error:  # cancelled, or the last of its retries
        names = f"{type(error).__name__} {type(getattr(error, 'cause', error)).__name__}"
        return "cancelled" if re.search("TaskCancelled|KeyboardInterrupt", names) else "failed"
    return {0: "finished", 130: "cancelled"}.get(code, "failed")


def check_head() -> None:
    """Raises RunFailed if the head was restarted without its data: it has lost this driver, whose tasks would never end."""
    import ray

    try:
        private: Any = ray
        known = private._private.worker.global_worker.gcs_client
        same = private._raylet.GcsClient(address=known.address).cluster_id == known.cluster_id
    except Exception:  # no answer (then Ray itself ends this process), or another version of Ray
        return
    if not same:
        raise RunFailed(
            "the head of the Ray cluster was restarted and has lost its tasks",
            "give the same command again once its nodes are back",
        )


def _ray_queue(batches: Mapping[Path, Sequence[str]]) -> dict[str, Job]:
    """The runs that living drivers have not seen end: a driver removes a run that has ended from its ``runs.txt``."""
    jobs: dict[str, Job] = {}
    for folder, runs in batches.items():
        if (driver := RunsFolder(folder.parent).worked_on_by(folder.name)) is None:
            continue
        store, (host, _, process) = RunsFolder(folder.parents[1]), driver.rpartition(":")
        for run_id in runs:
            jobs[run_id] = Job(
                engine="ray",
                state="running" if store.worked_on_by(run_id) else "queued",
                name=f"driver {driver}",
                detail="",
                cancel=f"kill -INT {process}, on {host}: Ctrl-C for all runs of that command",
                log=folder / "logs" / f"{run_id}.log",
            )
    return jobs
