"""Influences against the values they must sum to, against items drawn again in a loop, and against
sums written out by hand.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from one_method import influence
from scipy.optimize import linear_sum_assignment

from bench.compare.statistics.items import Items
from bench.records.predictions import Predicted
from bench.score.influences import AT_ONCE, influences
from bench.score.metrics.metric import ACCURACY, SPEARMAN, SPEARMAN_BOOTSTRAP


def correlated(
    rng: np.random.Generator, n: int, ties: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    gold = rng.normal(size=n)
    said = gold + rng.normal(size=n)
    return (np.round(said, ties), np.round(gold, ties)) if ties is not None else (said, gold)


@pytest.mark.parametrize("ties", [None, 1, 0])
def test_a_correlation_is_scipys_and_its_influence_what_a_little_weight_changes(
    ties: int | None,
) -> None:
    rng = np.random.default_rng(1)
    said, gold = correlated(rng, 60, ties)
    found = influence(Predicted("a", "spearman", (1,), said[None], gold))
    assert found.value_SR[0, 0] == pytest.approx(100 * scipy.stats.spearmanr(said, gold).statistic)
    assert found.moved_SN.sum() == pytest.approx(0, abs=1e-9)
    many = 400  # every item 400 times, one of them once more: the weights 1/60 and a little more
    for item in (0, 17, 59):
        times = np.full(60, many)
        times[item] += 1
        moved = (
            100 * scipy.stats.spearmanr(np.repeat(said, times), np.repeat(gold, times)).statistic
        )
        assert (moved - found.value_SR[0, 0]) * many == pytest.approx(
            found.moved_SN[0, item], rel=0.01, abs=2e-3
        )


def test_queries_weigh_the_same() -> None:
    rng = np.random.default_rng(2)
    said, gold = correlated(rng, 40)
    query = np.repeat(np.arange(10), 4)
    query[:3] = 9  # sizes 1, 4, ..., 7
    found = influence(Predicted("c", "spearman-bootstrap", (1,), said[None], gold, query_N=query))
    sizes = np.bincount(query)
    times = (420 // sizes)[query]
    assert found.value_SR[0, 0] == pytest.approx(
        100 * scipy.stats.spearmanr(np.repeat(said, times), np.repeat(gold, times)).statistic
    )
    assert found.moved_SN.sum() == pytest.approx(0, abs=1e-9)


def test_one_side_that_is_constant_has_no_correlation() -> None:
    with pytest.raises(ValueError, match="undefined, not zero"):
        influence(Predicted("a", "spearman", (1,), np.zeros((1, 5)), np.arange(5.0)))


def test_many_methods_at_once_are_each_by_itself_to_the_last_digit() -> None:
    """Methods of several seeds and none, ranks as integers, one that is constant, and more than one
    call takes.
    """
    rng = np.random.default_rng(4)
    items = AT_ONCE // 20
    gold = np.round(rng.uniform(0, 5, items), 1)
    said = [gold + rng.normal(size=(seeds, items)) for seeds in (3, 5, 1, 5, 2, 5, 5)]
    said[1] = np.round(said[1])
    said[3] = np.argsort(np.argsort(said[3], axis=1), axis=1)
    said[5][2] = 0.5
    methods = [Predicted("a", "spearman", tuple(range(len(own))), own, gold.copy()) for own in said]
    together = influences(methods, SPEARMAN)
    assert sum(own.size for own in said) > AT_ONCE, "a single call would show nothing"
    for i, (method, found) in enumerate(zip(methods, together, strict=True)):
        if i == 5:
            assert isinstance(found, ValueError) and "undefined, not zero" in str(found)
            continue
        assert not isinstance(found, ValueError)
        alone = SPEARMAN.move(method)
        np.testing.assert_array_equal(found.value_SR, alone.value_SR, strict=True)
        np.testing.assert_array_equal(found.moved_SN, alone.moved_SN, strict=True)
        np.testing.assert_array_equal(found.weight_N, alone.weight_N, strict=True)


def test_many_sampled_correlations_at_once_are_each_by_itself() -> None:
    """Each has the weights of its own queries.

    Predictions of other dimensions are no correlation.
    """
    rng = np.random.default_rng(5)
    gold, query = np.round(rng.uniform(0, 5, 200), 1), rng.integers(0, 30, 200)
    said = [rng.normal(size=(seeds, 200)) for seeds in (2, 1, 3)]
    said.insert(1, rng.normal(size=(2, 200, 4)))
    methods = [
        Predicted("a", "spearman-bootstrap", tuple(range(len(own))), own, gold, query_N=query)
        for own in said
    ]
    found = influences(methods, SPEARMAN_BOOTSTRAP)
    assert isinstance(found.pop(1), ValueError)
    del methods[1]
    for method, together in zip(methods, found, strict=True):
        alone = SPEARMAN_BOOTSTRAP.move(method)
        assert not isinstance(together, ValueError)
        np.testing.assert_array_equal(together.moved_SN, alone.moved_SN, strict=True)
        np.testing.assert_array_equal(together.weight_N, alone.weight_N, strict=True)
        np.testing.assert_array_equal(together.value_SR, alone.value_SR, strict=True)


def test_accuracies_and_correlations_are_told_apart() -> None:
    gold = np.array([0, 1, 1, 0])
    right = Predicted("t", "accuracy", (1,), gold[None], gold)
    found = influences([right, right], ACCURACY)
    assert [one.value_SR.item() for one in found] == [100.0, 100.0]  # type: ignore[union-attr]
    assert influences([], ACCURACY) == []


def test_accuracy_by_folds_clusters_and_few_examples() -> None:
    rng = np.random.default_rng(3)
    gold = rng.integers(0, 3, 90)
    said = np.where(rng.random((2, 90)) < 0.7, gold, (gold + 1) % 3)
    fold = np.repeat([0, 1, 2], [20, 30, 40])
    found = influence(Predicted("t", "accuracy", (1, 2), said, gold, fold_N=fold))
    by_hand = [
        100 * np.mean([(said[s] == gold)[fold == k].mean() for k in range(3)]) for s in range(2)
    ]
    np.testing.assert_allclose(found.value_SR[:, 0], by_hand)
    few = np.where(rng.random((1, 90, 4)) < 0.5, said[:1, :, None], -1)
    found = influence(Predicted("t", "accuracy", (1,), few, gold))
    np.testing.assert_allclose(
        found.value_SR[0],
        [100 * (few[0, :, r] == gold)[few[0, :, r] >= 0].mean() for r in range(4)],
    )
    clusters = np.stack([(gold + 1) % 3, rng.integers(0, 3, 90)], axis=1)[None]
    found = influence(Predicted("k", "clustering-accuracy", (1,), clusters, gold))
    assert found.value_SR[0, 0] == 100
    table = np.array(
        [[np.sum((clusters[0, :, 1] == a) & (gold == b)) for b in range(3)] for a in range(3)]
    )
    assert found.value_SR[0, 1] == pytest.approx(
        100 * table[linear_sum_assignment(table, maximize=True)].sum() / 90
    )


def errors(cells: list[Predicted]) -> np.ndarray:
    """Standard error of each run's average over the tasks."""
    found = [influence(p) for p in cells]
    moved = np.concatenate([one.moved_SN for one in found], axis=1) / len(cells)
    return np.sqrt(np.diagonal(Items(cells, found).covariance(moved)[0]))


