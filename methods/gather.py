"""The gradient of SimCSE's code and its descendants if a batch is spread over several processes.

The harness gathers the vectors that a loss compares, and its gradient over W processes equals the
gradient of one process (bench/training/gradient.py). The authors gather copies without a gradient:
every process computes the loss of all rows, and only its own rows carry a gradient, so that the
mean over the processes is 1 / W of the right one. Adam hides most of that; clipping of the gradient
norm and weight decay do not. Losses that the authors do not gather, such as masked language
modelling, keep their gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def across_ranks(views: Sequence[Tensor], faithful: bool = False) -> list[Tensor]:
    """Return the vectors that a contrastive loss compares, (N, D) each.

    They are the unchanged views; with ``faithful``, with 1 / W of their gradient.
    """
    return (
        [_Lessened.apply(view, processes()) for view in views]
        if faithful and processes() > 1
        else list(views)
    )


def processes() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


class _Lessened(torch.autograd.Function):
    """The identity, with a divided gradient."""

    @staticmethod
    def forward(ctx: Any, view: Tensor, by: int) -> Tensor:
        ctx.by = by
        return view.view_as(view)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return gradient / ctx.by, None
