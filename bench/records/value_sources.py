"""The sources of the recipe values of a record: a paper, a recipe, or a search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.base.text import plural
from bench.records.record import RecipeValue, RunRecord

PAPER = "paper"
OWN = "recipe"
TUNED = "tuned"
NOT_OF_A_PAPER = (
    "--set",
    "--budget",
    "ours",
    "harness default",
    "the backbone's own value",
    "builtin's own value",
)
# A list of names, because a record is read without its method: the class, which could say which of
# its values papers state, may not be installed or may have changed since.
DECISIVE = (
    "learning_rate",
    "batch_size",
    "epochs",
    "max_steps",
    "budget",
    "temperature",
    "prompt_length",
)
"""Recipe values that every paper of this field states; with one of them from elsewhere, a row is
not a paper's.
"""


def search_of(record: RunRecord) -> Mapping[str, Any]:
    """Return the record's description of the search that chose its values; empty if none did."""
    return record.provenance.execution.search


AS_ALL_TRIALS = ": as its trials had it"


def is_tuned(value: RecipeValue) -> bool:
    """Return True if a search chose the value, and did not give it to all of its trials."""
    return value.source.startswith("search ") and not value.source.endswith(AS_ALL_TRIALS)


def kind_of_values(record: RunRecord) -> str:
    """Return "tuned: 12 trials", "paper" if the decisive values name a paper or its authors' code,
    else "recipe"; "" if nothing is trained.
    """
    if record.training is None or "learning_rate" not in record.recipe:
        return ""
    search = search_of(record)
    if search:
        trials: Any = search.get("trials")
        if type(trials) is int and 0 <= trials < 1e6:
            return f"{TUNED}: {plural(trials, 'trial')}"
        return TUNED
    for key in DECISIVE:
        recorded = record.recipe.get(key)
        if recorded is None or recorded.value is None:
            continue
        if recorded.source.startswith(NOT_OF_A_PAPER):
            return OWN
    return PAPER
