"""How far a training is, and where it ends: after the recipe's epochs or steps, or when its budget is spent."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.method import Recipe
from bench.method.contract import GPU_SECONDS, SECONDS, TOKENS, budget_of, total_steps


@dataclass
class Progress:
    """How far a training is. Seconds are summed over all processes that worked on it."""

    step: int = 0
    rows: int = 0
    tokens: int = 0  # of these rows, without padding
    best_step: int = 0
    best_score: float | None = None
    best_files: dict[str, str] = field(default_factory=dict)  # of the best checkpoint: its sha256
    worse: int = 0  # dev scores in a row that were not better
    scored: int = 0  # step of the last dev score
    logged: int = 0  # step of the last line of the curve
    chunk: int | None = None  # rows whose activations are held at once
    ranks: list[int] = field(default_factory=list)  # how many processes worked on it, in turn
    train_seconds: float = 0.0
    device_seconds: float = 0.0  # these times the number of processes
    dev_seconds: float = 0.0
    idle: int = 0  # steps whose loss was exactly 0


ENDLESS = 10**9  # steps of a schedule until something of the budget is spent


class Horizon:
    """The end of one training."""

    def __init__(self, recipe: Recipe, rows: int) -> None:
        self.budget, self.steps = budget_of(recipe), total_steps(recipe, rows)
        self.most = (recipe.max_steps or ENDLESS) if self.steps is None else self.steps

    def reached(self, p: Progress) -> bool:
        return p.step >= self.most or (self.steps is None and self._share(p) >= 1)

    def steps_at(self, p: Progress) -> int:
        """The number of steps of the schedule. Where tokens or a clock decide, it is estimated from the pace so far, so that a
        rate which falls with the share of steps falls with the share of the budget, and ends where that ends."""
        if self.steps is not None:
            return self.steps
        share = self._share(p)
        expected = round(p.step / share) if share > 0 and p.step else ENDLESS
        return max(p.step + 1, min(expected, self.most))

    def _share(self, p: Progress) -> float:
        """How much of the budget is spent: 0 at the start, 1 and more when it is used up."""
        assert self.budget is not None
        spent = {TOKENS: p.tokens, SECONDS: p.train_seconds, GPU_SECONDS: p.device_seconds}
        return spent[self.budget.unit] / self.budget.amount
