"""A search: its methods with their runs and spaces, and everything that its trials share."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace as replace_config

from bench.base.errors import BenchError, RunFailed, UnknownName
from bench.base.files import as_utf8
from bench.base.paths import hidden_values, recorded_command, recorded_path
from bench.base.text import one_value
from bench.data.sets.sts import STS_TASKS
from bench.method.budget import STEPS, budget_of
from bench.method.config import RunConfig
from bench.method.plugins import discover
from bench.method.recipe import Recipe, Value
from bench.records.searches import Searched, Study
from bench.records.selection import dev_test_pairs
from bench.run.corpora import name_with_content
from bench.run.dev_sets import BUILT_IN_DEV, CLEAN_DEV
from bench.run.plan import check_config
from bench.run.planned import NOT_TRAINED, PlannedRun, with_fingerprint
from bench.run.search.space import Dimension, space_of
from bench.score.suites import expand_suites

Sampler = Literal["random", "grid"]
SEEDS = (901,)
"""Of a search that names none: published runs need others."""


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """The options of a search that was asked for, ready to be planned."""

    config: RunConfig
    # to report the overlap of the dev set with
    suites: tuple[str, ...]
    # recipe values that are the same in all trials
    fixed: tuple[str, ...]
    # the number of trials of each method, besides its unchanged recipe
    trials: int
    # how values are drawn
    sampler: Sampler
    # the name of the search and of its folder; None: a hash of its options
    name: str | None = None


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

    ``select``: the dev set; None: that of ``--set select_on``, else the usual one. Raises
    BenchError for more than one recipe for a method, and for more than one backbone.
    """
    config, *others = configs
    check_config(config)
    check_is_trained(config)
    suites = expand_suites(config.suites)
    built_in = suites == ["check"] or "builtin" in (*config.backbones, config.corpus)
    if select is None:
        usual = BUILT_IN_DEV.value if built_in else CLEAN_DEV
        select = config.overrides.get("select_on", usual)
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
class SearchedMethod:
    """One method of a search: a run for each seed, without test scores, and the space of
    its trials.
    """

    runs: tuple[PlannedRun, ...]
    space: Mapping[str, Dimension]  # by recipe key

    def trial_runs(self, values: Mapping[str, Any], source: str) -> list[PlannedRun]:
        """Return the runs of a trial. Raises RunFailed if the method refuses the values."""
        first = self.runs[0]
        searched = {key: Value(value, source) for key, value in values.items()}
        recipe = Recipe(first.recipe.values_with_source() | searched)
        try:
            first.plugin.cls.check(recipe, first.backbone.path)
        except BenchError as error:
            raise RunFailed(error.message) from None
        return [with_fingerprint(replace(run, recipe=recipe)) for run in self.runs]


def find_searched_methods(
    planned: Sequence[PlannedRun], spaces: Mapping[str, str], fixed: Collection[str]
) -> dict[str, SearchedMethod]:
    """Return the methods of a search by name.

    ``spaces``: --space; ``fixed``: recipe keys that have one value for all trials. Raises
    BenchError for a method that cannot be searched, and for a --space that no method has.
    """
    keys = {key for run in planned for key in run.recipe}
    for key in spaces.keys() - keys:
        raise UnknownName("recipe key", key, keys, "of these methods")
    for key in spaces.keys() & fixed:
        raise BenchError(
            f"--space {key}: it has one value for all trials", f"leave --set {key}=... out"
        )
    jobs = {}
    for method in sorted({run.method for run in planned}):
        runs = tuple(
            replace(run, tasks=(), task_data=(), missing=(), expect=None)
            for run in planned
            if run.method == method
        )
        run = runs[0]
        select_on = run.recipe["select_on"]
        without_dev = run.dev is None and (select_on == "last" or not run.provisional)
        if without_dev or run.seed is None:
            raise BenchError(
                f"{method} cannot be searched: {select_on} gives no dev score here",
                "--data DIR, --select 'captions dev' (in the package), or leave the method out",
            )
        space = space_of(
            run.plugin,
            run.recipe,
            setting=run.setting,
            backbone=run.backbone.model,
            variant=run.variant,
            options=spaces,
            fixed=fixed,
        )
        if not space:
            raise BenchError(
                f"the space of {method} is empty: no recipe file says what to search",
                "--space KEY=A,B,C, or --space KEY=LOW..HIGH",
            )
        jobs[method] = SearchedMethod(runs, space)
    return jobs


