"""Intervals: against scipy's bootstrap, against textbook formulas for one source of variation at a
time, and laws.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from one_method import Interval, interval_of_method

from bench.records.predictions import Predicted

RNG = (
    "rng" if tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 15) else "random_state"
)  # scipy calls this a generator


def ranked(
    items: int = 120,
    seeds: int = 1,
    task: str = "STS-B",
    seed: int = 0,
    spread: float = 0.0,
    **more,
) -> Predicted:
    rng = np.random.default_rng(seed)
    gold = np.round(rng.uniform(0, 5, items), 1)
    noise = 1.5 * np.exp(spread * rng.normal(size=(seeds, 1)))
    predicted = gold + noise * (rng.normal(size=items) + rng.normal(size=(seeds, items)))
    return Predicted(
        task, "spearman", more.pop("seeds_", tuple(range(1, seeds + 1))), predicted, gold, **more
    )


def answered(
    shares: list[float], items: int = 2000, seed: int = 0, seeds: tuple[int, ...] | None = None
) -> Predicted:
    """One share of right answers per seed; which items are right is a matter of chance."""
    rng = np.random.default_rng(seed)
    right = np.stack([rng.permutation(items) < round(share * items) for share in shares])
    return Predicted(
        "CR",
        "accuracy",
        seeds or tuple(range(len(shares))),
        right.astype(int),
        np.ones(items, dtype=int),
    )


def half(found: Interval) -> float:
    return (found.high - found.low) / 2


def students(values: list[float]) -> tuple[float, float]:
    """scipy's interval for the mean of the values of several seeds."""
    found = scipy.stats.t.interval(
        0.95, len(values) - 1, loc=np.mean(values), scale=scipy.stats.sem(values)
    )
    return float(found[0]), float(found[1])


def test_one_seed_is_scipys_bootstrap() -> None:
    p = ranked()
    found = interval_of_method(p)
    theirs = scipy.stats.bootstrap(
        (p.prediction_SN[0], p.gold_N),
        lambda a, b: 100 * scipy.stats.spearmanr(a, b).statistic,
        paired=True,
        vectorized=False,
        n_resamples=1500,
        method="percentile",
        **{RNG: np.random.default_rng(0)},
    )
    assert half(found) == pytest.approx(1.96 * theirs.standard_error, rel=0.08)
    assert found.low == pytest.approx(theirs.confidence_interval.low, abs=0.12 * half(found))
    assert found.high == pytest.approx(theirs.confidence_interval.high, abs=0.12 * half(found))
    assert found.mean == pytest.approx(
        100 * scipy.stats.spearmanr(p.prediction_SN[0], p.gold_N).statistic
    )
    assert (found.sd, found.covers) == (None, "items")


@pytest.mark.parametrize("shares", [[0.7, 0.9], [0.75, 0.8, 0.88], [0.71, 0.78, 0.8, 0.84, 0.9]])
def test_with_seeds_far_apart_it_is_students_interval(
    shares: list[float],
) -> None:
    p = answered(shares, items=5000)
    found = interval_of_method(p)
    low, high = students([100 * share for share in shares])
    assert half(found) == pytest.approx(min(100.0, (high - low) / 2), rel=0.05) or high > 100
    assert found.low == pytest.approx(low, abs=0.025 * (high - low))
    assert found.sd == pytest.approx(np.std([100 * share for share in shares], ddof=1))
    assert found.covers == "items and seeds"


def test_seeds_that_say_the_same_leave_the_variation_of_the_items() -> None:
    """Every seed answers the same items: five equal seeds are not five times the items."""
    one = answered([0.8])
    five = Predicted(
        "CR", "accuracy", tuple(range(5)), np.repeat(one.prediction_SN, 5, axis=0), one.gold_N
    )
    a, b = interval_of_method(one), interval_of_method(five)
    assert (b.low, b.high) == pytest.approx((a.low, a.high), abs=1e-6)
    assert b.covers == "items and seeds" and b.sd == 0


def test_k_means_seeds_vary_too() -> None:
    """One run of ten clusterings with accuracies far apart gets Student's interval over the ten."""
    items, shares = 5000, np.linspace(0.6, 0.9, 10)
    gold = np.arange(items) % 2
    rng = np.random.default_rng(0)
    clusters = np.stack(
        [np.where(rng.permutation(items) < share * items, gold, 1 - gold) for share in shares],
        axis=1,
    )
    found = interval_of_method(
        Predicted("Tweet", "clustering-accuracy", (1,), clusters[None], gold)
    )
    assert (found.low, found.high) == pytest.approx(students((100 * shares).tolist()), abs=0.5)
    assert found.covers == "items"  # there is one training seed


def test_an_average_draws_the_items_of_each_task() -> None:
    """Items of different tasks are independent: variances of the parts add up."""
    cells = [ranked(items=n, task=f"STS{n}", seed=n) for n in (80, 150, 300)]
    parts = [interval_of_method(p) for p in cells]
    found = interval_of_method(*cells)
    assert found.mean == pytest.approx(np.mean([part.mean for part in parts]))
    assert half(found) == pytest.approx(
        np.sqrt(sum(half(part) ** 2 for part in parts)) / 3, rel=0.08
    )