def test_independent_items_are_those_of_a_bootstrap_in_a_loop() -> None:
    rng = np.random.default_rng(4)
    said, gold = correlated(rng, 300, ties=1)
    drawn = []
    for _ in range(2000):
        items = rng.integers(0, 300, 300)
        drawn.append(100 * scipy.stats.spearmanr(said[items], gold[items]).statistic)
    assert errors([Predicted("a", "spearman", (1,), said[None], gold)])[0] == pytest.approx(
        np.std(drawn), rel=0.06
    )


@pytest.mark.slow
def test_clusters_of_two_tasks_are_those_of_a_cluster_bootstrap_in_a_loop() -> None:
    """150 clusters with items in both tasks; a cluster has one meaning and its own difficulty."""
    rng = np.random.default_rng(5)
    cells, cluster = [], [np.repeat(np.arange(150), 2), np.tile(np.arange(150), 3)]
    hard, true = rng.normal(size=(2, 150))
    for task, own in zip("ab", cluster, strict=True):
        gold = true[own] + 0.3 * rng.normal(size=len(own))
        said = gold + hard[own] + 0.5 * rng.normal(size=len(own))
        cells.append(
            Predicted(
                task, "spearman", (1,), said[None], gold, shared_NK=own[:, None], universe="both"
            )
        )
    drawn = []
    members = [[np.flatnonzero(own == one) for one in range(150)] for own in cluster]
    for _ in range(1000):
        clusters = rng.integers(0, 150, 150)
        value = []
        for p, of in zip(cells, members, strict=True):
            items = np.concatenate([of[one] for one in clusters])
            value.append(
                100 * scipy.stats.spearmanr(p.prediction_SN[0][items], p.gold_N[items]).statistic
            )
        drawn.append(np.mean(value))
    assert errors(cells)[0] == pytest.approx(np.std(drawn), rel=0.08)
    alone = [Predicted(p.task, "spearman", (1,), p.prediction_SN, p.gold_N) for p in cells]
    assert errors(cells)[0] > 1.2 * errors(alone)[0]


