"""Differences between methods, and the distribution that a difference over its standard error
follows.

Legend: P pairs of methods.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.records.predictions import Floats

POWER = 0.8
EQUAL = 0.05
"""Level of each of the two one-sided tests that say two methods are equal."""


@dataclass(frozen=True)
class Differences:
    """One method minus another, for P pairs at once; NaN if it is not known."""

    value_P: Floats
    error_P: Floats
    """Standard errors."""
    freedom_P: Floats

    @property
    def p_P(self) -> Floats:
        """Two-sided p-values; 1 if two methods differ in nothing."""
        with np.errstate(invalid="ignore", divide="ignore"):
            t_P = np.where(self.value_P == 0, 0.0, np.abs(self.value_P) / self.error_P)
        return np.where(np.isnan(self.error_P), np.nan, 2 * student_cdf(-t_P, self.freedom_P))

    @property
    def below_p_P(self) -> Floats:
        """One-sided p-values: small if the first method is below the second."""
        with np.errstate(invalid="ignore", divide="ignore"):
            t_P = np.where(self.value_P == 0, 0.0, self.value_P / self.error_P)
        return np.where(np.isnan(self.error_P), np.nan, student_cdf(t_P, self.freedom_P))

    def select(self, pairs: NDArray[np.intp]) -> Differences:
        """Return the differences of some of the pairs."""
        return Differences(self.value_P[pairs], self.error_P[pairs], self.freedom_P[pairs])

    def half_P(self, alpha: float) -> Floats:
        """Return half of the 1 - alpha interval."""
        return student_quantile(1 - alpha / 2, self.freedom_P) * self.error_P

    def equal_t_P(self) -> Floats:
        """Return the quantile of Student's t that ``equal_within_P`` takes."""
        return student_quantile(1 - EQUAL, self.freedom_P)

    def equal_within_P(self) -> Floats:
        """Return the margin within which two methods are equal: the smallest for which both
        one-sided tests reject that they are further apart (TOST; Schuirmann 1987)."""
        return np.abs(self.value_P) + self.equal_t_P() * self.error_P

    def detectable_P(self, alpha: float) -> Floats:
        """Return the true difference that is found with a power of about 80 % (MDE)."""
        return (
            student_quantile(1 - alpha / 2, self.freedom_P)
            + student_quantile(POWER, self.freedom_P)
        ) * self.error_P


def satterthwaite(parts: Sequence[tuple[Floats, Floats | float]]) -> Floats:
    total_P = sum((part for part, _ in parts), np.zeros(1))
    with np.errstate(invalid="ignore", divide="ignore"):
        uncertain_P = sum(
            (np.where(part > 0, part**2 / freedom, 0.0) for part, freedom in parts), np.zeros(1)
        )
        return np.where(uncertain_P > 0, total_P**2 / uncertain_P, math.inf)


def student_cdf(t: Floats, freedom: Floats) -> Floats:
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
