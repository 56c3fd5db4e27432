"""The methods of one column together: intervals and differences, over other items and other seeds.

A method's value is a mean over its seeds. Two things move it: other items, whose covariance over all runs is given, and other
seeds. Every seed answers the same items, so both are crossed, not nested: what the items do to all seeds of a method alike does
not shrink with their number. The spread over seeds is moderated: borrowed across the methods of the column. What items do to each
seed for itself is in that spread too, and is counted there. Methods are compared unpaired over seeds: a seed's number is
all that two methods share, their weights and batches differ. A difference over its standard error is taken to follow Student's t,
with Satterthwaite's degrees of freedom (1946) of the parts.

Legend: M methods, R runs of all methods, P pairs of methods.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.records.predictions import Floats, Predicted, same_items

LEVEL = 0.95
POWER = 0.8


# --- how far each item moves a value: what a little more weight for that item would change ---
# A value under items drawn again is, except for terms that vanish with their number, the value plus the influence of every item
# times how much more often than once it was drawn. So the variance over such draws needs no drawing: it is a sum of products of
# influences (the infinitesimal jackknife; Efron 1982, The Jackknife, the Bootstrap and Other Resampling Plans, chapter 6).
#
# Legend: S seeds, N items, R repetitions of one run (k-means seeds, draws of few examples).


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
        if tuple(seeds) == tuple(wanted):
            return self
        rows = [seeds.index(seed) for seed in wanted]
        return replace(self, value_SR=self.value_SR[rows], moved_SN=self.moved_SN[rows])


def influence(p: Predicted) -> Influence:
    """Raises ValueError where a value is undefined: one side of a correlation is constant, a draw of examples was tested on nothing."""
    if p.moved_SN is not None and p.score_S is not None:
        return Influence(p.score_S[:, None], p.moved_SN, np.full(p.n_items, 1 / p.n_items))
    if p.metric in ("accuracy", "clustering-accuracy"):
        return _of_accuracy(p)
    weight_N = _pair_weights(p)
    value_S, moved_SN = _of_correlations(p.prediction_SN, p.gold_N, weight_N, p.task)
    return Influence(value_S[:, None], moved_SN, weight_N)


AT_ONCE = 1 << 16
"""Predictions of a task that are ranked in one call: enough that a call costs little, few enough for a processor's cache."""


def influences(methods: Sequence[Predicted]) -> list[Influence | ValueError]:
    """Compute the influence of each method on one task, or the error if its value is undefined. All methods have the same items.

    The numbers are those of ``influence``, to the last digit. Correlations of many methods are computed together, which takes a third of
    the time in a table of thousands of runs.
    """
    found: list[Influence | ValueError] = []
    start = 0
    while start < len(methods):
        end = _end_of_block(methods, start)
        found += _influences_of_block(methods[start:end])
        start = end
    return found


def _end_of_block(methods: Sequence[Predicted], start: int) -> int:
    """The place after the last method whose correlation is computed together with that of the method at ``start``."""
    first = methods[start]
    if not _is_correlation(first):
        return start + 1
    end, size = start, 0
    while end < len(methods) and (end == start or size < AT_ONCE):
        method = methods[end]
        if not _is_correlation(method) or method.prediction_SN.dtype != first.prediction_SN.dtype:
            break
        size += method.prediction_SN.size
        end += 1
    return end


def _is_correlation(p: Predicted) -> bool:
    return p.moved_SN is None and p.metric in ("spearman", "spearman-bootstrap")


def _influences_of_block(methods: Sequence[Predicted]) -> list[Influence | ValueError]:
    if len(methods) > 1:
        first = methods[0]
        weight_N = _pair_weights(first)
        together = np.concatenate([p.prediction_SN for p in methods])
        try:
            value_S, moved_SN = _of_correlations(together, first.gold_N, weight_N, first.task)
        except ValueError:  # of one method: each by itself says which
            pass
        else:
            ends = np.cumsum([len(p.prediction_SN) for p in methods]).tolist()
            starts = [0, *ends[:-1]]
            return [
                Influence(value_S[start:end, None], moved_SN[start:end], weight_N)
                for start, end in zip(starts, ends, strict=True)
            ]
    found: list[Influence | ValueError] = []
    for p in methods:
        try:
            found.append(influence(p))
        except ValueError as error:
            found.append(error)
    return found


