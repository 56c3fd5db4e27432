"""Correlation and cosine, on the papers' scale (x 100).

Undefined is an error, never 0 and never NaN.

Legend: N pairs, D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Correlation = Callable[[NDArray[np.float64], NDArray[np.float64]], float]


@dataclass(frozen=True)
class Grouped:
    """One correlation over several groups of items, in the three ways that papers sum it up (x
    100).
    """

    # one correlation over all items together
    all: float
    # plain mean over groups; None if some group has no correlation
    mean: float | None
    # mean over groups, weighted by their numbers of items; None if some group has no correlation
    wmean: float | None
    # group, in order of first appearance -> its correlation; None if one side is constant
    each: dict[str, float | None]
    sizes: dict[str, int]


def spearman(predicted: ArrayLike, gold: ArrayLike) -> float:
    """Compute the rank correlation x 100 of two (N,) arrays; equal values share their mean rank.

    Raises ValueError if it is undefined: N < 2, NaN, infinity, or one side constant.
    Source: Spearman 1904, as the Pearson correlation of mean ranks (not the 6 d^2 formula, which is
    wrong with ties).
    """
    a_N, b_N = check_sides(predicted, gold)
    # every model is compared with the same gold values
    gold_ranks_N = _known_ranks(b_N.tobytes()) if len(b_N) <= FEW else mean_ranks(b_N)
    return _correlation(mean_ranks(a_N), gold_ranks_N)


FEW = 20_000  # values whose ranks are cached


@lru_cache(maxsize=32)
def _known_ranks(values: bytes) -> NDArray[np.float64]:
    return mean_ranks(np.frombuffer(values))


def pearson(predicted: ArrayLike, gold: ArrayLike) -> float:
    """Linear correlation x 100 of two (N,) arrays. Raises ValueError as ``spearman`` does."""
    return _correlation(*check_sides(predicted, gold))


def mean_ranks(values_N: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rank of every value, from 1; equal values get the mean of the ranks that they
    cover.
    """
    _, group_N, size_G = np.unique(values_N, return_inverse=True, return_counts=True)
    return (np.cumsum(size_G) - (size_G - 1) / 2)[group_N]


def paired_cosine(a_ND: ArrayLike, b_ND: ArrayLike) -> NDArray[np.float64]:
    """Return the cosine of row i of one with row i of the other: (N,) float64 within -1 to 1.

    A zero vector has cosine 0 with everything. Rows that are equal bit for bit have exactly 1, so
    that identical sentences tie with each other instead of being ordered by rounding noise. Raises
    ValueError for unequal shapes, NaN and infinity.
    """
    a_ND, b_ND = np.asarray(a_ND), np.asarray(b_ND)
    if a_ND.ndim != 2 or a_ND.shape != b_ND.shape:
        raise ValueError(
            f"expected two (n, dim) arrays of one shape, got {a_ND.shape} and {b_ND.shape}"
        )
    equal_N = (a_ND == b_ND).all(axis=1)
    a_ND, b_ND = a_ND.astype(np.float64), b_ND.astype(np.float64)
    if not (np.isfinite(a_ND).all() and np.isfinite(b_ND).all()):
        raise ValueError("a vector holds NaN or infinity")
    norms_N = np.sqrt(np.einsum("nd,nd->n", a_ND, a_ND)) * np.sqrt(
        np.einsum("nd,nd->n", b_ND, b_ND)
    )
    zero_N = norms_N == 0
    cosine_N = np.einsum("nd,nd->n", a_ND, b_ND) / np.where(zero_N, 1.0, norms_N)
    cosine_N = np.clip(cosine_N, -1.0, 1.0)  # rounding can pass 1 by one unit in the last place
    cosine_N[equal_N] = 1.0
    cosine_N[zero_N] = 0.0
    return cosine_N


def if_defined(
    correlation: Correlation, predicted: NDArray[np.float64], gold: NDArray[np.float64]
) -> float | None:
    """Return the correlation; None if it is undefined."""
    try:
        return correlation(predicted, gold)
    except ValueError:
        return None


def correlate_groups(
    predicted: ArrayLike,
    gold: ArrayLike,
    groups: Sequence[str],
    correlation: Correlation = spearman,
) -> Grouped:
    """Return the correlation over all items, within each group, and the two means over groups.

    ``groups`` names the group of every item. Raises ValueError if the correlation over all items is
    undefined. A single group with an undefined correlation has None, and so have both means.
    """
    a_N, b_N = check_sides(predicted, gold)
    names_N = np.asarray(groups, dtype=str)
    if names_N.shape != a_N.shape:
        raise ValueError(f"{len(a_N)} items, {len(names_N)} group names")
    every = correlation(a_N, b_N)
    members = {name: names_N == name for name in dict.fromkeys(names_N.tolist())}
    each: dict[str, float | None] = {}
    for name, rows_N in members.items():
        if len(members) == 1:
            each[name] = every
        else:
            each[name] = if_defined(correlation, a_N[rows_N], b_N[rows_N])
    sizes = {name: int(rows_N.sum()) for name, rows_N in members.items()}
    values = [value for value in each.values() if value is not None]
    defined = len(values) == len(each)
    return Grouped(
        all=every,
        mean=float(np.mean(values)) if defined else None,
        wmean=float(np.average(values, weights=list(sizes.values()))) if defined else None,
        each=each,
        sizes=sizes,
    )


class UnusableGold(ValueError):
    """A correlation is undefined because of the gold values, not because of a model."""


def check_sides(
    predicted: ArrayLike, gold: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both as (N,) float64.

    Raises ValueError for another shape, fewer than two items, NaN, infinity or complex numbers.
    """
    if np.iscomplexobj(predicted) or np.iscomplexobj(gold):
        raise ValueError("complex numbers among the values")
    a_N, b_N = np.asarray(predicted, dtype=np.float64), np.asarray(gold, dtype=np.float64)
    if a_N.ndim != 1 or a_N.shape != b_N.shape:
        raise ValueError(f"expected two (n,) arrays of one length, got {a_N.shape} and {b_N.shape}")
    if len(a_N) < 2:
        raise ValueError(f"{len(a_N)} items: a correlation needs at least 2")
    if not np.isfinite(b_N).all():
        raise UnusableGold("NaN or infinity among the values of the gold side")
    if not np.isfinite(a_N).all():
        raise ValueError("NaN or infinity among the values of the predicted side")
    return a_N, b_N


def _correlation(a_N: NDArray[np.float64], b_N: NDArray[np.float64]) -> float:
    # From the values, not from centred sums: the floating-point mean of equal numbers may differ
    # from them.
    with np.errstate(over="ignore"):
        spreads = np.ptp(a_N), np.ptp(b_N)
    for name, spread, error in (
        ("predicted", spreads[0], ValueError),
        ("gold", spreads[1], UnusableGold),
    ):
        if spread == 0:
            raise error(f"the {name} side is constant: correlation is undefined, not zero")
        if not np.isfinite(spread):
            raise error(f"the {name} side has values too far apart for a correlation")
    a_N, b_N = (a_N - a_N.mean()) / spreads[0], (b_N - b_N.mean()) / spreads[1]
    squares = inner(a_N, a_N) * inner(b_N, b_N)
    return 100 * float(np.clip(inner(a_N, b_N) / np.sqrt(squares), -1.0, 1.0))


def inner(a_N: NDArray[np.float64], b_N: NDArray[np.float64]) -> float:
    """Sum of products in numpy's own order.

    With ``a_N @ b_N`` the last digit would depend on the number of threads.
    """
    return float((a_N * b_N).sum())
