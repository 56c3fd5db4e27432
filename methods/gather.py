"""Contrastive batches over several processes: candidates from every rank, without losing the gradient.

W ranks, n rows on each, N = W n, D dimensions.  Every anchor sees the candidates of all ranks. Under the averaging of
``DistributedDataParallel`` the parameters' gradient is exactly that of one process with the whole batch: each rank has the
loss of its own anchors, and what they ask of another rank's candidates travels back to it.

``faithful`` is what SimCSE's code and its descendants do instead: every rank computes the loss of all N anchors on gathered
copies of which only its own rows carry a gradient. The averaged gradient is then 1 / W of the right one. Adam hides most of
that; the clipping of the gradient norm and weight decay do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from bench.method import BenchError


def across_ranks(views: Sequence[Tensor], faithful: bool = False) -> tuple[list[Tensor], int]:
    """Anchors and their candidates, each (n, D), as a loss wants them, and the row of the first anchor's own candidate.

    Exact: (n, D) anchors and (N, D) candidates. Faithful: all (N, D), offset 0. In one process: as they came, offset 0.
    """
    if not spread():
        return list(views), 0
    candidates = [gathered(view, faithful) for view in views[1:]]
    if faithful:
        return [gathered(views[0], faithful), *candidates], 0
    return [views[0], *candidates], dist.get_rank() * len(views[0])


def gathered(z_nD: Tensor, faithful: bool = False) -> Tensor:
    """(N, D): the rows of all ranks, in their order. The identity where there is one process.

    Its gradient is summed over the ranks; ``faithful``: only that of the rank's own rows, and only from its own loss.
    Raises BenchError, on every rank, where the ranks hold different numbers of rows.
    """
    if not spread():
        return z_nD
    _refuse_different_counts(z_nD)
    if faithful:
        copies, rank = _all_gather(z_nD.detach()), dist.get_rank()
        return torch.cat([*copies[:rank], z_nD, *copies[rank + 1 :]])
    whole: Tensor = _Gather.apply(z_nD)
    return whole


def spread() -> bool:
    """Is the batch spread over several processes?"""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


class _Gather(torch.autograd.Function):
    """Concatenation over ranks. What a rank's rows cause is felt by all losses, so that the gradients are summed."""

    @staticmethod
    def forward(ctx: Any, z_nD: Tensor) -> Tensor:
        return torch.cat(_all_gather(z_nD))

    @staticmethod
    def backward(ctx: Any, grad_ND: Tensor) -> Tensor:  # type: ignore[override]
        total = grad_ND.contiguous().clone()  # all_reduce writes in place
        dist.all_reduce(total)
        return total.chunk(dist.get_world_size())[dist.get_rank()]


def _all_gather(z_nD: Tensor) -> list[Tensor]:
    mine = z_nD.contiguous()
    parts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, mine)
    return parts


def _refuse_different_counts(z_nD: Tensor) -> None:
    counts = [int(count) for count in _all_gather(torch.tensor([len(z_nD)], device=z_nD.device))]
    if len(set(counts)) > 1:  # their mean of means would not be the mean of the whole batch
        rows = ", ".join(str(count) for count in counts)
        raise BenchError(f"the ranks hold different numbers of rows of one batch: {rows}", "--set drop_last=true")
