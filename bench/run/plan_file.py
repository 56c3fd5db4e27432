"""The plan file of one run: what ``bench run --plan RUN/plan.toml`` needs to make it again.

It has names and hashes, and no folder of this machine: a training text by its sha256 unless bench
knows its name, a plugin file by its name. It has the values that the user or a search chose; those
of the method and of its papers come from the recipe.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.base.paths import recorded_path, recorded_word
from bench.base.text import one_value, with_variant
from bench.data.corpora.naming import HUB, parse_corpus
from bench.method.config import RunConfig
from bench.method.recipe import Value
from bench.records.names import OWN_DATA, PLAN
from bench.records.question import Question
from bench.records.record import EVALUATED, is_given_by_user
from bench.run.corpora import NAMES, corpus_arguments
from bench.run.dev_sets import BUILT_IN_DEV
from bench.run.plan_toml import Plan
from bench.run.planned import NOT_TRAINED, PlannedRun
from bench.score.suites import suite_plugin

HUB_COMMIT = 40
"""Letters of a commit of the hub."""


def write_plan(run: PlannedRun, config: RunConfig, question: Question, folder: Path) -> None:
    """Write the plan of a run into its folder, with the comparisons that it was made for; one that
    is there gets more suites, if these are not among its own, and comparisons if it has none.

    An object, or vectors, have none: only their owner has them.
    """
    if run.method in EVALUATED:
        return
    file = folder / PLAN
    kept = question if question.compares else Question()
    if not file.is_file():
        Plan((_config_of(run, config),), kept).write(file)
        return
    plan = Plan.read(file)
    suites = dict.fromkeys([*plan.runs[0].suites, *_suites(config)])
    added = plan.with_values(suites=tuple(suites))
    if not plan.question.compares:
        added = replace(added, question=kept)
    if added != plan:
        added.write(file)


def _config_of(run: PlannedRun, config: RunConfig) -> RunConfig:
    """Return the config of this run alone."""
    backbone = run.backbone
    name = recorded_path(backbone.name)
    if backbone.hub and len(backbone.revision) == HUB_COMMIT and "@" not in name:
        name += f"@{backbone.revision}"
    values = _chosen_values(run)
    ranks = run.determines.get("ranks")
    return RunConfig(
        methods=(with_variant(run.method, run.variant),),
        backbones=(name,),
        names=(recorded_path(backbone.title),) if backbone.title else (),
        setting=run.setting,
        seeds=RunConfig().seeds if run.seed is None else (run.seed,),
        suites=_suites(config),
        corpus=_corpus(run, config),
        budget=values.pop("budget", None),
        overrides=values,
        precision=run.determines["precision"] if run.setting != NOT_TRAINED else "auto",
        plugins=_plugin_files(run),
        allow_pickle=config.allow_pickle,
        on=f"torchrun:{ranks}" if ranks else "here",
    )


def _plugin_files(run: PlannedRun) -> tuple[str, ...]:
    """Return the names of the files that define the method and the suites of a run."""
    origins = [run.plugin.package]
    for suite in dict.fromkeys(task.suite for task in run.tasks):
        plugin = suite_plugin(suite)
        if plugin is not None:
            origins.append(plugin.file)
    return tuple(dict.fromkeys(Path(file).name for file in origins if file.endswith(".py")))


def _suites(config: RunConfig) -> tuple[str, ...]:
    """Return the suites; a user's own files by their names."""
    suites = []
    for suite in config.suites:
        name, _, files = suite.partition(":")
        suites.append(f"{name}:{recorded_word(files)}" if name == OWN_DATA else suite)
    return tuple(suites)


def _chosen_values(run: PlannedRun) -> dict[str, str]:
    """Return the recipe values that neither the method nor its papers' recipe gives, as ``--set``
    takes them.
    """
    of_file = run.custom.values if run.custom is not None else {}
    chosen = {}
    for key, entry in run.recipe.values_with_source().items():
        is_implied = key == "select_on" and entry.source == BUILT_IN_DEV.source
        if is_given_by_user(entry.source) or key in of_file or is_implied:
            chosen[key] = _typed(entry, is_place=key in run.determines["places"])
    return chosen


def _typed(entry: Value, is_place: bool) -> str:
    """Return a value as a user types it after ``--set KEY=``."""
    value: Any = entry.value
    if value is None:
        return "none"
    if not isinstance(value, str):
        return json.dumps(value)
    return one_value(recorded_path(value) if is_place else value)


def _corpus(run: PlannedRun, config: RunConfig) -> tuple[str, ...] | None:
    """Return the training text by names that bench knows, or by hashes; None if the recipe names
    it, or nothing is trained.
    """
    if run.corpus is None or config.corpus is None:
        return None
    texts: Sequence[str] = config.corpus
    if isinstance(config.corpus, str):
        texts = [config.corpus]
    found = []
    for text, argument in zip(texts, corpus_arguments(run.corpus), strict=True):
        name = parse_corpus(text)
        is_known = name.source in NAMES or name.source.startswith(HUB)
        found.append(name.text if is_known else argument)
    return tuple(found)
