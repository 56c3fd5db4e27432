"""Alignment, uniformity and the rest against reference vectors, scipy, plain loops and spaces with
a known answer.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from bench.records.predictions import Predicted
from bench.score.metrics.geometry import (
    effective_rank,
    mean_cosines,
    move_alignment,
    move_uniformity,
    potentials,
    singular_values,
    squared_distances,
    uniformity,
    unit,
)


def test_the_reference_vector(reference):
    case, given = reference["alignment_uniformity"], reference["contrastive"]["inputs"]
    z1, z2 = unit(given["z1"]), unit(given["z2"])
    assert squared_distances(z1, z2).mean() == pytest.approx(case["alignment_alpha2"], abs=1e-11)
    assert uniformity(potentials(np.vstack([z1, z2]))) == pytest.approx(
        case["uniformity_t2_distinct_pairs"], abs=1e-11
    )


@pytest.mark.parametrize("n, dim, block", [(2, 3, 512), (7, 1, 2), (101, 16, 10), (50, 8, 50)])
def test_uniformity_agrees_with_scipys_pairs_in_blocks_of_any_size(n, dim, block):
    x = unit(np.random.default_rng(n).normal(size=(n, dim)) + 0.5)
    assert uniformity(potentials(x, block=block)) == pytest.approx(
        math.log(np.exp(-2 * pdist(x) ** 2).mean()), abs=1e-12
    )
    assert mean_cosines(x).mean() == pytest.approx((1 - pdist(x) ** 2 / 2).mean(), abs=1e-12)
    for i in (0, n - 1):
        others = np.delete(x, i, axis=0)
        assert potentials(x, block=block)[i] == pytest.approx(
            np.exp(-2 * ((others - x[i]) ** 2).sum(1)).mean(), abs=1e-12
        )
        assert mean_cosines(x)[i] == pytest.approx((others @ x[i]).mean(), abs=1e-12)


def test_effective_rank_of_unequal_directions_is_the_entropys():
    assert effective_rank([3.0, 1.0, 0.0]) == pytest.approx(
        math.exp(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25))), abs=1e-12
    )
    with pytest.raises(ValueError, match="undefined"):
        effective_rank(singular_values(np.ones((4, 3))))


def predicted(task: str, values_SN: np.ndarray, gold_N: np.ndarray) -> Predicted:
    seeds = tuple(range(len(values_SN)))
    return Predicted(task, task, seeds, values_SN, gold_N)


def weighted_uniformity(x: np.ndarray, weight: np.ndarray) -> float:
    """Return the uniformity of vectors that count so many times, from its definition."""
    apart = np.exp(-2 * ((x[:, None] - x[None]) ** 2).sum(-1))
    both = np.outer(weight, weight)
    np.fill_diagonal(both, 0.0)
    return math.log((both * apart).sum() / both.sum())


def test_the_influence_on_uniformity_is_its_derivative_by_a_weight():
    x = unit(np.random.default_rng(3).normal(size=(40, 5)) + 0.3)
    one, tiny = np.ones(len(x)), 1e-5
    found = move_uniformity(predicted("uniformity", potentials(x)[None], np.zeros(len(x))))
    assert found.value_SR[0, 0] == pytest.approx(weighted_uniformity(x, one), abs=1e-12)
    for i in (0, 7, 39):
        more, less = one.copy(), one.copy()
        more[i] += tiny
        less[i] -= tiny
        slope = (weighted_uniformity(x, more) - weighted_uniformity(x, less)) / (2 * tiny)
        assert found.moved_SN[0, i] == pytest.approx(slope, abs=1e-8)


def test_the_influence_on_alignment_gives_the_variance_of_a_mean_of_near_pairs():
    draw = np.random.default_rng(4)
    gold, apart = draw.uniform(0, 5, 300), draw.uniform(0, 2, (2, 300))
    found = move_alignment(predicted("alignment", apart, gold))
    for seed in (0, 1):
        near = apart[seed][gold > 4]
        assert found.value_SR[seed, 0] == pytest.approx(near.mean(), abs=1e-12)
        variance = (found.moved_SN[seed] ** 2).sum()
        assert variance == pytest.approx(near.var() / len(near), rel=1e-12)
    assert found.weight_N.sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="no pair with a gold score above 4"):
        move_alignment(predicted("alignment", apart, np.zeros(300)))
