"""A planned run: everything that determines its result, and its fingerprint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bench.backbones import Reference
from bench.base.devices import Precision
from bench.base.errors import DataMissing
from bench.data.corpora import Corpus
from bench.method.contract import Method, how_fitted
from bench.method.plugins import Plugin
from bench.method.recipe import Recipe
from bench.method.recipe_files import CustomRecipe
from bench.records.fingerprint import fingerprint_of
from bench.score.suites import KnownTask, Task

NOT_TRAINED = "none"


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One run that is ready to be executed, with everything that determines its result."""

    plugin: Plugin
    variant: str
    setting: str
    backbone: Reference
    # None: no seed changes the result
    seed: int | None
    recipe: Recipe
    corpus: Corpus | None = None
    tasks: tuple[Task, ...] = ()
    # their data, in the same order
    task_data: tuple[KnownTask, ...] = ()
    # the set that selects the checkpoint
    dev: KnownTask | None = None
    precision: Precision = "fp32"
    fingerprint: str = ""
    notes: tuple[str, ...] = ()
    # the number that the paper prints for exactly this recipe: suite, task, value, source
    expect: Mapping[str, Any] | None = None
    # the file of --recipe that its values are from
    custom: CustomRecipe | None = None
    # further inputs of the fingerprint, which the record has no fields for
    determines: Mapping[str, Any] = field(default_factory=dict)
    # steps of the training without the budget that was typed; None: none was, or it is not known
    whole_steps: int | None = None
    # the numbers that a vector must have, since other runs take so many of its first ones
    dimensions_needed: int = 0
    # requested tasks with data that is not here
    missing: tuple[DataMissing, ...] = ()
    # part of the fingerprint's input is not fetched yet: a plan to look at, not to execute
    provisional: bool = False

    @property
    def method(self) -> str:
        return self.plugin.name

    @property
    def run_id(self) -> str:
        variant = f"+{self.variant}" if self.variant else ""
        seed = "any" if self.seed is None else f"s{self.seed}"
        name = "unknown" if self.provisional else self.fingerprint[:8]
        return f"{self.method}{variant}-{self.backbone.short}-{seed}-{name}"


def with_fingerprint(run: PlannedRun) -> PlannedRun:
    """Return the run with the fingerprint of everything that determines its result."""
    return replace(run, fingerprint=fingerprint_of(determinants(run)))


def determinants(run: PlannedRun) -> dict[str, Any]:
    """Return everything that determines a run's result: the inputs of its fingerprint."""
    places = run.determines["places"]
    return {
        "method": run.method,
        "plugin": run.plugin.code.identity,
        "variant": run.variant,
        "setting": run.setting,
        "seed": run.seed,
        "backbone": run.backbone.revision,
        "recipe": {key: value for key, value in run.recipe.items() if key not in places},
        "corpus": run.corpus.sha256 if run.corpus else None,
        **run.determines,
        "places": {key: name for key, name in places.items() if name is not None},
    }


def learns(cls: type[Method], setting: str) -> bool:
    """Return True if a method takes a corpus in a setting, to be trained or fitted."""
    return setting != NOT_TRAINED or how_fitted(cls) is not None
