"""Encoding again from a checkpoint, without training: do the same predictions come out?"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from bench.base.errors import BenchError, DataMissing, RunFailed, one_line
from bench.base.findings import DIFFERS, UNCHECKED, Finding
from bench.board.verify.findings import make_finding, name_score
from bench.board.verify.scores import NO_SUITE
from bench.data.sets import DataFolder
from bench.method.context import SilentReporter
from bench.records.record import AVERAGE, Score
from bench.records.run import Run
from bench.records.store import RunsFolder
from bench.run.finished import find_run, load_finished_run
from bench.run.vectors import RunVectors, score_tasks, tokens_of
from bench.score.suites import (
    KnownTask,
    RunPlace,
    TaskResult,
    find_metric,
    find_task,
    suite,
    suite_names,
    survey,
)

POINTS, ITEMS = 0.05, 3
"""Scores may move by this much: other devices and libraries round differently, and the classes of a
few items flip."""
COSINE = 1e-4
"""The same for one prediction that is a cosine or a distance."""


def encode_again(
    run: Run, plugins: Sequence[Path], data: DataFolder, device: str, offline: bool
) -> Iterator[Finding]:
    """Build the method from its record and score ``data`` with it: one finding of kind encoding per
    task. Whatever a checkpoint or a plugin raises is a finding."""
    tasks: dict[KnownTask, Score] = {}
    for score in run.scores:
        if score.task != AVERAGE:
            try:
                tasks[_known(score, data)] = score
            except DataMissing as error:
                yield Finding("encoding", name_score(score), UNCHECKED, error.message)
    method = None
    try:
        trained = find_run(str(run.folder), RunsFolder(run.folder.parent), plugins)
        method = load_finished_run(trained, device=device, offline=offline)
        with tempfile.TemporaryDirectory() as folder:  # nothing is written in the run's folder
            key = run.record.fingerprint[:16]
            place = RunPlace(run.record.run_id, key, Path(folder), tokens_of(method))
            results = dict(
                score_tasks(list(tasks), RunVectors(method, SilentReporter()), place, device)
            )
    except Exception as error:  # a method's own code may raise anything
        reason = error.message if isinstance(error, BenchError) else one_line(error)
        hint = getattr(error, "hint", None)
        why = f"it cannot be encoded again: {reason}"
        if hint:
            why += f" (try: {hint})"
        outcome = DIFFERS
        if method is None and isinstance(error, BenchError):
            outcome = UNCHECKED  # it could not be loaded here, which says nothing about its scores
        yield Finding("encoding", "checkpoint", outcome, why)
        return
    changed = ""
    if trained.plugin.code.identity != run.record.provenance.plugin.identity:
        changed = "; the method's code has changed since"
    for known, result in results.items():
        score = tasks[known]
        yield make_finding("encoding", name_score(score), _difference, score, result, run, changed)


def _known(score: Score, data: DataFolder) -> KnownTask:
    """Return the task of a score with its data. Raises DataMissing."""
    if score.suite not in suite_names():
        raise DataMissing(NO_SUITE.format(score.suite))
    name = f"mteb:{score.task}" if score.suite == "mteb" else score.suite
    task = find_task(score.key._replace(suite=name))
    if task is not None:
        return survey(task, data)
    if score.protocol in suite(name).earlier:
        raise DataMissing(
            f"this version no longer has the data of {score.protocol}; bench run --suite {name} "
            "scores other data"
        )
    raise DataMissing(f"{score.suite} has no task {score.task} under {score.protocol}")


def _difference(score: Score, again: TaskResult | RunFailed, run: Run, changed: str) -> str:
    """Return the stored predictions of one task against the new ones. ``changed`` is added to the
    differences.
    """
    if isinstance(again, RunFailed):
        return again.message
    why = []
    allowed = POINTS
    if find_metric(score.suite, score.metric).answers:
        allowed = max(POINTS, 100 * ITEMS / max(score.n, 1))
    if abs(again.value - score.value) > allowed:
        why.append(f"{score.value:.2f} is recorded, encoding again gives {again.value:.2f}")
    before = run.predictions(score.key).get("prediction")
    now = again.predictions.get("prediction")
    if before is None or now is None or before.shape != now.shape:
        if before is not now:
            why.append("the predictions have another shape")
    elif now.dtype.kind == before.dtype.kind == "f":  # classes may be numbered differently
        distance = float(np.abs(before.astype(float) - now).max(initial=0.0))
        if not distance <= COSINE:
            why.append(f"predictions differ by up to {distance:.2g}")
    if not why:
        return ""
    return ", ".join(why) + changed