def test_pairs_that_share_a_sentence_are_summed_as_written_out() -> None:
    """Every two pairs with a sentence in common, also in another task; a pair with itself once."""
    rng = np.random.default_rng(6)
    cells = []
    for task in "ab":
        said, gold = correlated(rng, 40)
        cells.append(
            Predicted(
                task,
                "spearman",
                (1, 2),
                np.stack([said, gold + rng.normal(size=40)]),
                gold,
                shared_NK=rng.integers(0, 30, (40, 2)),
                universe="sentences",
            )
        )
    found = [influence(p) for p in cells]
    moved = np.concatenate([one.moved_SN for one in found], axis=1) / 2
    ids = [set(pair.tolist()) for p in cells for pair in p.shared_NK]
    by_hand, least = np.zeros((2, 2)), np.zeros((2, 2))
    for i, j in itertools.product(range(80), repeat=2):
        product = np.outer(moved[:, i], moved[:, j])
        by_hand += product * bool(ids[i] & ids[j])
        least += product * (ids[i] == ids[j])
    items = Items(cells, found)
    scale = (items.freedom + 1) / items.freedom
    np.testing.assert_allclose(
        items.covariance(moved), scale * np.stack([by_hand, least]), atol=1e-9
    )


def test_repeated_pairs_count_once() -> None:
    """Every pair is there twice: standard error and degrees of freedom are those for half as many
    pairs.
    """
    rng = np.random.default_rng(7)
    said, gold = correlated(rng, 100)
    once = Predicted("a", "spearman", (1,), said[None], gold)
    twice = Predicted(
        "a",
        "spearman",
        (1,),
        np.tile(said, 2)[None],
        np.tile(gold, 2),
        shared_NK=np.tile(np.arange(200).reshape(100, 2), (2, 1)),
    )
    assert errors([twice])[0] == pytest.approx(errors([once])[0], rel=0.01)
    assert Items([twice], [influence(twice)]).freedom == pytest.approx(199)  # sentences
    assert Items([once], [influence(once)]).freedom == pytest.approx(99)


def test_items_that_are_one_say_nothing() -> None:
    p = Predicted(
        "a",
        "spearman",
        (1,),
        np.arange(4.0)[None],
        np.arange(4.0)[::-1],
        shared_NK=np.zeros((4, 1), dtype=int),
    )
    with pytest.raises(ValueError, match="all items are connected"):
        Items([p], [influence(p)]).covariance(influence(p).moved_SN)
