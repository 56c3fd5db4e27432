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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.compare.statistics.influence import Influence, Items
from bench.compare.statistics.seed_variance import seed_variances
from bench.runs.predictions import Floats, Predicted, same_items

LEVEL = 0.95
POWER = 0.8


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

    def half_P(self, alpha: float) -> Floats:
        """Half of the 1 - alpha interval."""
        return _quantile(1 - alpha / 2, self.freedom_P) * self.error_P

    def detectable_P(self, alpha: float) -> Floats:
        """The true difference that is found with a power of about 80 % (MDE)."""
        needed_P = _quantile(1 - alpha / 2, self.freedom_P) + _quantile(POWER, self.freedom_P)
        return needed_P * self.error_P


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
        if covariance is not None:  # (2, M, M) of the means over the runs of each method
            sums = np.add.reduceat(np.add.reduceat(covariance, self._starts, 1), self._starts, 2)
            self.items = sums / np.multiply.outer(self.runs_M, self.runs_M)
        self.repeated_MM, self.repeated_freedom = np.zeros_like(self.items[0]), math.inf
        if repeated:
            for values_RQ in repeated:
                by_method = np.add.reduceat(values_RQ, self._starts, axis=0) / self.runs_M[:, None]
                self.repeated_MM += np.atleast_2d(np.cov(by_method)) / values_RQ.shape[1]
            self.repeated_freedom = sum(values_RQ.shape[1] - 1 for values_RQ in repeated)

    def _moderate(
        self, spread_M: Floats, random_M: NDArray[np.bool_], freedom_M: NDArray[np.int64]
    ) -> None:
        self.seed_M = np.where(random_M, np.nan, 0.0)
        """Variance over seeds; NaN: not known."""
        self.seed_freedom_M = np.where(random_M, 0.0, math.inf)
        self.total_freedom = float(freedom_M.sum())
        if self.total_freedom > 0:
            seed_M, seed_freedom_M = seed_variances(spread_M, freedom_M)
            known_M = random_M & (seed_freedom_M > 0)
            self.seed_M[known_M] = seed_M[known_M]
            self.seed_freedom_M[known_M] = seed_freedom_M[known_M]

    def less(self, other: int) -> Differences:
        """(M,) every method minus the one at ``other``; NaN at itself."""

        def variance(matrix: Floats) -> Floats:
            """(..., M) of the difference, from covariances (..., M, M)."""
            own = np.diagonal(matrix, axis1=-2, axis2=-1)
            both = own + own[..., other, None] - 2 * matrix[..., other]
            return np.maximum(both, 0)

        items_M, repeated_M = variance(self.items).max(axis=0), variance(self.repeated_MM)
        one_M = self.seed_M / self.runs_M
        other_M = np.full_like(one_M, one_M[other])
        # of a sum of two moderated variances: no more than all seeds of the column together
        of_two_M = _satterthwaite(
            [(one_M, self.seed_freedom_M), (other_M, self.seed_freedom_M[other])]
        )
        seeds_freedom_M = np.where(
            np.isinf(of_two_M), of_two_M, np.minimum(of_two_M, self.total_freedom)
        )
        error_M = np.sqrt(items_M + repeated_M + one_M + other_M)
        error_M[other] = np.nan
        parts: list[tuple[Floats, Floats | float]] = [
            (items_M, self.freedom),
            (repeated_M, self.repeated_freedom),
            (one_M + other_M, seeds_freedom_M),
        ]
        return Differences(self.mean_M - self.mean_M[other], error_M, _satterthwaite(parts))

    def half_widths(self) -> tuple[Floats, Floats, list[str]]:
        """(M,) half of each method's interval and its standard error, NaN where nothing is known; what they cover: "items and seeds",
        "items", "seeds"."""
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
        return _quantile((1 + LEVEL) / 2, freedom_M) * error_M, error_M, covers


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


def _quantile(probability: float, freedom: Floats) -> Floats:
    from scipy.special import ndtri, stdtrit

    return np.where(
        np.isinf(freedom),
        ndtri(probability),
        stdtrit(np.where(np.isinf(freedom), 1.0, freedom), probability),
    )
