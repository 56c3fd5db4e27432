"""The influence of each pair on the scores of pairs judged 0 or 1.

A best threshold does not move when a pair gets a little more weight: its value changes, and its
neighbours were no better.

Legend: S seeds, N pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from bench.score.influence import Floats, Influence, even_weights
from bench.score.metrics.judged import Cuts, average_precision, best_accuracy, best_f1, cut

if TYPE_CHECKING:
    from bench.records.predictions import Predicted

Moves = Callable[[Cuts, Floats], tuple[float, Floats]]
"""Returns the value, x 100, and (N,) how far each pair moves it."""


def move_average_precision(p: Predicted) -> Influence:
    """Compute the influence of each pair on the average precision."""
    return _moved(p, _average_precision)


def move_best_f1(p: Predicted) -> Influence:
    """Compute the influence of each pair on the best F1."""
    return _moved(p, _best_f1)


def move_best_accuracy(p: Predicted) -> Influence:
    """Compute the influence of each pair on the best accuracy."""
    return _moved(p, _best_accuracy)


def _moved(p: Predicted, moves: Moves) -> Influence:
    judged_N = p.gold_N.astype(np.float64)
    of_seeds = [moves(cut(values_N, judged_N), judged_N) for values_N in p.prediction_SN]
    value_S = np.array([value for value, _ in of_seeds])
    moved_SN = np.stack([moved_N for _, moved_N in of_seeds])
    return Influence(value_S[:, None], moved_SN, even_weights(p.n_items))


def _average_precision(cuts: Cuts, judged_N: Floats) -> tuple[float, Floats]:
    value = average_precision(cuts)
    new_T = np.diff(cuts.right_T, prepend=0)
    # a pair counts in the precision at its own cut and at all lower ones
    right_T = np.cumsum((new_T / cuts.taken_T)[::-1])[::-1]
    taken_T = np.cumsum((new_T * cuts.right_T / cuts.taken_T**2)[::-1])[::-1]
    own_N = cuts.precision_T[cuts.first_N] + right_T[cuts.first_N]
    moved_N = 100 * (judged_N * own_N - taken_T[cuts.first_N]) - value * judged_N
    return value, moved_N / cuts.positives


def _best_f1(cuts: Cuts, judged_N: Floats) -> tuple[float, Floats]:
    value, best = best_f1(cuts)
    taken_N = cuts.first_N <= best
    moved_N = 200 * judged_N * taken_N - value * (taken_N + judged_N)
    return value, moved_N / (cuts.taken_T[best] + cuts.positives)


def _best_accuracy(cuts: Cuts, judged_N: Floats) -> tuple[float, Floats]:
    value, best = best_accuracy(cuts)
    right_N = (cuts.first_N <= best) == judged_N
    return value, (100 * right_N - value) / len(judged_N)
