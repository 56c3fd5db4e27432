"""A search from its options to its recipe files: what ``bench search`` and ``bench.search_recipes`` have in common."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from bench.base.errors import BenchError
from bench.base.text import one_value
from bench.method.contract import Reporter
from bench.records.searches import Search, Trial
from bench.run.config import RunConfig
from bench.run.plan import BUILT_IN_DEV, STSB_DEV, check_names
from bench.run.search import Worker, short, write_recipe
from bench.score.suites import expand_suites

SEEDS = (901,)
"""Of a search that names none: published runs need others."""


class TrialReporter(Reporter, Protocol):
    """Shows the progress of trials: a :class:`bench.session.progress.RunReporter`, or one that says nothing."""

    def plan(self, runs: Sequence[Any]) -> None: ...

    def start(self, label: str, number: int | None = None) -> None: ...

    def note(self, text: str) -> None: ...

    def done(self, line: str) -> None: ...


@dataclass(frozen=True)
class SearchOptions:
    """The options of a search that was asked for, ready to be planned. ``fixed``: recipe values that are the same in all trials."""

    config: RunConfig
    suites: tuple[str, ...]
    fixed: tuple[str, ...]


def check_optuna() -> None:
    """Raises BenchError if Optuna is not installed."""
    if importlib.util.find_spec("optuna") is None:
        raise BenchError(
            "bench search needs Optuna, which is not installed",
            "pip install 'sentence-bench[search]'",
        )


def search_options(
    configs: Sequence[RunConfig], select: str | None, *, seeds_named: bool
) -> SearchOptions:
    """The options of the trials of a search. ``select``: the dev set, None for the usual one. Raises BenchError for more than one recipe
    for a method, and for more than one backbone."""
    config, *others = configs
    check_names(config)
    suites = expand_suites(config.suites)
    built_in = suites == ["check"] or "builtin" in (*config.backbones, config.corpus)
    select = select or (BUILT_IN_DEV.value if built_in else STSB_DEV)
    fixed = {**config.values, "select_on": select}
    methods = [method for method, _ in config.named]
    if others or len({*methods}) < len(methods) or len(config.backbones) > 1:
        raise BenchError(
            "a search has one recipe per method, and one backbone: too many are named",
            "one search for each variant and each backbone",
        )
    config = replace(
        config,
        suites=("check",),  # which needs no data: nothing is scored
        seeds=config.seeds if seeds_named else SEEDS,
        budget=None,
        overrides={key: one_value(value) for key, value in fixed.items()},
    )
    return SearchOptions(config, tuple(suites), tuple(fixed))


def do_trials(worker: Worker, reporter: TrialReporter) -> None:
    """Do the trials of a search that no other process does: all methods get their first before any gets its second, so that a search that
    was stopped is fair."""
    order = [(method, n) for n in range(worker.study.trials + 1) for method in worker.jobs]
    reporter.plan(order)
    for place, (method, number) in enumerate(order, 1):
        claimed: AbstractContextManager[Trial | None] = worker.claimed(method, number)
        with claimed as trial:
            if trial is None:  # it has ended, or another process works on it
                continue
            label = f"trial {number}" if number else "recipe as it is"
            reporter.start(f"{method} {label}", place)
            reporter.note(values_of(trial))
            trial = worker.run(trial, reporter)
            scores = ", ".join(f"{score:.2f}" for score in trial.dev)
            reporter.done(
                f"{trial.state}: {trial.error or f'dev {scores}'}; "
                f"{trial.steps:,} steps, {trial.seconds:.1f} s"
            )


def write_found(worker: Worker) -> tuple[Search, dict[str, Path | None]]:
    """Write the summary of a search and the recipe file of each method that has a score; returns both."""
    with worker.lock:
        results = worker.write()
        files = {
            method: write_recipe(worker.folder, results, method, job.runs[0])
            for method, job in worker.jobs.items()
        }
    return results, files


def values_of(trial: Trial | None) -> str:
    """ "learning_rate=1e-05, temperature=0.05": what a trial changes."""
    values = {} if trial is None else trial.values
    return (
        ", ".join(f"{key}={short(value)}" for key, value in values.items()) or "the recipe's values"
    )
