"""The average of a suite, as the papers print it."""

from __future__ import annotations

import math
from collections.abc import Iterable


def average_of(values: Iterable[float]) -> float:
    """The papers' "Avg.": each value rounded to two decimals, as it is printed, their mean, rounded again."""
    printed = [round(value, 2) for value in values]
    return round(math.fsum(printed) / len(printed), 2)
