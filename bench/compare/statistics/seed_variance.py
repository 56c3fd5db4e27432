"""The variance over training seeds, borrowed across methods: three seeds of eight methods say more
than three of one.

Each method's variance is drawn towards what all methods of a table have, as far as they are alike:
the empirical Bayes estimate of Smyth 2004 (Linear models and empirical Bayes methods, Statistical
Applications in Genetics and Molecular Biology 3; "limma").

Legend: M methods.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.records.predictions import Floats

LEAST = 1e-5
"""Of the median: smaller variances are raised to it before logarithms are taken, as limma does."""

WIDE = 0.05
"""Level of the F tests, over all methods (Bonferroni). A method keeps its own variance if its seeds
spread significantly more than the others'."""

MOST_BORROWED = 2.0
"""Degrees of freedom that a method borrows at most: what three seeds say themselves. Without this
limit, three seeds that happen to be close together get the spread of the others, and a method that
spreads three to five times as far is called better or worse too often (docs/statistics.md, "How
often a table is wrong").
"""


@dataclass(frozen=True)
class SeedVariances:
    """The variances over seeds that a comparison uses, and what they are made of."""

    variance_M: Floats
    freedom_M: Floats
    keeps_own_M: NDArray[np.bool_]
    """Methods that spread more than the others, and borrow nothing."""
    prior_variance: float
    """What methods borrow; NaN if there is nothing to borrow."""
    prior_freedom: float
    mean: float
    """Of the sample variances, weighted by their degrees of freedom; smaller ones are raised
    towards it."""


def seed_variances(variance_M: Floats, freedom_M: ArrayLike) -> SeedVariances:
    """Return the variances over seeds that a comparison uses, and their degrees of freedom;
    arguments as for ``moderated_variances``.

    Moderated, and raised towards the mean of all. A method with a sample variance that an F test
    finds larger than the pooled variance of the others keeps its own: the others are not like it,
    and it borrows nothing.
    """
    from scipy.special import fdtrc

    freedom_M = np.asarray(freedom_M, dtype=np.float64)
    known_M = freedom_M > 0
    prior_variance, prior_freedom, seed_M, seed_freedom_M = moderated_variances(
        variance_M, freedom_M
    )
    if not known_M.any():
        none_M = np.zeros_like(known_M)
        return SeedVariances(seed_M, seed_freedom_M, none_M, math.nan, 0.0, math.nan)
    mean = float(np.average(variance_M[known_M], weights=freedom_M[known_M]))
    if prior_freedom > 0:
        seed_M = raise_variances(seed_M, freedom_M, prior_freedom, mean)
    others_M = freedom_M.sum() - freedom_M
    squares_M = np.where(known_M, freedom_M * variance_M, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        wide_M = (
            fdtrc(freedom_M, others_M, variance_M / ((squares_M.sum() - squares_M) / others_M))
            < WIDE / known_M.sum()
        ) & (variance_M > seed_M)
    return SeedVariances(
        np.where(wide_M, variance_M, seed_M),
        np.where(wide_M, freedom_M, seed_freedom_M),
        wide_M,
        prior_variance,
        prior_freedom,
        mean,
    )


def moderated_variances(
    variances: ArrayLike, degrees_of_freedom: ArrayLike
) -> tuple[float, float, Floats, Floats]:
    """Return (prior variance, prior degrees of freedom, (M,) posterior variances, (M,) posterior
    degrees of freedom).

    ``variances``: (M,) sample variances of independent groups; one without degrees of freedom (a
    single seed) is ignored and gets the prior's. The prior is fitted to the logarithms by moments
    (Smyth 2004, section 6.2); if they differ by no more than chance, it is the pooled variance. A
    group borrows ``MOST_BORROWED`` degrees of freedom at most, also from a prior that has more, or
    infinitely many. No posterior has more degrees of freedom than all groups together. With fewer
    than two groups to learn from nothing is borrowed: the prior has zero degrees of freedom, and
    with none its variance is NaN.
    """
    variance_M, freedom_M = (
        np.asarray(given, dtype=np.float64) for given in (variances, degrees_of_freedom)
    )
    known_M = freedom_M > 0
    prior_variance, prior_freedom = _prior(variance_M[known_M], freedom_M[known_M])
    prior_freedom = min(prior_freedom, MOST_BORROWED)
    own_M = np.where(known_M, variance_M, prior_variance)
    if prior_freedom == 0:
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
    """Return (M,) moderated variances. Those below ``mean``, the methods' mean variance, are raised
    toward it by the fraction borrowed from the prior.

    With few methods the prior is uncertain, and a variance that is small by chance would cause
    false differences. A method with little own information is raised to the mean; one with much
    keeps its own value, so that a single method that varies much does not hide all differences of a
    table. Fractions are on the log scale.
    """
    share_M = 1 / (1 + np.asarray(freedom_M, dtype=np.float64) / prior_freedom)
    return np.maximum(posterior_M, mean**share_M * posterior_M ** (1 - share_M))


def _prior(variance_M: Floats, freedom_M: Floats) -> tuple[float, float]:
    """Fit a scaled inverse chi-square prior by moments of log variances."""
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
    """Return log variances, corrected so that their expected mean equals the mean of the true ones
    (Smyth 2004, section 6.2). At least one variance must be positive.
    """
    from scipy.special import digamma

    usual = float(np.median(variance_M)) or float(np.average(variance_M, weights=freedom_M))
    return (
        np.log(np.maximum(variance_M, LEAST * usual))
        - digamma(freedom_M / 2)
        + np.log(freedom_M / 2)
    )


def _inverse_trigamma(value: float) -> float:
    """Solve trigamma(x) = value > 0 for x > 0, between the ends that 1 / x < trigamma(x) <
    1 / x + 1 / x^2 gives."""
    from scipy.optimize import brentq
    from scipy.special import polygamma

    ends = 1 / value, (1 + math.sqrt(1 + 4 * value)) / (2 * value)
    return float(brentq(lambda x: float(polygamma(1, x)) - value, *ends, xtol=1e-100, rtol=1e-13))
