"""The gradient of one batch, in one pass or with the activations of a few rows at a time.

A contrastive loss needs the vectors of the whole batch, but not all their activations at once. Gradient caching (Gao, Zhang,
Han and Callan 2021, "Scaling deep contrastive learning batch size under memory limited setup") computes the vectors slice by
slice and keeps nothing else, takes the loss over all of them, and computes each slice again when its gradient is wanted. The
second pass of a slice draws the very dropout masks of the first: torch's checkpointing keeps the state of the generators.

The gradient is that of one pass over the same masks. Which masks are drawn depends on the size of the slices, as it depends on
the device. Memory: the activations of one slice, and what the loss itself holds, which has no layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from bench.errors import BenchError
from bench.method import Method
from bench.torch_method import Batch, TorchMethod
from bench.training.across import leaves_of, own_gradients, same_draws


def backward(
    method: TorchMethod, batch: Batch, *, chunk: int | None = None,
    autocast: AbstractContextManager[Any] | None = None, scaler: torch.amp.GradScaler | None = None,
) -> dict[str, Tensor]:  # fmt: skip
    """Adds the gradient of a batch's loss to what trains; returns the loss, under "loss", and its parts, all detached.

    ``chunk``: hold the activations of so many rows at once, None for all. Raises BenchError where that is not possible.
    """
    views: tuple[Tensor, ...] = ()
    leaves: tuple[Tensor, ...] = ()
    with chunked(method, chunk), autocast or nullcontext():
        if method.is_split():
            method.prepare(batch)
            views = method.views_of(batch)
            leaves = leaves_of(views, batch, method.ranks)
            with same_draws(method, batch.step):
                loss = method.loss(leaves, batch)
        else:
            loss = method(batch)
    total: Tensor = loss.total if scaler is None else scaler.scale(loss.total)
    total.backward()
    send_back(views, own_gradients(leaves, views, method.ranks))
    return {"loss": loss.total.detach(), **{name: part.detach() for name, part in loss.parts.items()}}


def send_back(views: Sequence[Tensor], gradients: Sequence[Tensor | None]) -> None:
    """From the gradients of the views, where there are any, to those of the parameters that made them."""
    reached = [(view, gradient) for view, gradient in zip(views, gradients, strict=True) if gradient is not None]
    if reached:
        torch.autograd.backward([view for view, _ in reached], [gradient for _, gradient in reached])


@contextmanager
def chunked(method: TorchMethod, chunk: int | None) -> Iterator[None]:
    """While open, the method computes its views in slices of ``chunk`` rows."""
    if chunk is not None:
        check_chunk(method, chunk)
    before, method.chunk = method.chunk, chunk
    try:
        yield
    finally:
        method.chunk = before


def check_chunk(method: Method | type[Method], chunk: int) -> None:
    """Raises BenchError for a size that is none, and for a method whose batch cannot be cut."""
    if chunk < 1:
        raise BenchError(f"a chunk of {chunk} rows", "--chunk 1 or more")
    if not method.is_split():
        raise BenchError(
            f"{method.name} defines its loss as a whole, in forward(batch), so that no batch of it can be cut into chunks",
            "leave --chunk out, or define views(batch) and loss(views, batch) instead: docs/add-a-method.md",
        )


def by_rows(function: Callable[..., tuple[Tensor, ...]], *inputs: Any, chunk: int | None = None) -> tuple[Tensor, ...]:
    """``function(*inputs)``, slice by slice: every input and every output has n rows, and outputs of row i need row i alone.

    ``inputs`` are tensors or features (dicts of tensors). A slice's activations are dropped and, where a gradient is wanted,
    computed again with the same random draws.
    """
    n = rows_of(inputs[0])
    if chunk is None or chunk >= n:
        return function(*inputs)
    slices = [[cut(one, start, start + chunk) for one in inputs] for start in range(0, n, chunk)]
    parts = [checkpoint(function, *one, use_reentrant=False) for one in slices]
    return tuple(torch.cat(column) for column in zip(*parts, strict=True))


def rows_of(value: Tensor | dict[str, Tensor]) -> int:
    return len(value if isinstance(value, Tensor) else next(iter(value.values())))


def cut(value: Any, start: int, stop: int) -> Any:
    """Rows ``start`` to ``stop`` of a tensor or of features."""
    return value[start:stop] if isinstance(value, Tensor) else {key: tensor[start:stop] for key, tensor in value.items()}
