"""The trials of a search: an Optuna study per method, all in one journal file, worked on by as many processes as share the folder.

``NAME/optuna.log`` is the state: values, dev scores of a pruned training, results. ``NAME/trials/METHOD/003/`` holds the training of
a trial, a run without scores, and the lock of the process that works on it. A killed process leaves a trial that the same command
continues. ``NAME/search.json`` is the summary that boards and figures read.
"""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import optuna
from filelock import FileLock, Timeout
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, GridSampler, RandomSampler, TPESampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from bench.base.errors import Interrupted, RunFailed
from bench.base.files import write_or_fail
from bench.method import seed_for
from bench.run.executors.local import VECTORS, execute
from bench.run.plan import PlannedRun
from bench.run.search.study import Job, continued
from bench.runs import RunsFolder
from bench.runs.intact import CHECKPOINT
from bench.runs.searches import (
    FAILED,
    FINISHED,
    PRUNED,
    RECIPE,
    RUNNING,
    SUMMARY,
    Search,
    Study,
    Trial,
    read_search,
)

if TYPE_CHECKING:
    from bench.method import Reporter
    from bench.run.config import RunConfig

JOURNAL = "optuna.log"
RESULT = "result"  # Optuna's user attribute with the Trial that ended
STATES = {FINISHED: TrialState.COMPLETE, FAILED: TrialState.FAIL, PRUNED: TrialState.PRUNED}
STARTUP = 6  # the recipe and five random trials, before TPE and the median pruner use what is known
PRUNERS: Mapping[str, Callable[[], optuna.pruners.BasePruner]] = {
    "none": optuna.pruners.NopPruner,
    "median": lambda: optuna.pruners.MedianPruner(n_startup_trials=STARTUP),
    "halving": optuna.pruners.SuccessiveHalvingPruner,
}


class Pruned(Interrupted):
    """The pruner ended a training."""


class JournalLock(FileLock):
    """The lock of Optuna's journal. The kernel releases it when its process dies, unlike Optuna's own, which others wait 30 s for."""

    def acquire(self, *args: Any, **options: Any) -> Any:
        """Wait for the lock, and cut off a last line that a kill or a full disk left unfinished."""
        acquired = super().acquire(*args, **options)
        journal = Path(self.lock_file).with_name(JOURNAL)
        content = journal.read_bytes()
        if content and not content.endswith(b"\n"):
            os.truncate(journal, content.rfind(b"\n") + 1)
        return acquired


