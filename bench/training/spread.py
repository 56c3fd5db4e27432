"""A batch whose rows are spread over ranks, with the gradient of one process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from bench.base.errors import BenchError
from bench.method import seed_for
from bench.method.ranks import Alone, Ranks
from bench.method.torch_method import Batch, TorchMethod, widened

# W ranks, n rows on each, N rows in all. Each rank computes the views of its rows; all are gathered, and every rank computes the
# whole loss over them. A rank keeps the gradient of the views of its rows, times W; what the loss itself uses, such as a head with
# batch normalisation, has its whole gradient on every rank. The mean over the ranks is then, for both, the gradient of one process
# with the whole batch: exactly, for any loss and any numbers of rows. No loss has to be written for this.


def leaves_of(views: Sequence[Tensor], batch: Batch, ranks: Alone) -> tuple[Tensor, ...]:
    """The views of the whole batch, as leaves that collect a gradient where the views have one.

    ``views`` are those of this rank's rows. Views padded to its longest row are padded to the longest of all ranks.
    """
    whole: Sequence[Tensor] = [view.detach() for view in views]
    if isinstance(ranks, Ranks):
        sizes = ranks.sizes(batch.whole or sum(ranks.gather(batch.size)))
        lengths = iter(ranks.largest([length for view in views for length in view.shape[1:]]))
        for_all = [[next(lengths) for _ in view.shape[1:]] for view in views]
        same = [
            widened(view, to[0]) if to and view.shape[1] < to[0] else view
            for view, to in zip(whole, for_all, strict=True)
        ]
        # the slice: a rank without a part has a row that does not count
        whole = [ranks.rows_of_all(view[: sizes[ranks.rank]], sizes) for view in same]
    return tuple(
        leaf.requires_grad_(view.requires_grad) for leaf, view in zip(whole, views, strict=True)
    )


def own_gradients(
    leaves: Sequence[Tensor], views: Sequence[Tensor], ranks: Alone
) -> list[Tensor | None]:
    """The gradients of the views of this rank's rows, times W, from those of the whole batch."""
    if not isinstance(ranks, Ranks):
        return [leaf.grad for leaf in leaves]
    return [
        None if leaf.grad is None else _own(leaf.grad, view, ranks)
        for leaf, view in zip(leaves, views, strict=True)
    ]


def _own(whole: Tensor, view: Tensor, ranks: Ranks) -> Tensor:
    sizes = ranks.sizes(len(whole))
    start, size = sum(sizes[: ranks.rank]), sizes[ranks.rank]
    mine = whole.new_zeros((len(view), *whole.shape[1:]))
    mine[:size] = whole[start : start + size] * ranks.count
    return mine[(slice(None), *(slice(length) for length in view.shape[1:]))]


@contextmanager
def same_draws(method: TorchMethod, step: int) -> Iterator[None]:
    """While open, random draws in a loss, such as DCLR's noise, are the same on all ranks: else each would have another loss."""
    several, device = method.ranks.count > 1, torch.device(method.context.device)
    with torch.random.fork_rng([device] if device.type == "cuda" else [], enabled=several):
        if several:
            torch.manual_seed(seed_for(method.context.seed, "loss", step))
        yield


def check_spread(method: TorchMethod, ranks: Alone, rows: int) -> str | None:
    """A note about a method whose batches are spread over ranks, None for nothing. ``rows`` are those of the corpus.

    Raises BenchError where the mean over the ranks would not be the mean over the batch: the loss is not split into ``views`` and
    ``loss``, and the ranks would have different numbers of rows.
    """
    if ranks.count == 1 or method.is_split():
        return None
    size, last = method.recipe.batch_size, rows % method.recipe.batch_size
    if size % ranks.count or (
        last % ranks.count and not (method.recipe.drop_last and rows >= size)
    ):
        raise BenchError(
            f"{method.name} defines forward(batch) as a whole, and {ranks.count} ranks cannot share its batches evenly "
            f"(batch_size {size}, the last one {last or size})",
            f"--set drop_last=true and a batch_size that {ranks.count} divides, or one process",
        )
    return f"{method.name} defines forward(batch) as a whole: a row meets only the {size // ranks.count} rows of its rank, not all {size}"
