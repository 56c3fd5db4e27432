"""What the methods of one column say together: intervals, differences, ranks, from other items and other seeds.

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
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.compare.statistics.influence import Influence, Items, influence
from bench.compare.statistics.seed_variance import moderated_variances, raise_variances
from bench.compare.statistics.table import ALPHA, CORRECTIONS, MARGIN
from bench.runs.predicted import Floats, Predicted, same_items

# --- p-values of many comparisons, adjusted for their number ---
# ``holm`` holds the chance of even one false verdict among all cells at alpha (Holm 1979); ``bh`` holds the expected share of
# false ones among the verdicts given (Benjamini and Hochberg 1995); ``none`` adjusts nothing.


def adjust_p_values(
    p_values: ArrayLike | Sequence[float], how: str = "holm"
) -> NDArray[np.float64]:
    """Adjusted p-values in the given order, none above 1: compare them with alpha. Monotone in the given ones.

    Raises ValueError for an unknown ``how`` and for values outside 0 to 1.
    """
    p_M = np.asarray(p_values, dtype=np.float64).reshape(-1)
    if how not in CORRECTIONS:
        raise ValueError(f"'{how}' is not one of {', '.join(CORRECTIONS)}")
    if not ((p_M >= 0) & (p_M <= 1)).all():
        raise ValueError("a p-value lies between 0 and 1")
    if how == "none" or not len(p_M):
        return p_M.copy()
    order_M = np.argsort(p_M, kind="stable")
    rank_M = np.arange(1, len(p_M) + 1)
    if how == "holm":
        sorted_M = np.maximum.accumulate(p_M[order_M] * (len(p_M) + 1 - rank_M))
    else:
        sorted_M = np.minimum.accumulate((p_M[order_M] * (len(p_M) / rank_M))[::-1])[::-1]
    adjusted_M = np.empty_like(p_M)
    adjusted_M[order_M] = np.minimum(sorted_M, 1.0)
    return adjusted_M


def critical(
    p_values: ArrayLike | Sequence[float], how: str = "holm", alpha: float = ALPHA
) -> float:
    """The value below which exactly those p-values lie whose adjusted ones are below ``alpha``: 1 less the level at which intervals
    leave zero out where, and only where, a test says so.

    Holm's test of m, of which it finds r, is the same as finding all below alpha / (m - r) (r below m), for every one that it finds
    lies below that, and none of the others. Benjamini and Hochberg's is alpha r / m, and alpha / m where nothing is found.
    """
    p_M = np.asarray(p_values, dtype=np.float64).reshape(-1)
    if how == "none" or not len(p_M):
        return alpha
    below = int((adjust_p_values(p_M, how) < alpha).sum())
    return alpha / max(1, len(p_M) - below) if how == "holm" else alpha * max(1, below) / len(p_M)


# --- two one-sided tests: is a difference smaller than what matters? ---


def two_one_sided(
    difference: float, standard_error: float, degrees_of_freedom: float, margin: float
) -> float:
    """p-value of "the true difference is ``margin`` or more, in one direction or the other": small where two things are as good as equal.

    The larger of two one-sided p-values of Student's t (Schuirmann 1987); below 0.05 exactly where the 90 % interval lies
    within the margin. Infinite ``degrees_of_freedom``: the normal distribution. Raises ValueError for a margin that is not above
    zero, a negative standard error, and degrees of freedom that are not above zero.
    """
    if not margin > 0 or not standard_error >= 0 or not degrees_of_freedom > 0:
        raise ValueError(
            "a margin and degrees of freedom are above zero, a standard error is not below"
        )
    nearest = margin - abs(difference)
    if standard_error == 0:
        return 0.0 if nearest > 0 else 1.0
    return float(_student(np.asarray(-nearest / standard_error), np.asarray(degrees_of_freedom)))


# --- what the methods of one column say together: intervals, differences, ranks, from other items and other seeds ---


LEVEL = 0.95
POWER = 0.8
MOST_SEEDS = 100
BETTER, WORSE, EQUIVALENT, UNKNOWN = "better", "worse", "equivalent", "unknown"


@dataclass(frozen=True)
class Differences:
    """One method less another, for P pairs at once; NaN where there is nothing to go by."""

    value_P: Floats
    error_P: Floats
    """Standard errors."""
    freedom_P: Floats
    seeds_P: Floats
    """What a new seed of both would move the difference by: variance of one run of each less the two means."""
    seeds_freedom_P: Floats

    @property
    def p_P(self) -> Floats:
        """Two-sided; 1 where two methods differ in nothing."""
        with np.errstate(invalid="ignore", divide="ignore"):
            t_P = np.where(self.value_P == 0, 0.0, np.abs(self.value_P) / self.error_P)
        return np.where(np.isnan(self.error_P), np.nan, 2 * _student(-t_P, self.freedom_P))

    def equivalent_p_P(self, margin: float) -> Floats:
        """As ``two_one_sided``."""
        with np.errstate(invalid="ignore", divide="ignore"):
            p_P = _student((np.abs(self.value_P) - margin) / self.error_P, self.freedom_P)
        return np.where(np.isnan(self.error_P), np.nan, p_P)

    def half_P(self, alpha: float) -> Floats:
        """Half of the 1 - alpha interval."""
        return _quantile(1 - alpha / 2, self.freedom_P) * self.error_P

    @property
    def chance_P(self) -> Floats:
        """That one new run of the first is above one new run of the second on these items; NaN where neither has seeds."""
        with np.errstate(invalid="ignore", divide="ignore"):
            t_P = np.where(self.seeds_P > 0, self.value_P / np.sqrt(self.seeds_P), np.nan)
        return _student(t_P, self.seeds_freedom_P)


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
    ) -> None:
        """``values``: of every method's runs, in points. ``random``: whether another run of it may give another value.

        ``covariance``: (2, R, R) of all runs in that order over items, with ``freedom`` degrees of freedom (``Items``); NaN for
        runs of which the items are not known. ``repeated``: per task (R, Q) values by repetition, the same for all methods (the tenth
        draw of few examples is one draw), over the number of tasks.
        """
        self.runs_M = np.array([len(seeds) for seeds in values])
        self._starts = np.concatenate([[0], np.cumsum(self.runs_M)[:-1]])
        value_R = np.array([value for of_run in values for value in of_run])
        self.mean_M: Floats = np.add.reduceat(value_R, self._starts) / self.runs_M
        freedom_M = np.where(random, self.runs_M - 1, 0)
        squares_M = np.add.reduceat(
            (value_R - np.repeat(self.mean_M, self.runs_M)) ** 2, self._starts
        )
        spread_M: Floats = squares_M / np.maximum(self.runs_M - 1, 1)
        self._moderate(spread_M, np.asarray(random, dtype=bool), freedom_M)
        self.items, self.freedom = np.full((2, len(values), len(values)), np.nan), freedom
        if covariance is not None:
            self._items(covariance)
        self.repeated_MM, self.repeated_freedom = np.zeros_like(self.items[0]), math.inf
        if repeated:
            for values_RQ in repeated:
                by_method = np.add.reduceat(values_RQ, self._starts, axis=0) / self.runs_M[:, None]
                self.repeated_MM += np.atleast_2d(np.cov(by_method)) / values_RQ.shape[1]
            self.repeated_freedom = sum(values_RQ.shape[1] - 1 for values_RQ in repeated)

    def _moderate(
        self, spread_M: Floats, random_M: NDArray[np.bool_], freedom_M: NDArray[np.int64]
    ) -> None:
        self.prior: tuple[float, float] | None = None
        """The variance that is borrowed, and its degrees of freedom; None where no method has two seeds."""
        self.seed_M = np.where(random_M, np.nan, 0.0)
        """Variance over seeds; NaN: not known."""
        self.seed_freedom_M = np.where(random_M, 0.0, math.inf)
        self.lent_M = random_M & (freedom_M == 0)
        """A single seed, whose variance is borrowed as a whole where others lend it."""
        self.total_freedom = float(freedom_M.sum())
        if self.total_freedom > 0:
            prior, prior_freedom, seed_M, seed_freedom_M = moderated_variances(spread_M, freedom_M)
            known_M = random_M & (seed_freedom_M > 0)
            if prior_freedom > 0:
                seed_M = raise_variances(
                    seed_M, freedom_M, prior_freedom, float(np.average(spread_M, weights=freedom_M))
                )
            self.seed_M[known_M], self.seed_freedom_M[known_M] = (
                seed_M[known_M],
                seed_freedom_M[known_M],
            )
            self.prior = prior, prior_freedom
        self.lent_M &= ~np.isnan(self.seed_M)

    def _items(self, covariance: Floats) -> None:
        """Means over the runs of each method, less what each run has for itself, which is in the spread over seeds."""
        starts = self._starts
        sums = np.add.reduceat(np.add.reduceat(covariance, starts, axis=1), starts, axis=2)
        mean = sums / np.multiply.outer(self.runs_M, self.runs_M)
        own_M = np.zeros(len(self.runs_M))
        for i, (start, count) in enumerate(zip(starts, self.runs_M, strict=True)):
            if count > 1:
                block = covariance[0, start : start + count, start : start + count]
                own_M[i] = (np.trace(block) - block.sum() / count) / (count - 1)
        self.items = mean - np.diag(np.maximum(own_M, 0) / self.runs_M)

    def _differences(self, first_P: NDArray[np.int64], second_P: NDArray[np.int64]) -> Differences:
        def variance(matrix: Floats) -> Floats:
            both = (
                matrix[..., first_P, first_P]
                + matrix[..., second_P, second_P]
                - 2 * matrix[..., first_P, second_P]
            )
            return np.maximum(both, 0)

        items_P, repeated_P = variance(self.items).max(axis=0), variance(self.repeated_MM)
        one_P, other_P = (
            self.seed_M[side_P] / self.runs_M[side_P] for side_P in (first_P, second_P)
        )
        seeds_freedom_P = self._seeds_freedom(one_P, other_P, first_P, second_P)
        error2_P = items_P + repeated_P + one_P + other_P
        return Differences(
            self.mean_M[first_P] - self.mean_M[second_P],
            np.sqrt(error2_P),
            _satterthwaite(
                [
                    (items_P, self.freedom),
                    (repeated_P, self.repeated_freedom),
                    (one_P + other_P, seeds_freedom_P),
                ]
            ),
            one_P + other_P + self.seed_M[first_P] + self.seed_M[second_P],
            seeds_freedom_P,
        )

    def _seeds_freedom(
        self,
        one_P: Floats,
        other_P: Floats,
        first_P: NDArray[np.int64],
        second_P: NDArray[np.int64],
    ) -> Floats:
        """Of a sum of two moderated variances: no more than all seeds of the column together."""
        of_two_P = _satterthwaite(
            [(one_P, self.seed_freedom_M[first_P]), (other_P, self.seed_freedom_M[second_P])]
        )
        return np.where(np.isinf(of_two_P), of_two_P, np.minimum(of_two_P, self.total_freedom))

    def less(self, other: int) -> Differences:
        """(M,) every method less the one at ``other``; NaN at itself."""
        every_M = np.arange(len(self.mean_M))
        differences = self._differences(every_M, np.full(len(every_M), other))
        differences.error_P[other] = differences.seeds_P[other] = np.nan
        return differences

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Differences]:
        """The first and the second method of every pair, and their difference."""
        first_P, second_P = np.triu_indices(len(self.mean_M), 1)
        return first_P, second_P, self._differences(first_P, second_P)

    def half_widths(self) -> tuple[Floats, list[str]]:
        """(M,) half of each method's interval, NaN where nothing is known; and what it covers: "items and seeds", "items", "seeds"."""
        items_M: Floats = np.diagonal(self.items, axis1=1, axis2=2).max(axis=0)
        repeated_M: Floats = np.where(np.isnan(items_M), 0.0, np.diagonal(self.repeated_MM))
        seeds_M: Floats = self.seed_M / self.runs_M
        here_M, there_M = np.maximum(np.nan_to_num(items_M), 0), np.nan_to_num(seeds_M)
        freedom_M = _satterthwaite(
            [
                (here_M, self.freedom),
                (repeated_M, self.repeated_freedom),
                (there_M, self.seed_freedom_M),
            ]
        )
        half_M = _quantile((1 + LEVEL) / 2, freedom_M) * np.sqrt(here_M + repeated_M + there_M)
        covers = []
        for items, seeds in zip(
            np.isfinite(items_M),
            np.isfinite(seeds_M) & np.isfinite(self.seed_freedom_M),
            strict=True,
        ):
            covers.append(
                " and ".join(name for name, there in (("items", items), ("seeds", seeds)) if there)
            )
        return np.where([bool(cover) for cover in covers], half_M, np.nan), covers

    def seeds_to_settle(
        self, first: int, second: int, alpha: float, margin: float = MARGIN
    ) -> int | None:
        """Seeds of each of two methods with which a difference as it is now would in 4 of 5 cases be found, or be found to be
        within the margin; None where more than ``MOST_SEEDS`` or no number of them would do."""
        pair = np.array([first]), np.array([second])
        now = self._differences(*pair)
        one, other = self.seed_M[first], self.seed_M[second]
        rest = float(now.error_P[0]) ** 2 - one / self.runs_M[first] - other / self.runs_M[second]
        if not one + other > 0:
            return None
        distance, freedom = abs(float(now.value_P[0])), float(now.freedom_P[0])

        def is_enough(n: int) -> bool:
            more = sum(
                (n - int(self.runs_M[i])) * bool(self.seed_M[i] > 0) for i in (first, second)
            )
            of_n = max(freedom, freedom + more)
            needed = (quantile_of(1 - alpha / 2, of_n) + quantile_of(POWER, of_n)) * math.sqrt(
                max(rest, 0.0) + (one + other) / n
            )
            return bool(needed <= max(distance, margin - distance))

        # what is needed falls with every seed
        return (
            bisect_left(range(MOST_SEEDS + 1), True, lo=2, key=is_enough)
            if is_enough(MOST_SEEDS)
            else None
        )


