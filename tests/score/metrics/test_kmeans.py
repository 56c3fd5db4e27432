"""K-means against scikit-learn's: same seeds, same starts, same clusters."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans

from bench.score.metrics.kmeans import Points, kmeans, lloyd


def blobs(n: int, dim: int, centres: int, seed: int = 0, spread: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(centres, dim))[rng.integers(0, centres, n)] + spread * rng.normal(
        size=(n, dim)
    )


@pytest.mark.parametrize(("n", "dim", "clusters"), [(500, 8, 5), (60, 2, 1), (97, 5, 60)])
def test_the_same_clusters_as_scikit_learn_in_float64(n, dim, clusters):
    x = blobs(n, dim, 6) + 100
    for seed, one in enumerate(kmeans(x, clusters, range(3))):
        want = KMeans(clusters, n_init=10, max_iter=300, tol=1e-4, random_state=seed).fit(x)
        assert one.labels_N.tolist() == want.labels_.tolist()
        assert one.inertia == pytest.approx(want.inertia_, rel=1e-9)
        assert one.iterations == want.n_iter_


@pytest.mark.parametrize(
    ("dtype", "accuracy", "least"), [(np.float64, 1e-9, 12), (np.float32, 1e-5, 5)]
)
def test_the_same_clusters_from_the_same_centres(dtype, accuracy, least):
    """Starts of all kinds in one lockstep: some have centres twice, so that clusters are empty and
    are given the farthest points.

    In float32 a processor's rounding may lead a start to a neighbouring optimum; starts with empty
    clusters above all, because distances tie there. All end level.
    """
    x = blobs(400, 16, 5, spread=0.3).astype(dtype)
    rng = np.random.default_rng(1)
    rows = np.stack(
        [rng.permutation(400)[:8] for _ in range(6)] + [rng.integers(0, 8, 8) for _ in range(6)]
    )
    assert any(len(set(row.tolist())) < 7 for row in rows)
    points = Points(x)
    pairs = [
        (one, KMeans(8, init=x[row], n_init=1, tol=1e-4).fit(x))
        for row, one in zip(rows, lloyd(points, points.x_ND[rows]), strict=True)
    ]
    same = [(one, want) for one, want in pairs if one.labels_N.tolist() == want.labels_.tolist()]
    assert len(same) >= least
    for one, want in same:
        assert one.inertia == pytest.approx(want.inertia_, rel=accuracy)
        assert one.iterations == want.n_iter_
    for one, want in pairs:
        assert one.inertia == pytest.approx(want.inertia_, rel=0.02)


def test_fewer_distinct_points_than_clusters():
    x = np.repeat(np.eye(3), 5, axis=0)
    for one in kmeans(x, 6, range(3)):
        assert one.inertia == pytest.approx(0, abs=1e-12)
        assert len(np.unique(one.labels_N)) >= 3
        for first in (0, 5, 10):
            others = one.labels_N[np.arange(15) // 5 != first // 5]
            assert not set(one.labels_N[first : first + 5]) & set(
                others
            )  # unlike points are never together


def test_vectors_that_cannot_be_clustered():
    x = blobs(20, 3, 2)
    for bad, message in (
        (np.ones((5, 3)), "all points are the same"),
        (x[:3], "3 points cannot form 4 clusters"),
        (x[0], "expected"),
        (np.where(x == x[7, 1], np.nan, x), "NaN or infinity"),
        (np.where(x == x[7, 1], np.inf, x), "NaN or infinity"),
    ):
        with pytest.raises(ValueError, match=message):
            kmeans(bad, 4, [0])
    with pytest.raises(ValueError, match="0 clusters"):
        kmeans(x, 0, [0])
