"""Sampled Spearman, as CxC-STS is scored: each draw takes half of the queries and one rated pair of each.

Pairs are given in the order of the data, each with the query that it belongs to; queries are numbered from 0. Draws depend on
these numbers and the seed alone, so that every model is scored on the same draws.

Legend: N pairs, Q queries, B draws, n pairs of a draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.score.metrics.correlation import check_sides

Rows = NDArray[np.int64]

SEED, DRAWS = 123, 1000


def draws_with_replacement(query_N: ArrayLike, *, draws: int = DRAWS) -> Iterator[Rows]:
    """PromCSE's draws: half of the queries with replacement, then one pair of each; rows of the pairs.

    The random calls are those of its code, in their order: numpy's legacy generator, per draw one call for all queries and one
    for the pair of each. A call of that generator takes 32-bit words until one, cut to the bits of the largest number wanted,
    is no larger than it, and takes none where there is one choice only. The words are the same here, without the calls.
    """
    order_N, first_Q, size_Q = _by_query(query_N)
    words = _Words(SEED)
    for _ in range(draws):
        chosen = words.below(len(size_Q), len(size_Q) // 2)
        yield order_N[first_Q[chosen] + words.below_each(size_Q[chosen].tolist())]


def draws_without_replacement(query_N: ArrayLike, *, draws: int = DRAWS, seed: int = SEED) -> Iterator[Rows]:
    """Half of the queries, none twice, and one pair of each, all equally likely; rows of the pairs.

    Parekh et al. publish no code; the generator is numpy's legacy one because its numbers will not change.
    """
    order_N, first_Q, size_Q = _by_query(query_N)
    random = np.random.RandomState(seed)
    for _ in range(draws):
        chosen = random.permutation(len(size_Q))[: len(size_Q) // 2]
        yield order_N[first_Q[chosen] + (random.random_sample(len(chosen)) * size_Q[chosen]).astype(np.int64)]


def _by_query(query_N: ArrayLike) -> tuple[Rows, Rows, Rows]:
    """Rows sorted by query (in the data's order within one), and of every query where its rows begin and how many they are."""
    queries_N = np.asarray(query_N)
    size_Q = np.bincount(queries_N)
    if len(size_Q) < 2 or not size_Q.all():
        raise ValueError("queries must be numbered from 0 without a gap, and be at least 2")
    return np.argsort(queries_N, kind="stable"), np.cumsum(size_Q) - size_Q, size_Q


class _Words:
    """The 32-bit words of numpy's legacy generator, in order."""

    BLOCK = 1 << 16

    def __init__(self, seed: int) -> None:
        self._random = np.random.RandomState(seed)
        self._block = np.zeros(0, dtype=np.int64)
        self._next = 0

    def _ahead(self, count: int) -> NDArray[np.int64]:
        """The coming words, at least ``count``; none is taken yet."""
        if self._next + count > len(self._block):
            more = self._random.randint(0, 1 << 32, size=max(count, self.BLOCK), dtype=np.uint32)
            self._block = np.concatenate([self._block[self._next :], more.astype(np.int64)])
            self._next = 0
        return self._block[self._next :]

    def below(self, limit: int, count: int) -> Rows:
        """What ``randint(0, limit, count)`` gives."""
        if limit == 1:
            return np.zeros(count, dtype=np.int64)
        mask, wanted = _mask(limit), 2 * count + 64
        while True:
            words = self._ahead(wanted)[:wanted] & mask
            good = np.flatnonzero(words < limit)
            if len(good) >= count:
                self._next += int(good[count - 1]) + 1 if count else 0
                return words[good[:count]]
            wanted *= 2

    def below_each(self, limits: Sequence[int]) -> Rows:
        """What ``[randint(limit) for limit in limits]`` gives."""
        masks = [_mask(limit) for limit in limits]
        found: list[int] = []
        while True:
            words = iter(self._ahead(2 * (len(limits) - len(found)) + 16).tolist())
            taken = 0
            try:
                for limit, mask in zip(limits[len(found) :], masks[len(found) :], strict=True):
                    word = 0
                    if mask:
                        begun = taken
                        taken += 1
                        while (word := next(words) & mask) >= limit:
                            taken += 1
                    found.append(word)
                self._next += taken
                return np.array(found, dtype=np.int64)
            except StopIteration:  # the choice that ran out of words begins anew with more of them
                self._next += begun


def _mask(limit: int) -> int:
    return (1 << (limit - 1).bit_length()) - 1


def sampled_spearman(predicted: ArrayLike, gold: ArrayLike, drawn: Iterable[Rows]) -> NDArray[np.float64]:
    """(B,) rank correlation x 100 of the rows of every draw; equal values, and a row that is there twice, share their mean rank.

    Ranks are counted, not sorted anew for each draw, and their sums are exact.
    Raises ValueError for NaN or infinity, and where a draw has one side constant.
    """
    sides = check_sides(predicted, gold)
    place_a_N, place_b_N = (np.unique(side_N, return_inverse=True)[1].reshape(-1) for side_N in sides)
    values = []
    for i, rows_n in enumerate(drawn):
        a_n, b_n = _centred_ranks(place_a_N[rows_n]), _centred_ranks(place_b_N[rows_n])
        squares_a, squares_b = a_n @ a_n, b_n @ b_n
        if squares_a == 0 or squares_b == 0:
            side = "predicted" if squares_a == 0 else "gold"
            raise ValueError(f"the {side} side of draw {i} is constant: correlation is undefined, not zero")
        values.append(100 * (a_n @ b_n) / np.sqrt(squares_a * squares_b))
    return np.clip(np.array(values), -100.0, 100.0)


def _centred_ranks(place_n: Rows) -> NDArray[np.float64]:
    """Twice the mean rank of every value less twice the mean of all ranks: whole numbers. ``place_n``: equal for equal values."""
    count = np.bincount(place_n)
    twice = 2 * np.cumsum(count) - count - len(place_n)
    ranks_n: NDArray[np.float64] = twice.astype(np.float64)[place_n]
    return ranks_n
