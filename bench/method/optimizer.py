"""The optimiser and the learning rate of the papers' common loop, for any module with a recipe."""

from __future__ import annotations

from typing import Any

import torch

from bench.base.errors import BenchError, RunFailed
from bench.method import Recipe


def adamw(method: Any, betas: tuple[float, float] = (0.9, 0.999)) -> torch.optim.AdamW:
    """AdamW, eps 1e-8, the rate and decay of the recipe of a ``TorchMethod``; no decay on biases and layer norms.

    Raises RunFailed where no parameter trains.
    """
    recipe = method.recipe
    trained = [p for p in method.parameters() if p.requires_grad]
    if not trained:
        raise RunFailed(f"{method.name} has no parameter that trains")
    groups = [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": recipe.weight_decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=recipe.learning_rate, betas=betas, eps=1e-8, fused=True)


def learning_rate_at(step: int, *, peak: float, steps: int, warmup: int = 0, schedule: str = "linear") -> float:
    """The rate of the update after ``step`` updates: rises over ``warmup`` steps, then stays ("constant") or falls to 0 at ``steps``."""
    if step < warmup:
        return peak * step / warmup
    if schedule == "constant":
        return peak
    return peak * max(0.0, (steps - step) / max(1, steps - warmup))


def scheduled_rate(recipe: Recipe, step: int, steps: int) -> float:
    """:func:`learning_rate_at` as a recipe says: ``schedule``, and ``warmup_steps`` or ``warmup_ratio`` of all steps."""
    warmup = recipe.warmup_steps or round(recipe.warmup_ratio * steps)
    return learning_rate_at(step, peak=recipe.learning_rate, steps=steps, warmup=warmup, schedule=recipe.schedule)


def check_schedule(recipe: Recipe) -> None:
    """Raises BenchError for a schedule that is not known."""
    if recipe.schedule not in ("linear", "constant"):
        raise BenchError(f"schedule={recipe.schedule} is unknown", "choose linear or constant")
