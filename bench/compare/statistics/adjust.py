"""p-values of many comparisons, adjusted for their number.

``holm`` holds the chance of even one false verdict among all cells at alpha (Holm 1979); ``bh`` holds the expected share of
false ones among the verdicts given (Benjamini and Hochberg 1995); ``none`` adjusts nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.compare.statistics.table import CORRECTIONS


def adjusted(p_values: ArrayLike | Sequence[float], how: str = "holm") -> NDArray[np.float64]:
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
    found_M = np.empty_like(p_M)
    found_M[order_M] = np.minimum(sorted_M, 1.0)
    return found_M


def critical(p_values: ArrayLike | Sequence[float], how: str = "holm", alpha: float = 0.05) -> float:
    """The value below which exactly those p-values lie whose adjusted ones are below ``alpha``: 1 less the level at which intervals
    leave zero out where, and only where, a test says so.

    Holm's test of m, of which it finds r, is the same as finding all below alpha / (m - r) (r below m), for every one that it finds
    lies below that, and none of the others. Benjamini and Hochberg's is alpha r / m, and alpha / m where nothing is found.
    """
    p_M = np.asarray(p_values, dtype=np.float64).reshape(-1)
    if how == "none" or not len(p_M):
        return alpha
    found = int((adjusted(p_M, how) < alpha).sum())
    return alpha / max(1, len(p_M) - found) if how == "holm" else alpha * max(1, found) / len(p_M)


# --- two one-sided tests: is a difference smaller than what matters? ---


def two_one_sided(difference: float, standard_error: float, degrees_of_freedom: float, margin: float) -> float:
    """p-value of "the true difference is ``margin`` or more, in one direction or the other": small where two things are as good as equal.

    The larger of two one-sided p-values of Student's t (Schuirmann 1987); below 0.05 exactly where the 90 % interval lies
    within the margin. Infinite ``degrees_of_freedom``: the normal distribution. Raises ValueError for a margin that is not above
    zero, a negative standard error, and degrees of freedom that are not above zero.
    """
    from scipy.special import ndtr, stdtr

    if not margin > 0 or not standard_error >= 0 or not degrees_of_freedom > 0:
        raise ValueError("a margin and degrees of freedom are above zero, a standard error is not below")
    nearest = margin - abs(difference)
    if standard_error == 0:
        return 0.0 if nearest > 0 else 1.0
    t = -nearest / standard_error
    return float(ndtr(t) if math.isinf(degrees_of_freedom) else stdtr(degrees_of_freedom, t))
