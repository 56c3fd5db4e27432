"""A planned run: everything that determines its result, and its fingerprint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bench.backbones import Reference
from bench.base.errors import DataMissing
from bench.data.corpora import Corpus
from bench.method.contract import Method
from bench.method.recipe import Recipe, Value
from bench.records.fingerprint import fingerprint_of
from bench.run.plugins import Plugin
from bench.run.recipe_files import CustomRecipe
from bench.score.suites import KnownTask, Task

NOT_TRAINED = "none"


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    plugin: Plugin
    variant: str
    setting: str
    backbone: Reference
    seed: int | None  # None: no seed changes the result
    recipe: Recipe
    corpus: Corpus | None = None
    tasks: tuple[Task, ...] = ()  # one that is scored in two text forms is there twice
    task_data: tuple[KnownTask, ...] = ()  # what their data is, in the same order
    dev: KnownTask | None = None  # the set on which the checkpoint is selected
    text: str = ""
    precision: str = "fp32"
    fingerprint: str = ""
    notes: tuple[str, ...] = ()
    # the number that the paper prints for exactly this recipe: suite, task, value, source
    expect: Mapping[str, Any] | None = None
    custom: CustomRecipe | None = None  # that its values are from: --recipe
    # what the fingerprint is of, beyond what the record says
    determines: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[DataMissing, ...] = ()  # requested tasks whose data is not here
    # something that its fingerprint is of is yet to be fetched: a plan to look at, not to execute
    provisional: bool = False

    @property
    def method(self) -> str:
        return self.plugin.name

    @property
    def run_id(self) -> str:
        variant = f"+{self.variant}" if self.variant else ""
        seed = "any" if self.seed is None else f"s{self.seed}"
        return f"{self.method}{variant}-{self.backbone.short}-{seed}-{'unknown' if self.provisional else self.fingerprint[:8]}"


def with_fingerprint(run: PlannedRun) -> PlannedRun:
    """The run with the fingerprint of everything that determines its result."""
    return replace(run, fingerprint=fingerprint_of(determinants(run)))


def determinants(run: PlannedRun) -> dict[str, Any]:
    """Everything that determines a run's result; the fingerprint is made of it."""
    places = run.determines["places"]
    return {
        "method": run.method,
        "plugin": run.plugin.sha256,
        "variant": run.variant,
        "setting": run.setting,
        "seed": run.seed,
        "backbone": run.backbone.revision,
        "recipe": {key: value for key, value in run.recipe.items() if key not in places},
        "corpus": run.corpus.sha256 if run.corpus else None,
        **run.determines,
        "places": {key: name for key, name in places.items() if name is not None},
    }


def with_value(run: PlannedRun, key: str, value: Value) -> PlannedRun:
    """A new run: this one with another recipe value."""
    return with_fingerprint(
        replace(run, recipe=Recipe(run.recipe.values_with_source() | {key: value}), expect=None)
    )


def learns(cls: type[Method], setting: str) -> bool:
    """Does a method take a corpus in a setting, to be trained or fitted?"""
    return setting != NOT_TRAINED or cls.fitted is not None
