"""A search from its options to the moment before the first trial, for ``bench search``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace as replace_config

from bench.base.errors import BenchError
from bench.base.text import one_value
from bench.method.config import RunConfig
from bench.method.plugins import discover
from bench.records.searches import Study
from bench.records.store import RunsFolder
from bench.run.dev_sets import BUILT_IN_DEV, CLEAN_DEV
from bench.run.plan import check_config
from bench.run.planned import NOT_TRAINED, PlannedRun
from bench.run.search.study import (
    Sampler,
    SearchedMethod,
    SearchOptions,
    define_study,
    find_searched_methods,
    plan_notes,
)
from bench.run.search.worker import SearchWorker
from bench.score.suites import expand_suites

SEEDS = (901,)
"""Of a search that names none: published runs need others."""


def search_options(
    configs: Sequence[RunConfig],
    select: str | None,
    *,
    seeds_named: bool,
    trials: int,
    sampler: Sampler,
    name: str | None,
) -> SearchOptions:
    """Return the options of a search.

    ``select``: the dev set, None for the usual one. Raises BenchError for more than one recipe for
    a method, and for more than one backbone.
    """
    config, *others = configs
    check_config(config)
    check_is_trained(config)
    suites = expand_suites(config.suites)
    built_in = suites == ["check"] or "builtin" in (*config.backbones, config.corpus)
    select = select or (BUILT_IN_DEV.value if built_in else CLEAN_DEV)
    fixed = {**config.recipe_values, "select_on": select}
    methods = [method for method, _ in config.named]
    if others or len({*methods}) < len(methods) or len(config.backbones) > 1:
        raise BenchError(
            "a search has one recipe per method, and one backbone: too many are named",
            "one search for each variant and each backbone",
        )
    config = replace_config(
        config,
        suites=("check",),  # which needs no data: nothing is scored
        seeds=config.seeds if seeds_named else SEEDS,
        budget=None,
        overrides={key: one_value(value) for key, value in fixed.items()},
    )
    return SearchOptions(
        config=config,
        suites=tuple(suites),
        fixed=tuple(fixed),
        trials=trials,
        sampler=sampler,
        name=name,
    )


def check_is_trained(config: RunConfig) -> None:
    """Raise BenchError for a method without a training, and so without a dev score."""
    registry = discover([Path(file) for file in config.plugins])
    for method, _ in config.named:
        settings = {*registry[method].cls.settings}
        if config.setting == NOT_TRAINED or settings == {NOT_TRAINED}:
            raise BenchError(
                f"{method} cannot be searched: it is not trained, and has no dev score",
                "leave it out; bench methods lists what is trained",
            )


@dataclass(frozen=True)
class PlannedSearch:
    """A search that is ready to begin: nothing is written yet."""

    config: RunConfig
    jobs: Mapping[str, SearchedMethod]
    """Method -> its runs and its space."""
    study: Study
    notes: tuple[str, ...]
    """What the user should know before the first trial."""

    def begin(self) -> SearchWorker:
        """Begin the search, or continue it. Raises BenchError if its folder holds another one."""
        folder = RunsFolder(self.config.runs).folder(self.study.name)
        return SearchWorker(folder, self.study, self.jobs, self.config)


def plan_search(
    planned: Sequence[PlannedRun],
    config: RunConfig,
    options: SearchOptions,
    spaces: Mapping[str, str],
) -> PlannedSearch:
    """Plan a search of the methods of these runs.

    ``planned``: the runs of ``config``, which is the settled config of ``options``. ``spaces``:
    recipe key -> the values to search, as ``--space`` takes them. Raises BenchError for a method or
    a key that cannot be searched.
    """
    jobs = find_searched_methods(planned, spaces, options.fixed)
    study = define_study(jobs, options)
    return PlannedSearch(config, jobs, study, tuple(plan_notes(jobs)))


def spaces_of(pairs: Sequence[str]) -> dict[str, str]:
    """Return recipe key -> values of options such as ``--space temperature=0.03,0.05``."""
    spaces = {}
    for pair in pairs:
        key, _, values = pair.partition("=")
        spaces[key] = values
    return spaces
