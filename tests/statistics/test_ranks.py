"""Rank groups: examples by hand, and laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.statistics.ranks import rank_groups


@pytest.mark.parametrize(
    ("means", "apart", "ranks"),
    [
        ([], 1, []),
        ([70.0], 1, [1]),
        ([70.0, 76.0, 75.5], 1, [3, 1, 1]),
        ([3.0, 2.0, 1.0], 0.5, [1, 2, 3]),
        ([3.0, 2.0, 1.0], 5, [1, 1, 1]),
        (
            [10.0, 9.3, 8.6, 7.9],
            1,
            [1, 1, 3, 3],
        ),  # 9.3 and 8.6 are as alike as 10 and 9.3: each is measured from its group's best
        ([5.0, 5.0, 1.0], 1, [1, 1, 3]),
    ],
)
def test_by_hand(means: list[float], apart: float, ranks: list[int]) -> None:
    assert rank_groups(means, lambda i, j: means[i] - means[j] > apart) == ranks


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(0, 50).map(float), min_size=1, max_size=20), st.integers(0, 2**32 - 1))
def test_laws_under_any_answers(means: list[float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    answers = {(i, j): bool(rng.integers(2)) for i in range(len(means)) for j in range(len(means))}
    asked: list[tuple[int, int]] = []

    def separable(i: int, j: int) -> bool:
        asked.append((i, j))
        return answers[i, j]

    ranks = rank_groups(means, separable)
    assert len(asked) == len(means) - 1 and all(means[i] >= means[j] for i, j in asked)
    order = sorted(range(len(means)), key=lambda i: (-means[i], ranks[i]))
    assert [ranks[i] for i in order] == sorted(ranks)  # nothing worse ranks above something better
    for rank in set(ranks):
        assert sum(other < rank for other in ranks) == rank - 1  # a rank is the first place of its group
        best = [j for i, j in asked if ranks[j] == rank and answers[i, j]]
        assert len(best) <= 1  # one of a group may be told apart from the group before: the one that opens it
