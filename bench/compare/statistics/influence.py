"""How far each item moves a value: what a little more weight for that item would change.

A value under items drawn again is, but for terms that vanish with their number, the value plus the influence of every item times
how much more often than once it was drawn. So the variance over such draws needs no drawing: it is a sum of products of
influences (the infinitesimal jackknife; Efron 1982, The Jackknife, the Bootstrap and Other Resampling Plans, chapter 6).

Legend: S seeds, N items, R repetitions of one run (k-means seeds, draws of few examples).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.runs.predictions import Floats, Predicted


@dataclass(frozen=True)
class Influence:
    """Of one method on one task, in points (x 100)."""

    value_SR: Floats
    moved_SN: Floats
    """Mean over repetitions; a row sums to zero."""
    weight_N: Floats
    """Of the items in the value; sums to 1."""

    def of(self, seeds: Sequence[int | None], wanted: Sequence[int | None]) -> Influence:
        """The same with some of its seeds."""
        rows = [seeds.index(seed) for seed in wanted]
        return replace(self, value_SR=self.value_SR[rows], moved_SN=self.moved_SN[rows])


def influence(p: Predicted) -> Influence:
    """Raises ValueError where a value is undefined: one side of a correlation is constant, a draw of examples was tested on nothing."""
    if p.moved_SN is not None and p.score_S is not None:
        return Influence(p.score_S[:, None], p.moved_SN, np.full(p.n_items, 1 / p.n_items))
    if p.metric in ("accuracy", "clustering-accuracy"):
        return _of_accuracy(p)
    weight_N = (
        np.full(p.n_items, 1 / p.n_items) if p.metric == "spearman" else _query_weights(p.query_N)
    )
    values, moved = zip(
        *(
            _of_correlation(prediction_N, p.gold_N, weight_N, p.task)
            for prediction_N in p.prediction_SN
        ),
        strict=True,
    )
    return Influence(np.array(values)[:, None], np.stack(moved), weight_N)


def _of_correlation(
    x: ArrayLike, y: ArrayLike, weight_N: Floats, task: str
) -> tuple[float, Floats]:
    """Spearman's, ties by mean ranks, as the correlation of weighted mid-distribution functions, and its influence function."""
    x_groups, y_groups = (np.unique(side, return_inverse=True)[1] for side in (x, y))
    u_N, v_N = _centred_ranks(x_groups, weight_N), _centred_ranks(y_groups, weight_N)
    product, squares_x, squares_y = (
        float(weight_N @ (a * b)) for a, b in ((u_N, v_N), (u_N, u_N), (v_N, v_N))
    )
    if min(squares_x, squares_y) <= 1e-15:
        raise ValueError(f"{task}: one side is constant: correlation is undefined, not zero")
    # an item moves each moment by its own part, and by the ranks that it moves of the others
    of_product_N = (
        u_N * v_N
        + _above(x_groups, weight_N * v_N)
        + _above(y_groups, weight_N * u_N)
        - 3 * product
    )
    of_x_N = u_N * u_N + 2 * _above(x_groups, weight_N * u_N) - 3 * squares_x
    of_y_N = v_N * v_N + 2 * _above(y_groups, weight_N * v_N) - 3 * squares_y
    scale = (squares_x * squares_y) ** -0.5
    value = product * scale
    moved_N: Floats = of_product_N * scale - value / 2 * (of_x_N / squares_x + of_y_N / squares_y)
    return 100 * min(1.0, max(-1.0, value)), 100 * weight_N * moved_N


def _centred_ranks(group_N: NDArray[np.intp], weight_N: Floats) -> Floats:
    """The weight below each item's value and half of that at it, less a half."""
    weight_G = np.bincount(group_N, weight_N)
    return (np.cumsum(weight_G) - weight_G / 2 - 0.5)[group_N]


def _above(group_N: NDArray[np.intp], part_N: Floats) -> Floats:
    """The sum of ``part_N``, whose total is zero, over all items with a greater value, and half of those with the same."""
    part_G = np.bincount(group_N, part_N)
    return (part_G / 2 - np.cumsum(part_G))[group_N]


def _query_weights(query_N: NDArray[np.generic] | None) -> Floats:
    """(N,) so that every query is as heavy as the next: what a draw of one pair per query is on average."""
    _, index_N, size_Q = np.unique(np.asarray(query_N), return_inverse=True, return_counts=True)
    return 1 / (len(size_Q) * size_Q[index_N])


def _of_accuracy(p: Predicted) -> Influence:
    """Right answers have the weight of their items, over the weight of all asked; every fold is as heavy as the next."""
    weight_N = np.full(p.n_items, 1 / p.n_items) if p.fold_N is None else _query_weights(p.fold_N)
    right, counted = _right_answers(p)
    every_SR = counted @ weight_N
    if not (every_SR > 0).all():
        raise ValueError(f"{p.task}: a draw was tested on nothing")
    value_SR = 100 * (right @ weight_N) / every_SR
    moved = (100 * right - value_SR[:, :, None] * counted) * weight_N / every_SR[:, :, None]
    return Influence(value_SR, moved.mean(axis=1), weight_N)


