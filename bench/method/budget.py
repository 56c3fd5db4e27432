"""How long a training may be, in a unit that methods can be compared by: ``--budget 10m``.

A budget takes the place of the recipe's epochs. It is a recipe value, kept as :func:`canonical` text, so that one budget has one
fingerprint however it was written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.base.errors import BenchError

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
_PATTERN = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?(?:e\+?[0-9]{1,2})?)\s*([a-z-]+)\s*", re.IGNORECASE)


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

    def share(
        self, *, steps: int, sentences: int, tokens: int, seconds: float, device_seconds: float
    ) -> float:
        """How much of it is spent: 0 at the start, 1 and more when it is used up."""
        spent = {
            STEPS: steps,
            SENTENCES: sentences,
            TOKENS: tokens,
            SECONDS: seconds,
            GPU_SECONDS: device_seconds,
        }
        return spent[self.unit] / self.amount

    def __str__(self) -> str:
        number = int(self.amount) if self.amount == int(self.amount) else self.amount
        return f"{number}{self.unit}"


def parse(text: str) -> Budget:
    """``"10m"`` -> 600 seconds. Raises BenchError for what is no amount of a known unit."""
    match = _PATTERN.fullmatch(text)
    written = match[2].lower() if match else ""
    if match is None or written not in _WRITTEN:
        raise BenchError(
            f"--budget {text}: expected a number and steps, epochs, sentences, tokens, s, m, h, d, or gpu-h",
            EXAMPLES,
        )
    unit, times = _WRITTEN[written]
    amount = float(match[1]) * times
    if amount <= 0 or not math.isfinite(amount) or (unit in COUNTED and amount != int(amount)):
        raise BenchError(
            f"--budget {text}: expected {'a whole number of ' + unit if unit in COUNTED else 'a time'} above 0",
            EXAMPLES,
        )
    return Budget(amount, unit)


def canonical(text: str) -> str:
    """``"10m"``, ``"600s"`` and ``"10 min"`` are all ``"600s"``."""
    return str(parse(text))


def budget_of(recipe: Mapping[str, Any]) -> Budget | None:
    """The budget that a recipe has, if it has one."""
    text = recipe.get("budget")
    return None if text is None else parse(str(text))
