"""The influence of each item on a score: the change if that item had a little more weight.

A score under items drawn again is the score plus, for every item, its influence times the number of
extra draws, except for terms that vanish with the number of items. So the variance over such draws
needs no drawing: it is a sum of products of influences (the infinitesimal jackknife; Efron 1982,
The Jackknife, the Bootstrap and Other Resampling Plans, chapter 6).

No score is computed with this file, so it is not part of a suite's code.

Legend: S seeds, N items, R repetitions of one run (k-means seeds, draws of few examples),
G groups of equal values, P clusters, Q queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from bench.records.predictions import Predicted

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Influence:
    """The values of one method on one task, and how far each item moves them, in points (x 100)."""

    value_SR: Floats
    # mean over repetitions; a row sums to zero
    moved_SN: Floats
    # weight of each item in the value; they sum to 1
    weight_N: Floats

    def of(self, seeds: Sequence[int | None], wanted: Sequence[int | None]) -> Influence:
        """Keep some of the seeds only."""
        if tuple(seeds) == tuple(wanted):
            return self
        rows = [seeds.index(seed) for seed in wanted]
        return replace(self, value_SR=self.value_SR[rows], moved_SN=self.moved_SN[rows])


def even_weights(n_items: int) -> Floats:
    """Return (N,) equal weights that sum to 1."""
    return np.full(n_items, 1 / n_items)


def move_spearman(p: Predicted) -> Influence:
    """Compute the influence of each pair on Spearman's correlation over all pairs.

    Raises ValueError if one side is constant or predictions are not one number for each pair.
    """
    return _move_correlation(p, even_weights(p.n_items))


def move_sampled_spearman(p: Predicted) -> Influence:
    """Compute the influence of each pair on a correlation over one pair of every query.

    It is the average over draws of the pairs.

    Raises ValueError as ``move_spearman``, and if the queries of the pairs are not known.
    """
    if p.query_N is None:
        raise ValueError(f"{p.task}: a sampled correlation needs the query of every pair")
    return _move_correlation(p, group_weights(p.query_N))


def _move_correlation(p: Predicted, weight_N: Floats) -> Influence:
    value_S, moved_SN = rank_correlations(p.prediction_SN, p.gold_N, weight_N, p.task)
    return Influence(value_S[:, None], moved_SN, weight_N)


def rank_correlations(
    x_SN: NDArray[np.generic], y: ArrayLike, weight_N: Floats, task: str
) -> tuple[Floats, Floats]:
    """Compute (S,) Spearman's correlations of each row with ``y``, and (S, N) their influences.

    Ties have mean ranks: the correlation of weighted mid-distribution functions. All rows are
    computed at once, because tables of thousands of runs take most of their time here.
    """
    x_ranks = _Ranks(x_SN)
    of_y = _gold_side(np.asarray(y), weight_N)
    y_ranks = of_y.ranks
    v_N = of_y.centred_N
    squares_y = of_y.squares
    u_SN = x_ranks.centred(weight_N)
    uv_SN = u_SN * v_N
    uu_SN = u_SN * u_SN
    product_S = np.empty((len(u_SN), 1))
    squares_x_S = np.empty((len(u_SN), 1))
    scale_S = np.empty((len(u_SN), 1))
    for seed in range(len(u_SN)):
        product_S[seed] = weight_N @ uv_SN[seed]
        squares_x = float(weight_N @ uu_SN[seed])
        if min(squares_x, squares_y) <= 1e-15:
            raise ValueError(f"{task}: one side is constant: correlation is undefined, not zero")
        squares_x_S[seed] = squares_x
        scale_S[seed] = (squares_x * squares_y) ** -0.5
    # an item moves each moment by its own part, and by the ranks that it moves of the others
    weighted_u_SN = weight_N * u_SN
    of_product_SN = (
        uv_SN + x_ranks.above(weight_N * v_N) + y_ranks.above(weighted_u_SN) - 3 * product_S
    )
    of_x_SN = uu_SN + 2 * x_ranks.above(weighted_u_SN) - 3 * squares_x_S
    value_S = product_S * scale_S
    moved_SN = of_product_SN * scale_S - value_S / 2 * (
        of_x_SN / squares_x_S + of_y.moved_N / squares_y
    )
    return 100 * np.clip(value_S[:, 0], -1.0, 1.0), 100 * weight_N * moved_SN


@dataclass(frozen=True, eq=False)
class _GoldSide:
    """The gold values' part of a correlation: the same for all methods of a task."""

    ranks: _Ranks
    centred_N: Floats
    squares: float
    # how far each item moves ``squares``
    moved_N: Floats


def _gold_side(gold_N: NDArray[np.generic], weight_N: Floats) -> _GoldSide:
    return _remembered_side(gold_N.tobytes(), gold_N.dtype.str, weight_N.tobytes())


@lru_cache(maxsize=16)
def _remembered_side(gold: bytes, dtype: str, weight: bytes) -> _GoldSide:
    weight_N = np.frombuffer(weight)
    ranks = _Ranks(np.frombuffer(gold, dtype)[None])
    v_N = ranks.centred(weight_N)[0]
    squares = float(weight_N @ (v_N * v_N))
    moved_N = v_N * v_N + 2 * ranks.above(weight_N * v_N)[0] - 3 * squares
    return _GoldSide(ranks, v_N, squares, moved_N)