def _right_answers(p: Predicted) -> tuple[Floats, Floats]:
    """(S, R, N) twice: 1 where an answer is right, and 1 where one was asked for.

    Clusters are matched with classes on all items, and keep their class when items are drawn: where the best matching is the only
    best one, a new one would change the value by less than the noise of drawing squared.
    """
    prediction_SRN = np.moveaxis(np.atleast_3d(p.prediction_SN), 1, 2)
    if p.metric == "clustering-accuracy":
        right = np.stack(
            [
                [_matched(labels_N, p.gold_N) for labels_N in labels_RN]
                for labels_RN in prediction_SRN
            ]
        )
        return right.astype(np.float64), np.ones(right.shape)
    counted = (
        prediction_SRN >= 0
        if p.prediction_SN.ndim == 3
        else np.ones(prediction_SRN.shape, dtype=bool)
    )
    return ((prediction_SRN == p.gold_N) & counted).astype(np.float64), counted.astype(np.float64)


def _matched(labels_N: NDArray[np.generic], gold_N: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Whether each item's cluster is matched with its class, under the best one-to-one matching (Kuhn 1955)."""
    from scipy.optimize import linear_sum_assignment

    clusters, row_N = np.unique(labels_N, return_inverse=True)
    classes, column_N = np.unique(gold_N, return_inverse=True)
    counts_PG = np.bincount(
        row_N * len(classes) + column_N, minlength=len(clusters) * len(classes)
    ).reshape(len(clusters), len(classes))
    partner_P = np.full(len(clusters), -1)
    matched, partners = linear_sum_assignment(counts_PG, maximize=True)
    partner_P[matched] = partners
    return partner_P[row_N] == column_N


# --- which items depend on each other, and what that makes of the variance over items ---
# Two pairs that share a sentence are hard or easy together, in whatever task they stand. Their influences are summed by sentence
# before they are squared; pairs that are the same, which share two, are then counted once too often, and taken out once:
# the variance estimate for such data of Aronow, Samii and Assenova 2015 (Cluster-robust variance estimation for dyadic data,
# Political Analysis 23). Nothing is assumed of how sentences hang together over several pairs.
#
# Legend: T tasks, N items of all tasks, K what an item may share with others (2: its sentences), R runs, U units.


class Items:
    """The items of a column: of one task, or of all tasks of an average, one after the other."""

    def __init__(self, tasks: Sequence[Predicted], influences: Sequence[Influence]) -> None:
        """One method's cells; all methods have the same items. ``influences``: theirs, for the weights."""
        ids = [np.arange(p.n_items)[:, None] if p.ids_NK is None else p.ids_NK for p in tasks]
        universes = [
            p.universe if p.shared_NK is not None and p.universe else f"items of {p.task}"
            for p in tasks
        ]
        width = max(int(ids_NK.max()) for ids_NK in ids) + 1
        offset = {name: width * i for i, name in enumerate(dict.fromkeys(universes))}
        one_N, other_N = (
            np.concatenate(
                [
                    offset[name] + ids_NK[:, side]
                    for name, ids_NK in zip(universes, ids, strict=True)
                ]
            ).astype(np.int64)
            for side in (0, -1)
        )
        _, unit_N = np.unique(np.stack([one_N, other_N]), return_inverse=True)
        self._units = unit_N.reshape(2, -1)
        self._two_N: NDArray[np.bool_] = one_N != other_N
        """Items that may share two things."""
        pair_N = np.minimum(one_N, other_N) * (
            int(max(one_N.max(), other_N.max())) + 1
        ) + np.maximum(one_N, other_N)
        self._pair_N = np.unique(pair_N, return_inverse=True)[1]
        weight_N = np.concatenate([moved.weight_N / len(tasks) for moved in influences])
        share_U = self._by_unit(weight_N)
        share_U = share_U / share_U.sum()
        self.freedom = float(1 / (share_U**2).sum()) - 1
        """Degrees of freedom of the variance: independent units of one size that would say as much, less one."""

    def _by_unit(self, values_N: Floats) -> Floats:
        (one_N, other_N), two_N, units = self._units, self._two_N, int(self._units.max()) + 1
        sum_U = np.bincount(one_N, values_N, units) + np.bincount(
            other_N[two_N], values_N[two_N], units
        )
        return sum_U.astype(np.float64, copy=False)

    def covariance(self, moved_RN: Floats) -> Floats:
        """(2, R, R): of the values of runs over items drawn again, in squared points; and the same if pairs shared sentences only
        where they are the same pair, below which no variance is taken to be.

        Raises ValueError where all items are one unit.
        """
        if self.freedom <= 0:
            raise ValueError("all items share something: nothing is known of other items")
        scale = (self.freedom + 1) / self.freedom
        by_pair_RP = np.stack([np.bincount(self._pair_N, moved_N) for moved_N in moved_RN])
        least_RR = by_pair_RP @ by_pair_RP.T
        if not self._two_N.any():
            return scale * np.stack([least_RR, least_RR])
        by_unit_RU = np.stack([self._by_unit(moved_N) for moved_N in moved_RN])
        twice = np.stack(
            [np.bincount(self._pair_N[self._two_N], moved_N[self._two_N]) for moved_N in moved_RN]
        )
        return scale * np.stack([by_unit_RU @ by_unit_RU.T - twice @ twice.T, least_RR])
