"""Who runs which trial: taken one at a time, by as many processes as share the folder, and taken up again where one was killed."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from bench.base.errors import BenchError, Interrupted, RunFailed, RunLocked
from bench.run.executors.local import VECTORS, execute
from bench.run.search.study import Job
from bench.runs import RunsFolder
from bench.runs.intact import CHECKPOINT, read_curve
from bench.runs.searches import (
    FAILED,
    FINISHED,
    PRUNED,
    RECIPE,
    RUNNING,
    Study,
    Trial,
    read_trial,
    read_trials,
    trial_file,
    write_trial,
)

if TYPE_CHECKING:
    from bench.method import Reporter
    from bench.method.ranks import Ranks
    from bench.run.executors.build import Options
    from bench.run.plan import PlannedRun

WAIT = 600.0  # seconds at most that another process may take to choose a trial


class Pruned(Interrupted):
    """A training that Optuna's pruner ended: no failure, and nothing to go on with."""


@dataclass
class Worker:
    """One process at work on a search."""

    folder: Path
    study: Study
    jobs: Mapping[str, Job]
    options: Options
    busy: int = 0  # trials that other processes had when nothing was left to take
    inside: float = (
        0.0  # seconds in trials; what is left of the process's time is the search itself
    )
    done: dict[tuple[str, int], Trial] = field(default_factory=dict)  # that need not be read again

    def trials(self) -> list[tuple[str, int]]:
        """In the order in which they are taken: the first of every method before the second of any, so that a search that is stopped
        has given all the same."""
        return [
            (method, number)
            for number in range(self.study.trials + 1)
            for method in self.study.methods
        ]

    def take(self, stack: ExitStack) -> Trial | None:
        """The next trial that nobody has, locked until ``stack`` is closed; None where there is none."""
        with RunsFolder(self.folder).lock("study", WAIT):
            self.busy = 0
            for method, number in self.trials():
                trial = self.look(method, number)
                if trial is not None and trial.state != RUNNING:
                    continue
                try:
                    stack.enter_context(
                        RunsFolder(self.folder / "trials" / method).lock(f"{number:03d}")
                    )
                except RunLocked:
                    self.busy += 1
                    continue
                trial = read_trial(self.folder, method, number)  # it may have ended since
                if trial is None:
                    trial = self.begin(method, number)
                elif trial.state != RUNNING:
                    stack.close()
                    continue
                trial = structs.replace(trial, process=f"{os.getpid()} on {socket.gethostname()}")
                write_trial(self.folder, trial)
                return trial
        return None

    def look(self, method: str, number: int) -> Trial | None:
        if (method, number) not in self.done:
            trial = read_trial(self.folder, method, number)
            if trial is None or trial.state == RUNNING:
                return trial
            self._lighten(trial)  # its process may have been killed before it did
            self.done[method, number] = trial
        return self.done[method, number]

    def begin(self, method: str, number: int) -> Trial:
        if number == RECIPE:
            return Trial(method=method, number=number, values={})
        self.tell(method)
        return Trial(method=method, number=number, values=self.jobs[method].sampling.values(number))

    def tell(self, method: str) -> None:
        """Tell Optuna what became of the method's trials."""
        known = {
            n: trial
            for n in range(1, self.study.trials + 1)
            if (trial := self.look(method, n)) is not None
        }
        self.jobs[method].sampling.tell(known)

    def run(self, trial: Trial, reporter: Reporter) -> Trial:
        """Train a trial with every seed; what came of it is on the disk when this returns. Raises Interrupted, which leaves it to be
        taken up again, and what was wrong before anything was trained; RunFailed where a failure of one rank alone has parted the
        processes: they can train nothing more."""
        job, began = self.jobs[trial.method], time.perf_counter()
        folder = trial_file(self.folder, trial.method, trial.number).parent
        try:
            runs = job.trial_runs(trial.values, f"{self.study.name}, trial {trial.number}")
        except BenchError as error:  # values that the method refuses together
            return self._ended(structs.replace(trial, state=FAILED, error=error.message))
        store, dev, steps, spent = RunsFolder(folder), [], 0, 0.0
        state, problem = FINISHED, None
        try:
            for place, run in enumerate(runs):
                watch = PruningReporter(reporter, job, trial.number) if place == 0 else reporter
                record, _ = execute(run, store, self.options, watch)
                done = record.training
                if done is None or done.dev_score is None:
                    raise RunFailed("it has no dev score")
                dev.append(done.dev_score)
                steps += done.steps
                spent += (record.cost.train_seconds or 0.0) + (record.cost.dev_seconds or 0.0)
        except Pruned:
            scored = [
                entry for entry in read_curve(folder / runs[0].run_id) if "dev_score" in entry
            ]
            dev, steps, state = (
                [max(row["dev_score"] for row in scored)],
                scored[-1]["step"],
                PRUNED,
            )
        except RunFailed as error:
            state, problem = FAILED, error.message
        taken = time.perf_counter() - began
        self.inside += taken
        trial = structs.replace(
            trial,
            state=state,
            dev=tuple(dev),
            steps=steps,
            seconds=round(max(spent, taken), 2),
            error=problem,
            runs=tuple(run.run_id for run in runs),
        )
        self._ended(trial)
        if self.options.ranks is not None and self.options.ranks.broken:
            raise RunFailed(
                f"{trial.method}, trial {trial.number} failed and counts as a trial: {trial.error}; the ranks were parted by it",
                "the same command goes on with the next trial",
            )
        return trial

    def _ended(self, trial: Trial) -> Trial:
        write_trial(
            self.folder, trial
        )  # first: a trial that has not ended goes on from what is removed here
        self._lighten(trial)
        self.done[trial.method, trial.number] = trial
        return trial

    def _lighten(self, trial: Trial) -> None:
        """Remove what an ended trial trained: it is of no use to anybody, and as large as the model."""
        folder = trial_file(self.folder, trial.method, trial.number).parent
        for run_id in trial.runs:
            for name in (CHECKPOINT, VECTORS, "state"):
                shutil.rmtree(folder / run_id / name, ignore_errors=True)

    def settle(self) -> None:
        """Tell Optuna what the last trials became."""
        with RunsFolder(self.folder).lock("study", WAIT):
            for method in self.jobs:
                self.tell(method)


