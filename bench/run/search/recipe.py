"""What a search found, as recipe files: one a method, each value with its source; ``bench run --recipe`` takes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.run.corpus_choice import BY_HASH, RECIPE_CORPORA
from bench.runs.searches import AS_ALL_TRIALS, FAILED, FINISHED, PRUNED, RECIPE, Study, Trial, best_trial, write_result


def source(study: Study, best: Trial) -> str:
    """ "search 3f2a91c4, 12 trials, STS-B dev 67.42" """
    return (
        f"search {study.name.removeprefix('search-')}, {study.trials} trial{'s' * (study.trials != 1)}, {study.select_on} {best.score:.2f}"
    )


def facts(study: Study, method: str, trials: Sequence[Trial]) -> dict[str, Any]:
    """What a record keeps of the search that its values come from. ``seconds``: of all trials, that of the recipe as it is too."""
    best, own = best_trial(trials), next((trial for trial in trials if trial.number == RECIPE), None)
    counted = [trial for trial in trials if trial.number != RECIPE]
    of = {state: sum(trial.state == state for trial in counted) for state in (FINISHED, FAILED, PRUNED)}
    return {
        "name": study.name, "trials": study.trials, **of, "sampler": study.sampler, "pruner": study.pruner, "seeds": list(study.seeds),
        "budget": study.budget, "select_on": study.select_on, "dev_pairs": study.dev_pairs, "overlap": study.overlap,
        "dev": None if best is None else best.score, "trial": None if best is None else best.number,
        "recipe_dev": None if own is None else own.score, "seconds": round(sum(trial.seconds for trial in trials), 1),
        "steps": sum(trial.steps for trial in trials), "plugin": study.methods[method].plugin,
    }  # fmt: skip


def write_recipe(folder: Path, study: Study, method: str, trials: Sequence[Trial]) -> Path | None:
    """``METHOD.toml`` in the search's folder; None where no trial of the method has a score."""
    best = best_trial(trials)
    if best is None:
        return None
    of, said = study.methods[method], source(study, best)
    values = {key: of.recipe[key] for key in study.fixed if key in of.recipe}
    values |= {key: best.values[key] for key in of.space if key in best.values}
    kept = {key: said + ("" if key in of.space else AS_ALL_TRIALS) for key in values}
    lines = [
        f"# What {study.name} found for {method}. bench run --recipe takes this file; every value names its source.",
        *_table("", {"method": method, "setting": of.setting, "variant": of.variant, "backbone": of.backbone}),
        *([f"corpus = {json.dumps(_corpus(of.corpus))}"] if of.corpus else []),
        "",
        "[values]",
        *(f"{key} = {{ value = {_toml(value)}, source = {_toml(kept[key])} }}" for key, value in values.items()),
        *([] if best.number != RECIPE else ["# no trial was better than the recipe as it is: nothing else is changed"]),
        "",
        *_table("search", facts(study, method, trials)),
    ]
    return write_result(folder, f"{method}.toml", ("\n".join(lines) + "\n").encode())


def _corpus(named: str) -> str:
    """What ``--corpus`` takes for it wherever the file is: its own name where recipes know it, else its hash."""
    name, _, sha256 = named.rpartition("@")
    return name if name in ("builtin", "target", *RECIPE_CORPORA) else f"{BY_HASH}{sha256}"


def _table(name: str, values: Mapping[str, Any]) -> list[str]:
    return [*([f"[{name}]"] if name else []), *(f"{key} = {_toml(value)}" for key, value in values.items() if value is not None)]


def _toml(value: Any) -> str:
    """JSON's texts, numbers, lists and truth values are TOML's, too."""
    return json.dumps(value, ensure_ascii=False)
