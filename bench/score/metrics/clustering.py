"""How well clusters agree with classes, x 100. Names and numbers of both are arbitrary.

Legend: N items, P clusters (predicted), G classes (gold), R clusterings of the same items.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def matched_accuracy(predicted: ArrayLike, gold: ArrayLike) -> float:
    """Compute the accuracy x 100 under the best one-to-one matching of clusters and classes.

    An item is right if its cluster is matched with its class. If there are more clusters than
    classes (or fewer), those without a partner match nothing. Raises ValueError for unequal lengths
    or no items. Source: Kuhn 1955, the assignment problem.
    """
    from scipy.optimize import linear_sum_assignment

    counts_PG = confusion(predicted, gold)
    return 100 * float(
        counts_PG[linear_sum_assignment(counts_PG, maximize=True)].sum() / counts_PG.sum()
    )


def agreement(predicted: ArrayLike, gold: ArrayLike) -> dict[str, float]:
    """Mutual information, normalised and adjusted, and the adjusted Rand index, x 100.

    It is normalised by the arithmetic mean of the entropies.
    """
    from sklearn.metrics import (
        adjusted_mutual_info_score,
        adjusted_rand_score,
        normalized_mutual_info_score,
    )

    return {
        "nmi": 100 * float(normalized_mutual_info_score(gold, predicted)),
        "ami": 100 * float(adjusted_mutual_info_score(gold, predicted)),
        "ari": 100 * float(adjusted_rand_score(gold, predicted)),
    }


def confusion(predicted: ArrayLike, gold: ArrayLike) -> NDArray[np.int64]:
    """Count items by cluster and class, (P, G), both in the order of their values."""
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
    runs: list[Mapping[str, float]] = [
        {"accuracy": matched_accuracy(labels_N, gold), **agreement(labels_N, gold)}
        for labels_N in labels_NR.T
    ]
    values = {name: np.array([run[name] for run in runs]) for name in runs[0]}
    return {
        name: {"mean": float(each.mean()), "std": float(each.std()), "each": each.tolist()}
        for name, each in values.items()
    }