def _pair_weights(p: Predicted) -> Floats:
    """(N,) the weights of the pairs in a correlation."""
    if p.metric == "spearman":
        return np.full(p.n_items, 1 / p.n_items)
    return _query_weights(p.query_N)


def _of_correlations(
    x_SN: NDArray[np.generic], y: ArrayLike, weight_N: Floats, task: str
) -> tuple[Floats, Floats]:
    """(S,) Spearman's of each row with ``y``, ties by mean ranks, as the correlation of weighted mid-distribution functions, and (S, N) its
    influence function. All rows at once: tables of thousands of runs take most of their time here."""
    x_ranks, of_y = _Ranks(x_SN), _gold_side(np.asarray(y), weight_N)
    y_ranks, v_N, squares_y = of_y.ranks, of_y.centred_N, of_y.squares
    u_SN = x_ranks.centred(weight_N)
    uv_SN, uu_SN = u_SN * v_N, u_SN * u_SN
    product_S, squares_x_S, scale_S = (np.empty((len(u_SN), 1)) for _ in range(3))
    for seed in range(len(u_SN)):
        product_S[seed] = weight_N @ uv_SN[seed]
        squares_x = float(weight_N @ uu_SN[seed])
        if min(squares_x, squares_y) <= 1e-15:
            raise ValueError(f"{task}: one side is constant: correlation is undefined, not zero")
        squares_x_S[seed], scale_S[seed] = squares_x, (squares_x * squares_y) ** -0.5
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
    """What a correlation takes from the gold values: the same for all methods of a task."""

    ranks: _Ranks
    centred_N: Floats
    squares: float
    moved_N: Floats
    """How far each item moves ``squares``."""


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
        self.place_SN = self.group_SN + self.groups * np.arange(len(group_SN))[:, None]
        """The group of each item, counted on from row to row."""

    def centred(self, weight_N: Floats) -> Floats:
        """(S, N) the weight below each item's value and half of that at it, less a half."""
        place_SN = self.place_SN
        weight_SG = self._by_group(np.broadcast_to(weight_N, place_SN.shape), place_SN)
        return (np.cumsum(weight_SG, axis=1) - weight_SG / 2 - 0.5).ravel()[place_SN]

    def above(self, part: Floats) -> Floats:
        """(S, N) the sum of ``part``, whose total is zero, over all items with a greater value, and half of those with the same. Of parts
        (S, N), or (N,) for all rows; a single row takes any number of parts."""
        place_SN = self.place_SN
        if len(place_SN) == 1 and part.ndim == 2:
            place_SN = self.group_SN + self.groups * np.arange(len(part))[:, None]
        part_SG = self._by_group(np.broadcast_to(part, place_SN.shape), place_SN)
        return (part_SG / 2 - np.cumsum(part_SG, axis=1)).ravel()[place_SN]

    def _by_group(self, part_SN: Floats, place_SN: NDArray[np.intp]) -> Floats:
        """(S, G) sums, in the order of the items."""
        sums = np.bincount(place_SN.ravel(), part_SN.ravel(), self.groups * len(place_SN))
        return np.asarray(sums, dtype=np.float64).reshape(-1, self.groups)


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
        raise ValueError(f"{p.task}: a draw has no test items")
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
        share_U = self._by_unit(
            np.concatenate([moved.weight_N / len(tasks) for moved in influences])
        )
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
            raise ValueError(
                "all items are connected: how far other items would move the score is not known"
            )
        scale = (self.freedom + 1) / self.freedom
        by_pair_RP = np.stack([np.bincount(self._pair_N, moved_N) for moved_N in moved_RN])
        least_RR = by_pair_RP @ by_pair_RP.T
        if (
            not self._two_N.any()
        ):  # both are the same: no second copy of a matrix of thousands of runs
            return np.broadcast_to(scale * least_RR, (2, *least_RR.shape))
        by_unit_RU = np.stack([self._by_unit(moved_N) for moved_N in moved_RN])
        twice = np.stack(
            [np.bincount(self._pair_N[self._two_N], moved_N[self._two_N]) for moved_N in moved_RN]
        )
        return scale * np.stack([by_unit_RU @ by_unit_RU.T - twice @ twice.T, least_RR])


