"""K-means, the best of several k-means++ starts: the same result as scikit-learn's KMeans, with
less work.

Seeding is greedy k-means++ (Arthur and Vassilvitskii 2007, section 6: of 2 + log K candidates the
one that lowers the inertia most), the iterations are Lloyd's. Random numbers are consumed in
scikit-learn's order, so that one seed means the same starts in both; only rounding differs. Nothing
is approximated. Work is saved in three places:

- candidates of all starts are measured in one matrix product; if they outnumber the points, all
  distances between points are computed once and looked up;
- a centre that no point joined or left has not moved: its distances stay as they are;
- a cluster's sum is changed by the points that joined or left it.

Legend: N points, D dimensions, K clusters, S starts, T candidates (trials), M centres that moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.floating]
Rows = NDArray[np.int32]

# The largest table of all distances between points.
TABLE_BYTES = 1 << 29
# Distances from points to centres of the starts that iterate together (at least one seed's).
STATE_BYTES = 1 << 28


@dataclass(frozen=True)
class Clustering:
    """A partition that no further iteration improves (or the one at which the iterations ended)."""

    # cluster of every point, 0..K-1
    labels_N: Rows
    # sum of squared distances of the points to their centres, in the unit of the points
    inertia: float
    iterations: int


def kmeans(
    x_ND: ArrayLike,
    clusters: int,
    seeds: Sequence[int],
    *,
    starts: int = 10,
    max_iterations: int = 300,
    tolerance: float = 1e-4,
) -> list[Clustering]:
    """Cluster points: for each seed the clustering of least inertia among ``starts`` starts.

    It computes in float32, or in float64 if that is given. A start ends when no point changes its
    cluster, when the squared shifts of the centres sum to at most ``tolerance`` times the mean
    variance of a dimension, or after ``max_iterations``. Raises ValueError for NaN or infinity,
    points that are all the same, and fewer points than clusters.
    """
    points = Points(x_ND)
    count = len(points.x_ND)
    if not 1 <= clusters <= count:
        raise ValueError(f"{count} points cannot form {clusters} clusters")
    each = 1 + (clusters - 1) * trials(clusters)
    uniform_SU = np.concatenate(
        [np.random.RandomState(seed).random_sample((starts, each)) for seed in seeds]
    )
    rows_SK = seedings(points, clusters, uniform_SU)
    # the starts of as many seeds as fit in memory iterate together, at least one seed's
    bytes_per_start = clusters * count * points.x_ND.itemsize
    seeds_together = max(1, STATE_BYTES // bytes_per_start // starts)
    together = seeds_together * starts
    best: list[Clustering] = []
    for first in range(0, len(rows_SK), together):
        centres_SKD = points.x_ND[rows_SK[first : first + together]]
        runs = lloyd(points, centres_SKD, max_iterations=max_iterations, tolerance=tolerance)
        for i in range(0, len(runs), starts):
            best.append(min(runs[i : i + starts], key=lambda run: run.inertia))
    return best


class Points:
    """Points, moved to their mean and scaled by a power of two.

    This changes no clustering and keeps squares in range.
    """

    def __init__(self, x_ND: ArrayLike) -> None:
        given_ND = np.asarray(x_ND)
        if given_ND.ndim != 2 or 0 in given_ND.shape:
            raise ValueError(f"expected an (n, dim) array of points, got shape {given_ND.shape}")
        if not np.isfinite(given_ND).all():
            raise ValueError("NaN or infinity among the points")
        dtype = np.float64 if given_ND.dtype == np.float64 else np.float32
        centred_ND, first = _unit(given_ND.astype(dtype))
        centred_ND -= centred_ND.mean(axis=0)
        if (given_ND == given_ND[0]).all():
            raise ValueError("all points are the same: there is nothing to cluster")
        centred_ND, second = _unit(centred_ND)
        n, dim = centred_ND.shape
        # A row (x, 1, |x|^2) times (-2c, |c|^2, 1) is the squared distance of x and c: no pass over
        # the product is needed.
        self._rows_NE = np.ones((n, dim + 2), dtype=dtype)
        self._rows_NE[:, :dim] = centred_ND
        self._rows_NE[:, dim + 1] = np.einsum("nd,nd->n", centred_ND, centred_ND)
        self.x_ND: Floats = self._rows_NE[:, :dim]
        self.squares = float(self._rows_NE[:, dim + 1].sum(dtype=np.float64))
        self.variance = self.squares / centred_ND.size
        # length in the caller's unit of a length of 1 here
        self.unit = 2.0 ** (first + second)

    def distances(self, centres_MD: Floats) -> Floats:
        """Return (M, N) squared distances; rounding can leave them a little below zero."""
        count, dim = centres_MD.shape
        rows_ME = np.ones((count, dim + 2), dtype=self.x_ND.dtype)
        np.multiply(centres_MD, -2, out=rows_ME[:, :dim])
        rows_ME[:, dim] = np.einsum("md,md->m", centres_MD, centres_MD)
        return rows_ME @ self._rows_NE.T

    def distances_of(self, rows_M: Rows) -> Floats:
        """Return (M, N) squared distances of points to all: never negative, 0 of one to itself."""
        distances_MN = self.distances(self.x_ND[rows_M])
        np.maximum(distances_MN, 0, out=distances_MN)
        distances_MN[np.arange(len(rows_M)), rows_M] = 0
        return distances_MN


def _unit(x_ND: Floats) -> tuple[Floats, int]:
    """Scale the array to a largest value between 0.5 and 1; returns the power of two as well."""
    power = int(np.frexp(np.abs(x_ND).max())[1])
    return np.ldexp(x_ND, -power), power


def trials(clusters: int) -> int:
    """Return the number of candidates that greedy k-means++ chooses a centre from."""
    return 2 + int(np.log(clusters))


def seedings(points: Points, clusters: int, uniform_SU: NDArray[np.float64]) -> Rows:
    """Choose first centres by greedy k-means++: (S, K) rows of the points.

    ``uniform_SU``: uniform numbers, for each start one for its first centre and T for each of the
    others, in that order.
    """
    n = len(points.x_ND)
    tried = trials(clusters)
    rows_SK = np.empty((len(uniform_SU), clusters), dtype=np.int32)
    rows_SK[:, 0] = np.minimum(uniform_SU[:, 0] * n, n - 1)
    measure: Callable[[Rows], Floats] = points.distances_of
    together = len(uniform_SU)  # number of starts that measure their candidates in one call
    if uniform_SU.size > n and n * n * points.x_ND.itemsize <= TABLE_BYTES:
        table_NN = points.distances_of(np.arange(n, dtype=np.int32))
        measure = partial(np.take, table_NN, axis=0)
        together = 1
    nearest_SN = points.distances_of(rows_SK[:, 0])
    inertia_S = nearest_SN.sum(axis=1)
    for k in range(1, clusters):
        uniform_ST = uniform_SU[:, 1 + (k - 1) * tried : 1 + k * tried]
        candidates_ST = np.stack(
            [_drawn(*draw) for draw in zip(nearest_SN, inertia_S, uniform_ST, strict=True)]
        )
        for first in range(0, len(candidates_ST), together):
            distances_MN = measure(candidates_ST[first : first + together].reshape(-1))
            for s, with_TN in enumerate(distances_MN.reshape(-1, tried, n), start=first):
                # each point's distance to its nearest centre if the candidate were a centre
                np.minimum(with_TN, nearest_SN[s], out=with_TN)
                inertia_T = with_TN.sum(axis=1)
                best = int(inertia_T.argmin())
                rows_SK[s, k] = candidates_ST[s, best]
                inertia_S[s] = inertia_T[best]
                nearest_SN[s] = with_TN[best]
    return rows_SK


def _drawn(weight_N: Floats, total: float, uniform_T: NDArray[np.float64]) -> Rows:
    """Draw rows in proportion to their weights."""
    drawn_T = np.searchsorted(np.cumsum(weight_N, dtype=np.float64), uniform_T * float(total))
    return np.minimum(drawn_T, len(weight_N) - 1).astype(np.int32)


def lloyd(
    points: Points, centres_SKD: Floats, *, max_iterations: int = 300, tolerance: float = 1e-4
) -> list[Clustering]:
    """Run Lloyd's iterations from every set of centres, in the coordinates of ``points``."""
    starts = [_Start(points, centres_KD) for centres_KD in centres_SKD]
    live = starts
    for _ in range(max_iterations):
        _measure(points, live)
        live = [start for start in live if start.move() > tolerance * points.variance]
        if not live:
            break
    _measure(points, [start for start in starts if not start.stable])
    return [start.clustering() for start in starts]