def plan_notes(jobs: Mapping[str, SearchedMethod]) -> list[str]:
    """List the plan's notes on each method, and warn if equal steps are not equal training."""
    recipes = [job.runs[0].recipe for job in jobs.values()]
    notes = [f"{method}: {note}" for method, job in jobs.items() for note in job.runs[0].notes]
    budget = budget_of(recipes[0])
    if budget and budget.unit == STEPS and len({recipe.batch_size for recipe in recipes}) > 1:
        notes.append(
            "the methods differ in batch_size, so equal steps are not equal training; "
            "--set batch_size=N or a budget of sentences makes it equal"
        )
    return notes


def overlap_line(run: PlannedRun, suites: Sequence[str]) -> str:
    """Say how many pairs of the dev set are test pairs of the suite sts.

    Pairs are compared by stored hashes, so no test data are read.
    """
    if run.dev is None:
        return f"{run.recipe['select_on']}: not fetched yet"
    name, pairs = run.dev.name, f"{run.dev.name}: {run.dev.n:,} pairs"
    if name == "captions dev":
        return f"{pairs}; it shares no caption and no image with the suite check"
    if "sts" not in suites:
        return pairs
    counts = dev_test_pairs(name, run.dev.sha256, STS_TASKS)
    if counts is None:
        return f"{pairs}; its overlap with the suite sts is not known"
    shared, n = counts
    share = f"{shared:,} of its {n:,} pairs ({100 * shared / n:.1f} %)"
    return f"{name}: {share} are test pairs of the suite sts"


def define_study(jobs: Mapping[str, SearchedMethod], options: SearchOptions) -> Study:
    """Describe what is searched, as ``search.json`` stores it.

    The default name is a hash of everything but the number of trials, so that
    more trials continue a search.

    Raises BenchError if a grid has fewer points than there are trials: every method gets the same
    number. Also for a command that is not UTF-8.
    """
    if options.sampler == "grid":
        check_grids(jobs, options.trials)
    methods = {method: _searched(job) for method, job in jobs.items()}
    command = recorded_command(["bench", *sys.argv[1:]])
    as_utf8(command)  # the file of the search has it
    # the values that the methods share are read from the last one
    *_, job = jobs.values()
    run = job.runs[0]
    study = Study(
        name=options.name or "",
        trials=options.trials,
        seeds=tuple(run.seed or 0 for run in job.runs),
        sampler=options.sampler,
        budget=run.recipe.get("budget"),
        select_on=str(run.recipe["select_on"]),
        dev_pairs=run.dev.n if run.dev else 0,
        overlap=overlap_line(run, options.suites),
        precision=run.precision,
        suites=options.suites,
        fixed=options.fixed,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=command,
        methods=methods,
    )
    digest = hashlib.sha256(json.dumps(identity_of(study), sort_keys=True).encode()).hexdigest()
    known = "unknown" if run.provisional else digest[:8]  # as the id of such a run
    return replace_config(study, name=options.name or f"search-{known}")


def check_grids(jobs: Mapping[str, SearchedMethod], trials: int) -> None:
    """Raise BenchError if the grid of a method has fewer points than there are trials."""
    for method, job in jobs.items():
        points = math.prod(len(axis.grid()) for axis in job.space.values())
        if points < trials:
            raise BenchError(
                f"--sampler grid: the grid of {method} has {points} points, fewer than "
                f"{trials} trials",
                f"--trials {points}",
            )


def _searched(job: SearchedMethod) -> Searched:
    """Describe one method of a search for its file."""
    run = job.runs[0]
    recipe = {key: value for key, value in _named_recipe(run).items() if key not in job.space}
    return Searched(
        setting=run.setting,
        variant=run.variant,
        plugin=run.plugin.code.identity,
        backbone=recorded_path(run.backbone.name),
        revision=run.backbone.revision,
        corpus="" if run.corpus is None else name_with_content(run.corpus),
        dev=run.dev.sha256 if run.dev else "",
        space=msgspec.to_builtins(job.space),
        recipe=recipe,
    )


def _named_recipe(run: PlannedRun) -> dict[str, Any]:
    """Return the recipe's values, with recorded names for files, folders and backbones."""
    values = dict(run.recipe)
    for key in run.determines["places"]:
        if isinstance(values[key], str):
            values[key] = recorded_path(values[key])
    return values


def identity_of(study: Study) -> dict[str, Any]:
    """Return the facts that all commands of one search share, as JSON.

    A search of an earlier bench may hold absolute paths.
    """
    content = hidden_values(json.loads(msgspec.json.encode(study)))
    for method, facts in content.pop("methods").items():
        for key, fact in facts.items():
            content[f"{method}.{key}"] = fact
    for key in ("name", "trials", "created", "command", "overlap", "suites"):
        content.pop(key, None)
    return content
