"""One run in this process: the training and the scoring that are not done yet, and their record.

:func:`execute` leads from a planned run to its record; it reads from top to bottom. The other ranks
of a training (``--on torchrun:N``) are in :mod:`bench.run.ranks`.
"""

from __future__ import annotations

import os
import shutil
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from bench.base.errors import (
    BenchError,
    DeviceLost,
    Interrupted,
    PluginFailed,
    RunFailed,
    RunRefused,
)
from bench.base.paths import hide_paths, recorded_path
from bench.base.places import PLACES
from bench.base.signals import stop_signals
from bench.base.user_code import located
from bench.method.config import RunConfig
from bench.method.context import Reporter, SilentReporter
from bench.method.finished import FinishedEncoder
from bench.records.damage import checkpoint_problem
from bench.records.names import (
    CHECKPOINT,
    CURVE,
    FOREIGN,
    LOCK,
    OWN_DATA,
    PLAN,
    RECORD,
    VECTORS,
)
from bench.records.question import Question
from bench.records.record import RunRecord
from bench.records.store import RunsFolder
from bench.run.done import has_weights, is_finished_at_all, unscored_tasks
from bench.run.plan_file import write_plan
from bench.run.planned import PlannedRun
from bench.run.record_of import new_record, remember_places, with_execution, with_provenance
from bench.run.scoring import TasksFailed, score_run
from bench.run.smaller import check_width
from bench.run.weights import build_for_run, save_weights, train_weights

if TYPE_CHECKING:
    from bench.method.ranks import Ranks


NO_QUESTION = Question()
TRACEBACK = "traceback.txt"
"""In the run's folder: the traceback of a failure in a method's code."""


def execute(
    run: PlannedRun,
    store: RunsFolder,
    config: RunConfig,
    reporter: Reporter,
    ranks: Ranks | None = None,
    question: Question = NO_QUESTION,
) -> tuple[RunRecord, bool]:
    """Train and score one planned run.

    ``question``: its plan's question. Returns its record, and True if there was anything to do.

    Nothing is done twice: a trained checkpoint is loaded, and a task is scored only if its
    protocol, its data or the checkpoint changed, or if its predictions are no longer as recorded. A
    finished run stays finished, with its earlier scores, however this ends. Raises
    RunFailed (recorded as "failed"; a run that has scores stays finished if only other tasks could
    not be scored), Interrupted (recorded, resumable), DeviceLost (recorded as "failed"; this
    process can do no other run), or another BenchError if nothing was started.
    """
    folder = store.folder(run.run_id)
    with store.lock(run.run_id, config.wait_seconds, reporter.note):
        remember_places(run, store.path)
        is_finished = is_finished_at_all(run, store)
        beside = RunsFolder(store.path / BESIDE)
        if not is_finished and is_finished_at_all(run, beside):
            # a process was killed while it put this run in the place of an earlier one
            replace_earlier(run, store, beside)
            config = replace(config, fresh=False)
        elif config.fresh and is_finished:
            return execute_beside(run, store, config, reporter, ranks, question), True
        elif config.fresh and folder.exists():
            forget(run, store, reporter)
        record = _record(run, store, config, reporter)
        write_plan(run, config, question, folder)
        trained = has_weights(run, record)
        tasks = unscored_tasks(run, record, folder, reporter) if trained else run.task_data
        if record.status == "finished" and trained and not tasks:
            return record, False
        job = job_here()
        record = with_execution(record, job)
        with (
            _recorded_end(run, store, record),
            # an engine may send a signal more than once
            stop_signals(insistent=ranks is None and not job) as should_stop,
        ):
            reporter.phase("load")
            method = build_for_run(run, config, reporter, folder, should_stop, ranks)
            if isinstance(method, FinishedEncoder):
                check_width(run.dimensions_needed, method.dimension, record.backbone_name)
            if trained:
                method.load(folder / CHECKPOINT)
            else:
                # stored vectors of other weights must not be used
                shutil.rmtree(folder / VECTORS, ignore_errors=True)
                if run.corpus is None:
                    record = save_weights(method, folder, record)
                else:
                    record = train_weights(method, run, folder, record, ranks)
                store.write(record)
            # also the state of a process that was killed right here
            shutil.rmtree(folder / "state", ignore_errors=True)
            if record.status != "finished":
                record = replace(record, status="interrupted")
            record = score_run(method, run, store, record, tasks, reporter, should_stop)
            record = replace(record, status="finished", error=None)
            store.write(record)
        (folder / TRACEBACK).unlink(missing_ok=True)
        return record, True


BESIDE = ".fresh"
"""In the runs folder: runs that are made again, until each is finished and replaces the earlier
one.
"""


def execute_beside(
    run: PlannedRun,
    store: RunsFolder,
    config: RunConfig,
    reporter: Reporter,
    ranks: Ranks | None,
    question: Question,
) -> RunRecord:
    """Execute a finished run again in another folder, and replace its earlier files when it is
    finished. The caller holds the lock of the earlier one.

    Raises as :func:`execute` does; then the earlier run is as it was, and the same command goes on.
    """
    beside = RunsFolder(store.path / BESIDE)
    reporter.note("made again; the earlier scores stand until the new ones are there")
    record, _ = execute(run, beside, replace(config, fresh=False), reporter, ranks, question)
    forget(run, store, reporter)
    replace_earlier(run, store, beside)
    return record