# --- the variance over training seeds, borrowed across methods: three seeds of eight methods say more than three of one ---
# Each method's variance is drawn towards what all methods of a table have, as far as they are alike: the empirical Bayes estimate
# of Smyth 2004 (Linear models and empirical Bayes methods, Statistical Applications in Genetics and Molecular Biology 3; "limma").

LEAST = 1e-5
"""Of the median: smaller variances are raised to it before logarithms are taken, as limma does."""
WIDE = 0.05
"""Level of the F tests, over all methods (Bonferroni), by which one whose seeds spread more than the others' keeps its own variance."""
MOST_BORROWED = 2.0
"""Degrees of freedom that a method borrows at most: what three seeds say themselves. Without this limit, three seeds that happen to lie close
together are given the spread of the others, and a method that spreads three to five times as far is called better or worse too often
(docs/statistics.md, "How often a table is wrong")."""


def seed_variances(
    variance_M: Floats, freedom_M: ArrayLike, lends_M: ArrayLike | None = None
) -> tuple[Floats, Floats]:
    """(M,) variances over seeds that a comparison uses, and their degrees of freedom; arguments as for ``moderated_variances``.

    Moderated, and raised towards the mean of all that lend. A method whose sample variance an F test finds larger than the pooled
    variance of the others keeps its own: it would otherwise borrow from methods that are not like it.
    """
    from scipy.special import fdtrc

    freedom_M = np.asarray(freedom_M, dtype=np.float64)
    lends_M = _lenders(freedom_M, lends_M)
    _, prior_freedom, seed_M, seed_freedom_M = moderated_variances(variance_M, freedom_M, lends_M)
    if not lends_M.any():
        return seed_M, seed_freedom_M
    if prior_freedom > 0:
        mean = float(np.average(variance_M[lends_M], weights=freedom_M[lends_M]))
        seed_M = raise_variances(seed_M, freedom_M, prior_freedom, mean)
    lent_M = np.where(lends_M, freedom_M, 0.0)
    squares_M = np.where(lends_M, freedom_M * variance_M, 0.0)
    others_M = lent_M.sum() - lent_M
    with np.errstate(invalid="ignore", divide="ignore"):
        wide_M = (
            fdtrc(freedom_M, others_M, variance_M / ((squares_M.sum() - squares_M) / others_M))
            < WIDE / lends_M.sum()
        ) & (variance_M > seed_M)
    return np.where(wide_M, variance_M, seed_M), np.where(wide_M, freedom_M, seed_freedom_M)


def moderated_variances(
    variances: ArrayLike, degrees_of_freedom: ArrayLike, lends_M: ArrayLike | None = None
) -> tuple[float, float, Floats, Floats]:
    """(prior variance, prior degrees of freedom, (M,) posterior variances, (M,) posterior degrees of freedom).

    ``variances``: (M,) sample variances of independent groups; one without degrees of freedom (a single seed) is not looked at, and
    gets the prior's. ``lends_M``: the groups from which the prior is made; None: all. The prior is fitted to the logarithms by moments
    (Smyth 2004, section 6.2); if they differ by no more than chance, it is the pooled variance. A group borrows ``MOST_BORROWED``
    degrees of freedom at most, also from a prior that has more, or infinitely many. No posterior has more degrees of freedom than all
    groups that lend, and the group itself, together. With fewer than two groups to learn from nothing is borrowed: the prior has zero
    degrees of freedom, and with none its variance is NaN.
    """
    variance_M, freedom_M = (
        np.asarray(given, dtype=np.float64) for given in (variances, degrees_of_freedom)
    )
    known_M = freedom_M > 0
    lends_M = _lenders(freedom_M, lends_M)
    prior_variance, prior_freedom = _prior(variance_M[lends_M], freedom_M[lends_M])
    prior_freedom = min(prior_freedom, MOST_BORROWED)
    own_M = np.where(known_M, variance_M, prior_variance)
    if prior_freedom == 0:
        posterior_M = own_M
    else:
        posterior_M = (freedom_M * own_M + prior_freedom * prior_variance) / (
            freedom_M + prior_freedom
        )
    most_M = freedom_M[lends_M].sum() + np.where(lends_M, 0.0, freedom_M)
    return (
        prior_variance,
        prior_freedom,
        posterior_M,
        np.minimum(freedom_M + prior_freedom, most_M),
    )


