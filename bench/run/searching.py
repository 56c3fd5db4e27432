"""A search from its options to its recipe files: what ``bench search`` and ``bench.search_recipes`` have in common."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from bench.base.errors import BenchError
from bench.base.text import one_value
from bench.method.contract import Reporter
from bench.records.searches import RECIPE, Search, Study, Trial
from bench.records.store import RunsFolder
from bench.run.config import RunConfig
from bench.run.plan import BUILT_IN_DEV, STSB_DEV, PlannedRun, check_names
from bench.run.search import Job, Worker, definition, jobs_of, plan_notes, short, write_recipe
from bench.score.suites import expand_suites

SEEDS = (901,)
"""Of a search that names none: published runs need others."""


class TrialReporter(Reporter, Protocol):
    """Shows the progress of trials: a :class:`bench.cli.planning.RunReporter`, or one that says nothing."""

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


@dataclass(frozen=True, kw_only=True)
class TrialSettings:
    """How a search draws and ends its trials, and what it is called."""

    trials: int
    """The number of trials of each method, besides its unchanged recipe."""
    sampler: str
    """How Optuna draws values: "random", "grid" or "tpe"."""
    pruner: str
    """How Optuna ends a trial early: "none", "median" or "halving"."""
    name: str | None = None
    """The name of the search and of its folder; None: a hash of its options."""
    command: str = ""
    """What the record names as the command; "": this process's command line."""


@dataclass(frozen=True)
class PlannedSearch:
    """A search that is ready to begin: nothing is written yet."""

    config: RunConfig
    jobs: Mapping[str, Job]
    """Method -> its runs and its space."""
    study: Study
    notes: tuple[str, ...]
    """What the user should know before the first trial."""

    @property
    def store(self) -> RunsFolder:
        return RunsFolder(self.config.runs)

    def begin(self) -> Worker:
        """Begin the search, or continue it. Raises BenchError if its folder holds another one."""
        return Worker(self.store.folder(self.study.name), self.study, self.jobs, self.config)


def plan_search(
    planned: Sequence[PlannedRun],
    config: RunConfig,
    options: SearchOptions,
    spaces: Mapping[str, str],
    settings: TrialSettings,
) -> PlannedSearch:
    """Plan a search of the methods of these runs.

    ``planned``: the runs of ``config``, which is that of ``options`` once it is settled. ``spaces``: recipe key -> the values to
    search, as ``--space`` takes them. Raises BenchError for a method or a key that cannot be searched.
    """
    jobs = jobs_of(planned, spaces, options.fixed)
    study = definition(
        jobs,
        name=settings.name,
        trials=settings.trials,
        sampler=settings.sampler,
        pruner=settings.pruner,
        suites=options.suites,
        fixed=options.fixed,
        command=settings.command,
    )
    return PlannedSearch(config, jobs, study, tuple(plan_notes(jobs)))


def spaces_of(pairs: Sequence[str]) -> dict[str, str]:
    """Return recipe key -> values of options such as ``--space temperature=0.03,0.05``."""
    spaces = {}
    for pair in pairs:
        key, _, values = pair.partition("=")
        spaces[key] = values
    return spaces


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
            reporter.start(f"{method} {label_of(trial)}", place)
            reporter.note(values_of(trial))
            earlier = worker.drawn_before(trial)
            if earlier is not None:
                reporter.note(f"drawn again: {label_of(earlier)} had the same values")
            trial = worker.run(trial, reporter)
            scores = ", ".join(f"{score:.2f}" for score in trial.dev)
            reporter.done(
                f"{trial.state}: {trial.error or f'dev {scores}'}; "
                f"{trial.steps:,} steps, {trial.seconds:.1f} s"
            )


def label_of(trial: Trial) -> str:
    """ "trial 3", or "recipe as it is"."""
    return "recipe as it is" if trial.number == RECIPE else f"trial {trial.number}"


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
