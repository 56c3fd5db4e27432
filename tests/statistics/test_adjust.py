"""Adjusted p-values: statsmodels, the definitions written out, and laws."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from bench.compare.statistics.column import adjust_p_values
from bench.compare.statistics.table import CORRECTIONS

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=40)


@settings(deadline=None, max_examples=100)
@given(P_VALUES)
def test_statsmodels_agrees(p_values: list[float]) -> None:
    with mock.patch("gc.collect"):  # it would look at all objects of the test run
        for ours, theirs in (("holm", "holm"), ("bh", "fdr_bh")):
            assert adjust_p_values(p_values, ours) == pytest.approx(
                multipletests(p_values, method=theirs)[1], abs=1e-12
            )


@settings(deadline=None, max_examples=100)
@given(P_VALUES, st.sampled_from([0.01, 0.05, 0.3]))
def test_the_step_procedures_as_they_are_defined(p_values: list[float], alpha: float) -> None:
    """Holm: go up from the least while p <= alpha / what is left. Benjamini-Hochberg: the largest k with p_k <= alpha k / m."""
    order, m = np.argsort(p_values, kind="stable"), len(p_values)
    near = [
        abs(p * (m - k) - alpha) < 1e-9 or abs(p * m / (k + 1) - alpha) < 1e-9
        for k, p in enumerate(np.sort(p_values))
    ]
    if any(near):
        return  # decided by rounding
    holm = np.zeros(m, dtype=bool)
    for left, i in zip(range(m, 0, -1), order, strict=True):
        if p_values[i] > alpha / left:
            break
        holm[i] = True
    last = max((k for k in range(1, m + 1) if p_values[order[k - 1]] <= alpha * k / m), default=0)
    bh = np.zeros(m, dtype=bool)
    bh[order[:last]] = True
    assert (adjust_p_values(p_values, "holm") <= alpha).tolist() == holm.tolist()
    assert (adjust_p_values(p_values, "bh") <= alpha).tolist() == bh.tolist()


@settings(deadline=None, max_examples=50)
@given(P_VALUES)
def test_none_is_below_bh_is_below_holm(p_values: list[float]) -> None:
    none, bh, holm = (adjust_p_values(p_values, how) for how in ("none", "bh", "holm"))
    assert none.tolist() == p_values
    assert (none <= bh + 1e-15).all() and (bh <= holm + 1e-15).all() and (holm <= 1).all()
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(holm[order]) >= 0).all() and (np.diff(bh[order]) >= 0).all()


def test_every_choice_has_a_name_and_nothing_else_is_taken() -> None:
    assert all(len(adjust_p_values([], how)) == 0 for how in CORRECTIONS)
    with pytest.raises(ValueError, match="'bonferroni' is not one of holm, bh, none"):
        adjust_p_values([0.1], "bonferroni")
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="between 0 and 1"):
            adjust_p_values([wrong])
