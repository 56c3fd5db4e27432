"""Variances over seeds that few methods lend each other: against limma's formula where the prior is known, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import polygamma
from scipy.stats import t as student

from bench.statistics.lent_variance import Lender, lenders


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
    assert float(polygamma(1, unsure / 2)) == pytest.approx(float(polygamma(1, 3)) + (4 / 6) ** 2 * 0.3) and unsure < 6


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
    spread = {task: [(float(np.exp(draw.normal(0, 1.2)) * draw.chisquare(2) / 2), 2) for _ in range(5)] for task in range(40)}
    alike = {task: [(float(draw.chisquare(2) / 2), 2) for _ in range(5)] for task in range(40)}
    far, near = lenders(spread)[0], lenders(alike)[0]
    # the variance of their logarithms, 1.44, is the trigamma of half the prior's degrees of freedom
    assert far.alike == pytest.approx(2.2, abs=1.2) and near.alike > 3 * far.alike


@pytest.mark.slow
@pytest.mark.parametrize(("methods", "seeds", "log_sd"), [(5, 3, 0.0), (5, 3, 0.6), (8, 3, 0.6), (3, 2, 0.0)])
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
            least = min(least, 2 * float(student.sf(off[j] / math.sqrt(variance * (1 + 1 / seeds)), freedom)))
        wrong += least < 0.04 / 8
    assert wrong / rows <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / rows), wrong