def _lenders(freedom_M: Floats, lends_M: ArrayLike | None) -> NDArray[np.bool_]:
    """(M,) the groups that lend: of those that may, the ones with degrees of freedom."""
    if lends_M is None:
        return freedom_M > 0
    return (freedom_M > 0) & np.asarray(lends_M, dtype=bool)


def raise_variances(
    posterior_M: Floats, freedom_M: ArrayLike, prior_freedom: float, mean: float
) -> Floats:
    """(M,) posterior variances, those below ``mean``, the methods' mean variance, drawn up to it by the share that was borrowed.

    The prior is known badly from few methods, and a variance that is small by chance calls methods different that are not. Of a method
    whose own seeds say little the mean itself is the least; one whose own seeds say most of what is known keeps what they say, so that
    a single method that varies much does not hide all differences of a table. Shares are of the logarithm.
    """
    share_M = 1 / (1 + np.asarray(freedom_M, dtype=np.float64) / prior_freedom)
    return np.maximum(posterior_M, mean**share_M * posterior_M ** (1 - share_M))


def _prior(variance_M: Floats, freedom_M: Floats) -> tuple[float, float]:
    """Scaled inverse chi-square prior by moments of log variances."""
    from scipy.special import digamma, polygamma

    if len(variance_M) == 0:
        return math.nan, 0.0
    pooled = float(np.average(variance_M, weights=freedom_M))
    if len(variance_M) < 2:
        return pooled, 0.0
    if pooled == 0:
        return 0.0, math.inf
    logs_M = _logs(variance_M, freedom_M)
    excess = float(logs_M.var(ddof=1) - polygamma(1, freedom_M / 2).mean())
    if excess <= 0:
        return pooled, math.inf
    prior_freedom = 2 * _inverse_trigamma(excess)
    half = prior_freedom / 2
    return math.exp(float(logs_M.mean()) + float(digamma(half)) - math.log(half)), prior_freedom


def _logs(variance_M: Floats, freedom_M: Floats) -> Floats:
    """Logarithms whose mean is that of the true variances, in expectation (Smyth 2004, section 6.2). One variance at least is above 0."""
    from scipy.special import digamma

    usual = float(np.median(variance_M)) or float(np.average(variance_M, weights=freedom_M))
    return (
        np.log(np.maximum(variance_M, LEAST * usual))
        - digamma(freedom_M / 2)
        + np.log(freedom_M / 2)
    )


def _inverse_trigamma(value: float) -> float:
    """x > 0 with trigamma(x) = value > 0; 1 / x < trigamma(x) < 1 / x + 1 / x^2 gives the ends between which it lies."""
    from scipy.optimize import brentq
    from scipy.special import polygamma

    ends = 1 / value, (1 + math.sqrt(1 + 4 * value)) / (2 * value)
    return float(brentq(lambda x: float(polygamma(1, x)) - value, *ends, xtol=1e-100, rtol=1e-13))


# --- the column, and the differences between its methods ---


