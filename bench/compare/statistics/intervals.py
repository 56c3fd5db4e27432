"""Mean over seeds and a 95 % interval for it, of one method by itself: nothing is borrowed from others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.compare.statistics.column import LEVEL, column
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
    """What the interval is over: "items and seeds", or "items" (one seed: another one may lie outside)."""
    level: float = LEVEL


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
    value_S = np.mean([found.value_SR.mean(axis=1) if p.score_S is None else p.score_S for p, found in parts], axis=0)
    (half,), (covers,) = column([parts], [value_S], [seeds != (None,)]).half_widths()
    mean, sd = float(value_S.mean()), float(value_S.std(ddof=1)) if len(value_S) > 1 else None
    return Interval(mean, sd, float(max(-100.0, mean - half)), float(min(100.0, mean + half)), covers)
