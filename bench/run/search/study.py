"""A search as it is asked for: of each method its runs, its space and what all trials share; and whether a folder holds that search."""

from __future__ import annotations

import hashlib
import json
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from bench.base.errors import BenchError
from bench.data.sets.sts import STS_TASKS
from bench.method.budget import STEPS, budget_of
from bench.run.corpus_choice import BY_HASH, RECIPE_CORPORA
from bench.run.plan import PlannedRun, ended_early, with_fingerprint
from bench.run.search.space import GRID, Sampling, Space, check_grid, space_of, with_values
from bench.runs.record import dev_test_pairs
from bench.runs.searches import (
    AS_ALL_TRIALS,
    FAILED,
    FINISHED,
    PRUNED,
    RECIPE,
    Searched,
    Study,
    Trial,
    best_trial,
    read_study,
    write_result,
    write_study,
)

if TYPE_CHECKING:
    from bench.runs import RunsFolder


NEW_NAME = "--name NEW begins another search"


@dataclass(frozen=True)
class SearchOptions:
    """The options of ``bench search`` that are not those of ``bench run``."""

    trials: int
    sampler: str
    pruner: str
    spaces: Mapping[str, str]  # --space
    name: str | None
    suites: tuple[
        str, ...
    ]  # that the tuned methods will be scored on: nothing of them is read but which pairs the dev set shares


@dataclass(frozen=True)
class Job:
    """One method of a search: a run for each seed, with the values that its trials share, and what they differ in."""

    runs: tuple[PlannedRun, ...]
    space: Space
    sampling: Sampling

    def trial_runs(self, values: Mapping[str, Any], source: str) -> list[PlannedRun]:
        """The runs of a trial: trained, and scored on nothing. Raises BenchError where the method refuses the values."""
        made = []
        for run in self.runs:
            recipe = with_values(run.recipe, values, source)
            run.plugin.cls.check(recipe, run.backbone.path)
            made.append(
                with_fingerprint(
                    replace(run, recipe=recipe, tasks=(), task_data=(), missing=(), expect=None)
                )
            )
        return made


def search_name(asked: Mapping[str, Any]) -> str:
    """ "search-3f2a91c4": of what was asked for, but not of how many trials; so that the same command goes on, also with more of them."""
    return f"search-{hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()[:8]}"


def jobs_of(
    planned: Sequence[PlannedRun], folder: Path, wanted: SearchOptions, fixed: Sequence[str]
) -> dict[str, Job]:
    """The methods of a search by name. Raises BenchError for a method in which nothing can be searched, and for methods that were not
    trained alike."""
    of_methods: dict[str, list[PlannedRun]] = {}
    for run in planned:
        of_methods.setdefault(run.method, []).append(run)
    jobs = {}
    for method, runs in of_methods.items():
        first = runs[0]
        selected = str(first.recipe.get("select_on", "none"))
        if first.dev is None and first.corpus is not None and selected not in ("last", "none"):
            raise BenchError(
                f"{selected}, by which {method} is to be searched, is not here",
                "--data DIR, or --select 'captions dev', which the package carries",
            )
        if first.dev is None:
            why = (
                "nothing of it is trained"
                if first.corpus is None
                else f"select_on is {selected}, which gives no dev score"
            )
            raise BenchError(
                f"{method} cannot be searched: {why}",
                "--select 'STS-B dev', sts-dev-clean or 'captions dev', or leave the method out",
            )
        if first.seed is None:
            raise BenchError(
                f"{method} cannot be searched: it has no dev score while it is fitted",
                "leave the method out",
            )
        space = space_of(
            first.plugin.folder,
            method,
            setting=first.setting,
            backbone=first.backbone.model,
            variant=first.variant,
            recipe=first.recipe,
            places=first.plugin.cls.places,
            given=wanted.spaces,
            fixed=fixed,
        )
        if not space:
            raise BenchError(
                f"the space of {method} is empty: no recipe file says what is searched of it",
                "--space KEY=A,B,C, or --space KEY=LOW..HIGH",
            )
        if wanted.sampler == GRID:
            check_grid(method, space, wanted.trials)
        sampling = Sampling(
            folder,
            method,
            space,
            sampler=wanted.sampler,
            pruner=wanted.pruner,
            seeds=tuple(run.seed or 0 for run in runs),
        )
        jobs[method] = Job(tuple(runs), space, sampling)
    for key in wanted.spaces:
        if not any(dimension.key == key for job in jobs.values() for dimension in job.space):
            from bench.run.recipes import check_overrides

            check_overrides(
                {key: ""}, [job.runs[0].plugin.cls for job in jobs.values()], trained=True
            )
            raise BenchError(
                f"--space {key}: it is set to one value by --set, or no method of this search has it"
            )
    _check_alike(jobs)
    return jobs


