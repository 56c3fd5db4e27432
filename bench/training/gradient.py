"""The gradient of one batch, in one pass or with the activations of a few rows at a time.

A contrastive loss needs the vectors of the whole batch, but not all their activations at once.
Gradient caching (Gao, Zhang, Han and Callan 2021, "Scaling deep contrastive learning batch size
under memory limited setup") computes the vectors slice by slice and keeps nothing else, takes the
loss over all of them, and computes each slice again for its gradient. The second pass of a slice
draws the same dropout masks as the first: torch's checkpointing keeps the state of the generators.

The gradient equals the gradient of one pass over the same masks. Which masks are drawn depends on
the size of the slices and on the device. Memory: the activations of one slice, and of the loss,
which has no layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from bench.base.errors import BenchError, PluginFailed
from bench.base.user_code import place_of_code
from bench.method import Method
from bench.method.batch import Batch, Loss
from bench.method.torch_method import TorchMethod, is_split, views_of
from bench.training.spread import leaves_of, own_gradients, ranks_of, same_draws


def backward(
    method: TorchMethod,
    batch: Batch,
    *,
    chunk: int | None = None,
    autocast: AbstractContextManager[Any] | None = None,
    scaler: torch.amp.GradScaler | None = None,
) -> dict[str, Tensor]:
    """Add the gradient of a batch's loss to the weights that train.

    Returns the loss, under "loss", and its parts, all detached. ``chunk``: hold the activations of
    this many rows at once, None for all. ``scaler``: scales the loss, for fp16. Raises BenchError
    if the batch cannot be cut into chunks.
    """
    views: tuple[Tensor, ...] = ()
    leaves: tuple[Tensor, ...] = ()
    ranks = ranks_of(method)
    with in_chunks(method, chunk), autocast or nullcontext():
        # the loss: of the views of the whole batch, which are leaves here, or of the method's own
        # forward
        if is_split(method):
            method.prepare(batch)
            views = views_of(method, batch)
            leaves = leaves_of(views, batch, ranks)
            with same_draws(method, batch):
                loss = checked_loss(type(method).loss, method.loss(leaves, batch))
        else:
            loss = checked_loss(type(method).forward, method(batch))

    # the gradient of the loss: to the leaves, or at once to the weights
    scaled = loss.total
    if scaler is not None:
        scaled = scaler.scale(loss.total)
    scaled.backward()

    # and on from the leaves, through the views of this rank's rows, to the weights
    reached = []
    gradients = []
    for view, gradient in zip(views, own_gradients(leaves, views, ranks), strict=True):
        if gradient is not None:
            reached.append(view)
            gradients.append(gradient)
    if reached:
        torch.autograd.backward(reached, gradients)

    losses = {"loss": loss.total.detach()}
    for name, part in loss.parts.items():
        losses[name] = part.detach()
    return losses


@contextmanager
def in_chunks(method: TorchMethod, chunk: int | None) -> Iterator[None]:
    """Let the method compute its views in slices of ``chunk`` rows while this is open."""
    if chunk is not None:
        check_split(method)
    before, method._chunk = method._chunk, chunk
    try:
        yield
    finally:
        method._chunk = before


def check_split(method: Method | type[Method]) -> None:
    """Raise BenchError for a method that needs its batch in one piece."""
    if not is_split(method):
        raise BenchError(
            f"{method.name} defines its loss as a whole, in forward(batch), "
            "so its batches cannot be cut into chunks, or shared by several processes",
            "omit --chunk and --on torchrun, or define views(batch) and loss(views, batch) "
            "instead: docs/add-a-method.md",
        )


def checked_loss(function: Callable[..., Any], returned: Any) -> Loss:
    """Return the value that a method's ``loss`` or ``forward`` returned, after checks.

    Raises PluginFailed, with the place in the method's code, unless it is a Loss of tensors with
    one number as its total.
    """
    place = place_of_code(function)
    if not isinstance(returned, Loss):
        raise PluginFailed(f"{place}: returned {type(returned).__name__}; return Loss(tensor)")
    for name, value in {"total": returned.total, **returned.parts}.items():
        if not isinstance(value, Tensor):
            raise PluginFailed(
                f"{place}: '{name}' of the loss is {type(value).__name__}; expected a Tensor"
            )
    if returned.total.numel() != 1:
        raise PluginFailed(
            f"{place}: expected one finite number as the loss, "
            f"found a tensor of shape {tuple(returned.total.shape)}",
            "Loss(total.mean()), or its sum",
        )
    return returned
