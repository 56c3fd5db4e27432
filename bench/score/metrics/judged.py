"""Pairs judged 0 or 1: average precision, and the best F1 and accuracy that a threshold gives.

As in sentence-transformers' ``BinaryClassificationEvaluator``, a threshold is half way between two
neighbouring values, and the highest of equally good thresholds is taken.

Legend: N pairs, T cuts: after each different value, from the highest on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cuts:
    """Every way to call the pairs with the highest values right."""

    # the different values, highest first
    value_T: NDArray[np.float32]
    # the first cut that takes each pair
    first_N: NDArray[np.int64]
    # pairs that are taken, and those of them that are judged 1
    taken_T: Floats
    right_T: Floats
    # all pairs judged 1
    positives: float

    @property
    def precision_T(self) -> Floats:
        return self.right_T / self.taken_T

    def threshold(self, cut: int) -> float:
        """Return the threshold of a cut; cut -1 takes nothing."""
        if cut < 0:
            return float(np.nextafter(self.value_T[0], np.float32(np.inf)))
        value = self.value_T[cut]
        if cut + 1 == len(self.value_T):
            return float(value)
        following = self.value_T[cut + 1]
        middle = (value + following) / 2
        return float(value if middle == following else middle)


def cut(values_N: NDArray[Any], judged_N: NDArray[Any]) -> Cuts:
    """Order pairs by their values. Raises ValueError for judgements that are not 0 and 1."""
    judged_N = np.asarray(judged_N, dtype=np.float64)
    if set(judged_N.tolist()) != {0.0, 1.0}:
        raise ValueError("the judgements are not 0 and 1")
    rising_T, group_N = np.unique(values_N, return_inverse=True)
    first_N = len(rising_T) - 1 - group_N
    return Cuts(
        value_T=rising_T[::-1].astype(np.float32),
        first_N=first_N,
        taken_T=np.cumsum(np.bincount(first_N)).astype(np.float64),
        right_T=np.cumsum(np.bincount(first_N, judged_N)),
        positives=float(judged_N.sum()),
    )


def average_precision(cuts: Cuts) -> float:
    """Compute the precision, x 100, averaged over the pairs judged 1."""
    return 100 * float((np.diff(cuts.right_T, prepend=0) * cuts.precision_T).sum()) / cuts.positives


def best_f1(cuts: Cuts) -> tuple[float, int]:
    """Return the best F1, x 100, and its cut."""
    precision_T, recall_T = cuts.precision_T, cuts.right_T / cuts.positives
    sum_T = precision_T + recall_T
    f1_T = 2 * precision_T * recall_T / np.where(sum_T == 0, 1, sum_T)
    best = int(f1_T.argmax())
    return 100 * float(f1_T[best]), best


def best_accuracy(cuts: Cuts) -> tuple[float, int]:
    """Return the best accuracy in percent, and its cut; -1 to take nothing."""
    items = len(cuts.first_N)
    negatives = items - cuts.positives
    right_T = cuts.right_T + negatives - (cuts.taken_T - cuts.right_T)
    accuracy_T = np.concatenate([[negatives], right_T]) / items
    best = int(accuracy_T.argmax())
    return 100 * float(accuracy_T[best]), best - 1