Answers = Sequence[tuple[Predicted, Influence]]
"""Of one method: each task of a column, with the same seeds."""


def column(
    answers: Sequence[Answers | None], values: Sequence[Sequence[float]], random: Sequence[bool]
) -> Column:
    """A column of methods that were asked the same items; None: what this method said is not known. ``values`` are the recorded ones.

    Raises ValueError where items differ, and where nothing can be said of other items.
    """
    known = [answer for answer in answers if answer is not None]
    if not known:
        return Column(values, random)
    first = known[0]
    for answer in known[1:]:
        for (a, _), (b, _) in zip(first, answer, strict=True):
            same_items(a, b)
    items = Items([p for p, _ in first], [moved for _, moved in first])
    moved_RN = np.concatenate(
        [
            np.concatenate([moved.moved_SN for _, moved in answer], axis=1) / len(answer)
            for answer in known
        ]
    )
    here_R = np.concatenate(
        [np.full(len(own), answer is not None) for answer, own in zip(answers, values, strict=True)]
    )
    covariance = np.full((2, len(here_R), len(here_R)), np.nan)
    covariance[:, np.outer(here_R, here_R)] = items.covariance(moved_RN).reshape(2, -1)
    repeated = []
    if len(known) == len(answers):
        for by_task in zip(*known, strict=True):
            values_RQ = np.concatenate([moved.value_SR for _, moved in by_task])
            if values_RQ.shape[1] > 1:
                repeated.append(values_RQ / len(first))
    return Column(values, random, covariance, freedom=items.freedom, repeated=repeated)


