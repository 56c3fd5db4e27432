"""Variances borrowed across methods, and equivalence, against other implementations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from bench.statistics.equivalence import two_one_sided
from bench.statistics.seed_variance import moderated_variances


def by_moments(variances: np.ndarray, df: np.ndarray) -> tuple[float, float]:
    """Smyth 2004, section 6.2, as printed: e_g = log s_g^2 - psi(d_g/2) + log(d_g/2); trigamma solved by bisection."""
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
    assert (prior, prior_df) == (pytest.approx(expected, rel=1e-6), pytest.approx(expected_df, rel=1e-6))
    np.testing.assert_allclose(posterior, (df * variances + expected_df * expected) / (df + expected_df), rtol=1e-6)
    np.testing.assert_allclose(posterior_df, np.minimum(df + expected_df, df.sum()), rtol=1e-6)


def test_prior_is_found_again() -> None:
    """20,000 groups drawn from a known prior: s^2 | sigma^2 chi-square, 1/sigma^2 ~ chi-square(d0) / (d0 s0^2)."""
    rng = np.random.default_rng(0)
    true = 4.0 * 7.0 / rng.chisquare(7, 20_000)
    prior, prior_df, _, _ = moderated_variances(true * rng.chisquare(2, 20_000) / 2, np.full(20_000, 2))
    assert prior == pytest.approx(4.0, rel=0.03)
    assert prior_df == pytest.approx(7.0, rel=0.1)


def test_variances_no_more_different_than_chance_are_pooled() -> None:
    prior, prior_df, posterior, posterior_df = moderated_variances([1.0, 1.1, 0.9], [2, 4, 2])
    assert math.isinf(prior_df)
    assert prior == pytest.approx((2 * 1.0 + 4 * 1.1 + 2 * 0.9) / 8)
    np.testing.assert_allclose(posterior, prior)
    np.testing.assert_allclose(posterior_df, 8)


def test_a_single_seed_gets_the_others_variance() -> None:
    prior, prior_df, posterior, posterior_df = moderated_variances([0.02, 30.0, 1.0, math.nan], [2, 2, 2, 0])
    assert 0 < prior_df < math.inf
    assert posterior[3] == prior
    assert posterior_df[3] == pytest.approx(min(prior_df, 6))


def test_one_group_borrows_from_nobody() -> None:
    assert moderated_variances([2.0], [2])[1] == 0
    _, _, posterior, df = moderated_variances([2.0, 99.0], [2, 0])
    np.testing.assert_allclose(posterior, [2.0, 2.0])
    np.testing.assert_allclose(df, [2, 0 + 0])


def test_zero_variances() -> None:
    prior, prior_df, posterior, _ = moderated_variances([0.0, 0.0], [2, 2])
    assert prior == 0
    assert math.isinf(prior_df)
    assert (posterior == 0).all()
    _, _, posterior, _ = moderated_variances([0.0, 1.0, 2.0, 1.5], [2, 2, 2, 2])
    assert np.isfinite(posterior).all()
    assert 0 < posterior[0] < posterior[2]


@pytest.mark.parametrize(
    ("variances", "df"),
    [([1.0], [1.0, 2.0]), ([-1.0, 1.0], [2, 2]), ([1.0, 2.0], [0, 0]), ([math.inf, 1], [2, 2]), ([1.0, 1], [-1, 2])],
)
def test_what_is_no_variance_is_refused(variances: list[float], df: list[float]) -> None:
    with pytest.raises(ValueError, match=r"varianc|degrees"):
        moderated_variances(variances, df)


def test_equivalence_is_that_of_statsmodels() -> None:
    weightstats = pytest.importorskip("statsmodels.stats.weightstats")
    sample = np.random.default_rng(5).normal(0.2, 0.6, size=9)
    error = sample.std(ddof=1) / 3
    expected, _, _ = weightstats.DescrStatsW(sample).ttost_mean(-0.5, 0.5)
    assert two_one_sided(sample.mean(), error, 8, 0.5) == pytest.approx(expected, rel=1e-9)


def test_equivalence_is_where_the_90_percent_interval_lies_within_the_margin() -> None:
    for difference in (-0.4, 0.1, 0.3, 0.6):
        for error in (0.05, 0.1, 0.3):
            half = stats.t.ppf(0.95, 7) * error
            inside = bool(difference - half > -0.5 and difference + half < 0.5)
            assert (two_one_sided(difference, error, 7, 0.5) < 0.05) is inside
    assert two_one_sided(0.49, 0.0, math.inf, 0.5) == 0
    assert two_one_sided(0.5, 0.0, math.inf, 0.5) == 1
    with pytest.raises(ValueError, match="margin"):
        two_one_sided(0.1, 0.1, 7, 0)
