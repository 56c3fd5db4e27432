"""Correlation and cosine against scipy, stored reference vectors and numbers made by hand."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from bench.score.metrics.correlation import (
    correlate_groups,
    mean_ranks,
    paired_cosine,
    pearson,
    spearman,
)


@pytest.fixture(scope="module")
def vectors(shared):
    return json.loads((shared / "reference" / "vectors_a.json").read_text())


@pytest.mark.parametrize("n, levels", [(2, 2), (51, 4), (1379, 200)])
def test_spearman_with_many_ties_agrees_with_scipy(n, levels):
    rng = np.random.default_rng(n)
    for _ in range(20):
        a, b = rng.integers(levels, size=n) / 3, rng.integers(levels, size=n) * 0.4
        if np.ptp(a) == 0 or np.ptp(b) == 0:
            continue
        assert spearman(a, b) == pytest.approx(
            100 * scipy.stats.spearmanr(a, b).statistic, abs=1e-10
        )
        assert pearson(a, b) == pytest.approx(100 * scipy.stats.pearsonr(a, b).statistic, abs=1e-10)
        assert mean_ranks(a).tolist() == scipy.stats.rankdata(a).tolist()


@pytest.mark.parametrize("name, correlation", [("spearman", spearman), ("pearson", pearson)])
def test_all_mean_and_wmean_of_the_reference_vector(vectors, name, correlation):
    case = vectors["sts_aggregation"]
    cosine = []
    gold = []
    groups = []
    for subset, values in case["subsets"].items():
        cosine += values["cosine"]
        gold += values["gold"]
        groups += [subset] * len(values["gold"])
    found = correlate_groups(cosine, gold, groups, correlation)
    assert found.all == pytest.approx(100 * case[name]["all"], abs=1e-9)
    assert found.mean == pytest.approx(100 * case[name]["mean"], abs=1e-9)
    assert found.wmean == pytest.approx(100 * case[name]["wmean"], abs=1e-9)
    if name == "spearman":
        assert found.each == pytest.approx(
            {key: 100 * value for key, value in case["spearman_each"].items()}, abs=1e-9
        )


@pytest.mark.parametrize(
    "a, b",
    [
        ([1, 2, 3], [0.1, 0.1, 0.1]),
        ([1], [1]),
        ([1, math.nan], [1, 2]),
        ([1, 2], [1, 2, 3]),
    ],
)
def test_undefined_is_an_error(a, b):
    for correlation in (spearman, pearson):
        with pytest.raises(ValueError):
            correlation(a, b)


@given(
    st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), min_size=2, max_size=60),
    st.randoms(),
)
def test_laws_of_spearman(rows, random):
    a, b = np.array(rows, dtype=float).T
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return
    value = spearman(a, b)
    assert -100 <= value <= 100
    assert spearman(b, a) == pytest.approx(value, abs=1e-9)  # symmetric
    assert spearman(np.exp(a / 5), b) == pytest.approx(value, abs=1e-9)  # only ranks count
    assert spearman(-a, b) == pytest.approx(-value, abs=1e-9)
    order = list(range(len(a)))
    random.shuffle(order)
    assert spearman(a[order], b[order]) == pytest.approx(value, abs=1e-9)


def test_cosine_agrees_with_a_plain_loop():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(17, 5)).astype(np.float32), rng.normal(size=(17, 5)).astype(np.float32)
    want = [
        math.fsum(x * y for x, y in zip(p, q, strict=True))
        / math.sqrt(math.fsum(x * x for x in p) * math.fsum(y * y for y in q))
        for p, q in zip(a.astype(float).tolist(), b.astype(float).tolist(), strict=True)
    ]
    assert paired_cosine(a, b) == pytest.approx(want, abs=1e-14)
    assert paired_cosine(a, b).dtype == np.float64


def test_cosine_refuses_what_has_none():
    with pytest.raises(ValueError, match="NaN"):
        paired_cosine(np.array([[1.0, math.nan]]), np.array([[1.0, 2.0]]))
    with pytest.raises(ValueError, match="shape"):
        paired_cosine(np.ones((2, 3)), np.ones((3, 3)))
