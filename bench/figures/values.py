"""Numbers out of what records keep freely: a detail or a recipe may be anybody's."""

from __future__ import annotations

import math
from typing import Any

BIGGEST = 1e12


def number(value: Any) -> float | None:
    """A finite number of a size that can be drawn, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < BIGGEST and math.isfinite(value) else None


def numbers(values: Any) -> list[float]:
    """A list of such numbers; empty where any of it is none."""
    if not isinstance(values, list):
        return []
    found = [one for value in values if (one := number(value)) is not None]
    return found if len(found) == len(values) else []


def parsed(text: str) -> float | None:
    """The number that a recipe value is, else None."""
    try:
        return number(float(text))
    except ValueError:
        return None