# --- one method by itself: its mean and the interval of that, with nothing borrowed from others ---


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


def interval_of_method(*cells: Predicted) -> Interval:
    """Of one cell, or of the plain average over several tasks: other items of the same kind, and other seeds where there are at least two.

    Items are drawn within each task, tasks are not; seeds are those that all tasks share. Raises ValueError where there is none, and
    where a value is undefined (one side is constant).
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
    (half,), (covers,) = column([parts], [value_S], [seeds != (None,)]).half_widths()
    mean, sd = float(value_S.mean()), float(value_S.std(ddof=1)) if len(value_S) > 1 else None
    return Interval(
        mean, sd, float(max(-100.0, mean - half)), float(min(100.0, mean + half)), covers
    )


# --- differences: what could be found, verdicts, ranks ---


def detectable(differences: Differences, alpha: float) -> Floats:
    """(P,) true differences that would be found in 4 of 5 cases at this alpha; NaN where nothing moves."""
    error_P, freedom_P = differences.error_P, differences.freedom_P
    return np.where(
        error_P > 0,
        (_quantile(1 - alpha / 2, freedom_P) + _quantile(POWER, freedom_P)) * error_P,
        np.nan,
    )


def verdicts(
    differences: Differences, *, how: str = "holm", margin: float = MARGIN
) -> tuple[list[str | None], Floats, float]:
    """Of every difference that can be judged, all in one family: its verdict, its adjusted p-value, and the alpha of its interval.

    All intervals of a family have one level, at which those that leave zero out are those whose adjusted p-value is below ``ALPHA``:
    a verdict never says another thing than its interval. "equivalent" where that lies within the margin, whether or not it leaves zero
    out, and two one-sided tests agree, which are adjusted over the family by themselves. None where there is nothing to go by.
    """
    p_P = differences.p_P
    known_P, adjusted_P = ~np.isnan(p_P), _adjusted_known(p_P, how)
    own_alpha = critical(p_P[known_P], how)
    value_P, half_P = differences.value_P, differences.half_P(own_alpha)
    apart_P = np.abs(value_P) > half_P
    equal_P = (np.abs(value_P) + half_P < margin) & (
        _adjusted_known(differences.equivalent_p_P(margin), how) < ALPHA
    )
    said = np.select(
        [~known_P, equal_P, apart_P & (value_P > 0), apart_P],
        ["", EQUIVALENT, BETTER, WORSE],
        UNKNOWN,
    )
    return [str(verdict) or None for verdict in said], adjusted_P, own_alpha


def _adjusted_known(p_P: Floats, how: str) -> Floats:
    """As ``adjust_p_values``, of those that are known; NaN where one is not."""
    adjusted_P, known_P = np.full(len(p_P), np.nan), ~np.isnan(p_P)
    adjusted_P[known_P] = adjust_p_values(p_P[known_P], how)
    return adjusted_P


def ranks(column: Column, *, how: str = "holm") -> tuple[list[tuple[int, int]], int]:
    """Of every method, the ranks that it may have: after all that are better than it, before all that are worse; and how many pairs
    were tested. More is better.

    All pairs are one family, so that with "holm" all true ranks lie in their intervals at once in 95 of 100 cases (Mogstad, Romano,
    Shaikh and Wilhelm 2024, Review of Economic Studies 91). Whoever is chosen as the best is chosen by the same data; that is
    allowed for.
    """
    first_P, second_P, differences = column.pairs()
    count, p_P = len(column.mean_M), differences.p_P
    told_P = _adjusted_known(p_P, how) < ALPHA
    better_P, worse_P = (
        np.where(differences.value_P > 0, *sides)
        for sides in ((first_P, second_P), (second_P, first_P))
    )
    below_M, above_M = (
        np.bincount(side_P[told_P], minlength=count).tolist() for side_P in (better_P, worse_P)
    )
    return [(above + 1, count - below) for above, below in zip(above_M, below_M, strict=True)], int(
        (~np.isnan(p_P)).sum()
    )


def _satterthwaite(parts: Sequence[tuple[Floats, Floats | float]]) -> Floats:
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


@lru_cache(maxsize=1 << 14)  # a thousand runs ask for a handful
def quantile_of(probability: float, freedom: float) -> float:
    """Of Student's t; of the normal distribution where there are infinite degrees of freedom."""
    return float(_quantile(probability, np.asarray(freedom)))


def _quantile(probability: float, freedom: Floats) -> Floats:
    from scipy.special import ndtri, stdtrit

    return np.where(
        np.isinf(freedom),
        ndtri(probability),
        stdtrit(np.where(np.isinf(freedom), 1.0, freedom), probability),
    )
