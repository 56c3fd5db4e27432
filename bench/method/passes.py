"""Attention, precision and memory of a pass through an encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bench.backbones.held_in import widened_weights
from bench.method.features import slice_rows


@contextmanager
def use_attention(encoder: Any, name: str) -> Iterator[None]:
    """Replace transformers' fused attention by the implementation ``name`` while open: equal except
    for rounding.

    An encoder with another attention keeps it, because its user chose it.
    """
    fused = getattr(encoder.config, "_attn_implementation", None) == "sdpa"
    if fused:
        encoder.set_attn_implementation(name)
    try:
        yield
    finally:
        if fused:
            encoder.set_attn_implementation("sdpa")


@contextmanager
def float32_products(*, tf32: bool) -> Iterator[None]:
    """Let a GPU multiply float32 matrices as they are, or rounded to TF32 (10 bits of 23), while
    open.

    This includes cuDNN's convolutions and LSTMs, which have a switch of their own.
    """
    cudnn = torch.backends.cudnn
    precision_before = torch.get_float32_matmul_precision()
    cudnn_before = cudnn.allow_tf32
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    cudnn.allow_tf32 = tf32
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(precision_before)
        cudnn.allow_tf32 = cudnn_before


@contextmanager
def compute_exactly(encoder: nn.Module) -> Iterator[None]:
    """Compute without compilation and in float32 while open, so that no option for faster training
    changes a score.
    """
    compiled = vars(encoder).pop("forward", None)  # set by the training loop, with compile=true
    try:
        with float32_products(tf32=False), widened_weights(encoder):
            yield
    finally:
        if compiled is not None:
            encoder.forward = compiled


def by_rows(
    function: Callable[..., tuple[Tensor, ...]], *inputs: Any, chunk: int | None = None
) -> tuple[Tensor, ...]:
    """Compute ``function(*inputs)`` in slices of ``chunk`` rows (None: at once).

    Inputs are tensors or features, outputs tensors, all of n rows, and outputs of row i need only
    row i. A slice's activations are dropped and, if a gradient is wanted, computed again with the
    same random draws.
    """
    first = inputs[0] if isinstance(inputs[0], Tensor) else next(iter(inputs[0].values()))
    n = len(first)
    if chunk is None or chunk >= n:
        return function(*inputs)
    parts = []
    for start in range(0, n, chunk):
        slices = [slice_rows(value, start, start + chunk) for value in inputs]
        replayed = with_same_draws(function, first.device)
        parts.append(checkpoint(replayed, *slices, use_reentrant=False))
    return tuple(torch.cat(column) for column in zip(*parts, strict=True))


def with_same_draws(function: Callable[..., Any], device: torch.device) -> Callable[..., Any]:
    """Return ``function`` such that every later call on this device draws the numbers of the first.

    torch's checkpoint restores the generators of the CPU and of CUDA itself. It leaves that of
    Apple's mps alone, because ``torch.mps`` lacks the attribute ``_initialized`` that checkpoint
    asks for.
    """
    module: Any = getattr(torch, device.type, None)
    if device.type == "cpu" or hasattr(module, "_initialized"):
        return function
    states: list[Tensor] = []

    def replayed(*inputs: Any) -> Any:
        if not states:
            states.append(module.get_rng_state())
            return function(*inputs)
        before = module.get_rng_state()
        module.set_rng_state(states[0])
        try:
            return function(*inputs)
        finally:
            module.set_rng_state(before)

    return replayed
