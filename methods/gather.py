"""What SimCSE's code and its descendants do to the gradient where a batch is spread over several processes.

The harness gathers what a loss compares, and its gradient over W processes is that of one (bench/training/gradient.py). The
authors gather copies without a gradient: every process computes the loss of all rows, of which only its own carry one, and the
mean over the processes is 1 / W of the right gradient. Adam hides most of that; the clipping of the gradient norm and weight
decay do not. What the authors do not gather, as the loss of masked language modelling, keeps its gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def across_ranks(views: Sequence[Tensor], faithful: bool = False) -> list[Tensor]:
    """What a contrastive loss compares, (N, D) each: the views as they are; ``faithful``: with 1 / W of their gradient."""
    return (
        [_Lessened.apply(view, processes()) for view in views]
        if faithful and processes() > 1
        else list(views)
    )


def processes() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


class _Lessened(torch.autograd.Function):
    """The identity, whose gradient is divided."""

    @staticmethod
    def forward(ctx: Any, view: Tensor, by: int) -> Tensor:
        ctx.by = by
        return view.view_as(view)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return gradient / ctx.by, None
