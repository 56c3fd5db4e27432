"""The variance over seeds, borrowed across methods on several tasks at once.

As ``bench.statistics.seed_variance``, for few methods: how alike methods are (the prior's degrees of freedom) is a matter of the
whole table, so it is learned from all tasks together, and what a handful of methods leaves unsure of each task's own prior is taken
off the degrees of freedom. Otherwise five methods of three seeds give eight false verdicts in a hundred where five are allowed.

Legend: M methods.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

Key = TypeVar("Key")
LEAST = 1e-4
"""Of the median: smaller variances are raised to it before logarithms are taken."""


@dataclass(frozen=True)
class Lender:
    """What the methods of a table say together of the variance over seeds on one task."""

    prior: float  # variance
    alike: float  # its degrees of freedom: infinite where the methods' variances differ by chance alone, 0 where nothing is lent
    unsure: float  # variance of the logarithm of ``prior``
    total: float  # degrees of freedom of all methods together

    def posterior(self, variance: float, freedom: float) -> tuple[float, float]:
        """(variance, degrees of freedom) of one of these methods, whose own seeds say ``variance``; (0, 0) where nobody knows anything."""
        from scipy.special import polygamma

        if self.alike == 0:
            return (variance, freedom) if freedom else (0.0, 0.0)
        if math.isinf(self.alike) or self.prior == 0:
            return self.prior, self.total
        share = self.alike / (freedom + self.alike)
        found = (freedom * variance + self.alike * self.prior) / (freedom + self.alike)
        left = 2 * _inverse_trigamma(float(polygamma(1, (freedom + self.alike) / 2)) + share**2 * self.unsure)
        return found, min(self.total, left)


def lenders(samples: Mapping[Key, Sequence[tuple[float, int]]]) -> dict[Key, Lender]:
    """From task -> (variance over seeds, its degrees of freedom) of each method; one with a single seed has none, and is not looked at.

    Raises ValueError for a variance that is negative.
    """
    known = {key: [one for one in methods if one[1] > 0] for key, methods in samples.items()}
    if any(variance < 0 for methods in known.values() for variance, _ in methods):
        raise ValueError("a variance is not negative")
    alike = _prior_freedom(list(known.values()))
    return {key: _lender(methods, alike) for key, methods in known.items()}


def _logs(known: Sequence[tuple[float, int]]) -> list[float]:
    """Logarithms whose mean is that of the true variances, in expectation (Smyth 2004, section 6.2)."""
    from statistics import median

    from scipy.special import digamma

    usual = median(one for one, _ in known) or max(one for one, _ in known)
    return [math.log(max(one, LEAST * usual)) - float(digamma(df / 2)) + math.log(df / 2) for one, df in known] if usual else []


def _prior_freedom(tasks: Sequence[Sequence[tuple[float, int]]]) -> float:
    """Of the scaled inverse chi-square that the methods' variances follow around each task's own, at the careful end of what they say;
    infinite: they are all alike."""
    from scipy.special import polygamma

    squares, expected, count = 0.0, 0.0, 0
    for known in tasks:
        logs = _logs(known) if len(known) > 1 else []
        if logs:
            mean = math.fsum(logs) / len(logs)
            squares += math.fsum((one - mean) ** 2 for one in logs)
            expected += math.fsum(float(polygamma(1, df / 2)) for _, df in known) * (len(logs) - 1) / len(logs)
            count += len(logs) - 1
    if not count:
        return 0.0
    excess = (squares - expected) / count + squares / count * math.sqrt(
        2 / count
    )  # a standard error more: too alike is the wrong side
    return 2 * _inverse_trigamma(excess) if excess > 1e-6 else math.inf


def _lender(known: Sequence[tuple[float, int]], alike: float) -> Lender:
    from scipy.special import digamma, polygamma

    total = float(sum(df for _, df in known))
    if len(known) < 2 or alike == 0:
        return Lender(0.0, 0.0, 0.0, total)
    pooled = math.fsum(one * df for one, df in known) / total
    logs = _logs(known)
    if math.isinf(alike) or not logs:
        return Lender(pooled, alike, 0.0, total)
    prior = math.exp(math.fsum(logs) / len(logs) + float(digamma(alike / 2)) - math.log(alike / 2))
    unsure = math.fsum(float(polygamma(1, df / 2)) + float(polygamma(1, alike / 2)) for _, df in known) / len(known) ** 2
    return Lender(prior, alike, unsure, total)


def _inverse_trigamma(value: float) -> float:
    """x > 0 with trigamma(x) = value > 0."""
    from scipy.optimize import brentq
    from scipy.special import polygamma

    return float(brentq(lambda x: float(polygamma(1, x)) - value, 1e-6, 1e7))
