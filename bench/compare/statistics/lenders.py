"""Statistics that only ``bench reproduce`` and the grades use: adjusted p-values, two one-sided tests, variances lent by several tasks.

It goes with its last user. ``bench compare`` uses none of it.

Legend: M methods.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.compare.statistics.column import _quantile, _student
from bench.compare.statistics.seed_variance import _inverse_trigamma, _logs, _prior_variance
from bench.runs.predicted import Floats

Key = TypeVar("Key")


@lru_cache(maxsize=1 << 14)
def quantile_of(probability: float, freedom: float) -> float:
    """Of Student's t; of the normal distribution where there are infinite degrees of freedom."""
    return float(_quantile(probability, np.asarray(freedom)))


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
    if how not in ("holm", "bh", "none"):
        raise ValueError(f"'{how}' is not one of holm, bh, none")
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


# --- a row of many tasks and a handful of methods ---


@dataclass(frozen=True)
class Lender:
    """What the methods of a table say together of the variance over seeds on one task."""

    prior: float  # variance
    alike: float  # its degrees of freedom: infinite where the methods' variances differ by chance alone, 0 where nothing is lent
    unsure: float  # variance of the logarithm of ``prior``
    total: float  # degrees of freedom of all methods together

    def posterior(self, variance: float, freedom: float) -> tuple[float, float]:
        """(variance, degrees of freedom) of one of these methods, whose own seeds say ``variance``; (0, 0) where nobody knows anything."""
        if self.alike == 0:
            return (variance, freedom) if freedom else (0.0, 0.0)
        if math.isinf(self.alike) or self.prior == 0:
            return self.prior, self.total
        weighted = (freedom * variance + self.alike * self.prior) / (freedom + self.alike)
        return weighted, min(self.total, _left(freedom, self.alike, self.unsure))


@lru_cache(maxsize=1 << 12)  # a thousand runs ask for a handful
def _left(freedom: float, alike: float, unsure: float) -> float:
    """Degrees of freedom of a variance that is put together of ``freedom`` own ones and a borrowed one."""
    from scipy.special import polygamma

    share = alike / (freedom + alike)
    return 2 * _inverse_trigamma(float(polygamma(1, (freedom + alike) / 2)) + share**2 * unsure)


def lenders(samples: Mapping[Key, Sequence[tuple[float, int]]]) -> dict[Key, Lender]:
    """From task -> (variance over seeds, its degrees of freedom) of each method; one with a single seed has none, and is not looked at.

    Raises ValueError for a variance that is negative.
    """
    known = {
        key: np.array([method for method in methods if method[1] > 0]).reshape(-1, 2).T
        for key, methods in samples.items()
    }
    if any((variance_M < 0).any() for variance_M, _ in known.values()):
        raise ValueError("a variance is not negative")
    alike = _common_freedom(list(known.values()))
    return {
        key: _lender(variance_M, freedom_M, alike) for key, (variance_M, freedom_M) in known.items()
    }


def _common_freedom(tasks: Sequence[Floats]) -> float:
    """Of the scaled inverse chi-square that the methods' variances follow around each task's own, at the careful end of what they say;
    infinite: they are all alike. ``tasks``: (2, M) variances and degrees of freedom of each."""
    from scipy.special import polygamma

    squares, expected, count = 0.0, 0.0, 0
    for variance_M, freedom_M in tasks:
        if len(variance_M) > 1 and variance_M.any():
            log_M = _logs(variance_M, freedom_M)
            squares += float(((log_M - log_M.mean()) ** 2).sum())
            expected += float(polygamma(1, freedom_M / 2).mean()) * (len(log_M) - 1)
            count += len(log_M) - 1
    if not count:
        return 0.0
    careful = (
        squares / count * math.sqrt(2 / count)
    )  # a standard error more: too alike is the wrong side
    excess = (squares - expected) / count + careful
    return 2 * _inverse_trigamma(excess) if excess > 1e-6 else math.inf


def _lender(variance_M: Floats, freedom_M: Floats, alike: float) -> Lender:
    from scipy.special import polygamma

    total = float(freedom_M.sum())
    if len(variance_M) < 2 or alike == 0:
        return Lender(0.0, 0.0, 0.0, total)
    if math.isinf(alike) or not variance_M.any():
        return Lender(float(np.average(variance_M, weights=freedom_M)), alike, 0.0, total)
    unsure = (
        float((polygamma(1, freedom_M / 2) + polygamma(1, alike / 2)).sum()) / len(variance_M) ** 2
    )
    return Lender(_prior_variance(variance_M, freedom_M, alike), alike, unsure, total)