def _measure(points: Points, starts: Sequence[_Start]) -> None:
    """Assign every point to its nearest centre; one product for the moved centres of all starts."""
    if not starts:
        return
    moved_MD = np.concatenate([start.centres_KD[start.moved_M] for start in starts])
    distances_MN = points.distances(moved_MD)
    ends = np.cumsum([len(start.moved_M) for start in starts])
    for start, moved_MN in zip(starts, np.split(distances_MN, ends[:-1]), strict=True):
        start.assign(moved_MN)


class _Start:
    """The state of one start between two iterations."""

    def __init__(self, points: Points, centres_KD: Floats) -> None:
        clusters = len(centres_KD)
        n = len(points.x_ND)
        self.points = points
        self.centres_KD = centres_KD.copy()
        self.moved_M = np.arange(clusters)
        self.stable = False
        self.iterations = 0
        self._distance_KN = np.empty((clusters, n), dtype=centres_KD.dtype)
        self._label_N = np.zeros(n, dtype=np.int32)
        # the cluster that has the point in its sum
        self._summed_N = np.full(n, -1, dtype=np.int32)
        self._before_N = self._label_N
        self._sum_KD = np.zeros(centres_KD.shape)
        self._count_K = np.zeros(clusters, dtype=np.int64)
        # clusters with another sum since the last labels
        self._touched_K = np.zeros(clusters, dtype=bool)

    def assign(self, distances_MN: Floats) -> None:
        """Find the nearest centre of every point, given new distances to the centres that moved."""
        self._distance_KN[self.moved_M] = distances_MN
        self._before_N = self._label_N
        self._label_N = self._distance_KN.argmin(axis=0).astype(np.int32)

    def move(self) -> float:
        """Move the centres to the means of their points.

        Returns the sum of their squared shifts, or -1 if no label had changed.
        """
        self.iterations += 1
        if self.iterations > 1 and np.array_equal(self._label_N, self._before_N):
            self.stable = True
            return -1.0
        self._sum_up()
        empty = np.flatnonzero(self._count_K == 0)
        if len(empty):
            self._fill(empty)
        self.moved_M = np.flatnonzero(self._touched_K & (self._count_K > 0))
        means_MD = self._sum_KD[self.moved_M] / self._count_K[self.moved_M, None]
        shifts_MD = means_MD - self.centres_KD[self.moved_M]
        self.centres_KD[self.moved_M] = means_MD
        return float(np.einsum("md,md->", shifts_MD, shifts_MD))

    def _sum_up(self) -> None:
        """Bring sums and counts up to date with the labels."""
        from scipy.sparse import csr_array

        rows = np.flatnonzero(self._label_N != self._summed_N)
        joined = self._label_N[rows]
        former = self._summed_N[rows]
        had = np.flatnonzero(former >= 0)
        clusters = np.concatenate([joined, former[had]])
        columns = np.concatenate([np.arange(len(rows)), had])
        sign = np.ones(len(clusters), dtype=self.centres_KD.dtype)
        sign[len(rows) :] = -1
        change_Kr = csr_array((sign, (clusters, columns)), shape=(len(self._count_K), len(rows)))
        self._sum_KD += change_Kr @ self.points.x_ND[rows]
        self._count_K += np.bincount(joined, minlength=len(self._count_K))
        self._count_K -= np.bincount(former[had], minlength=len(self._count_K))
        self._touched_K[:] = False
        self._touched_K[clusters] = True
        self._summed_N[rows] = joined

    def _fill(self, empty: NDArray[np.intp]) -> None:
        """Give each empty cluster a point far from its centre, as scikit-learn does."""
        nearest_N = self._distance_KN.min(axis=0)
        if nearest_N.max() <= 0:
            return
        farthest = np.argsort(nearest_N)[::-1][: len(empty)]
        for cluster, row in zip(empty, farthest, strict=True):
            old = self._summed_N[row]
            self._sum_KD[old] -= self.points.x_ND[row]
            self._sum_KD[cluster] = self.points.x_ND[row]
            self._count_K[old] -= 1
            self._count_K[cluster] += 1
            self._touched_K[[old, cluster]] = True
            self._summed_N[row] = cluster

    def clustering(self) -> Clustering:
        """Return the partition, with its inertia in the caller's unit."""
        self._sum_up()
        centres_KD = self.centres_KD.astype(np.float64)
        inertia = (
            self.points.squares
            - 2 * float(np.einsum("kd,kd->", centres_KD, self._sum_KD))
            + float(np.einsum("kd,kd->k", centres_KD, centres_KD) @ self._count_K)
        )
        return Clustering(self._label_N, max(inertia, 0.0) * self.points.unit**2, self.iterations)
