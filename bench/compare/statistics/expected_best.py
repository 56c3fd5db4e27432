"""What n trials of a search find: the expected best of n dev scores (Dodge et al. 2019, "Show Your Work", section 3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any


def expected_best(scores: Sequence[float | None]) -> list[float]:
    """The expected highest of n scores, for n from 1 to their number: n draws, with replacement, from the scores that were found.

    With N of them sorted, the highest of n draws is the i-th or a lower one with probability (i / N)^n. None is a trial without
    a score, which failed or was pruned: it counts, as the lowest score that was found. Empty where no trial has a score.
    """
    known = [score for score in scores if score is not None]
    if not known:
        return []
    ordered, count = sorted(min(known) if score is None else score for score in scores), len(scores)
    return [
        sum(
            score * ((i / count) ** n - ((i - 1) / count) ** n)
            for i, score in enumerate(ordered, 1)
        )
        for n in range(1, count + 1)
    ]


MANY = 6  # values of which each is a part of its own
PARTS = 3  # of a range of more values


def parts(values: Sequence[Any], scores: Sequence[float]) -> list[tuple[str, int, float]]:
    """(values, trials, mean score) of each value, or of thirds of a range, lowest first: what a recipe key does to the score.

    The other keys move at the same time, so a difference between parts is one that the others did not hide, or make.
    """
    pairs = sorted(
        zip(values, scores, strict=True),
        key=lambda pair: (str(type(pair[0])), pair[0]) if _orders(pair[0]) else ("", str(pair[0])),
    )
    distinct = list(dict.fromkeys(value for value, _ in pairs))
    if len(distinct) <= MANY or not all(map(_orders, distinct)):
        groups = [[pair for pair in pairs if pair[0] == value] for value in distinct]
    else:
        ends = [round(len(pairs) * i / PARTS) for i in range(PARTS + 1)]
        groups = [pairs[low:high] for low, high in pairwise(ends)]
    return [(_words(group), len(group), fmean(score for _, score in group)) for group in groups]


def _orders(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _words(group: Sequence[tuple[Any, float]]) -> str:
    first, last = (
        f"{value:g}" if isinstance(value, float) else str(value)
        for value in (group[0][0], group[-1][0])
    )
    return first if first == last else f"{first} to {last}"


def gains(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[float, float, float]:
    """(mean gain, range of the methods before, range after): of the methods that have both scores."""
    both = [name for name in before if name in after]
    range_before, range_after = (
        max(side[name] for name in both) - min(side[name] for name in both)
        for side in (before, after)
    )
    return fmean(after[name] - before[name] for name in both), range_before, range_after