class _Ranks:
    """The order of the items in each of S rows, equal values together: group 0 is the lowest."""

    def __init__(self, values_SN: NDArray[np.generic]) -> None:
        order_SN = np.argsort(values_SN, axis=1)
        sorted_SN = np.take_along_axis(values_SN, order_SN, axis=1)
        rises_SN = sorted_SN[:, 1:] != sorted_SN[:, :-1]
        group_SN = np.zeros(values_SN.shape, dtype=np.intp)
        np.cumsum(rises_SN, axis=1, out=group_SN[:, 1:])
        self.group_SN = np.empty_like(group_SN)
        np.put_along_axis(self.group_SN, order_SN, group_SN, axis=1)
        self.groups = int(group_SN[:, -1].max()) + 1
        # the group of each item, counted on from row to row
        self.place_SN = self.group_SN + self.groups * np.arange(len(group_SN))[:, None]

    def centred(self, weight_N: Floats) -> Floats:
        """Return (S, N) weights below each item's value, plus half the weight at it, minus 0.5."""
        place_SN = self.place_SN
        weight_SG = self._by_group(np.broadcast_to(weight_N, place_SN.shape), place_SN)
        return (np.cumsum(weight_SG, axis=1) - weight_SG / 2 - 0.5).ravel()[place_SN]

    def above(self, part: Floats) -> Floats:
        """Return (S, N) sums of ``part`` over items with a greater value, and half over equal ones.

        ``part``: (S, N), or (N,) for all rows, with a total of zero; a single row takes any number
        of parts.
        """
        place_SN = self.place_SN
        if len(place_SN) == 1 and part.ndim == 2:
            place_SN = self.group_SN + self.groups * np.arange(len(part))[:, None]
        part_SG = self._by_group(np.broadcast_to(part, place_SN.shape), place_SN)
        return (part_SG / 2 - np.cumsum(part_SG, axis=1)).ravel()[place_SN]

    def _by_group(self, part_SN: Floats, place_SN: NDArray[np.intp]) -> Floats:
        """Return (S, G) sums, in the order of the items."""
        sums = np.bincount(place_SN.ravel(), part_SN.ravel(), self.groups * len(place_SN))
        return np.asarray(sums, dtype=np.float64).reshape(-1, self.groups)


def group_weights(group_N: NDArray[np.generic]) -> Floats:
    """Return (N,) weights that give every group (query, fold) the same total."""
    _, index_N, size_G = np.unique(np.asarray(group_N), return_inverse=True, return_counts=True)
    return 1 / (len(size_G) * size_G[index_N])


def move_accuracy(p: Predicted) -> Influence:
    """Compute the influence of each item on the share of right answers; the mean over folds, if
    any.

    A draw of examples (R) counts the items that it tested; -1 is an item that it did not test.
    Raises ValueError if a draw tested nothing.
    """
    prediction_SRN = _by_repetition(p)
    asked = np.ones(prediction_SRN.shape, dtype=bool)
    if p.prediction_SN.ndim == 3:
        asked = prediction_SRN >= 0
    right = (prediction_SRN == p.gold_N) & asked
    return _move_share(p, right.astype(np.float64), asked.astype(np.float64))


def move_mean(p: Predicted) -> Influence:
    """Compute the influence of each item on the mean of the items' own scores."""
    weight_N = even_weights(p.n_items)
    points_SN = 100 * p.prediction_SN.astype(np.float64)
    value_S = points_SN @ weight_N
    moved_SN = (points_SN - value_S[:, None]) * weight_N
    return Influence(value_S[:, None], moved_SN, weight_N)


def move_matched_accuracy(p: Predicted) -> Influence:
    """Compute the influence of each item on the share of items in the cluster of their class.

    Clusters are matched with classes on all items, and keep their class when items are drawn: if
    the best matching is the only best one, a new one would change the value by less than the noise
    of drawing squared.
    """
    class_N = np.unique(p.gold_N, return_inverse=True)[1]
    labels_SRN = _by_repetition(p)
    matched = [_matched(labels_N, class_N) for labels_N in labels_SRN.reshape(-1, p.n_items)]
    right = np.stack(matched).reshape(labels_SRN.shape)
    return _move_share(p, right.astype(np.float64), np.ones(right.shape))


def _by_repetition(p: Predicted) -> NDArray[Any]:
    """Return (S, R, N) predictions."""
    return np.moveaxis(np.atleast_3d(p.prediction_SN), 1, 2)


def _move_share(p: Predicted, right: Floats, asked: Floats) -> Influence:
    """Compute the influence on the weight of right answers over the weight of all asked items.

    ``right``, ``asked``: (S, R, N), 1 or 0.
    """
    weight_N = even_weights(p.n_items) if p.fold_N is None else group_weights(p.fold_N)
    every_SR = asked @ weight_N
    if not (every_SR > 0).all():
        raise ValueError(f"{p.task}: a draw has no test items")
    value_SR = 100 * (right @ weight_N) / every_SR
    moved = (100 * right - value_SR[:, :, None] * asked) * weight_N / every_SR[:, :, None]
    return Influence(value_SR, moved.mean(axis=1), weight_N)


def _matched(labels_N: NDArray[np.generic], class_N: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return (N,) True for items in their class's cluster, by the best matching (Kuhn 1955).

    ``class_N``: numbers of the classes, from 0.
    """
    from scipy.optimize import linear_sum_assignment

    clusters, row_N = np.unique(labels_N, return_inverse=True)
    classes = int(class_N.max()) + 1
    counts_PG = np.bincount(row_N * classes + class_N, minlength=len(clusters) * classes)
    matched, partners = linear_sum_assignment(
        counts_PG.reshape(len(clusters), classes), maximize=True
    )
    partner_P = np.full(len(clusters), -1)
    partner_P[matched] = partners
    return partner_P[row_N] == class_N
