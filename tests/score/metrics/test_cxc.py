"""Sampled Spearman: reference vectors, numpy's own generator called one by one, scipy's
correlation.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.score.metrics.sampled import (
    draws_with_replacement,
    draws_without_replacement,
    rank_gold,
    sampled_spearman,
)


@pytest.mark.slow
def test_the_authors_draws_and_their_mean(reference):
    known = reference["cxc_bootstrap_promcse"]
    query, gold, cosine = (
        np.array([pair[key] for pair in known["pairs"]]) for key in ("query", "gold", "cosine")
    )
    drawn = list(draws_with_replacement(query))
    assert drawn[0].tolist() == known["first_draw_pair_indices"]
    assert query[drawn[0]].tolist() == known["first_draw_queries"]
    values = sampled_spearman(cosine, gold, rank_gold(gold, drawn))
    assert len(values) == 1000
    assert values[:3] == pytest.approx(100 * np.array(known["first_3_spearman"]), abs=1e-10)
    assert values.mean() == pytest.approx(100 * known["mean_1000"], abs=1e-10)
    assert values.std() == pytest.approx(100 * known["std_1000_ddof_0"], abs=1e-10)


def test_draws_without_replacement_take_half_of_the_queries_and_one_pair_of_each():
    query = np.repeat(np.arange(40), np.arange(40) % 3 + 1)
    counts = np.zeros(len(query))
    for drawn in draws_without_replacement(query, draws=3000):
        assert len(drawn) == len(set(query[drawn].tolist())) == 20
        counts[drawn] += 1
    expected = (
        3000 / 2 / np.bincount(query)[query]
    )  # every query in half of the draws, its pairs equally often
    assert counts == pytest.approx(expected, abs=6 * np.sqrt(3000 / 4))
    one, other = (
        np.stack(list(draws_without_replacement(query, draws=5, seed=seed))) for seed in (123, 124)
    )
    assert (one == np.stack(list(draws_without_replacement(query, draws=5)))).all() and (
        one != other
    ).any()


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(-3, 3), st.floats(-1, 1, width=16)), min_size=3, max_size=40),
    st.randoms(),
)
def test_correlations_are_scipys_ties_and_repeated_rows_included(pairs, random):
    gold, predicted = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    drawn = [np.array([random.randrange(len(pairs)) for _ in range(12)]) for _ in range(5)]
    drawn = [rows for rows in drawn if np.ptp(gold[rows]) and np.ptp(predicted[rows])]
    want = [100 * scipy.stats.spearmanr(predicted[rows], gold[rows]).statistic for rows in drawn]
    assert sampled_spearman(predicted, gold, rank_gold(gold, drawn)) == pytest.approx(
        want, abs=1e-9
    )
