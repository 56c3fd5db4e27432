"""A search as its options define it: of each method its runs, its space and what all trials share; and the recipe files that come out."""

from __future__ import annotations

import hashlib
import json
import math
import shlex
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from bench.base.errors import BenchError, RunFailed, UnknownName
from bench.base.text import list_names, plural
from bench.data.sets.manifest import BY_HASH, MADE_HERE, RECIPE_CORPORA
from bench.data.sets.sts import STS_TASKS
from bench.method.budget import STEPS, budget_of
from bench.run.plan import PlannedRun, with_fingerprint
from bench.run.plan_file import toml_lines
from bench.run.search.space import Space, space_of, with_values
from bench.runs.record import dev_test_pairs
from bench.runs.searches import (
    AS_ALL_TRIALS,
    FAILED,
    FINISHED,
    PRUNED,
    RECIPE,
    SUMMARY,
    Search,
    Searched,
    Study,
    best_trial,
    write_result,
)

UNEQUAL_STEPS = (
    "the methods differ in batch_size, so that equal steps are not equal training; "
    "--set batch_size=N or a budget of sentences makes it equal"
)


@dataclass(frozen=True)
class Job:
    """One method of a search: a run for each seed, without test scores, and what its trials differ in."""

    runs: tuple[PlannedRun, ...]
    space: Space

    def trial_runs(self, values: Mapping[str, Any], source: str) -> list[PlannedRun]:
        """The runs of a trial. Raises RunFailed where the method refuses the values."""
        made = []
        for run in self.runs:
            recipe = with_values(run.recipe, values, source)
            try:
                run.plugin.cls.check(recipe, run.backbone.path)
            except BenchError as error:
                raise RunFailed(error.message) from None
            made.append(with_fingerprint(replace(run, recipe=recipe)))
        return made


def jobs_of(
    planned: Sequence[PlannedRun], spaces: Mapping[str, str], fixed: Collection[str]
) -> dict[str, Job]:
    """The methods of a search by name. ``spaces``: --space; ``fixed``: recipe keys that have one value for all trials. Raises
    BenchError for a method that cannot be searched, and for a --space of no method."""
    keys = {key for run in planned for key in run.recipe}
    for key in spaces.keys() - keys:
        raise UnknownName("recipe key", key, keys, "of these methods")
    for key in spaces.keys() & fixed:
        raise BenchError(f"--space {key}: it has one value for all trials", "no --set of that key")
    unscored = [replace(r, tasks=(), task_data=(), missing=(), expect=None) for r in planned]
    return {
        method: _job(tuple(run for run in unscored if run.method == method), spaces, fixed)
        for method in sorted({run.method for run in unscored})
    }


def _job(runs: tuple[PlannedRun, ...], spaces: Mapping[str, str], fixed: Collection[str]) -> Job:
    run = runs[0]
    if run.dev is None or run.seed is None:
        dev = run.recipe.get("select_on", "none")
        raise BenchError(
            f"{run.method} cannot be searched: {dev} gives no dev score here",
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
            f"the space of {run.method} is empty: no recipe file says what is searched",
            "--space KEY=A,B,C, or --space KEY=LOW..HIGH",
        )
    return Job(runs, space)


def plan_notes(jobs: Mapping[str, Job]) -> list[str]:
    """The plan's notes on each method, and whether a budget of steps is more training for one method than for another."""
    recipes = [job.runs[0].recipe for job in jobs.values()]
    notes = [f"{method}: {note}" for method, job in jobs.items() for note in job.runs[0].notes]
    budget = budget_of(recipes[0])
    if budget and budget.unit == STEPS and len({recipe.batch_size for recipe in recipes}) > 1:
        notes.append(UNEQUAL_STEPS)
    return notes


def overlap_line(run: PlannedRun, suites: Sequence[str]) -> str:
    """How many pairs of the dev set are test pairs of the suite sts. From hashes: no test data are read."""
    assert run.dev is not None
    name, pairs = run.dev.name, f"{run.dev.name}: {run.dev.n:,} pairs"
    if name == "captions dev":
        return f"{pairs}; it shares no caption and no image with the suite check"
    if "sts" not in suites:
        return pairs
    if (counts := dev_test_pairs(name, run.dev.sha256, STS_TASKS)) is None:
        return f"{pairs}; its overlap with the suite sts is not known"
    share = f"{counts[0]:,} of its {counts[1]:,} pairs ({100 * counts[0] / counts[1]:.1f} %)"
    return f"{name}: {share} are test pairs of the suite sts"