def replace_earlier(run: PlannedRun, store: RunsFolder, beside: RunsFolder) -> None:
    """Move the files of a finished run into the place of earlier ones, which are forgotten. The
    caller holds the lock.
    """
    made, folder = beside.folder(run.run_id), store.folder(run.run_id)
    for path in sorted(made.iterdir(), key=lambda path: path.name == RECORD):  # the record last
        if path.name == LOCK:
            continue
        shutil.rmtree(folder / path.name, ignore_errors=True)
        path.rename(folder / path.name)
    shutil.rmtree(made, ignore_errors=True)
    with suppress(OSError):  # others are made again at the same time
        (beside.path / PLACES).unlink(missing_ok=True)
        beside.path.rmdir()


def job_here() -> dict[str, str | int]:
    """Return the engine, job, node and attempt of this worker ($BENCH_JOB); empty without an
    engine.
    """
    if "BENCH_JOB" not in os.environ:
        return {}
    name, job, node, attempt = os.environ["BENCH_JOB"].split()
    return {"engine": name, "job": job, "node": node, "attempts": int(attempt)}


@contextmanager
def _recorded_end(run: PlannedRun, store: RunsFolder, record: RunRecord) -> Iterator[None]:
    """Record how a run fails or is interrupted. Nothing is left of a run that cannot begin:
    RunRefused.

    Whatever a plugin's code raises becomes a RunFailed.

    A finished run stays finished: the failure is noted next to its scores; that scoring was stopped
    is not noted.
    """
    status = "failed"
    end: BenchError
    try:
        yield
        return
    except Interrupted as error:
        status = "interrupted"
        end = error
    except RunFailed as error:
        if isinstance(error, TasksFailed):
            status = "finished"
        end = error
    except BenchError as error:
        if record.training is None and not _has_begun(store.folder(run.run_id)):
            forget(run, store, SilentReporter())
            raise RunRefused(error.message, error.hint) from None
        end = RunFailed(error.message, error.hint)
    except (Exception, SystemExit) as error:  # a plugin's code
        trace = store.folder(run.run_id) / TRACEBACK
        with suppress(OSError):
            trace.write_text(traceback.format_exc(), encoding="utf-8")
        end = PluginFailed(f"{run.method}: {located(error)}", f"see {trace}")
        # every later call to the GPU fails, as after a failed assertion in a kernel; not so after
        # running out of memory
        if "CUDA error" in str(error) and "out of memory" not in str(error):
            end = DeviceLost(
                f"the GPU cannot be used any more: {end.message}",
                f"the same command goes on; with CUDA_LAUNCH_BLOCKING=1 {trace} names the line",
            )
    # the stored record may already have a training that is done
    now = store.get(run.run_id, run.fingerprint) or record
    message = hide_paths(end.message)
    if now.status != "finished":
        ended = replace(now, status=status, error=message)
    elif status == "interrupted":
        ended = now
    else:
        ended = replace(now, error=message)
    if ended != now or now is record:
        with suppress(BenchError):  # a full disk must not hide the error
            store.write(ended)
    raise end from None


def _has_begun(folder: Path) -> bool:
    """Say if a run has made a step, or a score."""
    return any((folder / name).exists() for name in (CHECKPOINT, CURVE, "state", "predictions"))


def _record(run: PlannedRun, store: RunsFolder, config: RunConfig, reporter: Reporter) -> RunRecord:
    """Return the stored record, or a new one, which is written to the disk.

    A damaged checkpoint that was not trained is removed.

    Raises RunFailed if trained weights are damaged: record and scores are unchanged.
    """
    record = store.get(run.run_id, run.fingerprint)  # None if it is damaged
    problem = None
    if record is not None and has_weights(run, record):
        problem = checkpoint_problem(record, store.folder(run.run_id))
    if record is not None and problem:
        if record.training is not None:
            raise RunFailed(
                f"{problem}; the recorded scores stay as they are",
                "the same command with --fresh trains it again and scores the new weights",
            )
        reporter.note(f"{problem}: made again, because nothing was trained")
        forget(run, store, reporter)
        record = None
    title = recorded_path(run.backbone.title)
    if record is None:
        record = new_record(run, config)
    elif title in ("", record.provenance.backbone.title):
        return record
    backbone = replace(record.provenance.backbone, title=title)
    record = with_provenance(record, backbone=backbone)
    store.write(record)
    return record


def forget(run: PlannedRun, store: RunsFolder, reporter: Reporter) -> None:
    """Remove everything that a run has made; the caller holds its lock.

    New weights invalidate the scores of all suites.
    """
    old = store.get(run.run_id, run.fingerprint)
    scored = {_suite_as_typed(score.suite, score.task) for score in old.scores} if old else set()
    gone = sorted(scored - {_suite_as_typed(task.suite, task.name) for task in run.tasks})
    if gone:
        reporter.note(
            f"scores of the old weights were removed: --suite {','.join(gone)} scores the new ones"
        )
    folder = store.folder(run.run_id)
    for name in (RECORD, CURVE, PLAN, TRACEBACK):
        (folder / name).unlink(missing_ok=True)
    for name in (CHECKPOINT, "state", VECTORS, "predictions", *FOREIGN):
        shutil.rmtree(folder / name, ignore_errors=True)


def _suite_as_typed(suite: str, task: str) -> str:
    """Return what ``--suite`` takes for the suite of a task: FILE for a file of the user's."""
    if suite == OWN_DATA:
        return "FILE"
    return f"{suite}:{task}" if suite in FOREIGN else suite
