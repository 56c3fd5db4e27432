"""The trials of a search, one after the other, and the recipe files that it found."""

from __future__ import annotations

from pathlib import Path

from bench.records.searches import RECIPE, Search, Trial
from bench.run.progress import QuietReporter, RunReporter
from bench.run.search.found import write_recipe
from bench.run.search.space import short_value
from bench.run.search.worker import SearchWorker


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
            reporter.start(f"{method} {label_of_trial(trial)}", place)
            reporter.note(describe_values(trial))
            trial = worker.run(trial, reporter)
            scores = ", ".join(f"{score:.2f}" for score in trial.dev)
            reporter.done(
                f"{trial.state}: {trial.error or f'dev {scores}'}; "
                f"{trial.steps:,} steps, {trial.seconds:.1f} s"
            )


def label_of_trial(trial: Trial) -> str:
    """Return "trial 3", or "recipe as it is"."""
    return "recipe as it is" if trial.number == RECIPE else f"trial {trial.number}"


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
