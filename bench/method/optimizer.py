"""The optimiser and the learning rate of the papers' common loop, for any module with a recipe."""

from __future__ import annotations

import math
from typing import Any

import torch

from bench.base.errors import BenchError, RunFailed
from bench.method import Recipe


class UncorrectedAdamW(torch.optim.AdamW):
    """AdamW without bias correction, as in BERT's own code: p -= rate * (m / (sqrt(v) + eps) + decay * p).

    The first updates are larger than corrected ones, the very first 3.2 times as large. Source: google-research/bert
    optimization.py; ``correct_bias=False`` of transformers' former AdamW, which decays what is already updated: a difference of
    rate^2 * decay.
    """

    def step(self, closure: Any = None) -> Any:
        """torch's own update, with a rate, an eps and a decay that undo its corrections by 1 - beta^t."""
        done = next((float(state["step"]) for state in self.state.values() if "step" in state), 0.0)
        before = [(group["lr"], group["eps"], group["weight_decay"]) for group in self.param_groups]
        for group, (rate, eps, decay) in zip(self.param_groups, before, strict=True):
            of_m, of_v = (1 - beta ** (done + 1) for beta in group["betas"])
            factor = of_m / math.sqrt(of_v)
            group.update(lr=rate * factor, eps=eps / math.sqrt(of_v), weight_decay=decay / factor)
        try:
            return super().step(closure)
        finally:
            for group, (rate, eps, decay) in zip(self.param_groups, before, strict=True):
                group.update(lr=rate, eps=eps, weight_decay=decay)


def adamw(
    method: Any, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, *, bias_correction: bool = True
) -> torch.optim.AdamW:
    """AdamW with the rate and decay of the recipe of a ``TorchMethod``; no decay on biases and layer norms.

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
    cls = torch.optim.AdamW if bias_correction else UncorrectedAdamW
    return cls([g for g in groups if g["params"]], lr=recipe.learning_rate, betas=betas, eps=eps, fused=True)


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
