"""The plan of each printed table and figure: its runs are those that the printed rows mean, with as
many seeds as the print is of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from bench.method.config import RunConfig, split_variant
from bench.method.plugins import discover
from bench.method.recipe_files import read_recipes
from bench.method.recipes import merge_recipe, variants_of, whole_entry
from bench.papers import (
    SUITES,
    PaperPart,
    RunTerms,
    contents,
    find_checkpoint,
    meaning,
    results,
    rows,
    rows_of_run,
    tables,
)
from bench.run.options import combinations_of
from bench.run.plan_toml import Plan
from bench.run.planned import learns

REGISTRY = discover()
PLANNED = [part for part in contents() if part.plan]
TABLES = [part for part in PLANNED if (part.paper, part.short) in tables()]


@dataclass(frozen=True)
class OneRun:
    """A run of a plan, with all its seeds."""

    config: RunConfig
    terms: RunTerms


def runs_of(part: PaperPart) -> Iterator[OneRun]:
    assert part.plan is not None
    for config in Plan.read(part.plan).runs:
        for name in config.methods:
            method, variant = split_variant(name)
            for backbone in config.backbones:
                for values in combinations_of(config.overrides):
                    setting = config.setting or ""
                    recipe = recipe_of(method, setting, backbone, variant, values)
                    yield OneRun(config, RunTerms(method, setting, backbone, variant, recipe))


def recipe_of(
    method: str, setting: str, backbone: str, variant: str, values: dict[str, str]
) -> dict[str, object]:
    """Return the recipe as ``bench run`` has it."""
    plugin = REGISTRY[method]
    trained = learns(plugin.cls, setting)
    known = read_recipes(plugin.folder, plugin.name).recipes
    entry = whole_entry(plugin.cls, known, setting, backbone, variant, trained=trained)
    return dict(merge_recipe(plugin.cls, entry, variant, values, trained=trained))


def test_every_part_can_be_run_or_shown_or_says_why_not() -> None:
    """A table of scores without a plan says of each row why nothing runs it."""
    for part in contents():
        numbers = results(paper=part.paper, table=part.short)
        if part.why:
            assert part.plan is None and not numbers
        elif part.plan is None and numbers:
            for row in rows(numbers):
                first = row.first
                assert meaning(first.method, first.variant, first.setting).why_not, row.first


@pytest.mark.parametrize("part", PLANNED, ids=lambda part: part.name)
def test_a_plan_is_of_methods_and_values_that_are_here(part: PaperPart) -> None:
    every = list(runs_of(part))
    assert every
    for one in every:
        cls = REGISTRY[one.terms.method].cls
        assert one.terms.setting in cls.settings
        assert not one.terms.variant or one.terms.variant in variants_of(cls)
        suites = set(one.config.suites)
        assert suites == {
            SUITES[r.metric] for r in results(paper=part.paper, table=part.short)
        } or (part not in TABLES)


@pytest.mark.parametrize("part", TABLES, ids=lambda part: part.name)
def test_the_runs_of_a_plan_are_those_that_the_rows_mean(part: PaperPart) -> None:
    """Each run makes a row again, each row has a run or a reason, and a run has as many seeds as
    the row that is of most runs.
    """
    made = set()
    for one in runs_of(part):
        again = rows_of_run(
            rows(results(paper=part.paper, table=part.short)), one.terms, one.config.overrides
        )
        assert again, one.terms
        made |= {row.first for row in again}
        count = max(row.first.repeats for row in again)
        if find_checkpoint(one.terms.backbone) is None:
            assert len(one.config.seeds) == count and one.config.seeds[0] == 42, one.terms
            for row in again:
                means = meaning(row.first.method, row.first.variant, row.first.setting)
                assert means.set.keys() <= one.config.overrides.keys(), one.terms
    released = part.short.startswith("README")
    for row in rows(results(paper=part.paper, table=part.short)):
        first = row.first
        means = meaning(first.method, first.variant, first.setting, first.backbone)
        if first not in made and not released:
            assert means.why_not, first
