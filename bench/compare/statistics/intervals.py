"""Mean over seeds and a 95 % interval for it, of one method by itself: nothing is borrowed from others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.compare.statistics.column import LEVEL, Column, column
from bench.compare.statistics.influence import influence
from bench.runs.predicted import Predicted


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


def interval(p: Predicted) -> Interval:
    """Interval of one cell: other items of the same kind, and other seeds where there are at least two.

    Raises ValueError where the value is undefined (one side is constant).
    """
    return interval_average([p])


def interval_average(cells: Sequence[Predicted]) -> Interval:
    """Interval of the plain average over tasks: items are drawn within each task, tasks are not; seeds that all tasks share.

    Raises ValueError where the tasks have no seed in common.
    """
    seeds = tuple(seed for seed in cells[0].seeds if all(seed in p.seeds for p in cells)) if cells else ()
    if not seeds:
        raise ValueError(f"no seed is common to {', '.join(p.task for p in cells) or 'no tasks'}")
    parts = [(one, influence(one)) for one in (p.of_seeds(seeds) for p in cells)]
    values = [found.value_SR.mean(axis=1) if p.score_S is None else p.score_S for p, found in parts]
    return _interval(
        column([parts], [np.mean(values, axis=0)], [seeds != (None,)]), [float(one) for one in np.mean(values, axis=0)]
    )


def interval_over_seeds(values: Sequence[float]) -> Interval:
    """Student's interval for the mean of the values of several seeds, where there are no predictions. ``covers`` is "seeds".

    Raises ValueError for fewer than two values.
    """
    if len(values) < 2:
        raise ValueError(f"{len(values)} value: an interval over seeds needs at least 2")
    return _interval(Column([values], [True]), values)


def _interval(of: Column, values: Sequence[float]) -> Interval:
    (half,), (covers,) = of.half_widths()
    mean, sd = float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None
    low, high = (mean - half, mean + half) if covers == "seeds" else (max(-100.0, mean - half), min(100.0, mean + half))
    return Interval(mean, sd, float(low), float(high), covers)
