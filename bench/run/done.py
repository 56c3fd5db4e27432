"""The finished and the open parts of a run."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from bench.base import __version__
from bench.base.installed_code import BUILT_IN
from bench.base.same_code import suite_code_of
from bench.method import Reporter
from bench.records.damage import prediction_problems
from bench.records.names import data_key
from bench.records.record import Code, RunRecord, name_in_suites
from bench.records.sizes import VECTORS
from bench.records.store import RunsFolder
from bench.run.planned import PlannedRun
from bench.run.record_of import recorded_code
from bench.score.suites import KnownTask, Task, built_in_code, suite_plugin


def has_weights(run: PlannedRun, record: RunRecord) -> bool:
    """Has it been trained, or saved if there is nothing to train?"""
    return record.training is not None or (run.corpus is None and record.checkpoint is not None)


def unscored_tasks(
    run: PlannedRun, record: RunRecord, folder: Path, reporter: Reporter
) -> tuple[KnownTask, ...]:
    """Return the tasks without a score or with damaged predictions; in the second case the vectors
    may be damaged, too, and are removed.
    """
    damaged = prediction_problems(record, folder)
    tasks: list[KnownTask] = []
    for task, known in zip(run.tasks, run.task_data, strict=True):
        problem = damaged.get((task.suite, task.name, task.protocol, known.form))
        if not is_scored(record, task, known):
            tasks.append(known)
        elif problem:
            reporter.note(
                "predictions are made again: "
                f"{data_key(task.name, known.form, task.suite)} ({problem})"
            )
            shutil.rmtree(folder / VECTORS, ignore_errors=True)
            tasks.append(known)
    return tuple(tasks)


def is_finished(run: PlannedRun, store: RunsFolder) -> bool:
    """Return True if there is a finished record with a score for every task."""
    record = store.get(run.run_id, run.fingerprint)
    return (
        record is not None
        and record.status == "finished"
        and all(map(partial(is_scored, record), run.tasks, run.task_data))
    )


def is_finished_at_all(run: PlannedRun, store: RunsFolder) -> bool:
    """Say if the run has a finished record with scores of any suite."""
    record = store.get(run.run_id, run.fingerprint)
    return record is not None and record.status == "finished" and bool(record.scores)


def is_scored(record: RunRecord, task: Task, known: KnownTask) -> bool:
    """Return True if the record has a score of the task under this protocol, on this data and by
    this code of its suite.

    Older records do not name the code of this package's suites.
    """
    about, now = record.provenance, code_of_suite(task.suite)
    if record.score(task.suite, task.name, task.protocol, known.form) is None:
        return False
    if about.data.get(data_key(task.name, known.form, task.suite)) != known.sha256:
        return False
    codes = about.execution.suites
    then = codes.get(
        name_in_suites(task.suite, task.name, task.protocol, known.form), codes.get(task.suite)
    )
    if then is None:
        return suite_plugin(task.suite) is None
    return suite_code_of(task.suite, then.sha256) == suite_code_of(task.suite, now.sha256)


def code_of_suite(name: str) -> Code:
    """Return the code that scores a suite: of a plugin, or of this package."""
    plugin = suite_plugin(name)
    if plugin is not None:
        return recorded_code(plugin)
    return Code(package=BUILT_IN, version=__version__, sha256=built_in_code(name))
