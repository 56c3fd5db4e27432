"""The results of a search as recipe files: one per method, each value with its source.

``bench run`` takes them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from bench.base.files import write_or_fail
from bench.base.text import plural
from bench.records.searches import FAILED, FINISHED, RECIPE, Search, best_trial
from bench.records.value_sources import AS_ALL_TRIALS
from bench.run.corpora import corpus_arguments
from bench.run.plan_toml import toml_lines
from bench.run.planned import PlannedRun


def search_facts(search: Search, method: str) -> dict[str, Any]:
    """Return the facts that a record stores about the search of its values.

    ``seconds`` includes the unchanged recipe.
    """
    study, trials = search.study, search.trials[method]
    best = best_trial(trials)
    states = Counter(trial.state for trial in trials if trial.number != RECIPE)
    return {
        "name": study.name,
        "trials": study.trials,
        **{state: states[state] for state in (FINISHED, FAILED)},
        "sampler": study.sampler,
        "seeds": list(study.seeds),
        "budget": study.budget,
        "select_on": study.select_on,
        "dev_pairs": study.dev_pairs,
        "overlap": study.overlap,
        "dev": None if best is None else best.score,
        "trial": None if best is None else best.number,
        "recipe_dev": next((trial.score for trial in trials if trial.number == RECIPE), None),
        "seconds": round(sum(trial.seconds for trial in trials), 1),
        "steps": sum(trial.steps for trial in trials),
        "plugin": study.methods[method].plugin,
    }


def write_recipe(folder: Path, search: Search, method: str, planned: PlannedRun) -> Path | None:
    """Return ``METHOD.toml`` in the search's folder; None if no trial of the method has a score.

    ``planned``: a run of the search, which knows the folders that the search has only by name; this
    file is for this machine.
    """
    study, best = search.study, best_trial(search.trials[method])
    if best is None:
        return None
    facts = study.methods[method]
    name = study.name.removeprefix("search-")
    source = f"search {name}, {plural(study.trials, 'trial')}, {study.select_on} {best.score:.2f}"
    sources = {key: source + AS_ALL_TRIALS for key in study.fixed if key in facts.recipe}
    sources |= dict.fromkeys(facts.space, source)  # also where the recipe's own values won
    unchanged = {key: planned.recipe[key] for key in facts.space}
    found = {**facts.recipe, **unchanged, **best.values}
    found |= {key: planned.recipe[key] for key in planned.determines["places"] if key in found}
    corpus: str | tuple[str, ...] | None = None
    if planned.corpus is not None:
        corpus = corpus_arguments(planned.corpus)
        if len(corpus) == 1:
            corpus = corpus[0]
    lines = [
        f"# The values that {study.name} found for {method}, for bench run --recipe.",
        *toml_lines(
            {
                "method": method,
                "setting": facts.setting,
                "variant": facts.variant,
                "backbone": planned.backbone.name,
                "corpus": corpus,
            }
        ),
        "",
        "[values]",
        *toml_lines(
            {key: {"value": found[key], "source": source} for key, source in sources.items()}
        ),
    ]
    if best.number == RECIPE:
        lines.append("# no trial was better than the unchanged recipe")
    lines += ["", "[search]", *toml_lines(search_facts(search, method))]
    path = folder / f"{method}.toml"
    write_or_fail(path, ("\n".join(lines) + "\n").encode())
    return path
