"""Accuracy under many weightings of the same items: right answers have the weight of their items, over the weight of all asked.

Legend: S seeds, N items, R repetitions, B draws of a block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from bench.statistics.cells import Floats, Predicted


def right_answers(p: Predicted) -> tuple[Floats, Floats]:
    """(S, R, N) twice: 1 where an answer is right, and 1 where one was asked for.

    Clusters are matched with classes once, on all items, and keep their class when items are drawn: where the best matching is
    the only best one, a new one would change the value by less than the resampling noise squared.
    """
    prediction_SRN = np.moveaxis(np.atleast_3d(p.prediction_SN), 1, 2)
    if p.metric == "clustering-accuracy":
        right = np.stack([[_matched(labels_N, p.gold_N) for labels_N in labels_RN] for labels_RN in prediction_SRN])
        return right.astype(np.float64), np.ones(right.shape)
    asked = prediction_SRN >= 0 if p.prediction_SN.ndim == 3 else np.ones(prediction_SRN.shape, dtype=bool)
    if not asked.any(axis=2).all():
        raise ValueError(f"{p.task}: a draw was tested on nothing")
    return ((prediction_SRN == p.gold_N) & asked).astype(np.float64), asked.astype(np.float64)


def fold_weights(fold_N: NDArray[np.generic] | None, items: int) -> Floats:
    """(N,) so that every fold is as heavy as the next; 1 on average."""
    if fold_N is None:
        return np.ones(items)
    _, index_N, size_K = np.unique(fold_N, return_inverse=True, return_counts=True)
    weight_N: Floats = items / (len(size_K) * size_K[index_N.reshape(-1)])
    return weight_N


def accuracies(cells: list[Predicted], blocks: Iterable[NDArray[np.uint8]]) -> Iterator[list[Floats]]:
    """Per block, (N, B) how often every item was drawn, and per cell: (B, S, R) accuracies x 100; NaN where no item counts."""
    sides = []
    for p in cells:
        right, asked = right_answers(p)
        fold_N = fold_weights(p.fold_N, p.n_items)
        sides.append(((right * fold_N).reshape(-1, p.n_items).T, (asked * fold_N).reshape(-1, p.n_items).T, right.shape[:2]))
    for count_NB in blocks:
        count_BN = count_NB.T.astype(np.float64)
        found = []
        for right_NQ, asked_NQ, shape in sides:
            every = count_BN @ (asked_NQ[:, :1] if (asked_NQ == asked_NQ[:, :1]).all() else asked_NQ)
            with np.errstate(invalid="ignore", divide="ignore"):
                value = 100 * (count_BN @ right_NQ) / every
            found.append(np.where(every > 0, value, np.nan).reshape(-1, *shape))
        yield found


def _matched(labels_N: NDArray[np.generic], gold_N: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Whether each item's cluster is matched with its class, under the best one-to-one matching (Kuhn 1955)."""
    from scipy.optimize import linear_sum_assignment

    clusters, row_N = np.unique(labels_N, return_inverse=True)
    classes, column_N = np.unique(gold_N, return_inverse=True)
    counts_PG = np.zeros((len(clusters), len(classes)), dtype=np.int64)
    np.add.at(counts_PG, (row_N.reshape(-1), column_N.reshape(-1)), 1)
    partner_P = np.full(len(clusters), -1)
    matched, partners = linear_sum_assignment(counts_PG, maximize=True)
    partner_P[matched] = partners
    found_N: NDArray[np.bool_] = partner_P[row_N.reshape(-1)] == column_N.reshape(-1)
    return found_N