def definition(
    jobs: Mapping[str, Job],
    *,
    name: str | None,
    trials: int,
    sampler: str,
    pruner: str,
    suites: Sequence[str],
    fixed: Sequence[str],
) -> Study:
    """What is searched; without a name, named by a hash of everything but the number of trials, so that more trials continue a search.

    Raises BenchError where a grid has fewer points than there are trials: each method gets as many as every other.
    """
    for method, job in jobs.items():
        points = math.prod(len(axis.grid()) for axis in job.space.values())
        if sampler == "grid" and points < trials:
            text = f"--sampler grid: the grid of {method} has {points} points"
            raise BenchError(f"{text}, fewer than {trials} trials", f"--trials {points}")
    runs = next(iter(jobs.values())).runs
    first = runs[0]
    study = Study(
        name=name or "",
        trials=trials,
        seeds=tuple(run.seed or 0 for run in runs),
        sampler=sampler,
        pruner=pruner,
        budget=first.recipe.get("budget"),
        select_on=str(first.recipe["select_on"]),
        dev_pairs=first.dev.n if first.dev else 0,
        overlap=overlap_line(first, suites),
        precision=first.precision,
        suites=tuple(suites),
        fixed=tuple(fixed),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=shlex.join(["bench", *sys.argv[1:]]),
        methods={method: _searched(job) for method, job in jobs.items()},
    )
    digest = hashlib.sha256(json.dumps(_identity(study), sort_keys=True).encode()).hexdigest()
    return structs.replace(study, name=name or f"search-{digest[:8]}")


def _searched(job: Job) -> Searched:
    run = job.runs[0]
    return Searched(
        setting=run.setting,
        variant=run.variant,
        plugin=run.plugin.sha256,
        backbone=run.backbone.name,
        revision=run.backbone.revision,
        corpus="" if run.corpus is None else f"{run.corpus.name}@{run.corpus.sha256}",
        dev=run.dev.sha256 if run.dev else "",
        space=msgspec.to_builtins(job.space),
        recipe={key: value for key, value in run.recipe.items() if key not in job.space},
    )


def _identity(study: Study) -> dict[str, Any]:
    """What the commands of one search have in common, as JSON has it."""
    differing = ("name", "trials", "created", "command", "overlap", "suites")
    content = json.loads(msgspec.json.encode(study))
    for method, facts in content.pop("methods").items():
        content |= {f"{method}.{key}": fact for key, fact in facts.items()}
    return {key: value for key, value in content.items() if key not in differing}


def continued(before: Study, now: Study, folder: Path) -> Study:
    """The search in the folder, with more trials where there are more now. Raises BenchError where it is another search."""
    old, new = _identity(before), _identity(now)
    if differing := sorted(key for key in old | new if old.get(key) != new.get(key)):
        raise BenchError(
            f"{folder} holds another search: what differs is {list_names(differing)}",
            f"--name NEW begins another one; {SUMMARY} in the folder has its values",
        )
    return structs.replace(before, trials=max(before.trials, now.trials))


# --- The results as recipe files: one per method, each value with its source; ``bench run --recipe`` takes them ---


def search_facts(search: Search, method: str) -> dict[str, Any]:
    """What a record keeps of the search that its values come from. ``seconds`` counts the recipe as it is, too."""
    study, trials = search.study, search.trials[method]
    best = best_trial(trials)
    recipe = next((trial for trial in trials if trial.number == RECIPE), None)
    states = Counter(trial.state for trial in trials if trial.number != RECIPE)
    return {
        "name": study.name,
        "trials": study.trials,
        **{state: states[state] for state in (FINISHED, FAILED, PRUNED)},
        "sampler": study.sampler,
        "pruner": study.pruner,
        "seeds": list(study.seeds),
        "budget": study.budget,
        "select_on": study.select_on,
        "dev_pairs": study.dev_pairs,
        "overlap": study.overlap,
        "dev": None if best is None else best.score,
        "trial": None if best is None else best.number,
        "recipe_dev": None if recipe is None else recipe.score,
        "seconds": round(sum(trial.seconds for trial in trials), 1),
        "steps": sum(trial.steps for trial in trials),
        "plugin": study.methods[method].plugin,
    }


def write_recipe(folder: Path, search: Search, method: str) -> Path | None:
    """``METHOD.toml`` in the search's folder; None where no trial of the method has a score."""
    study, best = search.study, best_trial(search.trials[method])
    if best is None:
        return None
    of, name = study.methods[method], study.name.removeprefix("search-")
    source = f"search {name}, {plural(study.trials, 'trial')}, {study.select_on} {best.score:.2f}"
    shared = {key: of.recipe[key] for key in study.fixed if key in of.recipe}
    values = {
        **{
            key: {"value": value, "source": source + AS_ALL_TRIALS} for key, value in shared.items()
        },
        **{key: {"value": value, "source": source} for key, value in best.values.items()},
    }
    head = {
        "method": method,
        "setting": of.setting,
        "variant": of.variant,
        "backbone": of.backbone,
        "corpus": _corpus(of.corpus) if of.corpus else None,
    }
    lines = [
        f"# The values that {study.name} found for {method}, for bench run --recipe.",
        *toml_lines(head),
        "",
        "[values]",
        *toml_lines(values),
        *(["# no trial was better than the recipe as it is"] if best.number == RECIPE else []),
        "",
        "[search]",
        *toml_lines(search_facts(search, method)),
    ]
    return write_result(folder, f"{method}.toml", ("\n".join(lines) + "\n").encode())


def _corpus(label: str) -> str:
    """The corpus as ``--corpus`` takes it anywhere: by its name if recipes know it, else by its hash."""
    name, _, sha256 = label.rpartition("@")
    return name if name in ("builtin", *MADE_HERE, *RECIPE_CORPORA) else f"{BY_HASH}{sha256}"
