"""What intervals and p-values promise, by simulation: made-up methods whose true value is known, over many made-up data sets.

A data set has N new items and S new seeds. All errors of a method are normal: one part per item, common to its seeds (``common``),
one per item and seed, and the seed's own noise level (``spread``). For normal values Spearman's correlation is 6/pi asin(r/2).
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.stats

from bench.statistics.cells import Predicted
from bench.statistics.intervals import interval
from bench.statistics.paired import compare

pytestmark = pytest.mark.slow

DATA_SETS = 1000


def noise_levels(rng: np.random.Generator, count: int, spread: float) -> np.ndarray:
    return np.exp(spread * rng.normal(size=count))


def ranked(rng: np.random.Generator, gold: np.ndarray, seeds: int, spread: float = 0.0, common: float = 0.6) -> Predicted:
    errors = np.sqrt(common) * rng.normal(size=len(gold)) + np.sqrt(1 - common) * rng.normal(size=(seeds, len(gold)))
    return Predicted(
        "simulated", "spearman", tuple(range(seeds)), gold + noise_levels(rng, seeds, spread)[:, None] * errors, gold
    )


def true_value(spread: float) -> float:
    """Mean over all seeds that there could be."""
    noise = noise_levels(np.random.default_rng(99), 400_000, spread)
    return float(np.mean(600 / np.pi * np.arcsin(1 / np.sqrt(1 + noise**2) / 2)))


@pytest.mark.parametrize(("seeds", "items", "spread"), [(1, 250, 0.0), (5, 120, 0.05), (5, 60, 0.3)])
def test_an_interval_holds_the_true_value_95_times_in_100(seeds: int, items: int, spread: float) -> None:
    """Where items alone vary, where both do, and where it is mostly the seeds: all that a data set can show, 93 to 97 in 100."""
    rng, true, held = np.random.default_rng(1), true_value(spread), 0
    for k in range(DATA_SETS):
        found = interval(ranked(rng, rng.normal(size=items), seeds, spread), draws=500, seed=k)
        held += found.low <= true <= found.high
    assert 0.93 <= held / DATA_SETS <= 0.97


def p_values(two) -> np.ndarray:
    """``two(rng)``: A and B, equally good."""
    rng = np.random.default_rng(2)
    return np.array([compare(*two(rng), draws=500, seed=k).p for k in range(DATA_SETS)])


def both(rng: np.random.Generator, items: int, **more) -> tuple[Predicted, Predicted]:
    gold = rng.normal(size=items)
    return ranked(rng, gold, **more), ranked(rng, gold, **more)


@pytest.mark.parametrize(
    "two",
    [partial(both, items=150, seeds=1), partial(both, items=60, seeds=4, spread=0.2, common=0.0)],
    ids=["one seed: items vary", "four seeds of the same method: items and seeds"],
)
def test_p_values_are_uniform_where_nothing_differs(two) -> None:
    p = p_values(two)
    assert scipy.stats.kstest(p, "uniform").pvalue > 0.001
    assert [np.mean(p < alpha) for alpha in (0.01, 0.05, 0.2)] == pytest.approx([0.01, 0.05, 0.2], abs=0.02)


@pytest.mark.parametrize(
    "two",
    [partial(both, items=60, seeds=2, spread=0.2), partial(both, items=60, seeds=3, spread=0.1)],
    ids=["two seeds", "three seeds"],
)
def test_few_seeds_and_items_that_matter_as_much_err_on_the_safe_side(two) -> None:
    p = p_values(two)
    assert np.mean(p < 0.05) <= 0.05 and np.mean(p < 0.001) <= 0.003


def answered(rng: np.random.Generator, right: list[float], items: int, few_shot: bool = False) -> list[Predicted]:
    """One run per share of right answers, none knows of the other."""
    gold, shape = np.ones(items, dtype=int), (1, items, 1) if few_shot else (1, items)
    return [Predicted("simulated", "accuracy", (None,), (rng.random(shape) < share).astype(int), gold) for share in right]


def test_mcnemar_is_exact_so_its_false_verdicts_are_no_more_than_promised() -> None:
    p = p_values(lambda rng: answered(rng, [0.8, 0.8], 200))
    assert np.mean(p < 0.05) <= 0.05 + 0.015 and np.mean(p < 0.2) <= 0.2 + 0.025


def test_a_difference_that_is_called_detectable_is_found_four_times_in_five() -> None:
    rng, many, items = np.random.default_rng(3), 5000, 400
    said = [compare(*answered(rng, [0.8, 0.8], many, few_shot=True), draws=2000).detectable or 0.0 for _ in range(5)]
    true = np.mean(said) * np.sqrt(many / items) / 100  # what 5,000 items can show, for 400
    found = [
        compare(*answered(rng, [0.8 + true / 2, 0.8 - true / 2], items, few_shot=True), draws=500).p < 0.05
        for _ in range(DATA_SETS)
    ]
    assert 0.75 <= np.mean(found) <= 0.85