@dataclass(frozen=True)
class Differences:
    """One method minus another, for P pairs at once; NaN where nothing is known of it."""

    value_P: Floats
    error_P: Floats
    """Standard errors."""
    freedom_P: Floats

    @property
    def p_P(self) -> Floats:
        """Two-sided; 1 where two methods differ in nothing."""
        with np.errstate(invalid="ignore", divide="ignore"):
            t_P = np.where(self.value_P == 0, 0.0, np.abs(self.value_P) / self.error_P)
        return np.where(np.isnan(self.error_P), np.nan, 2 * _student(-t_P, self.freedom_P))

    @property
    def below_p_P(self) -> Floats:
        """One-sided: small where the first method lies below the second."""
        with np.errstate(invalid="ignore", divide="ignore"):
            t_P = np.where(self.value_P == 0, 0.0, self.value_P / self.error_P)
        return np.where(np.isnan(self.error_P), np.nan, _student(t_P, self.freedom_P))

    def select(self, pairs: NDArray[np.intp]) -> Differences:
        """The differences of some of the pairs."""
        return Differences(self.value_P[pairs], self.error_P[pairs], self.freedom_P[pairs])

    def half_P(self, alpha: float) -> Floats:
        """Half of the 1 - alpha interval."""
        return student_quantile(1 - alpha / 2, self.freedom_P) * self.error_P

    def detectable_P(self, alpha: float) -> Floats:
        """The true difference that is found with a power of about 80 % (MDE)."""
        return (
            student_quantile(1 - alpha / 2, self.freedom_P)
            + student_quantile(POWER, self.freedom_P)
        ) * self.error_P


@dataclass(frozen=True)
class Borrowed:
    """From whom the methods of a column borrow their spread over seeds, if not from one another."""

    lends_M: Sequence[bool]
    """The methods of the column that lend."""
    others: Sequence[Sequence[float]]
    """Values of the seeds of methods that lend and are not in the column; two at least of each."""


