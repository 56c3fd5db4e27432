"""What n trials of a search find: the expected best of n dev scores (Dodge et al. 2019, "Show Your Work", section 3.1)."""

from __future__ import annotations

from collections.abc import Sequence


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
