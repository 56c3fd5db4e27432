"""The trials of a search, in a process that may share them with others."""

from __future__ import annotations

import itertools
import math
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from msgspec.structs import replace

from bench.base.errors import BenchError, RunFailed
from bench.base.files import write_or_fail, writing
from bench.base.paths import hide_paths
from bench.base.reading import refuse_links
from bench.base.text import list_names
from bench.method.config import RunConfig
from bench.method.context import Reporter, seed_for
from bench.records.names import CHECKPOINT, VECTORS
from bench.records.searches import (
    FAILED,
    FINISHED,
    RECIPE,
    RUNNING,
    SUMMARY,
    Search,
    Study,
    Trial,
    read_search,
)
from bench.records.store import RunsFolder
from bench.run.execute import execute
from bench.run.planned import PlannedRun
from bench.run.progress import QuietReporter, RunReporter
from bench.run.search.found import write_recipe
from bench.run.search.space import short_value
from bench.run.search.study import SearchedMethod, identity_of


class SearchWorker:
    """One process that works on a search.

    The trials are in the search's file, which is read and written while the lock is held.
    """

    def __init__(
        self, folder: Path, study: Study, jobs: Mapping[str, SearchedMethod], options: RunConfig
    ) -> None:
        """Begin the search, or continue the one in the folder.

        Raises BenchError if the folder holds another one.
        """
        self.folder = folder
        self.jobs = jobs
        self.options = options
        self.seed = seed_for(0, "search", *study.seeds) % 2**32
        refuse_links(folder)
        self.lock = FileLock(folder / ".lock")
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with self.lock:  # OSError in a folder that may not be written
                pass
        with self.lock:
            for leftover in folder.glob(".*.tmp"):  # from a process that was killed
                leftover.unlink(missing_ok=True)
            search = continued(folder, Search(study=study, trials=dict.fromkeys(jobs, ())))
            self._write(search)
        self.study = search.study

    def read(self) -> Search:
        """Return the search with all trials in their present state. The caller holds the lock."""
        search = read_search(self.folder / SUMMARY)
        assert search is not None
        return search

    def _write(self, search: Search) -> None:
        write_or_fail(self.folder / SUMMARY, search.encode())

    @contextmanager
    def claimed(self, method: str, number: int) -> Iterator[Trial | None]:
        """Claim a trial for this process while the context is open; None if it has ended or another
        process works on it.
        """
        folder = self.trial_folder(method, number)
        lock = FileLock(folder / ".lock")
        with self.lock:
            folder.mkdir(parents=True, exist_ok=True)
            with suppress(Timeout):
                lock.acquire(timeout=0)
            search = self.read()
            if lock.is_locked and number == len(search.trials[method]):
                search.trials[method] += (self._draw(method, number),)
                self._write(search)
            trial = search.trials[method][number]
        if trial.state != RUNNING:
            self._remove_weights(trial)  # a process may have been killed before it did this
        try:
            yield trial if lock.is_locked and trial.state == RUNNING else None
        finally:
            lock.release()

    def run(self, trial: Trial, reporter: Reporter) -> Trial:
        """Train a trial with every seed and store its result.

        Raises Interrupted, after which the same command continues the trial, and BenchError for a
        mistake that was found before anything was trained.
        """
        began = time.perf_counter()
        store = RunsFolder(self.trial_folder(trial.method, trial.number))
        runs: list[PlannedRun] = []
        dev: list[float] = []
        steps = 0
        spent = 0.0
        state = FINISHED
        error = None
        try:
            runs = self.jobs[trial.method].trial_runs(
                trial.values, f"{self.study.name}, trial {trial.number}"
            )
            for run in runs:
                record, _ = execute(run, store, self.options, reporter)
                done = record.training
                if done is None or done.dev_score is None or not math.isfinite(done.dev_score):
                    raise RunFailed("it has no dev score")
                dev.append(done.dev_score)
                steps += done.steps
                spent += (record.cost.train_seconds or 0.0) + (record.cost.dev_seconds or 0.0)
        except RunFailed as failed:
            state = FAILED
            error = failed.message
        ended = replace(
            trial,
            state=state,
            dev=tuple(dev),
            steps=steps,
            seconds=round(max(spent, time.perf_counter() - began), 2),
            error=None if error is None else hide_paths(error),
            runs=tuple(run.run_id for run in runs),
        )
        self._end(ended)
        self._remove_weights(ended)
        return ended

    def trial_folder(self, method: str, number: int) -> Path:
        return self.folder / "trials" / method / f"{number:03d}"

    def _draw(self, method: str, number: int) -> Trial:
        """Draw a new trial.

        Its values follow from the seeds of the search and its number, so that a search that was
        killed draws the values that it would have drawn. Random values follow from the key, too,
        and from nothing else: two methods that search the same key get the same values of it.
        """
        space = self.jobs[method].space
        values: dict[str, Any] = {}
        if number != RECIPE and self.study.sampler == "grid":
            points = list(itertools.product(*(axis.grid() for axis in space.values())))
            # shuffled in place
            np.random.RandomState(self.seed).shuffle(points)  # type: ignore[arg-type]
            values = dict(zip(space, points[number % len(points)], strict=True))
        elif number != RECIPE:
            for key, axis in space.items():
                values[key] = axis.draw(seed_for(self.seed, "search", number, key) % 2**32)
        return Trial(method=method, number=number, values=values)

    def _end(self, trial: Trial) -> None:
        """Store a trial that has ended."""
        with self.lock:
            search = self.read()
            trials = list(search.trials[trial.method])
            trials[trial.number] = trial
            search.trials[trial.method] = tuple(trials)
            self._write(search)

    def _remove_weights(self, trial: Trial) -> None:
        """Remove the weights of an ended trial: they are as large as the model, and not used
        again.
        """
        folder = self.trial_folder(trial.method, trial.number)
        for run_id in trial.runs:
            for name in (CHECKPOINT, VECTORS, "state"):
                shutil.rmtree(folder / run_id / name, ignore_errors=True)


