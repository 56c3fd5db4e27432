"""How an encoder computes: its attention, its precision, and passes over some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bench.method.features import slice_rows


@contextmanager
def use_attention(encoder: Any, name: str) -> Iterator[None]:
    """While open, an encoder with transformers' fused attention uses the implementation ``name``: equal except for rounding."""
    fused = getattr(encoder.config, "_attn_implementation", None) == "sdpa"
    if fused:  # else chosen by the user
        encoder.set_attn_implementation(name)
    try:
        yield
    finally:
        if fused:
            encoder.set_attn_implementation("sdpa")


@contextmanager
def float32_products(*, tf32: bool) -> Iterator[None]:
    """While open, a GPU multiplies float32 matrices in float32, or rounds them to TF32 (10 bits of 23) first; also in cuDNN's
    convolutions and LSTMs, which have a separate switch."""
    cudnn = torch.backends.cudnn
    before = torch.get_float32_matmul_precision(), cudnn.allow_tf32
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    cudnn.allow_tf32 = tf32
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        cudnn.allow_tf32 = before[1]


@contextmanager
def compute_exactly(encoder: nn.Module) -> Iterator[None]:
    """While open, an encoder computes without compilation, in float32: no option that speeds up training changes what is scored."""
    compiled = vars(encoder).pop("forward", None)  # compile=true: bench.training.loop
    try:
        with float32_products(tf32=False):
            yield
    finally:
        if compiled is not None:
            encoder.forward = compiled


def by_rows(
    function: Callable[..., tuple[Tensor, ...]], *inputs: Any, chunk: int | None = None
) -> tuple[Tensor, ...]:
    """``function(*inputs)``, slice by slice: every input and every output has n rows, and outputs of row i need only row i.

    ``inputs`` are tensors or features (dicts of tensors). A slice's activations are dropped and, if a gradient is wanted,
    computed again with the same random draws.
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
    """``function``, which draws on this device in every later call what it drew in the first.

    torch's checkpoint does so itself with the generators of the CPU and of CUDA. That of Apple's mps it leaves alone, because
    ``torch.mps`` does not say whether it was started (``_initialized``), as the module of a device is to.
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