class Column:
    """The values of M methods on one task, or on an average of tasks."""

    def __init__(
        self,
        values: Sequence[Sequence[float]],
        random: Sequence[bool],
        covariance: Floats | None = None,
        *,
        freedom: float = math.inf,
        repeated: Sequence[Floats] = (),
        borrowed: Borrowed | None = None,
    ) -> None:
        """``values``: of every method's runs, in points. ``random``: whether another run of it may give another value.

        ``covariance``: (2, R, R) of all runs in that order over items, or (2, M, M) of the methods' means, with ``freedom`` degrees of
        freedom (``Items``); NaN for runs of which the items are not known. ``repeated``: per task (R, Q) values by repetition, the same for all methods (the tenth
        draw of few examples is one draw), over the number of tasks. ``borrowed`` None: all methods lend to one another.
        """
        self.runs_M = np.array([len(seeds) for seeds in values])
        self._starts = np.concatenate([[0], np.cumsum(self.runs_M)[:-1]])
        value_R = np.array([value for of_run in values for value in of_run])
        self.mean_M: Floats = np.add.reduceat(value_R, self._starts) / self.runs_M
        self.own_freedom_M = np.where(random, self.runs_M - 1.0, 0.0)
        """Degrees of freedom of a method's own seeds."""
        self.spread_M: Floats = np.add.reduceat(
            (value_R - np.repeat(self.mean_M, self.runs_M)) ** 2, self._starts
        ) / np.maximum(self.runs_M - 1, 1)
        """Sample variances over seeds; 0 with one seed."""
        self.random_M = random_M = np.asarray(random, dtype=bool)
        """Say if another run of the method may give another value."""
        self.seed_M = np.where(random_M, np.nan, 0.0)
        """Variance over seeds; NaN: not known."""
        self.seed_freedom_M = np.where(random_M, 0.0, math.inf)
        self.total_freedom_M = np.zeros(len(values))
        """Degrees of freedom of all seeds from which a method's variance is known, its own and those of methods that lend."""
        self._know_seeds(borrowed or Borrowed([True] * len(values), ()))
        self.freedom = freedom
        self.items = self._of_means(covariance)
        self.repeated_MM: Floats = np.zeros((len(values), len(values)))
        self.repeated_freedom = math.inf
        if repeated:
            for values_RQ in repeated:
                by_method = np.add.reduceat(values_RQ, self._starts, axis=0) / self.runs_M[:, None]
                self.repeated_MM += np.atleast_2d(np.cov(by_method)) / values_RQ.shape[1]
            self.repeated_freedom = sum(values_RQ.shape[1] - 1 for values_RQ in repeated)

    def _of_means(self, covariance: Floats | None) -> Floats:
        """(2, M, M) covariances of the methods' means over items; NaN if not known. ``covariance``: as for ``__init__``."""
        shape = (2, len(self.runs_M), len(self.runs_M))
        if covariance is None:
            return np.full(shape, np.nan)
        if covariance.shape == shape:
            return covariance
        sums = np.add.reduceat(np.add.reduceat(covariance, self._starts, 1), self._starts, 2)
        return np.asarray(sums / np.multiply.outer(self.runs_M, self.runs_M), dtype=np.float64)

    def _know_seeds(self, borrowed: Borrowed) -> None:
        """Set the variances over seeds as far as anything is known of them."""
        count = len(self.spread_M)
        others = borrowed.others
        variances = np.concatenate([self.spread_M, [np.var(own, ddof=1) for own in others]])
        freedoms = np.concatenate([self.own_freedom_M, [float(len(own) - 1) for own in others]])
        lends = np.concatenate([borrowed.lends_M, np.ones(len(others))]).astype(bool)
        if not freedoms.sum() > 0:
            return
        self.total_freedom_M = freedoms[lends].sum() + np.where(lends, 0.0, freedoms)[:count]
        seed_M, seed_freedom_M = (of[:count] for of in seed_variances(variances, freedoms, lends))
        known_M = self.random_M & (seed_freedom_M > 0)
        self.seed_M[known_M] = seed_M[known_M]
        self.seed_freedom_M[known_M] = seed_freedom_M[known_M]

    def over_items(self, other: int) -> tuple[Floats, Floats]:
        """(M,) variances over items, and over repetitions, of every method minus the one at ``other``; NaN if not known."""
        items_M = _of_differences(self.items, other).max(axis=0)
        return items_M, _of_differences(self.repeated_MM, other)

    def less(self, other: int) -> Differences:
        """(M,) every method minus the one at ``other``; NaN at itself."""
        items_M, repeated_M = self.over_items(other)
        one_M = self.seed_M / self.runs_M
        other_M = np.full_like(one_M, one_M[other])
        # of a sum of two moderated variances: no more than all seeds that they are known from
        of_two_M = satterthwaite(
            [(one_M, self.seed_freedom_M), (other_M, self.seed_freedom_M[other])]
        )
        seeds_freedom_M = np.where(
            np.isinf(of_two_M),
            of_two_M,
            np.minimum(of_two_M, np.maximum(self.total_freedom_M, self.total_freedom_M[other])),
        )
        error_M = np.sqrt(items_M + repeated_M + one_M + other_M)
        error_M[other] = np.nan
        return Differences(
            self.mean_M - self.mean_M[other],
            error_M,
            satterthwaite(
                [
                    (items_M, self.freedom),
                    (repeated_M, self.repeated_freedom),
                    (one_M + other_M, seeds_freedom_M),
                ]
            ),
        )

    def half_widths(self) -> tuple[Floats, Floats, list[str]]:
        """(M,) half of each method's interval and its standard error, NaN where nothing is known; what they cover: "items and seeds",
        "items", "seeds"."""
        items_M: Floats = np.diagonal(self.items, axis1=1, axis2=2).max(axis=0)
        repeated_M: Floats = np.where(np.isnan(items_M), 0.0, np.diagonal(self.repeated_MM))
        seeds_M: Floats = self.seed_M / self.runs_M
        here_M, there_M = np.maximum(np.nan_to_num(items_M), 0), np.nan_to_num(seeds_M)
        freedom_M = satterthwaite(
            [
                (here_M, self.freedom),
                (repeated_M, self.repeated_freedom),
                (there_M, self.seed_freedom_M),
            ]
        )
        error_M = np.sqrt(here_M + repeated_M + there_M)
        covers = [
            " and ".join(name for name, known in (("items", items), ("seeds", seeds)) if known)
            for items, seeds in zip(
                np.isfinite(items_M),
                np.isfinite(seeds_M) & np.isfinite(self.seed_freedom_M),
                strict=True,
            )
        ]
        error_M = np.where([bool(cover) for cover in covers], error_M, np.nan)
        return student_quantile((1 + LEVEL) / 2, freedom_M) * error_M, error_M, covers