class PruningReporter:
    """Hands on what it is told, and asks the pruner at each new dev score whether the trial goes on."""

    def __init__(self, reporter: Reporter, job: Job, number: int) -> None:
        self.reporter, self.job, self.number = reporter, job, number
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
        if self.job.sampling.should_prune(self.number, done, fields["dev_score"]):
            raise Pruned(f"pruned at step {done}: dev score {fields['dev_score']:.2f}")

    def note(self, text: str) -> None:
        self.reporter.note(text)


def follow_trials(folder: Path, jobs: Mapping[str, Job], options: Options, ranks: Ranks) -> int:
    """What every rank but the first does: train what rank 0 names, which is of a trial that runs, until it names nothing."""
    from bench.run.executors.multi_rank import follow

    def find(run_id: str) -> tuple[PlannedRun, RunsFolder]:
        for method, job in jobs.items():
            for trial in read_trials(folder, method):
                for run in job.trial_runs(trial.values, "") if trial.state == RUNNING else ():
                    if run.run_id == run_id:
                        return run, RunsFolder(trial_file(folder, method, trial.number).parent)
        raise RunFailed(f"no trial of {folder} that runs has {run_id}", "the same command again")

    return follow(find, options, ranks)


def work(
    worker: Worker, reporter: Reporter, start: Callable[[Trial], None], end: Callable[[Trial], None]
) -> None:
    """Trials until nobody is left to take; ``start`` and ``end`` are told of each."""
    while True:
        with ExitStack() as stack:
            trial = worker.take(stack)
            if trial is None:
                break
            start(trial)
            end(worker.run(trial, reporter))
    worker.settle()
