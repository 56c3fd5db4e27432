"""The progress of a training, and its end: after the recipe's epochs or steps, or when its budget
is spent.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.method import Recipe
from bench.method.budget import GPU_SECONDS, SECONDS, TOKENS, budget_of, total_steps


@dataclass
class Progress:
    """The counts of one training.

    Seconds are summed over all processes that worked on it, one after the other.
    """

    # optimiser steps that are done
    step: int = 0
    # rows of the corpus in these steps
    rows: int = 0
    # tokens of these rows, without padding
    tokens: int = 0
    # the step of the best dev score, and the score
    best_step: int = 0
    best_score: float | None = None
    # the files of the best checkpoint -> their sha256
    best_files: dict[str, str] = field(default_factory=dict)
    # dev scores in a row that were not better
    worse: int = 0
    # the step of the last dev score
    scored: int = 0
    # the step of the last line of the curve
    logged: int = 0
    # rows with activations that are held at once; None: all of a batch
    chunk: int | None = None
    # how many processes worked on it together, one number after the other
    ranks: list[int] = field(default_factory=list)
    # seconds of steps; the same times the number of processes; seconds of dev scores
    train_seconds: float = 0.0
    device_seconds: float = 0.0
    dev_seconds: float = 0.0


ENDLESS = 10**9
"""Steps of a schedule until something of the budget is spent."""


class Horizon:
    """The end of one training."""

    def __init__(self, recipe: Recipe, rows: int) -> None:
        """``rows``: of the corpus."""
        self.budget = budget_of(recipe)
        # None: tokens or a clock decide
        self.steps = total_steps(recipe, rows)
        if self.steps is None:
            self.most: int = recipe.max_steps or ENDLESS
        else:
            self.most = self.steps

    def reached(self, progress: Progress) -> bool:
        """Return True after the last step."""
        if progress.step >= self.most:
            return True
        return self.steps is None and self._share(progress) >= 1

    def steps_at(self, progress: Progress) -> int:
        """Return the number of steps of the schedule.

        If tokens or a clock decide, it is estimated from the pace so far, so that a rate that falls
        with the share of steps falls with the share of the budget, and ends with it.
        """
        if self.steps is not None:
            return self.steps
        expected = ENDLESS
        share = self._share(progress)
        if share > 0 and progress.step:
            expected = round(progress.step / share)
        return max(progress.step + 1, min(expected, self.most))

    def _share(self, progress: Progress) -> float:
        """Return the share of the budget that is spent: 0 at the start, 1 or more when it is used
        up.
        """
        assert self.budget is not None
        spent = {
            TOKENS: progress.tokens,
            SECONDS: progress.train_seconds,
            GPU_SECONDS: progress.device_seconds,
        }
        return spent[self.budget.unit] / self.budget.amount
