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
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from bench.base.errors import BenchError, UnknownName
from bench.base.text import plural
from bench.data.sets.manifest import BY_HASH, RECIPE_CORPORA, TARGET
from bench.data.sets.sts import STS_TASKS
from bench.method.budget import STEPS, budget_of
from bench.run.plan import PlannedRun, ended_early, with_fingerprint
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

if TYPE_CHECKING:
    from bench.runs import RunsFolder


@dataclass(frozen=True)
class Job:
    """One method of a search: a run for each seed, with the values that its trials share, and what they differ in."""

    runs: tuple[PlannedRun, ...]
    space: Space

    def trial_runs(self, values: Mapping[str, Any], source: str) -> list[PlannedRun]:
        """The runs of a trial, without test scores. Raises BenchError where the method refuses the values."""
        made = []
        for run in self.runs:
            recipe = with_values(run.recipe, values, source)
            run.plugin.cls.check(recipe, run.backbone.path)
            unscored = replace(run, recipe=recipe, tasks=(), task_data=(), missing=(), expect=None)
            made.append(with_fingerprint(unscored))
        return made


def jobs_of(
    planned: Sequence[PlannedRun], spaces: Mapping[str, str], fixed: Collection[str]
) -> dict[str, Job]:
    """The methods of a search by name. ``spaces``: --space; ``fixed``: recipe keys that have one value for all trials. Raises
    BenchError for a method that cannot be searched, and for a --space of no method."""
    jobs: dict[str, Job] = {}
    for method in sorted({run.method for run in planned}):
        runs = tuple(run for run in planned if run.method == method)
        first = runs[0]
        if first.dev is None or first.seed is None:
            on = first.recipe.get("select_on", "none")
            trained = first.corpus is not None and on not in ("last", "none")
            hint = "--data DIR, --select 'captions dev' (in the package), or leave the method out"
            if trained:
                text = f"{on}, by which {method} is to be searched, is not here"
                raise BenchError(text, hint)
            raise BenchError(f"{method} cannot be searched: {on} gives no dev score", hint)
        space = space_of(
            first.plugin.folder,
            method,
            setting=first.setting,
            backbone=first.backbone.model,
            variant=first.variant,
            recipe=first.recipe,
            places=first.plugin.cls.places,
            given=spaces,
            fixed=fixed,
        )
        if not space:
            text = f"the space of {method} is empty: no recipe file says what is searched"
            raise BenchError(text, "--space KEY=A,B,C, or --space KEY=LOW..HIGH")
        jobs[method] = Job(runs, space)
    keys = {key for job in jobs.values() for key in job.runs[0].recipe}
    for key in spaces.keys() - keys:
        raise UnknownName("recipe key", key, keys, "of these methods")
    return jobs


def unequal_budgets(jobs: Mapping[str, Job]) -> list[str]:
    """Warnings: where the budget that all methods share trains one of them on more, or less, than the others."""
    recipes = {method: job.runs[0].recipe for method, job in jobs.items()}
    lines = [f"{method}: {line}" for method in recipes for line in ended_early(recipes[method])]
    budgets = [budget_of(recipe) for recipe in recipes.values()]
    sizes = {method: recipe.batch_size for method, recipe in recipes.items()}
    if len({*sizes.values()}) > 1 and all(one is not None and one.unit == STEPS for one in budgets):
        each = ", ".join(f"{size} in {method}" for method, size in sizes.items())
        hint = "--set batch_size=N or a budget of sentences makes it equal"
        lines.append(f"rows in a step: {each}, so equal steps are not equal training; {hint}")
    return lines


