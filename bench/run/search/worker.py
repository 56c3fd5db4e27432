"""One process that works on a search."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock, Timeout

from bench.base.errors import BenchError, DataDamaged, Interrupted, RunFailed, one_line
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
    PRUNED,
    RECIPE,
    RUNNING,
    SUMMARY,
    Search,
    Study,
    Trial,
    drawn_before,
    read_search,
)
from bench.records.store import RunsFolder
from bench.run.execute import execute
from bench.run.planned import PlannedRun
from bench.run.search.journal import ANEW, JOURNAL, JournalLock, check_journal
from bench.run.search.study import SearchedMethod, identity_of

RESULT = "result"
"""Optuna's user attribute with the Trial that ended."""
STARTUP = 6
"""The recipe and five random trials, before TPE and the median pruner use results."""


class Pruned(Interrupted):
    """The pruner ended a training."""


class SearchWorker:
    """One process that works on a search."""

    def __init__(
        self, folder: Path, study: Study, jobs: Mapping[str, SearchedMethod], options: RunConfig
    ) -> None:
        """Begin the search, or continue the one in the folder.

        Raises BenchError if the folder holds another one.
        """
        import optuna
        from optuna.storages.journal import JournalFileBackend

        pruners: dict[str, optuna.pruners.BasePruner] = {
            "none": optuna.pruners.NopPruner(),
            "median": optuna.pruners.MedianPruner(n_startup_trials=STARTUP),
            "halving": optuna.pruners.SuccessiveHalvingPruner(),
        }
        self.folder = folder
        self.jobs = jobs
        self.options = options
        self.seed = seed_for(0, "search", *study.seeds) % 2**32
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        refuse_links(folder)
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self.lock = FileLock(folder / ".lock")
        with self.lock:
            self.study = continued_study(folder, study)
            lock: Any = JournalLock(folder / f"{JOURNAL}.lock")
            check_journal(folder / JOURNAL)
            try:
                backend = JournalFileBackend(str(folder / JOURNAL), lock)
                storage = optuna.storages.JournalStorage(backend)
                self.studies = {}
                for method in jobs:
                    self.studies[method] = optuna.create_study(
                        storage=storage,
                        study_name=method,
                        direction="maximize",
                        load_if_exists=True,
                        pruner=pruners[study.pruner],
                    )
            except (LookupError, TypeError, ValueError, AssertionError) as error:
                raise DataDamaged(
                    f"{folder / JOURNAL}: its entries do not fit together ({one_line(error)})", ANEW
                ) from None
            self.write()

    def write(self) -> Search:
        """Write the summary: all trials in their present state.

        The caller holds the lock, which guards all files of the folder.
        """
        for leftover in self.folder.glob(".*.tmp"):  # from a process that was killed
            leftover.unlink(missing_ok=True)
        trials = {}
        for method, study in self.studies.items():
            states = study.get_trials(deepcopy=False)
            trials[method] = tuple(self._trial(method, state) for state in states)
        search = Search(study=self.study, trials=trials)
        write_or_fail(self.folder / SUMMARY, search.encode())
        return search

    @contextmanager
    def claimed(self, method: str, number: int) -> Iterator[Trial | None]:
        """Claim a trial for this process while the context is open; None if it has ended or another
        process works on it.
        """
        folder = self.trial_folder(method, number)
        study = self.studies[method]
        lock = FileLock(folder / ".lock")
        with self.lock:
            folder.mkdir(parents=True, exist_ok=True)
            with suppress(Timeout):
                lock.acquire(timeout=0)
            if lock.is_locked and number == len(study.get_trials(deepcopy=False)):
                self._draw(method, number)
                self.write()
            trial = self._trial(method, study.get_trials(deepcopy=False)[number])
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
            watch = reporter
            if self.study.pruner != "none" and trial.number != RECIPE:
                watch = PruningReporter(reporter, self._open(trial))
            for run in runs:
                record, _ = execute(run, store, self.options, watch)
                watch = reporter  # the pruner sees the first seed only
                done = record.training
                if done is None or done.dev_score is None or not math.isfinite(done.dev_score):
                    raise RunFailed("it has no dev score")
                dev.append(done.dev_score)
                steps += done.steps
                spent += (record.cost.train_seconds or 0.0) + (record.cost.dev_seconds or 0.0)
        except Pruned:
            seen = self.studies[trial.method].trials[trial.number].intermediate_values
            dev = [max(seen.values())]
            steps = max(seen)
            state = PRUNED
        except RunFailed as failed:
            state = FAILED
            error = failed.message
        ended = msgspec.structs.replace(
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

    def drawn_before(self, trial: Trial) -> Trial | None:
        """Return the first earlier trial of the method with the same values, or None."""
        states = self.studies[trial.method].get_trials(deepcopy=False)
        trials = [self._trial(trial.method, state) for state in states]
        return drawn_before(trial, trials, self.jobs[trial.method].runs[0].recipe)

    def trial_folder(self, method: str, number: int) -> Path:
        return self.folder / "trials" / method / f"{number:03d}"

    def _draw(self, method: str, number: int) -> None:
        """Draw a new trial.

        Its values are drawn in a copy of the study and written in one line: if the process is
        killed, all of them are there or none.

        The seed is new for each trial, so that a search that was killed draws the values that it
        would have drawn. Random values follow from seed, trial and key: two methods that search
        the same key get the same values of it.
        """
        import optuna

        study = self.studies[method]
        space = {} if number == RECIPE else self.jobs[method].space
        distributions = {key: axis.distribution() for key, axis in space.items()}
        copy = optuna.create_study(direction="maximize")
        copy.add_trials(study.get_trials())
        if self.study.sampler == "grid" and space:
            copy.sampler = optuna.samplers.GridSampler(
                {key: axis.grid() for key, axis in space.items()}, seed=self.seed
            )
        elif self.study.sampler == "tpe":
            seed = seed_for(self.seed, "search", method, number) % 2**32
            copy.sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP)
        else:
            values = {}
            for key, axis in distributions.items():
                seed = seed_for(self.seed, "search", number, key) % 2**32
                alone = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed))
                values[key] = alone.ask({key: axis}).params[key]
            copy.enqueue_trial(values)
        copy.ask(distributions)
        study.add_trial(copy.trials[number])

    def _trial(self, method: str, state: Any) -> Trial:
        if state.state.is_finished():
            return msgspec.convert(state.user_attrs[RESULT], Trial)
        space = self.jobs[method].space
        return Trial(
            method=method,
            number=state.number,
            values={key: space[key].rounded(value) for key, value in state.params.items()},
        )

    def _open(self, trial: Trial) -> Any:
        """Return Optuna's object of a trial."""
        import optuna

        study = self.studies[trial.method]
        return optuna.Trial(study, study.get_trials(deepcopy=False)[trial.number]._trial_id)

    def _end(self, trial: Trial) -> None:
        """End a trial. Its facts are stored first, so that every ended trial has them."""
        from optuna.trial import TrialState as State

        states = {FINISHED: State.COMPLETE, FAILED: State.FAIL, PRUNED: State.PRUNED}
        with self.lock:
            self._open(trial).set_user_attr(RESULT, msgspec.to_builtins(trial))
            self.studies[trial.method].tell(trial.number, trial.score, state=states[trial.state])
            self.write()

    def _remove_weights(self, trial: Trial) -> None:
        """Remove the weights of an ended trial: they are as large as the model, and not used
        again.
        """
        folder = self.trial_folder(trial.method, trial.number)
        for run_id in trial.runs:
            for name in (CHECKPOINT, VECTORS, "state"):
                shutil.rmtree(folder / run_id / name, ignore_errors=True)


