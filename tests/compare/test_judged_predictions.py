"""The rule on correlations of predictions: shared sentences, intervals and p values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.stats
from one_method import influence, interval_of_method

from bench.compare.rule import apply_rule
from bench.compare.statistics.column import Column, column
from bench.records.predictions import Predicted


def sentences(
    rng: np.random.Generator, methods: int, pairs: int = 250, texts: int = 180
) -> list[Predicted]:
    """Make correlations of equal methods.

    A method's error on a pair is the sum of its errors on both sentences, and a rest.
    """
    ids = rng.integers(0, texts, (pairs, 2))
    gold = rng.normal(size=texts)[ids].sum(axis=1) / 2**0.5
    cells = []
    for _ in range(methods):
        wrong = rng.normal(size=texts)[ids].sum(axis=1) / 2**0.5 + 0.5 * rng.normal(size=pairs)
        shared: Any = {"shared_NK": ids, "universe": "texts"}
        said = (gold + wrong)[None]
        cells.append(Predicted("a", "spearman", (None,), said, gold, **shared))
    return cells


def of_cells(cells: list[Predicted]) -> Column:
    answers = [[(p, influence(p))] for p in cells]
    return column(
        answers, [one[0][1].value_SR[0].tolist() for one in answers], [False] * len(cells)
    )


@pytest.mark.slow
def test_shared_sentences_are_paid_for() -> None:
    """With the pairs as if they shared nothing, the same tables are wrong far more often."""
    rng = np.random.default_rng(6)
    tables = 400
    wrong = {True: 0, False: 0}
    for _ in range(tables):
        cells = sentences(rng, 6)
        for plain in wrong:
            of = of_cells([replace(p, shared_NK=None) if plain else p for p in cells])
            said = apply_rule(of, np.ones(6, dtype=bool), 5)
            wrong[plain] += bool({"better", "worse"} & set(said.verdicts))
    assert wrong[False] / tables <= 0.05 + 2 * (0.05 * 0.95 / tables) ** 0.5
    assert wrong[True] / tables > 0.15


@pytest.mark.matrix(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("items", [100, 400])
def test_intervals_of_correlations_hold_the_true_value(items: int) -> None:
    """Normal values: Spearman's correlation is 6/pi asin(r/2)."""
    rng = np.random.default_rng(7)
    true = 600 / np.pi * np.arcsin(0.5 / 2**0.5)
    held = 0
    for _ in range(1000):
        gold = rng.normal(size=items)
        said = (gold + rng.normal(size=items))[None]
        found = interval_of_method(Predicted("a", "spearman", (1,), said, gold))
        held += found.low <= true <= found.high
    assert 0.93 <= held / 1000 <= 0.97


@pytest.mark.slow
def test_p_values_of_correlations_are_uniform_where_nothing_differs() -> None:
    rng, p = np.random.default_rng(8), []
    for _ in range(1000):
        gold, common = rng.normal(size=(2, 250))
        said = [(gold + common + rng.normal(size=250))[None] for _ in range(2)]
        p.append(
            of_cells([Predicted("a", "spearman", (None,), one, gold) for one in said])
            .minus(1)
            .p_P[0]
        )
    assert scipy.stats.kstest(p, "uniform").pvalue > 0.001
