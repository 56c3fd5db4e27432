"""How far each item moves the scores of many runs of one task, computed together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.records.predictions import Predicted
from bench.score.influence import (
    Influence,
    even_weights,
    group_weights,
    move_sampled_spearman,
    move_spearman,
    rank_correlations,
)
from bench.score.metrics.metric import Metric

AT_ONCE = 1 << 16
"""Predictions of a task that are ranked in one call: enough that a call costs little, few enough
for a processor's cache."""


def influences(methods: Sequence[Predicted], metric: Metric) -> list[Influence | ValueError]:
    """Compute the influence of every item on each method's score of one task, or the error if that
    score is undefined.

    ``methods``: with the same items. The numbers equal ``metric.move`` to the last digit.
    Correlations of many methods are computed together, which takes a third of the time in a table
    of thousands of runs.
    """
    found: list[Influence | ValueError] = []
    start = 0
    while start < len(methods):
        end = _end_of_block(methods, start, metric)
        found += _influences_of_block(methods[start:end], metric)
        start = end
    return found


def _end_of_block(methods: Sequence[Predicted], start: int, metric: Metric) -> int:
    """Return the end of the block of methods from ``start`` on that are computed in one call."""
    first = methods[start]
    if not _is_correlation(first, metric):
        return start + 1
    end, size = start, 0
    while end < len(methods) and (end == start or size < AT_ONCE):
        p = methods[end]
        if not _is_correlation(p, metric) or p.prediction_SN.dtype != first.prediction_SN.dtype:
            break
        size += p.prediction_SN.size
        end += 1
    return end


def _is_correlation(p: Predicted, metric: Metric) -> bool:
    """Check if ``metric.move`` of these predictions is a correlation over pairs."""
    if p.prediction_SN.ndim != 2 or 1 not in metric.dimensions:
        return False
    if metric.influence is move_sampled_spearman:
        return p.query_N is not None
    return metric.influence is move_spearman


def _influences_of_block(
    methods: Sequence[Predicted], metric: Metric
) -> list[Influence | ValueError]:
    """Compute the influences of a block of methods, together if there are several."""
    if len(methods) > 1:
        try:
            return [*_correlations_of_block(methods, metric)]
        except ValueError:
            pass  # one method's score is undefined: computed one by one, the error is at its place
    found: list[Influence | ValueError] = []
    for p in methods:
        try:
            found.append(metric.move(p))
        except ValueError as error:
            found.append(error)
    return found


def _correlations_of_block(methods: Sequence[Predicted], metric: Metric) -> list[Influence]:
    """Compute the influences on the correlations of several methods in one call.

    Raises ValueError if the score of any is undefined.
    """
    first = methods[0]
    weight_N = even_weights(first.n_items)
    if metric.influence is move_sampled_spearman and first.query_N is not None:
        weight_N = group_weights(first.query_N)
    together = np.concatenate([p.prediction_SN for p in methods])
    value_S, moved_SN = rank_correlations(together, first.gold_N, weight_N, first.task)
    found = []
    start = 0
    for p in methods:
        end = start + len(p.prediction_SN)
        found.append(Influence(value_S[start:end, None], moved_SN[start:end], weight_N))
        start = end
    return found