def unequal_budgets(jobs: Mapping[str, Job]) -> list[str]:
    """A line for each way in which the budget that all methods share trains one of them on more, or less, than the others."""
    recipes = {method: job.runs[0].recipe for method, job in jobs.items()}
    lines = [
        f"{method}: {line}" for method, recipe in recipes.items() for line in ended_early(recipe)
    ]
    budgets = [budget_of(recipe) for recipe in recipes.values()]
    rows = Counter(recipe.batch_size for recipe in recipes.values())
    if len(rows) > 1 and all(budget is not None and budget.unit == STEPS for budget in budgets):
        usual = max(rows, key=lambda size: (rows[size], -size))
        each = ", ".join(
            f"{recipe.batch_size} rows in {method}"
            for method, recipe in recipes.items()
            if recipe.batch_size != usual
        )
        lines.append(
            f"a step has {each} and {usual} in the others, so as many steps are not as much training; "
            f"--set batch_size={usual}, or a budget of sentences, gives each the same"
        )
    return lines


def _check_alike(jobs: Mapping[str, Job]) -> None:
    """Raises BenchError where methods would be chosen on different sets."""
    on = {method: str(job.runs[0].recipe["select_on"]) for method, job in jobs.items()}
    if len(set(on.values())) > 1:
        told = ", ".join(f"{method} on {name}" for method, name in on.items())
        raise BenchError(
            f"the methods of a search are chosen on one dev set; by their recipes: {told}",
            "--select NAME",
        )


def overlap_words(run: PlannedRun, suites: Sequence[str]) -> str:
    """How many pairs of the dev set are test pairs of what is to be scored; from hashes, the data of no test set is read."""
    assert run.dev is not None
    name, pairs = run.dev.name, run.dev.n
    if name == "captions dev":
        return f"{name}: {pairs:,} pairs; it shares no caption and no image with the suite check"
    if "sts" not in suites:
        return f"{name}: {pairs:,} pairs"
    counted = dev_test_pairs(name, run.dev.sha256, STS_TASKS)
    if counted is None:
        return f"{name}: {pairs:,} pairs; how many are test pairs of the suite sts is not known, for it is not a known file"
    shared, count = counted
    if not shared:
        return f"{name}: none of its {count:,} pairs is a test pair of the suite sts"
    return f"{name}: {shared:,} of its {count:,} pairs ({100 * shared / count:.1f} %) are test pairs of the suite sts, so what is chosen on it is chosen in part on the test; --select sts-dev-clean has none"


def definition(
    jobs: Mapping[str, Job], wanted: SearchOptions, name: str, fixed: Sequence[str]
) -> Study:
    runs = next(iter(jobs.values())).runs
    first = runs[0]
    assert first.dev is not None
    return Study(
        name=name,
        trials=wanted.trials,
        seeds=tuple(run.seed or 0 for run in runs),
        sampler=wanted.sampler,
        pruner=wanted.pruner,
        budget=first.recipe.get("budget"),
        select_on=str(first.recipe["select_on"]),
        dev_pairs=first.dev.n,
        overlap=overlap_words(first, wanted.suites),
        precision=first.precision,
        suites=wanted.suites,
        fixed=tuple(fixed),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=shlex.join(["bench", *sys.argv[1:]]),
        methods={method: _searched(job) for method, job in jobs.items()},
    )


def _searched(job: Job) -> Searched:
    run = job.runs[0]
    corpus = "" if run.corpus is None else f"{run.corpus.name}@{run.corpus.sha256}"
    varied = {dimension.key for dimension in job.space}
    return Searched(
        setting=run.setting,
        variant=run.variant,
        plugin=run.plugin.sha256,
        backbone=run.backbone.name,
        revision=run.backbone.revision,
        corpus=corpus,
        dev=run.dev.sha256 if run.dev else "",
        space={dimension.key: dimension.to_json() for dimension in job.space},
        recipe={key: value for key, value in run.recipe.items() if key not in varied},
    )


def open_study(folder: Path, wanted: Study) -> Study:
    """The study in the folder, made or gone on with. Raises BenchError where the folder holds another search. It may become longer."""
    known = read_study(folder)
    if known is None:
        write_study(folder, wanted)
        return wanted
    check_same(known, wanted, folder)
    if wanted.trials > known.trials:
        known = structs.replace(known, trials=wanted.trials)
        write_study(folder, known)
    return known


def check_same(known: Study, wanted: Study, folder: Path) -> None:
    """Raises BenchError, naming the first thing in which two searches of one name differ."""
    if known.methods.keys() != wanted.methods.keys():
        raise BenchError(
            f"{folder} holds a search of {', '.join(known.methods)}, not of {', '.join(wanted.methods)}",
            NEW_NAME,
        )
    for key in ("seeds", "sampler", "pruner", "budget", "select_on", "precision", "fixed"):
        was, now = getattr(known, key), getattr(wanted, key)
        if was != now:
            raise BenchError(
                f"{folder} holds a search with {key.replace('_', ' ')} {_plain(was)}, not {_plain(now)}",
                NEW_NAME,
            )
    for method, was in known.methods.items():
        now = wanted.methods[method]
        if was.plugin != now.plugin:
            raise BenchError(
                f"{folder}: the code of {method} has changed since that search began ({was.plugin[:8]} then, {now.plugin[:8]} now)",
                NEW_NAME,
            )
        for key in ("setting", "variant", "backbone", "revision", "corpus", "dev"):
            if getattr(was, key) != getattr(now, key):
                what = f"{key} {getattr(was, key)[:40] or 'none'}, not {getattr(now, key)[:40] or 'none'}"
                raise BenchError(f"{folder} holds a search of {method} with {what}", NEW_NAME)
        for what, then, today in (
            ("space", was.space, _json(now.space)),
            ("recipe", was.recipe, _json(now.recipe)),
        ):
            for key in sorted({*then, *today}):
                if then.get(key) != today.get(key):
                    raise BenchError(
                        f"{folder} holds a search of {method} in whose {what} {key} is {_plain(then.get(key))}, not {_plain(today.get(key))}",
                        NEW_NAME,
                    )


