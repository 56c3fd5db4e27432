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
    "--auto-batch",
    "--chunk auto",
    "the backbone's own value",
    "builtin's own value",
)
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
    """The record's description of the search that chose its values; empty if none did."""
    return record.provenance.execution.search


AS_ALL_TRIALS = ": as its trials had it"


def is_tuned(value: RecipeValue) -> bool:
    """Return True if a search chose the value, and did not give it to all of its trials."""
    return value.source.startswith("search ") and not value.source.endswith(AS_ALL_TRIALS)


def kind_of_values(record: RunRecord) -> str:
    """ "tuned: 12 trials", "paper" if the decisive values name a paper or its authors' code, else
    "recipe"; "" if nothing is trained.
    """
    if record.training is None or "learning_rate" not in record.recipe:
        return ""
    if search := search_of(record):
        trials: Any = search.get("trials")
        counted = type(trials) is int and 0 <= trials < 1e6
        return f"{TUNED}: {plural(trials, 'trial')}" if counted else TUNED
    return (
        OWN
        if any(
            record.recipe[key].source.startswith(NOT_OF_A_PAPER)
            for key in DECISIVE
            if key in record.recipe and record.recipe[key].value is not None
        )
        else PAPER
    )
