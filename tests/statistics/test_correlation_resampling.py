"""Spearman under resampling: scipy on the items written out, a plain loop for items of unequal weight, the protocol's own draws."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from bench.metrics.correlation import spearman
from bench.metrics.cxc import draws_with_replacement, draws_without_replacement, sampled_spearman
from bench.statistics import correlation_resampling, draws
from bench.statistics.cells import Predicted
from bench.statistics.correlation_resampling import Block, Gold, Run
from bench.statistics.resampling import query_weights, resample_all


def pairs(items: int = 41, seeds: int = 2, decimals: int = 1, levels: int = 6, seed: int = 0) -> Predicted:
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, levels, items).astype(float)
    predicted = np.round(gold + 2 * rng.normal(size=(seeds, items)), decimals)
    return Predicted("made up", "spearman", tuple(range(seeds)), predicted, gold)


def drawn_items(p: Predicted, count: int, seed: int) -> list[np.ndarray]:
    units = p.n_units
    columns = np.concatenate(list(draws.counts(p.task, units, count, seed=seed, bytes_per_draw=1)), axis=1)
    return [np.repeat(np.arange(units), column) for column in columns.T]


@pytest.mark.parametrize(("decimals", "levels"), [(9, 1000), (9, 3), (1, 6), (0, 6), (0, 2)])
def test_every_draw_is_scipys_correlation_of_the_items_written_out(decimals: int, levels: int) -> None:
    p = pairs(decimals=decimals, levels=levels)
    (found,) = resample_all([p], draws=70, seed=5)
    for items, values in zip(drawn_items(p, 70, 5), found.value_BS, strict=True):
        expected = [100 * scipy.stats.spearmanr(row[items], p.gold_N[items]).statistic for row in p.prediction_SN]
        assert values == pytest.approx(expected, abs=1e-8)
    assert found.value_SR[:, 0] == pytest.approx([spearman(row, p.gold_N) for row in p.prediction_SN], abs=1e-8)


def test_whole_numbers_and_fractions_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    (whole,) = resample_all([pairs()], draws=130, seed=1)
    monkeypatch.setattr(correlation_resampling, "MOST_IN_INT32", 0)
    (real,) = resample_all([pairs()], draws=130, seed=1)
    assert (whole.value_BS == real.value_BS).all()


@pytest.mark.parametrize("levels", [1, 5])
def test_the_most_items_that_32_bits_hold(levels: int) -> None:
    """Sums of ranks are largest where one gold value has nearly all items."""
    rng = np.random.default_rng(2)
    gold = np.where(
        np.arange(correlation_resampling.MOST_IN_INT32) < 3, 9.0, rng.integers(0, levels, correlation_resampling.MOST_IN_INT32)
    )
    predicted = rng.normal(size=len(gold))
    side = Gold(gold)
    assert side.dtype == np.int32
    value = Block(side, np.ones((len(gold), 1), dtype=np.uint8)).spearman(Run(predicted, side))
    assert value == pytest.approx(100 * scipy.stats.spearmanr(predicted, gold).statistic, abs=1e-8)


def test_draws_do_not_depend_on_memory_on_other_methods_or_on_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = pairs(), pairs(decimals=2)
    together = resample_all([first, second], draws=300, seed=3)
    monkeypatch.setattr(draws, "BYTES", 1)
    again = [resample_all([p], draws=300, seed=3)[0] for p in (pairs(), pairs(decimals=2))]
    fewer = resample_all([pairs()], draws=100, seed=3)[0]
    for one, other in zip(together, again, strict=True):
        assert (one.value_BS == other.value_BS).all()
    assert (fewer.value_BS == together[0].value_BS[:100]).all()
    assert (resample_all([pairs()], draws=100, seed=4)[0].value_BS != fewer.value_BS).any()


def test_counts_are_those_of_drawing_with_replacement() -> None:
    units = 50
    counts = np.concatenate(list(draws.counts("a task", units, 4000, seed=0, bytes_per_draw=1)), axis=1).astype(float)
    assert (counts.sum(axis=0) == units).all()
    assert counts.mean(axis=1) == pytest.approx(np.ones(units), abs=0.1)
    assert counts.var() == pytest.approx(1 - 1 / units, rel=0.02)  # binomial
    share = np.bincount(counts.astype(int).reshape(-1)) / counts.size
    assert share[:5] == pytest.approx(scipy.stats.binom.pmf(np.arange(5), units, 1 / units), abs=0.005)
    other = np.concatenate(list(draws.counts("another", units, 4000, seed=0, bytes_per_draw=1)), axis=1)
    assert abs(np.corrcoef(counts.reshape(-1), other.reshape(-1))[0, 1]) < 0.01


def weighted_by_loops(predicted: np.ndarray, gold: np.ndarray, weight: np.ndarray) -> float:
    ranks = []
    for side in (predicted, gold):
        ranks.append([sum(w for v, w in zip(side, weight, strict=True) if v < one)
                      + sum(w for v, w in zip(side, weight, strict=True) if v == one) / 2 for one in side])  # fmt: skip
    a, b = (np.array(side) - np.average(side, weights=weight) for side in ranks)
    return 100 * float((weight * a * b).sum() / np.sqrt((weight * a * a).sum() * (weight * b * b).sum()))


def captions(images: int, seed: int = 0) -> Predicted:
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(images), rng.integers(1, 6, images))
    gold = np.round(rng.uniform(0, 5, len(query)) + np.repeat(rng.normal(size=images), np.bincount(query)), 1)
    predicted = np.round(gold + rng.normal(size=(1, len(query))) * 2, 1)
    return Predicted("CxC", "spearman-bootstrap", (1,), predicted, gold, query_N=query)


def test_queries_are_drawn_whole_and_weigh_the_same() -> None:
    p = captions(12)
    (found,) = resample_all([p], draws=40, seed=0)
    assert p.query_N is not None
    columns = np.concatenate(list(draws.counts("CxC", 12, 40, seed=0, bytes_per_draw=1)), axis=1)
    for column, value in zip(columns.T, found.value_BS[:, 0], strict=True):
        weight = column[p.query_N] * query_weights(p.query_N)
        assert value == pytest.approx(weighted_by_loops(p.prediction_SN[0], p.gold_N, weight), abs=1e-8)


@pytest.mark.parametrize("protocol", [draws_with_replacement, draws_without_replacement])
def test_the_value_is_what_the_protocols_draws_are_about(protocol) -> None:
    """Draws of half of the queries, one pair of each: their mean is the correlation in which queries weigh the same."""
    p = captions(600)
    (found,) = resample_all([p], draws=1, seed=0)
    sampled = sampled_spearman(p.prediction_SN[0], p.gold_N, protocol(p.query_N, draws=400))
    assert found.value_SR[0, 0] == pytest.approx(sampled.mean(), abs=4 * sampled.std() / 20 + 0.1)


def test_units_are_drawn_together() -> None:
    """Where each item is there three times, as three captions of one image, the spread is that of the items once."""
    one = pairs(items=60, seeds=1)
    three = Predicted(
        "made up", "spearman", (0,), np.tile(one.prediction_SN, 3), np.tile(one.gold_N, 3), unit_N=np.tile(np.arange(60), 3)
    )
    apart = Predicted("made up", "spearman", (0,), three.prediction_SN, three.gold_N)
    found = [r.value_BS.std() for r in resample_all([one, three, apart], draws=500, seed=0)]
    assert found[1] == pytest.approx(found[0], rel=0.02)
    assert found[2] == pytest.approx(found[0] / np.sqrt(3), rel=0.1)


def test_what_cannot_be_resampled_is_refused() -> None:
    constant = Predicted("flat", "spearman", (0,), np.ones((1, 9)), np.arange(9.0))
    with pytest.raises(ValueError, match="flat: one side is constant"):
        resample_all([constant], draws=10, seed=0)
    lonely = Predicted("lonely", "spearman", (0,), np.arange(20.0)[None], np.r_[1.0, np.zeros(19)])
    with pytest.raises(ValueError, match="lonely: 20 items are too few"):
        resample_all([lonely], draws=200, seed=0)
    few = Predicted("few", "spearman", (0,), np.arange(12.0)[None], np.r_[np.ones(4), np.zeros(8)])
    (found,) = resample_all([few], draws=2000, seed=0)  # some draws have one gold value only: left undefined, not 0
    assert 0 < np.isnan(found.value_BS).mean() < 0.05
