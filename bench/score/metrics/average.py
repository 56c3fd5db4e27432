"""The average of a suite, as papers print it."""

from __future__ import annotations

import math
from collections.abc import Iterable


def average_of(values: Iterable[float]) -> float:
    """Return the papers' "Avg.": the mean of values rounded to two decimals, rounded again.

    The values are rounded first because the papers average the numbers that they print.
    """
    printed = [round(value, 2) for value in values]
    return round(math.fsum(printed) / len(printed), 2)