def overlap_words(run: PlannedRun, suites: Sequence[str]) -> str:
    """How many pairs of the dev set are test pairs of the suites. From hashes: no test data are read."""
    assert run.dev is not None
    name, pairs = run.dev.name, run.dev.n
    if name == "captions dev":
        return f"{name}: {pairs:,} pairs; it shares no caption and no image with the suite check"
    if "sts" not in suites:
        return f"{name}: {pairs:,} pairs"
    counted = dev_test_pairs(name, run.dev.sha256, STS_TASKS)
    if counted is None:
        return f"{name}: {pairs:,} pairs; an unknown file, so its overlap with the suite sts is unknown"
    shared, count = counted
    if not shared:
        return f"{name}: none of its {count:,} pairs is a test pair of the suite sts"
    share = f"{shared:,} of its {count:,} pairs ({100 * shared / count:.1f} %)"
    return f"{name}: {share} are test pairs of the suite sts; --select sts-dev-clean has none"


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
        points = math.prod(len(axis.grid()) for axis in job.space)
        if sampler == "grid" and points < trials:
            text = f"--sampler grid: the grid of {method} has {points} points"
            raise BenchError(f"{text}, fewer than {trials} trials", f"--trials {points}")
    runs = next(iter(jobs.values())).runs
    first = runs[0]
    assert first.dev is not None
    study = Study(
        name=name or "",
        trials=trials,
        seeds=tuple(run.seed or 0 for run in runs),
        sampler=sampler,
        pruner=pruner,
        budget=first.recipe.get("budget"),
        select_on=str(first.recipe["select_on"]),
        dev_pairs=first.dev.n,
        overlap=overlap_words(first, suites),
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
    varied = {axis.key for axis in job.space}
    return Searched(
        setting=run.setting,
        variant=run.variant,
        plugin=run.plugin.sha256,
        backbone=run.backbone.name,
        revision=run.backbone.revision,
        corpus="" if run.corpus is None else f"{run.corpus.name}@{run.corpus.sha256}",
        dev=run.dev.sha256 if run.dev else "",
        space={axis.key: axis.to_json() for axis in job.space},
        recipe={key: value for key, value in run.recipe.items() if key not in varied},
    )


def _identity(study: Study) -> dict[str, Any]:
    """What the commands of one search have in common, flat, as JSON has it."""
    content = json.loads(msgspec.json.encode(study))
    for key in ("name", "trials", "created", "command", "overlap", "suites"):
        del content[key]
    methods = content.pop("methods")
    facts = {f"{name}.{key}": fact for name, of in methods.items() for key, fact in of.items()}
    return {**content, **facts, "methods": sorted(methods)}


def continued(known: Study, wanted: Study, folder: Path) -> Study:
    """The search in the folder, with more trials if they are wanted. Raises BenchError where it is another search."""
    was, now = _identity(known), _identity(wanted)
    if other := sorted(key for key in was | now if was.get(key) != now.get(key)):
        text = f"{folder} holds another search: what differs is {', '.join(other[:5])}"
        hint = f"--name NEW begins another one; {SUMMARY} in the folder has its values"
        raise BenchError(text, hint)
    return structs.replace(known, trials=max(known.trials, wanted.trials))


def check_seeds(seeds: Sequence[int], methods: Sequence[str], store: RunsFolder) -> None:
    """Raises BenchError for a seed of a scored run of these methods: the seeds of a search are never published."""
    for record in store.records()[0]:
        if record.method in methods and record.seed in seeds and record.scores:
            text = f"seed {record.seed} is used by the scored run {record.run_id}"
            raise BenchError(f"{text}; a search needs other seeds", "--seeds 901, or others")


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
    trials = plural(study.trials, "trial")
    source = f"search {name}, {trials}, {study.select_on} {best.score:.2f}"
    values = {
        key: {"value": of.recipe[key], "source": source + AS_ALL_TRIALS}
        for key in study.fixed
        if key in of.recipe
    }
    values |= {key: {"value": value, "source": source} for key, value in best.values.items()}
    head = {
        "method": method,
        "setting": of.setting,
        "variant": of.variant,
        "backbone": of.backbone,
        "corpus": _corpus(of.corpus) if of.corpus else None,
    }
    lines = [
        f"# The values that {study.name} found for {method}, for bench run --recipe.",
        *_lines(head),
        "",
        "[values]",
        *_lines(values),
        *(["# no trial was better than the recipe as it is"] if best.number == RECIPE else []),
        "",
        "[search]",
        *_lines(search_facts(search, method)),
    ]
    return write_result(folder, f"{method}.toml", ("\n".join(lines) + "\n").encode())


def _corpus(named: str) -> str:
    """The corpus as ``--corpus`` takes it anywhere: by its name if recipes know it, else by its hash."""
    name, _, sha256 = named.rpartition("@")
    return name if name in ("builtin", TARGET, *RECIPE_CORPORA) else f"{BY_HASH}{sha256}"


def _lines(values: Mapping[str, Any]) -> list[str]:
    """Lines of TOML: it writes texts, numbers, truth values and lists as JSON does. None is left out."""
    return [f"{key} = {_toml(value)}" for key, value in values.items() if value is not None]


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_lines(value)) + " }"
    return json.dumps(value, ensure_ascii=False)
