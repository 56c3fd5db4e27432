"""Where a training ends: after the recipe's epochs or steps, or when its budget is spent.

Plans ask it too, before torch is loaded: nothing here needs a tensor.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bench.method.budget import SENTENCES, STEPS, budget_of

if TYPE_CHECKING:
    from bench.method import Recipe
    from bench.training.state import Progress

ENDLESS = 10**9  # steps that a schedule is laid over until something of the budget is spent


def batches_per_epoch(recipe: Recipe, rows: int) -> int:
    """The last short batch of an epoch counts, unless the recipe drops it (and there is a whole one)."""
    whole, left = divmod(rows, recipe.batch_size)
    return whole + bool(left and not (recipe.drop_last and whole))


def total_steps(recipe: Recipe, rows: int) -> int | None:
    """Optimiser steps of the whole run; None where tokens or a clock decide."""
    given = budget_of(recipe)
    if given is None:
        steps = math.ceil(recipe.epochs * batches_per_epoch(recipe, rows))
    elif given.unit == STEPS:
        steps = int(given.amount)
    elif given.unit == SENTENCES:
        steps = steps_for_rows(recipe, rows, int(given.amount))
    else:
        return None
    return min(steps, recipe.max_steps) if recipe.max_steps else steps


def steps_for_rows(recipe: Recipe, rows: int, wanted: int) -> int:
    """Steps until ``wanted`` rows were seen: the last step is the one that reaches it."""
    per_epoch = batches_per_epoch(recipe, rows)
    seen = min(rows, per_epoch * recipe.batch_size)  # of one epoch
    epochs, rest = divmod(wanted, seen)
    return epochs * per_epoch + math.ceil(rest / recipe.batch_size)


class Horizon:
    """The end of one training, asked before and after every step."""

    def __init__(self, recipe: Recipe, rows: int) -> None:
        self.budget, self.steps = budget_of(recipe), total_steps(recipe, rows)
        self.most = recipe.max_steps or ENDLESS

    @property
    def timed(self) -> bool:
        return self.budget is not None and self.budget.timed

    def reached(self, p: Progress) -> bool:
        if self.steps is not None:
            return p.step >= self.steps
        return p.step >= self.most or self._share(p) >= 1

    def steps_at(self, p: Progress) -> int:
        """Steps that the schedule is laid over. Where tokens or a clock decide: as many as there will be at the pace so far,
        so that a rate which falls with the share of steps falls with the share of the budget, and ends where that ends."""
        if self.steps is not None:
            return self.steps
        share = self._share(p)
        expected = round(p.step / share) if share > 0 and p.step else ENDLESS
        return max(p.step + 1, min(expected, self.most))

    def _share(self, p: Progress) -> float:
        assert self.budget is not None
        return self.budget.share(
            steps=p.step,
            sentences=p.rows,
            tokens=p.tokens,
            seconds=p.train_seconds,
            device_seconds=p.device_seconds,
        )
