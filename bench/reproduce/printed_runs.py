"""How many runs a printed value is of, and what the paper says of their spread."""

from __future__ import annotations

import math
import re
from functools import cache

from bench.references import ReferenceResult


def printed_runs(cell: ReferenceResult) -> tuple[int, bool]:
    """(runs behind a printed value, whether it is the best of them). One where nothing says so; "several" are two at least."""
    found = re.match(r"(mean|best) of (\d+|several)", cell.runs)
    if found is None:
        return 1, False
    return (2 if found[2] == "several" else max(int(found[2]), 1)), found[1] == "best"


def printed_spread(cell: ReferenceResult) -> tuple[float, float] | None:
    """What a paper prints after ±, where that is over its seeds and not over draws of the protocol."""
    count, best = printed_runs(cell)
    return (cell.std, count - 1) if cell.std is not None and count > 1 and not best else None


@cache
def best_of(count: int) -> tuple[float, float]:
    """(mean, variance) of the largest of so many standard normal values."""
    from scipy.integrate import quad
    from scipy.special import ndtr

    def moment(power: int) -> float:
        density = lambda x: x**power * count * ndtr(x) ** (count - 1) * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)  # noqa: E731
        return float(quad(density, -12, 12)[0])

    mean = moment(1)
    return mean, moment(2) - mean**2
