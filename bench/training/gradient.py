"""The batches of a training and their gradient: which rows in which order, as which features, and the gradient of one batch, in one
pass or with the activations of a few rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from bench.base.errors import BenchError
from bench.method import Method
from bench.method.torch_method import Batch, TorchMethod, checked_loss
from bench.training.spread import leaves_of, own_gradients, same_draws

# A contrastive loss needs the vectors of the whole batch, but not all their activations at once. Gradient caching (Gao, Zhang,
# Han and Callan 2021, "Scaling deep contrastive learning batch size under memory limited setup") computes the vectors slice by
# slice and keeps nothing else, takes the loss over all of them, and computes each slice again for its gradient. The second pass
# of a slice draws the same dropout masks as the first: torch's checkpointing keeps the state of the generators.
#
# The gradient is that of one pass over the same masks. Which masks are drawn depends on the size of the slices and on the device.
# Memory: the activations of one slice, and those of the loss, which has no layers.


def backward(
    method: TorchMethod,
    batch: Batch,
    *,
    chunk: int | None = None,
    autocast: AbstractContextManager[Any] | None = None,
    scaler: torch.amp.GradScaler | None = None,
) -> dict[str, Tensor]:
    """Adds the gradient of a batch's loss to what trains; returns the loss, under "loss", and its parts, all detached.

    ``chunk``: hold the activations of this many rows at once, None for all. Raises BenchError where that is not possible.
    """
    views: tuple[Tensor, ...] = ()
    leaves: tuple[Tensor, ...] = ()
    with in_chunks(method, chunk), autocast or nullcontext():
        if method.is_split():
            method.prepare(batch)
            views = method.views_of(batch)
            leaves = leaves_of(views, batch, method.ranks)
            with same_draws(method, batch.step):
                loss = checked_loss(method, method.loss(leaves, batch))
        else:
            loss = checked_loss(method, method(batch))
    (loss.total if scaler is None else scaler.scale(loss.total)).backward()
    gradients = zip(views, own_gradients(leaves, views, method.ranks), strict=True)
    if reached := [(view, gradient) for view, gradient in gradients if gradient is not None]:
        torch.autograd.backward(
            [view for view, _ in reached], [gradient for _, gradient in reached]
        )
    return {
        "loss": loss.total.detach(),
        **{name: part.detach() for name, part in loss.parts.items()},
    }


@contextmanager
def in_chunks(method: TorchMethod, chunk: int | None) -> Iterator[None]:
    """While open, the method computes its views in slices of ``chunk`` rows."""
    if chunk is not None:
        check_chunk(method, chunk)
    before, method.chunk = method.chunk, chunk
    try:
        yield
    finally:
        method.chunk = before


def check_chunk(method: Method | type[Method], chunk: int) -> None:
    """Raises BenchError for a size below 1, and for a method whose batch cannot be cut."""
    if chunk < 1:
        raise BenchError(f"a chunk of {chunk} rows", "--chunk 1 or more")
    if not method.is_split():
        raise BenchError(
            f"{method.name} defines its loss as a whole, in forward(batch), so its batches cannot be cut into chunks",
            "omit --chunk, or define views(batch) and loss(views, batch) instead: docs/add-a-method.md",
        )
