"""The printed number that a planned run aims at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bench.method import Method, Recipe
from bench.references import AVERAGE
from bench.references.ours import find_printed, meaning
from bench.run.corpus_choice import is_text_of
from bench.run.recipe_file import Entry
from bench.run.recipes import merge

if TYPE_CHECKING:
    from bench.data.corpora import Corpus


def expected(
    cls: type[Method], entry: Entry | None, recipe: Recipe, corpus: Corpus | None
) -> Mapping[str, Any] | None:
    """The STS average that a paper prints for these values of ``entry``, the recipe of the run's own backbone; None where none is known.

    ``corpus``: what the run is trained or fitted on; None for neither. Where values differ from the recipe's, the number is that of a
    printed series over just these recipe keys.
    """
    if entry is None or not (
        corpus is None or entry.corpus is None or is_text_of(corpus, entry.corpus)
    ):
        return None
    printed = merge(cls, entry, entry.variant, {}, trained=corpus is not None)
    changed = {key for key in recipe if key not in printed or recipe[key] != printed[key]}
    if not changed:
        return entry.expect
    for cell in find_printed(
        cls.name,
        AVERAGE,
        suite="sts",
        setting=entry.setting,
        backbone=entry.backbone,
        variant=entry.variant,
        recipe=dict(recipe),
    ):
        if set(meaning(cell.method, cell.variant, cell.setting, cell.backbone).set) == changed:
            return {
                "suite": "sts",
                "task": AVERAGE,
                "value": cell.value,
                "source": f"{cell.paper}:{cell.table}",
            }
    return None


def short_source(printed: Mapping[str, Any]) -> str:
    """Where a printed number stands: "PromCSE table 1"."""
    return str(printed["source"]).replace(" paper, ", " ")