def continued(folder: Path, search: Search) -> Search:
    """Return the search that is in the folder, or ``search`` itself if there is none.

    It gets as many trials as ``search`` asks for, but never fewer than it had. Raises BenchError if
    the folder holds another search.
    """
    before = read_search(folder / SUMMARY)
    if not before:
        return search
    old = identity_of(before.study)
    new = identity_of(search.study)
    others = sorted(key for key in old | new if old.get(key) != new.get(key))
    if others:
        raise BenchError(
            f"{folder} holds another search, with another {list_names(others)}",
            f"--name NEW begins another one; {SUMMARY} in the folder has its values",
        )
    most = max(before.study.trials, search.study.trials)
    return replace(before, study=replace(before.study, trials=most))


def run_trials(worker: SearchWorker, reporter: RunReporter | QuietReporter) -> None:
    """Do the trials of a search that no other process does: all methods get their first before any
    gets its second, so that a search that was stopped is fair.
    """
    order = [(method, n) for n in range(worker.study.trials + 1) for method in worker.jobs]
    reporter.plan(order)
    for place, (method, number) in enumerate(order, 1):
        with worker.claimed(method, number) as trial:
            if trial is None:  # it has ended, or another process works on it
                continue
            label = "recipe as it is" if number == RECIPE else f"trial {number}"
            reporter.start(f"{method} {label}", place)
            reporter.note(describe_values(trial))
            trial = worker.run(trial, reporter)
            scores = ", ".join(f"{score:.2f}" for score in trial.dev)
            reporter.done(
                f"{trial.state}: {trial.error or f'dev {scores}'}; "
                f"{trial.steps:,} steps, {trial.seconds:.1f} s"
            )


def write_found(worker: SearchWorker) -> tuple[Search, dict[str, Path | None]]:
    """Write the summary of a search and the recipe file of each method that has a score; returns
    both.
    """
    with worker.lock:
        results = worker.read()
        files = {
            method: write_recipe(worker.folder, results, method, job.runs[0])
            for method, job in worker.jobs.items()
        }
    return results, files


def describe_values(trial: Trial | None) -> str:
    """Return "learning_rate=1e-05, temperature=0.05": the values that a trial changes."""
    values = {} if trial is None else trial.values
    return (
        ", ".join(f"{key}={short_value(value)}" for key, value in values.items())
        or "the recipe's values"
    )
