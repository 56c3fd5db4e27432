"""How long a training may be: the recipe's epochs, or a budget by which methods can be compared, ``--budget 10m``.

A budget replaces the recipe's epochs. It is a recipe value, stored as :func:`canonical_budget` text, so that one
budget has one fingerprint however it was written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.base.errors import BenchError
from bench.method.recipe import Recipe

STEPS, SENTENCES, TOKENS, SECONDS, GPU_SECONDS = "steps", "sentences", "tokens", "s", "gpu-s"

COUNTED = (STEPS, SENTENCES, TOKENS)

EXAMPLES = "--budget 10m, 2h, 5000steps, 1e6sentences, 3e7tokens, or 2gpu-h"

# as it is written -> (unit, how many of it)
_WRITTEN = {
    **{name: (unit, 1) for unit in COUNTED for name in (unit, unit[:-1])},
    **{
        prefix + name: (unit, seconds)
        for prefix, unit in (("", SECONDS), ("gpu-", GPU_SECONDS))
        for name, seconds in (("s", 1), ("m", 60), ("min", 60), ("h", 3600), ("d", 86400))
    },
}

_PATTERN = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?(?:e\+?[0-9]{1,2})?)\s*([a-z-]+)\s*")


@dataclass(frozen=True)
class Budget:
    """``amount`` of ``unit``: optimiser steps, rows of the corpus, tokens without padding, seconds of training (dev scores
    not counted), or seconds of training times GPUs."""

    amount: float
    unit: str

    @property
    def timed(self) -> bool:
        """Measured by a clock, so that two runs of it do not end at the same step."""
        return self.unit not in COUNTED

    def __str__(self) -> str:
        return f"{int(self.amount) if self.amount == int(self.amount) else self.amount}{self.unit}"


def parse_budget(text: str) -> Budget:
    """``"10m"`` -> 600 seconds. Raises BenchError for anything but an amount of a known unit."""
    match = _PATTERN.fullmatch(text.lower())
    if match is None or match[2] not in _WRITTEN:
        raise BenchError(
            f"--budget {text}: expected a number and steps, sentences, tokens, s, m, h, d, or gpu-h",
            EXAMPLES,
        )
    unit, times = _WRITTEN[match[2]]
    amount = float(match[1]) * times
    if amount <= 0 or not math.isfinite(amount) or (unit in COUNTED and amount != int(amount)):
        raise BenchError(
            f"--budget {text}: expected {'a whole number of ' + unit if unit in COUNTED else 'a time'} above 0",
            EXAMPLES,
        )
    return Budget(amount, unit)


def canonical_budget(text: str) -> str:
    """``"10m"``, ``"600s"`` and ``"10 min"`` are all ``"600s"``."""
    return str(parse_budget(text))


def budget_of(recipe: Mapping[str, Any]) -> Budget | None:
    """The budget of a recipe, None without one."""
    text = recipe.get("budget")
    return None if text is None else parse_budget(str(text))


def total_steps(recipe: Recipe, rows: int) -> int | None:
    """Optimiser steps of the whole run; None where tokens or a clock decide.

    The last short batch of an epoch counts, unless the recipe drops it (and there is a whole one).
    """
    budget, rest = budget_of(recipe), rows % recipe.batch_size
    of_epoch = rows - rest if recipe.drop_last and rows > rest else rows
    steps_of_epoch = math.ceil(of_epoch / recipe.batch_size)
    if budget is None:
        steps = math.ceil(recipe.epochs * steps_of_epoch)
    elif budget.unit == STEPS:
        steps = int(budget.amount)
    elif budget.unit == SENTENCES:  # until so many rows were seen
        epochs, rest = divmod(int(budget.amount), of_epoch)
        steps = epochs * steps_of_epoch + math.ceil(rest / recipe.batch_size)
    else:
        return None
    return min(steps, recipe.max_steps) if recipe.max_steps else steps