def _of_differences(matrix: Floats, other: int) -> Floats:
    """(..., M) variances of every method minus the one at ``other``, from covariances (..., M, M)."""
    own = np.diagonal(matrix, axis1=-2, axis2=-1)
    return np.maximum(own + own[..., other, None] - 2 * matrix[..., other], 0)


MANY = 1000
"""Runs of a column above which the runs of each method are averaged before their covariances are taken, which gives the same but for the last
digits: the covariances of ten thousand runs would fill the memory."""
Answers = Sequence[tuple[Predicted, Influence]]
"""Of one method: each task of a column, with the same seeds."""


def column(
    answers: Sequence[Answers | None],
    values: Sequence[Sequence[float]],
    random: Sequence[bool],
    borrowed: Borrowed | None = None,
) -> Column:
    """A column of methods that were asked the same items; None: what this method said is not known. ``values`` are the recorded ones.

    Raises ValueError where items differ, and where nothing can be said of other items.
    """
    known = [answer for answer in answers if answer is not None]
    if not known:
        return Column(values, random, borrowed=borrowed)
    first = known[0]
    for answer in known[1:]:
        for (a, _), (b, _) in zip(first, answer, strict=True):
            same_items(a, b)
    items = Items([p for p, _ in first], [moved for _, moved in first])
    moved = []
    here = []
    many = sum(map(len, values)) > MANY
    for of_method, own in zip(answers, values, strict=True):
        units = 1 if many else len(own)
        here += [of_method is not None] * units
        if of_method is None:
            continue
        moved_SN = np.concatenate([one.moved_SN for _, one in of_method], axis=1) / len(of_method)
        moved.append(moved_SN.mean(axis=0, keepdims=True) if many else moved_SN)
    known_RR = items.covariance(np.concatenate(moved))
    if all(here):
        covariance = known_RR
    else:
        covariance = np.full((2, len(here), len(here)), np.nan)
        covariance[:, np.outer(here, here)] = known_RR.reshape(2, -1)
    repeated = [
        values_RQ / len(first)
        for by_task in zip(*(known if len(known) == len(answers) else []), strict=True)
        if (values_RQ := np.concatenate([moved.value_SR for _, moved in by_task])).shape[1] > 1
    ]
    return Column(
        values,
        random,
        covariance,
        freedom=items.freedom,
        repeated=repeated,
        borrowed=borrowed,
    )


def satterthwaite(parts: Sequence[tuple[Floats, Floats | float]]) -> Floats:
    total_P = sum((part for part, _ in parts), np.zeros(1))
    with np.errstate(invalid="ignore", divide="ignore"):
        uncertain_P = sum(
            (np.where(part > 0, part**2 / freedom, 0.0) for part, freedom in parts), np.zeros(1)
        )
        return np.where(uncertain_P > 0, total_P**2 / uncertain_P, math.inf)


def _student(t: Floats, freedom: Floats) -> Floats:
    from scipy.special import ndtr, stdtr

    with np.errstate(invalid="ignore"):
        return np.where(
            np.isinf(freedom), ndtr(t), stdtr(np.where(np.isinf(freedom), 1.0, freedom), t)
        )


def student_quantile(probability: float, freedom: Floats) -> Floats:
    from scipy.special import ndtri, stdtrit

    return np.where(
        np.isinf(freedom),
        ndtri(probability),
        stdtrit(np.where(np.isinf(freedom), 1.0, freedom), probability),
    )
