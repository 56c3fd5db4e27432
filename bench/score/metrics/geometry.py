"""The geometry of vectors: alignment, uniformity, anisotropy, effective rank.

Numbers in, numbers out, in float64.

Legend: N vectors or pairs, D dimensions, B rows of a block, S seeds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.score.influence import Influence, even_weights

if TYPE_CHECKING:
    from bench.records.predictions import Predicted

Floats = NDArray[np.float64]
ABOVE = 4.0  # gold of pairs that mean the same
BLOCK = 512  # rows with their distances to all others in memory at once


def unit(vectors_ND: ArrayLike) -> Floats:
    """Scale vectors to length 1, in float64. A zero vector has no direction and stays zero.

    Raises ValueError for NaN or infinity.
    """
    x_ND = np.array(vectors_ND, dtype=np.float64)
    if x_ND.ndim != 2 or not np.isfinite(x_ND).all():
        raise ValueError(
            f"expected (n, dim) vectors without NaN or infinity, got shape {x_ND.shape}"
        )
    largest_N = np.abs(x_ND).max(axis=1, initial=0.0)
    # so that no square over- or underflows
    x_ND /= np.where(largest_N == 0, 1.0, largest_N)[:, None]
    length_N = np.sqrt(np.einsum("nd,nd->n", x_ND, x_ND))
    return x_ND / np.where(length_N == 0, 1.0, length_N)[:, None]


def squared_distances(x_ND: ArrayLike, y_ND: ArrayLike) -> Floats:
    """|x - y|^2 of row i of one and row i of the other, (N,).

    Alignment is their mean over pairs that mean the same. Source: Wang and Isola 2020, with
    exponent 2; they take unit vectors.
    """
    apart_ND = np.asarray(x_ND, dtype=np.float64) - np.asarray(y_ND, dtype=np.float64)
    return np.einsum("nd,nd->n", apart_ND, apart_ND)


def potentials(x_ND: ArrayLike, block: int = BLOCK) -> Floats:
    """Return the mean of exp(-2 |x - y|^2) of every vector over all other vectors, (N,).

    The mean of these is the mean over all pairs i < j. ``block`` bounds the memory (block x N
    numbers) and changes nothing else.
    """
    x_ND = np.asarray(x_ND, dtype=np.float64)
    if len(x_ND) < 2:
        raise ValueError(f"{len(x_ND)} vectors: a pair needs 2")
    square_N = np.einsum("nd,nd->n", x_ND, x_ND)
    mean_N = np.empty(len(x_ND))
    for start in range(0, len(x_ND), block):
        rows = slice(start, start + block)
        apart_BN = square_N[rows, None] + square_N - 2 * (x_ND[rows] @ x_ND.T)
        weight_BN = np.exp(-2 * np.maximum(apart_BN, 0.0, out=apart_BN), out=apart_BN)
        own_B = np.arange(len(weight_BN))
        weight_BN[own_B, start + own_B] = 0.0
        mean_N[rows] = weight_BN.sum(axis=1) / (len(x_ND) - 1)
    return mean_N


def uniformity(potentials_N: ArrayLike) -> float:
    """Log of the mean over distinct pairs of exp(-2 |x - y|^2), from ``potentials``.

    Lower is more even. Source: Wang and Isola 2020.
    """
    return float(np.log(np.mean(np.asarray(potentials_N, dtype=np.float64))))


def move_alignment(p: Predicted) -> Influence:
    """Compute the influence of each pair on the mean squared distance of pairs with gold > 4.

    Other pairs have none. Raises ValueError if no pair is above it.
    """
    positive_N = p.gold_N.astype(np.float64) > ABOVE
    if not positive_N.any():
        raise ValueError(f"{p.task}: no pair with a gold score above {ABOVE:g}")
    weight_N = positive_N / positive_N.sum()
    value_S = p.prediction_SN @ weight_N
    moved_SN = (p.prediction_SN - value_S[:, None]) * weight_N
    return Influence(value_S[:, None], moved_SN, weight_N)


def move_uniformity(p: Predicted) -> Influence:
    """Compute the influence of each vector on the log of the mean potential.

    A vector is in its own potential and, as the other one, in those of all others, hence the 2:
    the derivative of log(sum w_i w_j k_ij / sum w_i w_j) over i != j by a weight.
    """
    mean_S = p.prediction_SN.mean(axis=1)
    weight_N = even_weights(p.n_items)
    moved_SN = 2 * (p.prediction_SN / mean_S[:, None] - 1) * weight_N
    return Influence(np.log(mean_S)[:, None], moved_SN, weight_N)


def mean_cosines(x_ND: ArrayLike) -> Floats:
    """Return each unit vector's mean cosine with all others, (N,); their mean is the anisotropy.

    It is exact; a mean over random pairs of distinct vectors estimates it.
    """
    x_ND = np.asarray(x_ND, dtype=np.float64)
    if len(x_ND) < 2:
        raise ValueError(f"{len(x_ND)} vectors: a pair needs 2")
    return (x_ND @ x_ND.sum(axis=0) - np.einsum("nd,nd->n", x_ND, x_ND)) / (len(x_ND) - 1)


def singular_values(x_ND: ArrayLike) -> Floats:
    """Singular values of the vectors minus their mean, largest first: (min(N, D),)."""
    x_ND = np.asarray(x_ND, dtype=np.float64)
    return np.linalg.svd(x_ND - x_ND.mean(axis=0), compute_uv=False)


def effective_rank(singular: ArrayLike) -> float:
    """Number of directions in use: exp of the entropy of the singular values, scaled to sum to 1.

    Source: Roy and Vetterli 2007. Raises ValueError if all values are 0.
    """
    values = np.asarray(singular, dtype=np.float64)
    if not values.sum() > 0:
        raise ValueError("all vectors are the same: their rank is undefined")
    share = values / values.sum()
    share = share[share > 0]
    return float(np.exp(-(share * np.log(share)).sum()))
