"""Mean over seeds and a 95 % interval for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.statistics.cells import Predicted
from bench.statistics.sides import recorded, shared_seeds, side
from bench.statistics.variation import drawn

DRAWS = 10_000
LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """What the data say of a method's value, in points (x 100)."""

    mean: float
    """Over seeds; the recorded one where ``Predicted.score_S`` gives it."""
    sd: float | None
    """Over seeds, divided by n - 1; None with one seed."""
    low: float
    high: float
    covers: str
    """"items and seeds", "items" (one seed: another one may lie outside) or "seeds" (no predictions)."""
    level: float = LEVEL

    @property
    def half_width(self) -> float:
        """Half the interval's length, for tables that print ±."""
        return (self.high - self.low) / 2


def interval(p: Predicted, *, draws: int = DRAWS, seed: int = 0) -> Interval:
    """Interval of one cell: other items of the same kind, and other seeds where there are at least two.

    The same ``seed`` gives the same interval. Raises ValueError where the value is undefined (one side is constant).
    """
    return interval_average([p], draws=draws, seed=seed)


def interval_average(cells: Sequence[Predicted], *, draws: int = DRAWS, seed: int = 0) -> Interval:
    """Interval of the plain average over tasks: items are drawn within each task, tasks are not; seeds that all tasks share.

    Raises ValueError where the tasks have no seed in common.
    """
    seeds = shared_seeds(cells)
    one = side(1, cells, seeds, draws=draws, seed=seed)
    found = drawn([one], seed=seed)
    low, high = found.quantiles(LEVEL)
    printed = recorded(cells, seeds)
    shift = 0.0 if printed is None else printed - found.value
    sd = float(np.std(one.value_S, ddof=1)) if len(seeds) > 1 else None
    low, high = max(-100.0, low + shift), min(100.0, high + shift)  # Student's t knows no end of the scale
    return Interval(found.value + shift, sd, low, high, "items and seeds" if found.seeds_vary else "items")


def interval_over_seeds(values: Sequence[float]) -> Interval:
    """Student's interval for the mean of the values of several seeds, where there are no predictions. ``covers`` is "seeds".

    Raises ValueError for fewer than two values.
    """
    from scipy.special import stdtrit

    if len(values) < 2:
        raise ValueError(f"{len(values)} value: an interval over seeds needs at least 2")
    mean, sd = float(np.mean(values)), float(np.std(values, ddof=1))
    half = float(stdtrit(len(values) - 1, (1 + LEVEL) / 2)) * sd / len(values) ** 0.5
    return Interval(mean, sd, mean - half, mean + half, "seeds")
