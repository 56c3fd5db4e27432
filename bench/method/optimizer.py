"""The optimiser of the papers' common loop, for any method with a recipe, and BERT's own variant of
it.
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import torch


class UncorrectedAdamW(torch.optim.AdamW):
    """AdamW without bias correction, as in BERT's code: p -= rate * (m / (sqrt(v) + eps) + decay *
    p).

    The first updates are larger than corrected ones, the very first 3.2 times as large.

    Source: google-research/bert optimization.py; ``correct_bias=False`` of transformers' former
    AdamW, which decays after the update: a difference of rate^2 * decay.
    """

    # updates so far; None: ask the state, which makes the host wait for a GPU
    done: int | None = None

    def load_state_dict(self, state_dict: Any) -> None:
        super().load_state_dict(state_dict)
        self.done = None

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Make torch's own update with a rate, an eps and a decay that undo its corrections by 1 -
        beta^t.
        """
        if self.done is None or getattr(self, "found_inf", None) is not None:
            # in fp16 the scaler skips updates, and only the device knows which
            self.done = next(
                (int(state["step"]) for state in self.state.values() if "step" in state), 0
            )
        done, self.done = self.done, self.done + 1
        before = [(group["lr"], group["eps"], group["weight_decay"]) for group in self.param_groups]
        for group, (rate, eps, decay) in zip(self.param_groups, before, strict=True):
            of_m, of_v = (1 - beta ** (done + 1) for beta in group["betas"])
            factor = of_m / math.sqrt(of_v)
            group.update(lr=rate * factor, eps=eps / math.sqrt(of_v), weight_decay=decay / factor)
        try:
            # not super(): torch wraps the step of each class, so that hooks of a step would be
            # called twice
            return inspect.unwrap(torch.optim.AdamW.step)(self, closure)
        finally:
            for group, (rate, eps, decay) in zip(self.param_groups, before, strict=True):
                group.update(lr=rate, eps=eps, weight_decay=decay)
