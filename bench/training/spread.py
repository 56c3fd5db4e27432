"""A batch with rows that are spread over ranks, and the gradient of one process.

W ranks, n rows on each, N rows in all. Each rank computes the views of its rows; all are gathered,
and every rank computes the whole loss over them. A rank keeps the gradient of the views of its
rows, times W; parameters of the loss itself, such as a head with batch normalisation, have their
whole gradient on every rank. The mean over the ranks is then, for both, the gradient of one process
with the whole batch: exactly, for any loss and any numbers of rows. No loss has to be written for
this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from bench.method import seed_for
from bench.method.batch import Batch
from bench.method.features import widened
from bench.method.ranks import ALONE, Alone, Ranks
from bench.method.torch_method import TorchMethod


def leaves_of(views: Sequence[Tensor], batch: Batch, ranks: Alone) -> tuple[Tensor, ...]:
    """Return the views of the whole batch, as leaves that collect a gradient if the views have one.

    ``views``: of this rank's rows. Views padded to its longest row are padded to the longest of all
    ranks.
    """
    leaves = [view.detach() for view in views]
    if isinstance(ranks, Ranks):
        leaves = _of_all_ranks(leaves, batch, ranks)
    for leaf, view in zip(leaves, views, strict=True):
        leaf.requires_grad_(view.requires_grad)
    return tuple(leaves)


def _of_all_ranks(views: Sequence[Tensor], batch: Batch, ranks: Ranks) -> list[Tensor]:
    """Gather the rows of all ranks."""
    sizes = ranks.sizes(batch.whole or sum(ranks.gather(batch.size)))
    lengths = [length for view in views for length in view.shape[1:]]
    longest = iter(ranks.largest(lengths))
    gathered = []
    for view in views:
        of_all = [next(longest) for _ in view.shape[1:]]
        if of_all and view.shape[1] < of_all[0]:
            view = widened(view, of_all[0])
        # the slice: a rank without a part has a row that does not count
        gathered.append(ranks.rows_of_all(view[: sizes[ranks.rank]], sizes))
    return gathered


def own_gradients(
    leaves: Sequence[Tensor], views: Sequence[Tensor], ranks: Alone
) -> list[Tensor | None]:
    """Return the gradients of the views of this rank's rows, times W, from the gradients of the
    whole batch.
    """
    gradients = []
    for leaf, view in zip(leaves, views, strict=True):
        gradient = leaf.grad
        if gradient is not None and isinstance(ranks, Ranks):
            gradient = _own_part(gradient, view, ranks)
        gradients.append(gradient)
    return gradients


def _own_part(whole: Tensor, view: Tensor, ranks: Ranks) -> Tensor:
    """Return the rows of ``whole`` that are this rank's, times W, in the shape of its view."""
    sizes = ranks.sizes(len(whole))
    start = sum(sizes[: ranks.rank])
    size = sizes[ranks.rank]
    mine = whole.new_zeros((len(view), *whole.shape[1:]))
    mine[:size] = whole[start : start + size] * ranks.count
    return mine[(slice(None), *(slice(length) for length in view.shape[1:]))]


def ranks_of(method: TorchMethod) -> Alone:
    """Return the processes that train a method together."""
    context = getattr(method, "context", None)
    return (context and context.ranks) or ALONE


@contextmanager
def same_draws(method: TorchMethod, batch: Batch) -> Iterator[None]:
    """Make random draws in a loss, such as DCLR's noise, the same on all ranks while this is open.

    Else each rank would have another loss.
    """
    several = ranks_of(method).count > 1
    device = torch.device(method.context.device)
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices, enabled=several):
        if several:
            torch.manual_seed(seed_for(method.context.seed, "loss", batch.step))
        yield
