"""The dropout that fused attention really draws, and a guard against kernels that round it.

cuDNN's attention, which torch prefers on Hopper GPUs, has kernels that round the probability to
sixteenths: 0.1 becomes 0.0625 or 0.125 (pytorch PR 174245). Dropout makes the two views of SimCSE
and its kin, so another probability is another method.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.backbones.dropout import dropout_in_use, own_dropout
from bench.base.errors import RunFailed

TOLERANCE = 0.005
"""The largest difference between the probability that was asked for and the measured one."""
# the shape of a measurement, BERT-base's: 1.6 million draws have a standard error of 0.0003
ROWS = 128
HEADS = 12
TOKENS = 32
HEAD_SIZE = 64
KERNELS = {0: "math", 1: "flash", 2: "efficient", 3: "cudnn"}
"""Kernels of fused attention by torch's numbers (``torch.nn.attention.SDPBackend``)."""


@contextmanager
def without_rounded_dropout(probabilities: Iterable[float]) -> Iterator[None]:
    """Keep attention away from cuDNN while open if a probability is no multiple of 1/16."""
    before = torch.backends.cuda.cudnn_sdp_enabled()
    if any((p * 16) % 1 != 0 for p in probabilities):
        torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)


def measure_attention_dropout(p: float, device: torch.device, dtype: torch.dtype) -> float:
    """Return the share of attention weights that fused attention drops at probability ``p``.

    All weights are equal and the values are the unit vectors, so that an output is 0 exactly if its
    weight was dropped. The generators of random numbers are left as they were.
    """
    indices = [device.index or 0] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=indices):
        return _dropped_share(p, device, dtype)


def _dropped_share(p: float, device: torch.device, dtype: torch.dtype) -> float:
    shape = (ROWS, HEADS, TOKENS, HEAD_SIZE)
    # kernels for inference draw nothing: a gradient is asked for
    query = torch.zeros(shape, device=device, dtype=dtype, requires_grad=True)
    unit: Tensor = torch.eye(TOKENS, HEAD_SIZE, device=device, dtype=dtype)
    mask = torch.ones((ROWS, 1, TOKENS, TOKENS), dtype=torch.bool, device=device)
    output = F.scaled_dot_product_attention(
        query, query, unit.expand(shape), attn_mask=mask, dropout_p=p
    )
    return float((output[..., :TOKENS] == 0).float().mean())


def attention_kernel(p: float, device: torch.device, dtype: torch.dtype) -> str:
    """Return the name of the kernel that torch takes for a measurement's attention, or "unknown".

    torch has no public function that says so.
    """
    shape = (ROWS, HEADS, TOKENS, HEAD_SIZE)
    query = torch.zeros(shape, device=device, dtype=dtype, requires_grad=True)
    mask = torch.ones((ROWS, 1, TOKENS, TOKENS), dtype=torch.bool, device=device)
    try:
        chosen = torch._fused_sdp_choice(query, query, query, attn_mask=mask, dropout_p=p)
    except (AttributeError, RuntimeError, TypeError):
        return "unknown"
    return KERNELS.get(int(chosen), "unknown")


def describe_attention_dropout(p: float, device: torch.device, dtype: torch.dtype) -> str:
    """Return the dropout that a training draws on a device: "0.1001 drawn for 0.1 (flash)"."""
    with without_rounded_dropout([p]):
        drawn = measure_attention_dropout(p, device, dtype)
        kernel = attention_kernel(p, device, dtype)
    return f"{drawn:.4f} drawn for {p:g} ({kernel})"


def check_attention_dropout(
    probabilities: Iterable[float], device: torch.device, dtype: torch.dtype
) -> None:
    """Raise RunFailed if attention on this device drops another share than one of these."""
    for p in sorted(probabilities):
        if p == 0:
            continue
        with without_rounded_dropout([p]):
            measured = measure_attention_dropout(p, device, dtype)
        if abs(measured - p) > TOLERANCE:
            raise RunFailed(
                f"attention on {device} drops {measured:.4f} of its weights, not {p:g}: "
                "two views of a sentence would differ by another amount than the recipe says",
                "another version of torch; or --set dropout=0.125, a probability that kernels "
                "which round to sixteenths draw",
            )


def attention_dropouts(encoder: Any) -> set[float]:
    """Return the probabilities of an encoder's fused attention; an empty set if it has none."""
    if not hasattr(encoder, "config"):  # no transformer
        return set()
    try:
        return dropout_in_use(encoder).get("attention", set())
    except Exception:  # a family may need more than ids and a mask
        return {own_dropout(encoder.config.to_dict()) or 0.0}
