"""Variances borrowed across methods, and equivalence: against other implementations, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from bench.compare.statistics.column import two_one_sided
from bench.compare.statistics.seed_variance import Lender, lenders, moderated_variances


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
    assert (prior, prior_df) == (
        pytest.approx(expected, rel=1e-6),
        pytest.approx(expected_df, rel=1e-6),
    )
    np.testing.assert_allclose(
        posterior, (df * variances + expected_df * expected) / (df + expected_df), rtol=1e-6
    )
    np.testing.assert_allclose(posterior_df, np.minimum(df + expected_df, df.sum()), rtol=1e-6)


def test_prior_is_found_again() -> None:
    """20,000 groups drawn from a known prior: s^2 | sigma^2 chi-square, 1/sigma^2 ~ chi-square(d0) / (d0 s0^2)."""
    rng = np.random.default_rng(0)
    true = 4.0 * 7.0 / rng.chisquare(7, 20_000)
    prior, prior_df, _, _ = moderated_variances(
        true * rng.chisquare(2, 20_000) / 2, np.full(20_000, 2)
    )
    assert prior == pytest.approx(4.0, rel=0.03)
    assert prior_df == pytest.approx(7.0, rel=0.1)


def test_variances_no_more_different_than_chance_are_pooled() -> None:
    prior, prior_df, posterior, posterior_df = moderated_variances([1.0, 1.1, 0.9], [2, 4, 2])
    assert math.isinf(prior_df)
    assert prior == pytest.approx((2 * 1.0 + 4 * 1.1 + 2 * 0.9) / 8)
    np.testing.assert_allclose(posterior, prior)
    np.testing.assert_allclose(posterior_df, 8)


def test_a_single_seed_gets_the_others_variance() -> None:
    prior, prior_df, posterior, posterior_df = moderated_variances(
        [0.02, 30.0, 1.0, math.nan], [2, 2, 2, 0]
    )
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
    [
        ([1.0], [1.0, 2.0]),
        ([-1.0, 1.0], [2, 2]),
        ([1.0, 2.0], [0, 0]),
        ([math.inf, 1], [2, 2]),
        ([1.0, 1], [-1, 2]),
    ],
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


LIMMA = (  # variances, degrees of freedom; prior variance and its degrees of freedom, posterior variances
    (
        [0.21, 1.3, 0.055, 0.62, 4.1, 0.33, 0.9, 0.018],
        [2] * 8,
        0.3672539758919288,
        2.2087861870100918,
        [
            0.29252745432270577,
            0.8104915188143413,
            0.21887201395921632,
            0.4873579739938715,
            2.14104140925157,
            0.3495510210557299,
            0.6204129630375943,
            0.20128974754986723,
        ],
    ),
    (
        [0.21, 1.3, 0.055, 0.62, 4.1, 0.33, 0.9, 0.018],
        [2, 4, 2, 9, 2, 1, 4, 2],
        0.3654922134548512,
        2.3890033112122975,
        [
            0.29463684952399,
            0.9505648709725875,
            0.22400577954779208,
            0.566613419263204,
            2.067248863765343,
            0.3550194548896921,
            0.7001345734656036,
            0.20714545961799002,
        ],
    ),
    (
        [1e-9, 3.0, 2.0, 0.5, 0.7, 9.0],
        [3] * 6,
        0.011834989679055118,
        0.42539145556080227,  # one is raised before its logarithm
        [
            0.0014697609167989485,
            2.6289066871079187,
            1.753094378085608,
            0.439375914552142,
            0.6145383763566039,
            7.883780541241783,
        ],
    ),
    ([1.0, 1.1, 0.9, 1.05, 0.95], [4] * 5, 1.0, math.inf, [1.0] * 5),
)


@pytest.mark.parametrize(("variances", "freedom", "prior", "prior_freedom", "posterior"), LIMMA)
def test_the_numbers_of_limma(
    variances: list[float],
    freedom: list[int],
    prior: float,
    prior_freedom: float,
    posterior: list[float],
) -> None:
    """What ``squeezeVar`` of InMoose 0.9.1, limma in Python, returned for the same variances."""
    found = moderated_variances(variances, freedom)
    assert found[:2] == pytest.approx((prior, prior_freedom), rel=1e-12)
    assert found[2].tolist() == pytest.approx(posterior, rel=1e-12)


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


# --- a row of many tasks and a handful of methods ---


def test_methods_that_are_alike_are_pooled() -> None:
    """Three equal variances differ by less than chance: the pooled variance, with all degrees of freedom."""
    (found,) = lenders({"task": [(2.0, 2), (2.0, 2), (2.0, 4)]}).values()
    assert found.posterior(2.0, 2) == (2.0, 8.0) and found.posterior(0.0, 0) == (2.0, 8.0)
    (uneven,) = lenders({"task": [(1.0, 2), (2.0, 4)]}).values()
    assert uneven.posterior(1.0, 2) == pytest.approx(((1 * 2 + 2 * 4) / 6, 6.0))


def test_the_posterior_is_that_of_limma_for_a_known_prior() -> None:
    """Smyth 2004, equation for the posterior variance; its degrees of freedom where the prior is sure of itself."""
    lender = Lender(prior=3.0, alike=4.0, unsure=0.0, total=100.0)
    variance, freedom = lender.posterior(1.0, 2)
    assert variance == pytest.approx((2 * 1.0 + 4 * 3.0) / 6) and freedom == pytest.approx(6.0)
    unsure = Lender(prior=3.0, alike=4.0, unsure=0.3, total=100.0).posterior(1.0, 2)[1]
    assert (
        float(special.polygamma(1, unsure / 2))
        == pytest.approx(float(special.polygamma(1, 3)) + (4 / 6) ** 2 * 0.3)
        and unsure < 6
    )


def test_who_has_nothing_to_learn_from_learns_nothing() -> None:
    (alone,) = lenders({"task": [(2.0, 2)]}).values()
    assert alone.posterior(2.0, 2) == (2.0, 2) and alone.posterior(0.0, 0) == (0.0, 0.0)
    (none,) = lenders({"task": [(0.0, 0), (0.0, 0)]}).values()
    assert none.posterior(0.0, 0) == (0.0, 0.0)
    (zero,) = lenders({"task": [(0.0, 2), (0.0, 2)]}).values()
    assert zero.posterior(0.0, 2) == (0.0, 2)
    with pytest.raises(ValueError, match="not negative"):
        lenders({"task": [(-1.0, 2)]})


def test_how_alike_methods_are_is_learned_from_all_tasks() -> None:
    draw = np.random.default_rng(3)
    spread = {
        task: [(float(np.exp(draw.normal(0, 1.2)) * draw.chisquare(2) / 2), 2) for _ in range(5)]
        for task in range(40)
    }
    alike = {task: [(float(draw.chisquare(2) / 2), 2) for _ in range(5)] for task in range(40)}
    far, near = lenders(spread)[0], lenders(alike)[0]
    # the variance of their logarithms, 1.44, is the trigamma of half the prior's degrees of freedom
    assert far.alike == pytest.approx(2.2, abs=1.2) and near.alike > 3 * far.alike


@pytest.mark.slow
@pytest.mark.parametrize(
    ("methods", "seeds", "log_sd"), [(5, 3, 0.0), (5, 3, 0.6), (8, 3, 0.6), (3, 2, 0.0)]
)
def test_false_alarms_in_rows_of_eight_tasks(methods: int, seeds: int, log_sd: float) -> None:
    """One printed run beside the mean of the seeds: at most one row in twenty has a p-value below 0.04 / 8."""
    draw, wrong, rows = np.random.default_rng(5), 0, 400
    for _ in range(rows):
        sd = np.exp(draw.normal(0, log_sd, (methods, 8)))
        values = draw.normal(0, 1, (methods, 8, seeds)) * sd[:, :, None]
        own = values.var(axis=2, ddof=1)
        lend = lenders({j: [(float(one), seeds - 1) for one in own[:, j]] for j in range(8)})
        off = np.abs(values[0].mean(axis=1) - draw.normal(0, sd[0]))
        least = 1.0
        for j in range(8):
            variance, freedom = lend[j].posterior(float(own[0, j]), seeds - 1)
            least = min(
                least,
                2 * float(stats.t.sf(off[j] / math.sqrt(variance * (1 + 1 / seeds)), freedom)),
            )
        wrong += least < 0.04 / 8
    assert wrong / rows <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / rows), wrong
