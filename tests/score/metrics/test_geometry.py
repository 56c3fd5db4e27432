"""Alignment, uniformity and the rest against reference vectors, scipy, plain loops and spaces with
a known answer.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from bench.score.metrics.geometry import (
    effective_rank,
    mean_cosines,
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