def continued_study(folder: Path, study: Study) -> Study:
    """Return the study of the search in the folder, or ``study`` itself if there is none.

    It gets as many trials as ``study`` asks for, but never fewer than it had. Raises BenchError if
    the folder holds another search.
    """
    before = read_search(folder / SUMMARY)
    if not before:
        return study
    old = identity_of(before.study)
    new = identity_of(study)
    others = sorted(key for key in old | new if old.get(key) != new.get(key))
    if others:
        raise BenchError(
            f"{folder} holds another search, with another {list_names(others)}",
            f"--name NEW begins another one; {SUMMARY} in the folder has its values",
        )
    return msgspec.structs.replace(before.study, trials=max(before.study.trials, study.trials))


@dataclass
class PruningReporter:
    """A reporter that passes everything on, and asks the pruner at each new dev score to go on."""

    reporter: Reporter
    # Optuna's trial
    trial: Any
    # True if there is a dev score since the last report to the pruner
    scored: bool = False

    def phase(self, name: str, total: int | None = None) -> None:
        self.scored = self.scored or name == "dev"
        self.reporter.phase(name, total)

    def advance(self, done: int, **fields: Any) -> None:
        self.reporter.advance(done, **fields)
        if self.scored and "dev_score" in fields:
            self.scored = False
            self.trial.report(fields["dev_score"], done)
            if self.trial.should_prune():
                raise Pruned(f"pruned at step {done}: dev score {fields['dev_score']:.2f}")

    def note(self, text: str, *, detail: bool = False) -> None:
        self.reporter.note(text, detail=detail)
