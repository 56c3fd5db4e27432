"""Variances borrowed across methods: against other implementations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from bench.compare.statistics.seed_variance import (
    MOST_BORROWED,
    moderated_variances,
    raise_variances,
    seed_variances,
)


def by_moments(variances: np.ndarray, df: np.ndarray) -> tuple[float, float]:
    """Smyth 2004, section 6.2, as printed: e_g = log s_g^2 - psi(d_g/2) + log(d_g/2); trigamma
    solved by bisection.
    """
    e = np.log(variances) - special.psi(df / 2) + np.log(df / 2)
    right = np.mean((e - e.mean()) ** 2 * len(e) / (len(e) - 1) - special.polygamma(1, df / 2))
    d0 = optimize.brentq(lambda d: special.polygamma(1, d / 2) - right, 1e-8, 1e8)
    return math.exp(e.mean() + special.psi(d0 / 2) - math.log(d0 / 2)), d0


@pytest.mark.parametrize("df", [np.full(12, 2.0), np.array([2, 2, 4, 4, 1, 3, 9, 9, 2, 2, 2, 4.0])])
def test_prior_is_that_of_the_printed_equations(df: np.ndarray) -> None:
    rng = np.random.default_rng(3)
    variances = np.exp(rng.normal(scale=1.5, size=12)) * rng.chisquare(df) / df
    prior, prior_df, posterior, posterior_df = moderated_variances(variances, df)
    expected, expected_df = by_moments(variances, df)
    expected_df = min(expected_df, 2.0)
    assert (prior, prior_df) == (
        pytest.approx(expected, rel=1e-6),
        pytest.approx(expected_df, rel=1e-6),
    )
    np.testing.assert_allclose(
        posterior, (df * variances + expected_df * expected) / (df + expected_df), rtol=1e-6
    )
    np.testing.assert_allclose(posterior_df, np.minimum(df + expected_df, df.sum()), rtol=1e-6)


def test_a_single_seed_gets_the_others_variance() -> None:
    prior, prior_df, posterior, posterior_df = moderated_variances(
        [0.02, 30.0, 1.0, math.nan], [2, 2, 2, 0]
    )
    assert 0 < prior_df < math.inf
    assert posterior[3] == prior
    assert posterior_df[3] == pytest.approx(min(prior_df, 6))


def test_zero_variances() -> None:
    prior, prior_df, posterior, _ = moderated_variances([0.0, 0.0], [2, 2])
    assert prior == 0
    assert prior_df == MOST_BORROWED
    assert (posterior == 0).all()
    _, _, posterior, _ = moderated_variances([0.0, 1.0, 2.0, 1.5], [2, 2, 2, 2])
    assert np.isfinite(posterior).all()
    assert 0 < posterior[0] < posterior[2]


EIGHT = [0.21, 1.3, 0.055, 0.62, 4.1, 0.33, 0.9, 0.018]
LIMMA: list[tuple[list[float], list[int], float, float]] = [
    (EIGHT, [2] * 8, 0.3672539758919288, 2.2087861870100918),
    (EIGHT, [2, 4, 2, 9, 2, 1, 4, 2], 0.3654922134548512, 2.3890033112122975),
    # one is raised before its logarithm
    ([1e-9, 3.0, 2.0, 0.5, 0.7, 9.0], [3] * 6, 0.011834989679055118, 0.42539145556080227),
    ([1.0, 1.1, 0.9, 1.05, 0.95], [4] * 5, 1.0, math.inf),
]


@pytest.mark.parametrize(("variances", "freedom", "prior", "prior_freedom"), LIMMA)
def test_the_numbers_of_limma(
    variances: list[float], freedom: list[int], prior: float, prior_freedom: float
) -> None:
    """Prior variance and its degrees of freedom of ``squeezeVar`` of InMoose 0.9.1, limma in
    Python, for the same variances; of the degrees of freedom two at most are borrowed, of
    infinitely many too.
    """
    found = moderated_variances(variances, freedom)
    borrowed = min(prior_freedom, 2.0)
    assert found[:2] == pytest.approx((prior, borrowed), rel=1e-12)
    d = np.array(freedom)
    np.testing.assert_allclose(found[3], np.minimum(d + borrowed, d.sum()), rtol=1e-12)
    share = borrowed / (d + borrowed)
    expected = share * prior + (1 - share) * np.array(variances)
    np.testing.assert_allclose(found[2], expected, rtol=1e-12)


def test_a_row_that_spreads_more_than_the_others_keeps_its_own_variance() -> None:
    """An F test over all rows, at 0.05 together; rows that it does not find borrow as before."""
    own, freedom = np.array([0.3, 0.5, 0.4, 0.2, 25.0]), np.full(5, 2.0)
    rest = own[:4].mean()
    assert stats.f.sf(25.0 / rest, 2, 8) < 0.05 / 5
    used = seed_variances(own, freedom)
    found, df = used.variance_M, used.freedom_M
    assert (found[4], df[4]) == (25.0, 2.0) and (df[:4] > 2).all()
    _, prior_df, posterior, _ = moderated_variances(own, freedom)
    raised = raise_variances(posterior, freedom, prior_df, float(own.mean()))
    np.testing.assert_allclose(found[:4], raised[:4])
    less = np.array([0.3, 0.5, 0.4, 0.2, 2.0])
    assert (
        stats.f.sf(2.0 / rest, 2, 8) > 0.05 / 5
        and seed_variances(less, freedom).variance_M[4] < 2.0
    )


def test_nobody_has_two_seeds() -> None:
    used = seed_variances(np.array([0.3, 0.4]), np.array([0.0, 0.0]))
    found, freedom = used.variance_M, used.freedom_M
    assert np.isnan(found).all() and freedom.tolist() == [0.0, 0.0]
