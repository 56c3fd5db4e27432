"""The trials of a search: an Optuna study per method, all in one journal file, worked on by as many processes as share the folder.

``NAME/optuna.log`` is the state: values, dev scores of a pruned training, results. ``NAME/trials/METHOD/003/`` holds the training of
a trial, a run without scores, and the lock of the process that works on it. A killed process leaves a trial that the same command
continues. ``NAME/search.json`` is the summary that boards and figures read.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
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

from bench.base.errors import BenchError, Interrupted, RunFailed
from bench.method import seed_for
from bench.run.executors.local import VECTORS, execute
from bench.run.search.study import Job, continued
from bench.runs import RunsFolder
from bench.runs.intact import CHECKPOINT
from bench.runs.searches import (
    FAILED,
    FINISHED,
    PRUNED,
    RECIPE,
    Search,
    Study,
    Trial,
    read_search,
    write_search,
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


class JournalLock:
    """The lock of Optuna's journal. The kernel releases it when its process dies, unlike Optuna's own, which others wait 30 s for."""

    def __init__(self, journal: Path) -> None:
        self.journal, self.lock = journal, FileLock(f"{journal}.lock")

    def acquire(self) -> bool:
        """Wait for the lock, and cut off a last line that a kill or a full disk left unfinished."""
        self.lock.acquire()
        content = self.journal.read_bytes()
        if content and not content.endswith(b"\n"):
            with self.journal.open("r+b") as file:
                file.truncate(content.rfind(b"\n") + 1)
        return True

    def release(self) -> None:
        self.lock.release()


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
        self.busy = 0  # trials that other processes worked on when none was left to claim
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        folder.mkdir(parents=True, exist_ok=True)
        self.lock = FileLock(folder / ".lock")
        with self.lock:
            before = read_search(folder)
            self.study = continued(before.study, study, folder) if before else study
            lock: Any = JournalLock(folder / JOURNAL)
            backend = JournalFileBackend(str(folder / JOURNAL), lock)
            storage = JournalStorage(backend)
            self.studies = {
                method: optuna.create_study(
                    storage=storage,
                    study_name=method,
                    direction="maximize",
                    load_if_exists=True,
                    sampler=SeededByKey(self.seed),
                    pruner=PRUNERS[study.pruner](),
                )
                for method in jobs
            }
            write_search(folder, self.search())
        for trials in self.search().trials.values():
            for trial in trials:  # a process may have been killed before it did this
                self._remove_weights(trial)

    def search(self) -> Search:
        """All trials as they stand."""
        trials = {
            method: tuple(
                self._trial(method, frozen) for frozen in study.get_trials(deepcopy=False)
            )
            for method, study in self.studies.items()
        }
        return Search(study=self.study, trials=trials)

    def order(self) -> list[tuple[str, int]]:
        """The first trial of every method comes before the second of any: a search that is stopped has treated all alike."""
        return [(method, n) for n in range(self.study.trials + 1) for method in self.jobs]

    def claim(self, stack: ExitStack) -> Trial | None:
        """The next trial that no process works on, locked until ``stack`` is closed; None where there is none."""
        with self.lock:
            self.busy = 0
            for method, number in self.order():
                trials = self.studies[method].get_trials(deepcopy=False)
                if number < len(trials) and trials[number].state.is_finished():
                    continue
                try:
                    folder = self.trial_folder(method, number)
                    folder.mkdir(parents=True, exist_ok=True)
                    stack.enter_context(FileLock(folder / ".lock", timeout=0))
                except Timeout:
                    self.busy += 1
                    continue
                self._choose(method, number)
                search = self.search()
                write_search(self.folder, search)
                return search.trials[method][number]
        return None

    def run(self, trial: Trial, reporter: Reporter) -> Trial:
        """Train a trial with every seed; its result is on the disk when this returns. Raises Interrupted, after which the same command
        continues the trial, and BenchError for what was wrong before anything was trained."""
        job, began = self.jobs[trial.method], time.perf_counter()
        store = RunsFolder(self.trial_folder(trial.method, trial.number))
        dev: list[float] = []
        runs, spent, state, error = [], 0.0, FINISHED, None
        try:
            runs = job.trial_runs(trial.values, f"{self.study.name}, trial {trial.number}")
        except BenchError as refused:  # the method refuses these values together
            state, error = FAILED, refused.message
        steps = 0
        try:
            for run in runs:
                watch = reporter if dev else self._pruning(trial, reporter)
                record, _ = execute(run, store, self.options, watch)
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
        self._tell(ended)
        self._remove_weights(ended)
        return ended

    def trial_folder(self, method: str, number: int) -> Path:
        return self.folder / "trials" / method / f"{number:03d}"

    def _open(self, method: str, number: int) -> optuna.Trial:
        study = self.studies[method]
        return optuna.Trial(study, study.get_trials(deepcopy=False)[number]._trial_id)

    def _choose(self, method: str, number: int) -> None:
        """Values of a new trial; and those that a killed process had not drawn yet, of a trial that is there."""
        study, space = self.studies[method], self.jobs[method].space
        if number != RECIPE:
            study.sampler = self._sampler(method, number)
        there = number < len(study.get_trials(deepcopy=False))
        trial = self._open(method, number) if there else study.ask()
        for axis in space if number != RECIPE else ():
            axis.suggest(trial)
        study.sampler = SeededByKey(self.seed)

    def _sampler(self, method: str, number: int) -> BaseSampler:
        """Seeded for each trial anew: a search that was killed draws what it would have drawn."""
        if self.study.sampler == "grid":
            grid = {axis.key: axis.grid() for axis in self.jobs[method].space}
            return GridSampler(grid, seed=self.seed)
        if self.study.sampler == "tpe":
            seed = seed_for(self.seed, "search", method, number) % 2**32
            return TPESampler(seed=seed, n_startup_trials=STARTUP)
        return SeededByKey(self.seed)

    def _trial(self, method: str, frozen: FrozenTrial) -> Trial:
        if frozen.state.is_finished():
            return msgspec.convert(frozen.user_attrs[RESULT], Trial)
        drawn = (axis for axis in self.jobs[method].space if axis.key in frozen.params)
        values = {axis.key: axis.rounded(frozen.params[axis.key]) for axis in drawn}
        return Trial(method=method, number=frozen.number, values=values)

    def _tell(self, trial: Trial) -> None:
        """The end of a trial; its facts come first, so that every trial that ended has them."""
        study = self.studies[trial.method]
        with self.lock:
            facts = msgspec.to_builtins(trial)
            self._open(trial.method, trial.number).set_user_attr(RESULT, facts)
            study.tell(trial.number, trial.score, state=STATES[trial.state])
            write_search(self.folder, self.search())

    def _remove_weights(self, trial: Trial) -> None:
        """Remove what an ended trial trained: nobody uses it, and it is as large as the model."""
        for run_id in trial.runs:
            for name in (CHECKPOINT, VECTORS, "state"):
                folder = self.trial_folder(trial.method, trial.number) / run_id / name
                shutil.rmtree(folder, ignore_errors=True)

    def _pruning(self, trial: Trial, reporter: Reporter) -> Reporter:
        """Never of the recipe as it is: every method has its score."""
        if self.study.pruner == "none" or trial.number == RECIPE:
            return reporter
        return PruningReporter(reporter, self._open(trial.method, trial.number))


class PruningReporter:
    """Passes everything on to a reporter, and asks the pruner at each new dev score whether the trial goes on."""

    def __init__(self, reporter: Reporter, trial: optuna.Trial) -> None:
        self.reporter, self.trial = reporter, trial
        self.scoring = self.trains = False

    def phase(self, name: str, total: int | None = None) -> None:
        self.scoring = self.scoring or name == "dev"
        self.reporter.phase(name, total)
        self.trains = name == "train"

    def advance(self, done: int, **fields: Any) -> None:
        self.reporter.advance(done, **fields)
        if not (self.scoring and self.trains and "dev_score" in fields):
            return
        self.scoring = False
        self.trial.report(fields["dev_score"], done)
        if self.trial.should_prune():
            raise Pruned(f"pruned at step {done}: dev score {fields['dev_score']:.2f}")

    def note(self, text: str) -> None:
        self.reporter.note(text)
