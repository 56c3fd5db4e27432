"""An interval that excludes zero is not written as if it touched zero."""

from __future__ import annotations

import pytest

from bench.compare.formatting import with_interval


@pytest.mark.parametrize(
    ("difference", "low", "high", "text"),
    [
        # whitening on CxC in version 5
        (1.14, 0.0036, 2.28, "+1.14 [+0.0036, +2.28]"),
        (-0.61, -1.22, -0.0007, "-0.61 [-1.22, -0.0007]"),
        (0.55, -0.55, 1.65, "+0.55 [-0.55, +1.65]"),
        (0.0, 0.0, 0.0, "0.00 [0.00, 0.00]"),
    ],
)
def test_ends_of_an_interval_keep_their_sign(
    difference: float, low: float, high: float, text: str
) -> None:
    assert with_interval(difference, low, high) == text
