"""Exact search by cosine, and the measures of a ranking: nDCG@10, MRR@10, recall@100, MAP@100.

They are trec_eval's, as mteb has them: gains are relevances, a rank's discount is the logarithm of
rank + 1, and what was not judged is not relevant. Among documents with one cosine, those that come
first in the given order rank first.

Legend: Q queries, M documents of a block, D dimensions, K documents of a ranking.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from bench.score.metrics.geometry import Floats, unit

DEPTH = 100
"""Documents that are found for a query."""
TOP = 10
"""Documents that nDCG and MRR look at."""
AT_ONCE = 256
"""Queries that are compared with a block of documents at once: bounds their cosines."""
NOISE = 1e-5
"""More than a product in float32 is away from the exact one."""
DISCOUNT_K = 1 / np.log2(np.arange(2, TOP + 2))
Places = NDArray[np.int64]


def search(
    queries_QD: NDArray[np.floating], blocks: Iterable[NDArray[np.floating]], depth: int = DEPTH
) -> Places:
    """Find the nearest documents of each query: (Q, K) places in the order of all blocks, nearest
    first; -1 after the last document.

    A product in float32 chooses candidates, and float64 decides, so that the order depends neither
    on blocks nor on threads. Raises ValueError for NaN or infinity.
    """
    found_QD = unit(queries_QD)
    narrow_QD = found_QD.astype(np.float32)
    place_QK = np.full((len(found_QD), depth), -1, dtype=np.int64)
    cosine_QK = np.full((len(found_QD), depth), -np.inf, dtype=np.float32)
    start = 0
    for block_MD in blocks:
        x_MD = unit(block_MD)
        narrow_DM = x_MD.T.astype(np.float32)
        for first in range(0, len(found_QD), AT_ONCE):
            cosine_QM = narrow_QD[first : first + AT_ONCE] @ narrow_DM
            for query, cosine_M in enumerate(cosine_QM, first):
                near_M = _candidates(cosine_M, cosine_QK[query, -1], depth)
                exact_M = np.einsum("md,d->m", x_MD[near_M], found_QD[query])
                cosine_K = np.concatenate([cosine_QK[query], exact_M.astype(np.float32)])
                place_K = np.concatenate([place_QK[query], start + near_M])
                best_K = np.lexsort((place_K, -cosine_K))[:depth]
                cosine_QK[query] = cosine_K[best_K]
                place_QK[query] = place_K[best_K]
        start += len(x_MD)
    return place_QK


def _candidates(cosine_M: NDArray[np.float32], worst: float, depth: int) -> Places:
    """Return the documents of a block that may be nearer than the worst one found so far."""
    if worst == -np.inf and len(cosine_M) > depth:
        worst = np.partition(cosine_M, -depth)[-depth]
    return np.flatnonzero(cosine_M >= worst - NOISE)


def discounted_gain(relevance_QK: NDArray[np.integer]) -> Floats:
    """Compute (Q,) DCG@10 of rankings, from the relevance of the document at each rank."""
    top_QK = relevance_QK[:, :TOP]
    return np.asarray((top_QK * DISCOUNT_K[: top_QK.shape[1]]).sum(axis=1), dtype=np.float64)


def ideal_gain(relevances: Iterable[Iterable[int]]) -> Floats:
    """Compute (Q,) DCG@10 of the best possible rankings, from all relevances of each query."""
    rows = [[*sorted(grades, reverse=True)[:TOP], *[0] * TOP][:TOP] for grades in relevances]
    return discounted_gain(np.array(rows))


def reciprocal_rank(relevance_QK: NDArray[np.integer]) -> Floats:
    """Compute (Q,) one over the rank of the first answer among ten; 0 if there is none."""
    right_QK = relevance_QK[:, :TOP] > 0
    return np.where(right_QK.any(axis=1), 1 / (right_QK.argmax(axis=1) + 1), 0.0)


def recall(relevance_QK: NDArray[np.integer], answers_Q: NDArray[np.integer]) -> Floats:
    """Compute (Q,) shares of the answers that a ranking has."""
    return np.asarray((relevance_QK > 0).sum(axis=1) / answers_Q, dtype=np.float64)


def average_precision_of_ranks(
    relevance_QK: NDArray[np.integer], answers_Q: NDArray[np.integer]
) -> Floats:
    """Compute (Q,) means over all answers of the precision at their ranks; 0 if not found."""
    right_QK = relevance_QK > 0
    precision_QK = np.cumsum(right_QK, axis=1) / np.arange(1, right_QK.shape[1] + 1)
    return np.asarray((precision_QK * right_QK).sum(axis=1) / answers_Q, dtype=np.float64)
