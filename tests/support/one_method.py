"""One method by itself: its mean and the interval of that, as a table of this one row has it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.compare.statistics.column import column
from bench.records.predictions import Predicted
from bench.score.influence import Influence
from bench.score.metrics.metric import metric_named


def influence(p: Predicted) -> Influence:
    """Compute the influence of each item by one of this package's metrics."""
    return metric_named(p.metric).move(p)


@dataclass(frozen=True)
class Interval:
    """The estimate of a method's value and its interval, in points (x 100)."""

    mean: float
    """Over seeds; the recorded one where ``Predicted.score_S`` gives it."""
    sd: float | None
    """Over seeds, divided by n - 1; None with one seed."""
    low: float
    high: float
    covers: str
    """What the interval, of 95 %, is over: "items and seeds", or "items" (one seed: another one may
    lie outside).
    """


def interval_of_method(*cells: Predicted) -> Interval:
    """Return the interval of one cell, or of the plain average over several tasks.

    It covers other items of the same kind, and other seeds if there are at least two. Items are
    drawn within each task, tasks are not; the seeds are those that all tasks share. Raises
    ValueError if there is none, or if a value is undefined (one side is constant).
    """
    seeds = (
        tuple(seed for seed in cells[0].seeds if all(seed in p.seeds for p in cells))
        if cells
        else ()
    )
    if not seeds:
        raise ValueError(f"no seed is common to {', '.join(p.task for p in cells) or 'no tasks'}")
    parts = [(predicted, influence(predicted)) for predicted in (p.of_seeds(seeds) for p in cells)]
    value_S = np.mean(
        [moved.value_SR.mean(axis=1) if p.score_S is None else p.score_S for p, moved in parts],
        axis=0,
    )
    (half,), _, (covers,) = column([parts], [value_S], [seeds != (None,)]).half_widths()
    mean, sd = float(value_S.mean()), float(value_S.std(ddof=1)) if len(value_S) > 1 else None
    return Interval(
        mean, sd, float(max(-100.0, mean - half)), float(min(100.0, mean + half)), covers
    )
