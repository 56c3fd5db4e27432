"""The standard deviation of a row against the standard library's, bit by bit."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.compare.statistics.spread import sample_sd


@given(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=12))
def test_it_is_that_of_the_standard_library(values: list[float]) -> None:
    assert sample_sd(values) == statistics.stdev(values)


@pytest.mark.parametrize(
    "values",
    [
        (76.1, 76.1, 76.1),
        (5e-324, 0.0),
        (1e300, -1e300, 1.0),
        (0.1, 0.2, 0.30000000000000004),
        (100.0, 0.0),
    ],
)
def test_values_at_the_ends_of_what_a_float_holds(values: tuple[float, ...]) -> None:
    assert sample_sd(values) == statistics.stdev(values)
