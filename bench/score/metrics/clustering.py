"""How well clusters agree with classes, x 100. Names and numbers of both are arbitrary.

Legend: N items, P clusters (predicted), G classes (gold), R clusterings of the same items.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def matched_accuracy(counts_PG: NDArray[np.int64]) -> float:
    """Compute the accuracy x 100 under the best one-to-one matching of clusters and classes, from
    the counts of ``confusion``.

    An item is right if its cluster is matched with its class. If there are more clusters than
    classes (or fewer), those without a partner match nothing. Source: Kuhn 1955, the assignment
    problem.
    """
    from scipy.optimize import linear_sum_assignment

    return 100 * float(
        counts_PG[linear_sum_assignment(counts_PG, maximize=True)].sum() / counts_PG.sum()
    )


def agreement(counts_PG: NDArray[np.int64]) -> dict[str, float]:
    """Mutual information, normalised and adjusted, and the adjusted Rand index, x 100, from the
    counts of ``confusion``.

    It is normalised by the arithmetic mean of the entropies. The numbers are scikit-learn's, which
    counts the items anew for each and sums the expected information of every table of counts: it
    takes thirteen times as long.
    """
    size_P, size_G = counts_PG.sum(axis=1), counts_PG.sum(axis=0)
    if len(size_P) == len(size_G) == 1:  # nothing is divided, and that is agreed on
        return {"nmi": 100.0, "ami": 100.0, "ari": 100.0}
    information = _mutual_information(counts_PG)
    entropy = (_entropy(size_P) + _entropy(size_G)) / 2
    adjusted = 0.0
    if min(len(size_P), len(size_G)) > 1:
        classes = tuple(sorted(size_G.tolist()))
        expected = math.fsum(_expected_information(size, classes) for size in size_P.tolist())
        # equal numbers may differ by rounding alone; then both have the same sign
        adjusted = _away_from_zero(information - expected) / _away_from_zero(entropy - expected)
    return {
        "nmi": 100 * information / entropy,
        "ami": 100 * adjusted,
        "ari": 100 * _adjusted_rand(counts_PG),
    }


def _mutual_information(counts_PG: NDArray[np.int64]) -> float:
    log_n = math.log(counts_PG.sum())
    counts_GP = counts_PG.T
    product_GP = np.outer(counts_GP.sum(axis=1), counts_GP.sum(axis=0))
    some_GP = counts_GP > 0
    share = counts_GP[some_GP] / counts_PG.sum()
    # in scikit-learn's order, whose last digits records have
    together = share * (np.log(counts_GP[some_GP]) - log_n)
    apart = share * (-np.log(product_GP[some_GP]) + log_n + log_n)
    return max(0.0, float((together + apart).sum()))


def _entropy(sizes: NDArray[np.int64]) -> float:
    n = sizes.sum()
    return -float((sizes / n * (np.log(sizes) - math.log(n))).sum())


def _away_from_zero(difference: float) -> float:
    smallest = float(np.finfo(np.float64).eps)
    return min(difference, -smallest) if difference < 0 else max(difference, smallest)


@lru_cache(maxsize=1 << 16)
def _expected_information(size: int, classes: tuple[int, ...]) -> float:
    """Return the mutual information with classes of these sizes that a cluster of ``size`` items
    drawn at random adds. Cached: clusterings of one data set have many clusters of one size.

    Source: Vinh, Epps and Bailey 2010, Information Theoretic Measures for Clusterings Comparison.
    """
    n = sum(classes)
    size_G, times_G = np.unique(classes, return_counts=True)
    # K: items of the cluster that are of one class
    shared_K = np.arange(1, min(size, int(size_G[-1])) + 1)[:, None]
    possible_KG = (shared_K <= size_G) & (shared_K >= size + size_G - n)
    shared_KG = np.where(possible_KG, shared_K, np.maximum(1, size + size_G - n))
    log = _log_factorials(n)
    ways_KG = (
        log[size_G]
        - log[shared_KG]
        - log[size_G - shared_KG]
        + log[n - size_G]
        - log[size - shared_KG]
        - log[n - size_G - size + shared_KG]
        - (log[n] - log[size] - log[n - size])
    )
    information_KG = shared_KG / n * np.log(n * shared_KG / (size * size_G))
    return float((times_G * np.where(possible_KG, information_KG * np.exp(ways_KG), 0)).sum())


@lru_cache(maxsize=16)
def _log_factorials(n: int) -> NDArray[np.float64]:
    """Return the logarithms of 0!, 1!, ..., n!."""
    from scipy.special import gammaln

    return np.asarray(gammaln(np.arange(n + 1) + 1.0), dtype=np.float64)


def _adjusted_rand(counts_PG: NDArray[np.int64]) -> float:
    """Compare the pairs of items that are together in both, in Python's integers: their products
    overflow 64 bits."""
    together = _pairs(counts_PG)
    of_P, of_G = _pairs(counts_PG.sum(axis=1)), _pairs(counts_PG.sum(axis=0))
    every = _pairs(counts_PG.sum(keepdims=True))
    if together == of_P == of_G:
        return 1.0
    return 2 * (together * every - of_P * of_G) / ((of_P + of_G) * every - 2 * of_P * of_G)


def _pairs(counts: NDArray[np.int64]) -> int:
    return int((counts * (counts - 1)).sum()) // 2


def confusion(predicted: ArrayLike, gold: ArrayLike) -> NDArray[np.int64]:
    """Count items by cluster and class, (P, G), both in the order of their values.

    Raises ValueError for unequal lengths or no items.
    """
    clusters_N, classes_N = np.asarray(predicted), np.asarray(gold)
    if clusters_N.ndim != 1 or clusters_N.shape != classes_N.shape or not len(clusters_N):
        raise ValueError(
            f"expected two (n,) arrays of one length, got {clusters_N.shape} and {classes_N.shape}"
        )
    names_P, row_N = np.unique(clusters_N, return_inverse=True)
    names_G, column_N = np.unique(classes_N, return_inverse=True)
    return np.bincount(
        row_N * len(names_G) + column_N, minlength=len(names_P) * len(names_G)
    ).reshape(len(names_P), len(names_G))


def summarise_clusterings(predicted_NR: ArrayLike, gold: ArrayLike) -> dict[str, Any]:
    """Accuracy, NMI, AMI and ARI of several clusterings of the same items.

    Each has its mean, its standard deviation (of these R, not n - 1) and all values:
    {"accuracy": {"mean": 72.1, "std": 0.4, "each": [...]}, "nmi": ...}
    """
    labels_NR = np.asarray(predicted_NR)
    if labels_NR.ndim != 2 or not labels_NR.shape[1]:
        raise ValueError(f"expected one column per clustering, got shape {labels_NR.shape}")
    runs: list[dict[str, float]] = []
    for labels_N in labels_NR.T:
        counts_PG = confusion(labels_N, gold)
        runs.append({"accuracy": matched_accuracy(counts_PG), **agreement(counts_PG)})
    values = {name: np.array([run[name] for run in runs]) for name in runs[0]}
    return {
        name: {"mean": float(each.mean()), "std": float(each.std()), "each": each.tolist()}
        for name, each in values.items()
    }
