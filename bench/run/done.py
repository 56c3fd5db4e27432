"""The finished and the open parts of a run."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from bench.base.paths import recorded_path
from bench.method.context import Reporter
from bench.records.damage import prediction_problems
from bench.records.names import VECTORS, data_key
from bench.records.record import Code, RunRecord
from bench.records.store import RunsFolder
from bench.run.planned import PlannedRun
from bench.score.suites import KnownTask, Task, suite_plugin


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
        problem = damaged.get((task.suite, task.name, task.protocol))
        if not is_scored(record, task, known):
            tasks.append(known)
        elif problem:
            reporter.note(
                "predictions are made again: "
                f"{data_key(task.name, task.protocol, task.suite)} ({problem})"
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
    """Return True if the record has a score of the task under this protocol, on this data and, if
    a plugin defines its suite, by this code.
    """
    about = record.provenance
    if record.score(task.suite, task.name, task.protocol) is None:
        return False
    if about.data.get(data_key(task.name, task.protocol, task.suite)) != known.sha256:
        return False
    return not has_other_code(record, task.suite)


def has_other_code(record: RunRecord, suite: str) -> bool:
    """Return True if a plugin defines the suite, and the record's scores of it have other code."""
    now = code_of_suite(suite)
    then = record.provenance.execution.suites.get(suite, Code())
    return now is not None and then.sha256 != now.sha256


def code_of_suite(name: str) -> Code | None:
    """Return the code of a plugin's suite; None for one of this package, which has the names of
    its protocols.
    """
    plugin = suite_plugin(name)
    if plugin is None:
        return None
    return Code(package=recorded_path(plugin.file), version="", sha256=plugin.sha256)