class SeededByKey(RandomSampler):
    """Random values that follow from seed, trial and key: two methods with one dimension in common get the same values of it."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.seed = seed

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param: str, distribution: BaseDistribution
    ) -> Any:
        seed = seed_for(self.seed, "search", trial.number, param) % 2**32
        return RandomSampler(seed).sample_independent(study, trial, param, distribution)


class Worker:
    """One process that works on a search."""

    def __init__(
        self, folder: Path, study: Study, jobs: Mapping[str, Job], options: RunConfig
    ) -> None:
        """Begins the search, or continues the one in the folder. Raises BenchError where the folder holds another one."""
        self.folder, self.jobs, self.options = folder, jobs, options
        self.seed = seed_for(0, "search", *study.seeds) % 2**32
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        folder.mkdir(parents=True, exist_ok=True)
        self.lock = FileLock(folder / ".lock")
        with self.lock:
            before = read_search(folder / SUMMARY)
            self.study = continued(before.study, study, folder) if before else study
            lock: Any = JournalLock(folder / f"{JOURNAL}.lock")
            storage = JournalStorage(JournalFileBackend(str(folder / JOURNAL), lock))
            self.studies = {
                method: optuna.create_study(
                    storage=storage,
                    study_name=method,
                    direction="maximize",
                    load_if_exists=True,
                    pruner=PRUNERS[study.pruner](),
                )
                for method in jobs
            }
            self.write()

    def write(self) -> Search:
        """Write all trials as they stand into the summary."""
        trials = {
            method: tuple(self._trial(method, state) for state in study.get_trials(deepcopy=False))
            for method, study in self.studies.items()
        }
        search = Search(study=self.study, trials=trials)
        write_or_fail(self.folder / SUMMARY, search.encode())
        return search

    def order(self) -> list[tuple[str, int]]:
        """The first trial of every method comes before the second of any: a search that is stopped has treated all alike."""
        return [(method, n) for n in range(self.study.trials + 1) for method in self.jobs]

    @contextmanager
    def claimed(self, method: str, number: int) -> Iterator[Trial | None]:
        """A trial, which is this process's while open; None where it has ended or another process works on it."""
        folder, study = self.trial_folder(method, number), self.studies[method]
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
        """Train a trial with every seed; its result is on the disk when this returns. Raises Interrupted, after which the same command
        continues the trial, and BenchError for what was wrong before anything was trained."""
        began = time.perf_counter()
        store = RunsFolder(self.trial_folder(trial.method, trial.number))
        dev, runs = list[float](), list[PlannedRun]()
        steps, spent, state, error = 0, 0.0, FINISHED, None
        try:
            source = f"{self.study.name}, trial {trial.number}"
            runs = self.jobs[trial.method].trial_runs(trial.values, source)
            watch: Reporter = reporter
            if self.study.pruner != "none" and trial.number != RECIPE:
                watch = PruningReporter(reporter, self._open(trial.method, trial.number))
            for run in runs:
                record, _ = execute(run, store, self.options, watch)
                watch = reporter  # the pruner sees the first seed
                done = record.training
                if done is None or done.dev_score is None or not math.isfinite(done.dev_score):
                    raise RunFailed("it has no dev score")
                dev, steps = [*dev, done.dev_score], steps + done.steps
                spent += (record.cost.train_seconds or 0.0) + (record.cost.dev_seconds or 0.0)
        except Pruned:
            seen = self.studies[trial.method].trials[trial.number].intermediate_values
            dev, steps, state = [max(seen.values())], max(seen), PRUNED
        except RunFailed as failed:
            state, error = FAILED, failed.message
        ended = msgspec.structs.replace(
            trial,
            state=state,
            dev=tuple(dev),
            steps=steps,
            seconds=round(max(spent, time.perf_counter() - began), 2),
            error=error,
            runs=tuple(run.run_id for run in runs),
        )
        self._end(ended)
        self._remove_weights(ended)
        return ended

    def trial_folder(self, method: str, number: int) -> Path:
        return self.folder / "trials" / method / f"{number:03d}"

    def _open(self, method: str, number: int) -> optuna.Trial:
        study = self.studies[method]
        return optuna.Trial(study, study.get_trials(deepcopy=False)[number]._trial_id)

    def _draw(self, method: str, number: int) -> None:
        """A new trial. Its values are drawn in a copy of the study and written in one line: a kill leaves all of them or none."""
        study, space = self.studies[method], self.jobs[method].space
        copy = optuna.create_study(direction="maximize", sampler=self._sampler(method, number))
        copy.add_trials(study.get_trials())
        copy.ask({key: axis.distribution() for key, axis in space.items() if number != RECIPE})
        study.add_trial(copy.trials[number])

    def _sampler(self, method: str, number: int) -> BaseSampler:
        """Seeded for each trial anew: a search that was killed draws what it would have drawn."""
        if self.study.sampler == "grid" and number != RECIPE:
            grid = {key: axis.grid() for key, axis in self.jobs[method].space.items()}
            return GridSampler(grid, seed=self.seed)
        if self.study.sampler == "tpe":
            seed = seed_for(self.seed, "search", method, number) % 2**32
            return TPESampler(seed=seed, n_startup_trials=STARTUP)
        return SeededByKey(self.seed)

    def _trial(self, method: str, state: FrozenTrial) -> Trial:
        if state.state.is_finished():
            return msgspec.convert(state.user_attrs[RESULT], Trial)
        space = self.jobs[method].space
        values = {key: space[key].rounded(value) for key, value in state.params.items()}
        return Trial(method=method, number=state.number, values=values)

    def _end(self, trial: Trial) -> None:
        """The end of a trial; its facts come first, so that every trial that ended has them."""
        with self.lock:
            facts = msgspec.to_builtins(trial)
            self._open(trial.method, trial.number).set_user_attr(RESULT, facts)
            self.studies[trial.method].tell(trial.number, trial.score, state=STATES[trial.state])
            self.write()

    def _remove_weights(self, trial: Trial) -> None:
        """Remove what an ended trial trained: nobody uses it, and it is as large as the model."""
        folder = self.trial_folder(trial.method, trial.number)
        for run_id, name in product(trial.runs, (CHECKPOINT, VECTORS, "state")):
            shutil.rmtree(folder / run_id / name, ignore_errors=True)


class PruningReporter:
    """Passes everything on to a reporter, and asks the pruner at each new dev score whether the trial goes on."""

    def __init__(self, reporter: Reporter, trial: optuna.Trial) -> None:
        self.reporter, self.trial = reporter, trial
        self.scored = False  # since the last report to the pruner

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

    def note(self, text: str) -> None:
        self.reporter.note(text)