def _json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _plain(value: Any) -> str:
    if isinstance(value, Mapping) and "source" in value:
        value = value.get("values") or f"{value.get('low'):g} to {value.get('high'):g}"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    return "none" if value is None else str(value)


def check_seeds(seeds: Sequence[int], methods: Sequence[str], store: RunsFolder) -> None:
    """Raises BenchError for a seed that a scored run of these methods has: a search's seeds are never those that are published."""
    for record in store.records()[0]:
        if record.method in methods and record.seed in seeds and record.scores:
            raise BenchError(
                f"seed {record.seed} is that of {record.run_id}, which is scored: a search has seeds of its own",
                "--seeds 901, or others that no run has",
            )


# --- What a search found, as recipe files: one a method, each value with its source; ``bench run --recipe`` takes them ---


def search_source(study: Study, best: Trial) -> str:
    """ "search 3f2a91c4, 12 trials, STS-B dev 67.42" """
    trials = f"{study.trials} trial{'s' * (study.trials != 1)}"
    return (
        f"search {study.name.removeprefix('search-')}, {trials}, {study.select_on} {best.score:.2f}"
    )


def search_facts(study: Study, method: str, trials: Sequence[Trial]) -> dict[str, Any]:
    """What a record keeps of the search that its values come from. ``seconds``: of all trials, that of the recipe as it is too."""
    best, own = (
        best_trial(trials),
        next((trial for trial in trials if trial.number == RECIPE), None),
    )
    counted = [trial for trial in trials if trial.number != RECIPE]
    of = {
        state: sum(trial.state == state for trial in counted)
        for state in (FINISHED, FAILED, PRUNED)
    }
    return {
        "name": study.name,
        "trials": study.trials,
        **of,
        "sampler": study.sampler,
        "pruner": study.pruner,
        "seeds": list(study.seeds),
        "budget": study.budget,
        "select_on": study.select_on,
        "dev_pairs": study.dev_pairs,
        "overlap": study.overlap,
        "dev": None if best is None else best.score,
        "trial": None if best is None else best.number,
        "recipe_dev": None if own is None else own.score,
        "seconds": round(sum(trial.seconds for trial in trials), 1),
        "steps": sum(trial.steps for trial in trials),
        "plugin": study.methods[method].plugin,
    }


def write_recipe(folder: Path, study: Study, method: str, trials: Sequence[Trial]) -> Path | None:
    """``METHOD.toml`` in the search's folder; None where no trial of the method has a score."""
    best = best_trial(trials)
    if best is None:
        return None
    of, said = study.methods[method], search_source(study, best)
    corpus = _corpus(of.corpus) if of.corpus else None
    values = {key: of.recipe[key] for key in study.fixed if key in of.recipe}
    values |= {key: best.values[key] for key in of.space if key in best.values}
    kept = {key: said + ("" if key in of.space else AS_ALL_TRIALS) for key in values}
    lines = [
        f"# What {study.name} found for {method}. bench run --recipe takes this file; every value names its source.",
        *_table(
            "",
            {
                "method": method,
                "setting": of.setting,
                "variant": of.variant,
                "backbone": of.backbone,
                "corpus": corpus,
            },
        ),
        "",
        "[values]",
        *(
            f"{key} = {{ value = {_toml(value)}, source = {_toml(kept[key])} }}"
            for key, value in values.items()
        ),
        *(
            []
            if best.number != RECIPE
            else ["# no trial was better than the recipe as it is: nothing else is changed"]
        ),
        "",
        *_table("search", search_facts(study, method, trials)),
    ]
    return write_result(folder, f"{method}.toml", ("\n".join(lines) + "\n").encode())


def _corpus(named: str) -> str:
    """What ``--corpus`` takes for it wherever the file is: its own name where recipes know it, else its hash."""
    name, _, sha256 = named.rpartition("@")
    return name if name in ("builtin", "target", *RECIPE_CORPORA) else f"{BY_HASH}{sha256}"


def _table(name: str, values: Mapping[str, Any]) -> list[str]:
    return [
        *([f"[{name}]"] if name else []),
        *(f"{key} = {_toml(value)}" for key, value in values.items() if value is not None),
    ]


def _toml(value: Any) -> str:
    """JSON's texts, numbers, lists and truth values are TOML's, too."""
    return json.dumps(value, ensure_ascii=False)
