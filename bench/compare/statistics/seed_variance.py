"""The variance over training seeds, borrowed across methods: three seeds of eight methods say more than three of one.

Each method's variance is drawn towards what all methods of a table have, as far as they are alike: the empirical Bayes estimate of
Smyth 2004 (Linear models and empirical Bayes methods, Statistical Applications in Genetics and Molecular Biology 3; "limma").

Two questions, two estimates. A table with one column of many methods asks ``moderated_variances``, as limma has them. A row of many
tasks and a handful of methods (``bench reproduce``, the grade "retrained") asks ``lenders``: how alike methods are is learned from all
tasks together, and what a handful leaves unsure of each task's prior is taken off the degrees of freedom. With the first estimate five
methods of three seeds would give eight false verdicts in a hundred such rows, where five are allowed (simulated in the tests).

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

Floats = NDArray[np.float64]
Key = TypeVar("Key")
LEAST = 1e-5
"""Of the median: smaller variances are raised to it before logarithms are taken, as limma does."""

# --- one column of many methods ---


def moderated_variances(
    variances: ArrayLike, degrees_of_freedom: ArrayLike
) -> tuple[float, float, Floats, Floats]:
    """(prior variance, prior degrees of freedom, (M,) posterior variances, (M,) posterior degrees of freedom).

    ``variances``: (M,) sample variances of independent groups; one without degrees of freedom (a single seed) is not looked at, and
    gets the prior's. The prior is fitted to the logarithms by moments (Smyth 2004, section 6.2). Where they differ by no more than
    chance, its degrees of freedom are infinite, and the posterior is the pooled variance. No posterior has more degrees of
    freedom than all groups together. With one group to learn from nothing is borrowed: the prior has zero degrees of freedom.

    Raises ValueError where shapes differ, for negative or infinite values, and where no group has a degree of freedom.
    """
    variance_M, freedom_M = (
        np.asarray(given, dtype=np.float64) for given in (variances, degrees_of_freedom)
    )
    if variance_M.ndim != 1 or variance_M.shape != freedom_M.shape:
        raise ValueError(
            f"variances of shape {variance_M.shape} and degrees of freedom of shape {freedom_M.shape}"
        )
    known_M = freedom_M > 0
    if (freedom_M < 0).any() or not np.isfinite(freedom_M).all() or not known_M.any():
        raise ValueError(
            "degrees of freedom are finite, none is negative, and one at least is above zero"
        )
    if not (np.isfinite(variance_M[known_M]) & (variance_M[known_M] >= 0)).all():
        raise ValueError("a variance is finite and not negative")
    prior_variance, prior_freedom = _prior(variance_M[known_M], freedom_M[known_M])
    own_M = np.where(known_M, variance_M, prior_variance)
    if math.isinf(prior_freedom):
        posterior_M = np.full(len(own_M), prior_variance)
    elif prior_freedom == 0:
        posterior_M = own_M
    else:
        posterior_M = (freedom_M * own_M + prior_freedom * prior_variance) / (
            freedom_M + prior_freedom
        )
    return (
        prior_variance,
        prior_freedom,
        posterior_M,
        np.minimum(freedom_M + prior_freedom, freedom_M.sum()),
    )


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
    from scipy.special import polygamma

    pooled = float(np.average(variance_M, weights=freedom_M))
    if len(variance_M) < 2:
        return pooled, 0.0
    if pooled == 0:
        return 0.0, math.inf
    excess = float(_logs(variance_M, freedom_M).var(ddof=1) - polygamma(1, freedom_M / 2).mean())
    if excess <= 0:
        return pooled, math.inf
    prior_freedom = 2 * _inverse_trigamma(excess)
    return _prior_variance(variance_M, freedom_M, prior_freedom), prior_freedom


def _prior_variance(variance_M: Floats, freedom_M: Floats, prior_freedom: float) -> float:
    """That of the prior with so many degrees of freedom, by the mean of log variances."""
    from scipy.special import digamma

    half = prior_freedom / 2
    return math.exp(
        float(_logs(variance_M, freedom_M).mean()) + float(digamma(half)) - math.log(half)
    )


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
    """x > 0 with trigamma(x) = value > 0, by Newton's method on 1 / trigamma, which is convex (Smyth 2004, appendix)."""
    from scipy.special import polygamma

    if value > 1e7:
        return 1 / math.sqrt(value)
    if value < 1e-6:
        return 1 / value
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if -step / x < 1e-10:
            break
    return x


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
