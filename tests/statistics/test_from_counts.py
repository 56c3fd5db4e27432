"""Standard errors from a value and a number of items, against resampling of items, which knows nothing of the formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from bench.statistics.from_counts import half_width, standard_error


@pytest.mark.parametrize(("n", "noise"), [(300, 0.3), (800, 0.8), (500, 2.0)])
def test_a_rank_correlation(n: int, noise: float) -> None:
    rng = np.random.default_rng(n)
    values = []
    for _ in range(600):  # other items of the same kind, drawn anew each time
        gold = rng.normal(size=n)
        values.append(100 * spearmanr(gold, gold + noise * rng.normal(size=n)).statistic)
    found = standard_error("spearman", float(np.mean(values)), n)
    assert found == pytest.approx(np.std(values), rel=0.15)


@pytest.mark.parametrize(("n", "share"), [(200, 0.6), (1000, 0.93)])
def test_an_accuracy(n: int, share: float) -> None:
    values = 100 * np.random.default_rng(n).binomial(n, share, size=20_000) / n
    assert standard_error("accuracy", 100 * share, n) == pytest.approx(np.std(values), rel=0.03)


def test_the_interval_of_an_average_holds_it_95_times_in_100() -> None:
    rng = np.random.default_rng(5)
    shares, counts = np.array([0.6, 0.8, 0.9]), np.array([300, 500, 400])
    held = 0
    for _ in range(2000):
        values = 100 * rng.binomial(counts, shares) / counts
        errors = [standard_error("accuracy", value, n) for value, n in zip(values, counts.tolist(), strict=True)]
        held += abs(values.mean() - 100 * shares.mean()) <= half_width([error for error in errors if error is not None])
    assert 0.93 < held / 2000 < 0.97


def test_what_nothing_is_known_of() -> None:
    assert standard_error("uniformity", -2.0, 1000) is None
    assert standard_error("spearman", 70.0, 3) is None and standard_error("spearman", 170.0, 300) is None
    assert standard_error("accuracy", 70.0, 0) is None and standard_error("accuracy", 101.0, 10) is None
    assert standard_error("spearman", 100.0, 10) == 0
    with pytest.raises(ValueError, match="undefined"):
        half_width([])
    assert half_width([1.0]) == pytest.approx(1.96, abs=0.001) and math.isclose(
        half_width([1.0, 1.0]), half_width([1.0]) / math.sqrt(2)
    )
