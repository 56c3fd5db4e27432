"""Sampled Spearman, as CxC-STS is scored: each draw takes half of the queries and a pair of each.

Pairs are given in the order of the data, each with its query; queries are numbered from 0. Draws
depend only on these numbers and the seed, so that every model is scored on the same draws.

Legend: N pairs, Q queries, B draws, n pairs of a draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.score.metrics.correlation import check_sides

Rows = NDArray[np.int64]

SEED, DRAWS = 123, 1000


def draws_with_replacement(query_N: ArrayLike, *, draws: int = DRAWS) -> Iterator[Rows]:
    """Draw as PromCSE does: half of the queries with replacement, then one pair of each.

    Yields rows of the pairs. The random numbers are the same as in its code: numpy's legacy
    generator, for each draw one call for all queries and one for the pair of each. A call with many
    limits gives the same as that many calls.
    """
    order_N, first_Q, size_Q = _by_query(query_N)
    random = np.random.RandomState(SEED)
    for _ in range(draws):
        chosen = random.randint(0, len(size_Q), len(size_Q) // 2)
        yield order_N[first_Q[chosen] + random.randint(0, size_Q[chosen])]


def draws_without_replacement(
    query_N: ArrayLike, *, draws: int = DRAWS, seed: int = SEED
) -> Iterator[Rows]:
    """Draw half of the queries, none twice, and one pair of each, all equally likely.

    Yields rows of the pairs. Parekh et al. publish no code; the generator is numpy's legacy one
    because its numbers will not change.
    """
    order_N, first_Q, size_Q = _by_query(query_N)
    random = np.random.RandomState(seed)
    for _ in range(draws):
        chosen = random.permutation(len(size_Q))[: len(size_Q) // 2]
        place = (random.random_sample(len(chosen)) * size_Q[chosen]).astype(np.int64)
        yield order_N[first_Q[chosen] + place]


def _by_query(query_N: ArrayLike) -> tuple[Rows, Rows, Rows]:
    """Sort rows by query; returns them, and the first row and the number of rows of every query.

    Rows of one query stay in the data's order.
    """
    queries_N = np.asarray(query_N)
    size_Q = np.bincount(queries_N)
    if len(size_Q) < 2 or not size_Q.all():
        raise ValueError("expected at least 2 queries, numbered from 0 without a gap")
    return np.argsort(queries_N, kind="stable"), np.cumsum(size_Q) - size_Q, size_Q


class Draw(NamedTuple):
    """The rows of a draw, and the centred ranks of their gold values: the same for every model."""

    rows_n: NDArray[np.integer]
    gold_n: NDArray[np.integer]


def rank_gold(gold: ArrayLike, drawn: Iterable[Rows]) -> Iterator[Draw]:
    """Yield the draws with the ranks of their gold values, in the narrowest types: a thousand draws
    of half of the queries are millions of numbers."""
    place_N = np.unique(gold, return_inverse=True)[1]
    row_type = np.min_scalar_type(len(place_N))
    for rows_n in drawn:
        rank_type = np.min_scalar_type(-len(rows_n))
        yield Draw(rows_n.astype(row_type), _centred_ranks(place_N[rows_n]).astype(rank_type))


def sampled_spearman(
    predicted: ArrayLike, gold: ArrayLike, draws: Iterable[Draw]
) -> NDArray[np.float64]:
    """Compute the rank correlation x 100 of the rows of every draw, (B,). ``draws``: of
    ``rank_gold`` of the same gold values.

    Equal values, and a row that was drawn twice, share their mean rank. Ranks are counted, not
    sorted anew for each draw, and their sums are exact. Raises ValueError for NaN or infinity, and
    if one side of a draw is constant.
    """
    predicted_N, _ = check_sides(predicted, gold)
    place_N = np.unique(predicted_N, return_inverse=True)[1]
    values = []
    for i, draw in enumerate(draws):
        a_n, b_n = _centred_ranks(place_N[draw.rows_n]), draw.gold_n.astype(np.float64)
        squares_a, squares_b = _dot(a_n, a_n), _dot(b_n, b_n)
        if squares_a == 0 or squares_b == 0:
            side = "predicted" if squares_a == 0 else "gold"
            raise ValueError(
                f"the {side} side of draw {i} is constant: correlation is undefined, not zero"
            )
        values.append(100 * _dot(a_n, b_n) / np.sqrt(squares_a * squares_b))
    return np.clip(np.array(values), -100.0, 100.0)


def _dot(a_n: NDArray[np.float64], b_n: NDArray[np.float64]) -> float:
    """Compute the sum of products on one thread; ranks are integers, so their order is no matter.

    ``a @ b`` wakes the second thread of OpenBLAS above 10,000 numbers, for each of thousands of
    draws: twice the processor time on an idle machine, and several times the wall time on a busy
    one, because the thread that is awake waits for the other.
    """
    return float(np.einsum("i,i", a_n, b_n))


def _centred_ranks(place_n: Rows) -> NDArray[np.float64]:
    """Twice the mean rank of every value minus twice the mean of all ranks: integers.

    ``place_n``: numbers in the order of the values, equal for equal values.
    """
    count = np.bincount(place_n)
    return (2 * np.cumsum(count) - count - len(place_n)).astype(np.float64)[place_n]
