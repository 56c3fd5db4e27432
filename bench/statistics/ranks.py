"""Rank groups: methods that cannot be told apart share a rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def rank_groups(means: Sequence[float], separable: Callable[[int, int], bool]) -> list[int]:
    """The rank of every method, in the given order; more is better.

    Going down from the best mean, a method joins the group above where it cannot be told apart from the *best* of that group, and
    opens a new group where it can. A group's rank is its first place: 1, 1, 3. "Cannot be told apart" is not transitive: the last
    of one group and the first of the next may be alike; each is judged by its distance to the best of a group alone.
    ``separable(i, j)`` answers for positions in ``means``, the better one first; it is asked at most once per method.
    """
    order = sorted(range(len(means)), key=lambda i: -means[i])
    ranks = [0] * len(means)
    best = -1
    for place, i in enumerate(order):
        if best < 0 or separable(best, i):
            best, rank = i, place + 1
        ranks[i] = rank
    return ranks
