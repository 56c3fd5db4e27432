"""Two one-sided tests: is a difference smaller than what matters?"""

from __future__ import annotations

import math


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
