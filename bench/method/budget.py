"""The length of a training: the recipe's epochs, or a budget that is equal for all methods.

``--budget 10m`` replaces the recipe's epochs. A budget is a recipe value, stored as
:func:`canonical_budget` text, so that it has one fingerprint however it was written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.base.errors import BenchError
from bench.method.recipe import Recipe

STEPS = "steps"
SENTENCES = "sentences"
TOKENS = "tokens"
SECONDS = "s"
GPU_SECONDS = "gpu-s"
COUNTED = (STEPS, SENTENCES, TOKENS)
EXAMPLES = "--budget 10m, 2h, 5000steps, 2epochs, 1e6sentences, 3e7tokens, or 2gpu-h"

_WRITTEN = {
    "step": (STEPS, 1),
    "steps": (STEPS, 1),
    "sentence": (SENTENCES, 1),
    "sentences": (SENTENCES, 1),
    "token": (TOKENS, 1),
    "tokens": (TOKENS, 1),
    "s": (SECONDS, 1),
    "m": (SECONDS, 60),
    "min": (SECONDS, 60),
    "h": (SECONDS, 3_600),
    "d": (SECONDS, 86_400),
    "gpu-s": (GPU_SECONDS, 1),
    "gpu-m": (GPU_SECONDS, 60),
    "gpu-min": (GPU_SECONDS, 60),
    "gpu-h": (GPU_SECONDS, 3_600),
    "gpu-d": (GPU_SECONDS, 86_400),
}
"""A unit as users write it -> (the unit, how many of it)."""
_PATTERN = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?(?:e\+?[0-9]{1,2})?)\s*([a-z-]+)\s*")


@dataclass(frozen=True)
class Budget:
    """The length of a training, as an amount of one unit."""

    amount: float
    # "steps" of the optimiser, "sentences" (rows of the corpus), "tokens" without padding, "s"
    # (seconds of training, without dev scores), or "gpu-s" (seconds times GPUs)
    unit: str

    @property
    def timed(self) -> bool:
        """True if a clock measures it, so that two runs do not end at the same step."""
        return self.unit not in COUNTED

    def __str__(self) -> str:
        amount = int(self.amount) if self.amount == int(self.amount) else self.amount
        return f"{amount}{self.unit}"


def parse_budget(text: str) -> Budget:
    """Read ``"10m"`` as 600 seconds.

    Raises BenchError for anything but an amount of a known unit.
    """
    match = _PATTERN.fullmatch(text.lower())
    if match is None or match[2] not in _WRITTEN:
        raise BenchError(
            f"--budget {text}: expected a number and steps, epochs, sentences, tokens, s, m, h, "
            "d, or gpu-h",
            EXAMPLES,
        )
    unit, times = _WRITTEN[match[2]]
    amount = float(match[1]) * times
    if amount == 0 and unit == STEPS:  # the untrained start of a row
        return Budget(amount, unit)
    if amount <= 0 or not math.isfinite(amount) or (unit in COUNTED and amount != int(amount)):
        expected = f"a whole number of {unit}" if unit in COUNTED else "a time"
        raise BenchError(f"--budget {text}: expected {expected} above 0", EXAMPLES)
    return Budget(amount, unit)


def canonical_budget(text: str) -> str:
    """Write a budget in its one form: ``"10m"``, ``"600s"`` and ``"10 min"`` are all ``"600s"``."""
    return str(parse_budget(text))


def budget_of(recipe: Mapping[str, Any]) -> Budget | None:
    """Return the budget of a recipe, or None if it has none."""
    text = recipe.get("budget")
    return None if text is None else parse_budget(str(text))


def total_steps(recipe: Recipe, rows: int) -> int | None:
    """Return the optimiser steps of a whole run over a corpus of ``rows``, or None if tokens or a
    clock decide.

    The last short batch of an epoch counts, unless the recipe drops it (and there is a whole one).
    """
    budget = budget_of(recipe)
    short = rows % recipe.batch_size
    rows_of_epoch = rows - short if recipe.drop_last and rows > short else rows
    steps_of_epoch = math.ceil(rows_of_epoch / recipe.batch_size)
    if budget is None:
        steps = math.ceil(recipe.epochs * steps_of_epoch)
    elif budget.unit == STEPS:
        steps = int(budget.amount)
    elif budget.unit == SENTENCES:  # the number of rows to see
        epochs, rest = divmod(int(budget.amount), rows_of_epoch)
        steps = epochs * steps_of_epoch + math.ceil(rest / recipe.batch_size)
    else:
        return None
    return min(steps, recipe.max_steps) if recipe.max_steps else steps
