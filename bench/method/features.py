"""Features: the tensors of a batch of sentences, how they are padded, joined, and cut into passes of similar length or of few rows.

Shapes: n rows of a batch, T tokens (padded).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

Ids = Sequence[int] | np.ndarray  # the token ids of one sentence
# input_ids (n, T) int64, attention_mask (n, T) int64, and what a method adds: (n,) says something of a row, and what has
# two dimensions or more of its tokens, (n, T, ...). One number, without a dimension, is of all rows: the largest of them. It stays
# in main memory, so that a size that `collate` knows need not be asked of a GPU, for which the host would wait
Features = dict[str, Tensor]


def pad(
    rows: Sequence[Ids],
    pad_id: int,
    *,
    before: Ids = (),
    after: Ids = (),
    longest: int | None = None,
) -> Features:
    """Ids of different lengths as (n, T) input_ids and attention_mask, padded on the right.

    Of each row the first ``longest`` ids are taken, and stand between ``before`` and ``after``.
    """
    cut = [np.asarray(row[:longest], dtype=np.int64) for row in rows]
    ends = len(before) + np.fromiter((len(row) for row in cut), dtype=np.int64, count=len(cut))
    T = int(ends.max(initial=0)) + len(after) if cut else 0
    positions = np.arange(T)
    ids = np.full((len(cut), T), pad_id, dtype=np.int64)
    ids[:, : len(before)] = before
    if cut:
        ids[(positions >= len(before)) & (positions < ends[:, None])] = np.concatenate(cut)
    for i, token in enumerate(after):
        ids[np.arange(len(cut)), ends + i] = token
    mask = positions < (ends + len(after))[:, None]
    return {
        "input_ids": torch.from_numpy(ids),
        "attention_mask": torch.from_numpy(mask.astype(np.int64)),
    }


def join(parts: Sequence[Features], pad_id: int) -> Features:
    """Several (n_i, T_i) features as one (sum n_i, max T_i): one encoder pass, a dropout mask of its own for each row."""
    longest = max(part["input_ids"].shape[1] for part in parts)

    def joined(key: str) -> Tensor:
        values = [part[key] for part in parts]
        if values[0].ndim == 0:
            return torch.stack(values).max()
        if values[0].ndim > 1:
            values = [
                widened(value, longest, pad_id if key == "input_ids" else 0) for value in values
            ]
        return torch.cat(values)

    return {key: joined(key) for key in parts[0]}


def widened(tensor: Tensor, length: int, fill: int = 0) -> Tensor:
    """An (n, T, ...) tensor as (n, length, ...), filled up on the right."""
    after = [0, 0] * (tensor.ndim - 2) + [0, length - tensor.shape[1]]
    return nn.functional.pad(tensor, after, value=fill)


def take(features: Features, rows: Tensor, length: int) -> Features:
    """Some rows of features, cut to their first ``length`` tokens."""
    picked = of_rows(features, lambda value: value[rows])
    return {key: value if value.ndim < 2 else value[:, :length] for key, value in picked.items()}


def of_rows(features: Features, change: Callable[[Tensor], Tensor]) -> Features:
    """Every tensor that has rows, changed; numbers of all rows as they are."""
    return {key: change(value) if value.ndim else value for key, value in features.items()}


@cache
def constant(numbers: tuple[int, ...], device: torch.device) -> Tensor:
    """Numbers that never change, as a tensor: copied to a device once, for a copy in each step would hold up the host."""
    with torch.inference_mode(False):
        return torch.tensor(numbers, device=device)


PASS_TOKENS = 128  # what one more pass through a small encoder costs on a CPU, in tokens


def by_length(mask: Tensor) -> list[Tensor]:
    """Row numbers of a (n, T) mask in groups of similar length, longest first: padding that costs more than a pass is cut.

    A row's length counts up to its last 1. Every row stands in exactly one group.
    """
    positions = torch.arange(1, mask.shape[1] + 1)
    lengths, order = (mask * positions).amax(1).sort(descending=True, stable=True)
    sizes = lengths.tolist()
    starts = [0]
    for i, length in enumerate(sizes):
        if (sizes[starts[-1]] - length) * (len(sizes) - i) >= PASS_TOKENS:
            starts.append(i)
    return [order[start:end] for start, end in zip(starts, [*starts[1:], len(sizes)], strict=True)]


@contextmanager
def attention(encoder: Any, name: str) -> Iterator[None]:
    """While open, an encoder that uses transformers' fused attention computes it as ``name`` says: equal but for rounding."""
    before = getattr(encoder.config, "_attn_implementation", None)
    if before != "sdpa":  # somebody's own choice
        yield
        return
    encoder.set_attn_implementation(name)
    try:
        yield
    finally:
        encoder.set_attn_implementation(before)


@contextmanager
def float32_products(*, tf32: bool) -> Iterator[None]:
    """While open, a GPU multiplies float32 matrices in float32, or rounds them to TF32 (10 bits of 23) first: also in cuDNN's convolutions and
    LSTMs, which have a switch of their own."""
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
def exact(encoder: nn.Module) -> Iterator[None]:
    """While open, an encoder computes as it is, in float32: what is scored depends on nothing that training was sped up with."""
    compiled = vars(encoder).pop("forward", None)  # compile=true: bench.training.compiled
    try:
        with float32_products(tf32=False):
            yield
    finally:
        if compiled is not None:
            encoder.forward = compiled


def by_rows(
    function: Callable[..., tuple[Tensor, ...]], *inputs: Any, chunk: int | None = None
) -> tuple[Tensor, ...]:
    """``function(*inputs)``, slice by slice: every input and every output has n rows, and outputs of row i need row i alone.

    ``inputs`` are tensors or features (dicts of tensors). A slice's activations are dropped and, where a gradient is wanted,
    computed again with the same random draws.
    """
    n = rows_of(inputs[0])
    if chunk is None or chunk >= n:
        return function(*inputs)
    slices = [
        [cut(tensor, start, start + chunk) for tensor in inputs] for start in range(0, n, chunk)
    ]
    parts = [checkpoint(function, *one, use_reentrant=False) for one in slices]
    return tuple(torch.cat(column) for column in zip(*parts, strict=True))


def rows_of(value: Tensor | dict[str, Tensor]) -> int:
    return len(value if isinstance(value, Tensor) else next(iter(value.values())))


def cut(value: Any, start: int, stop: int) -> Any:
    """Rows ``start`` to ``stop`` of a tensor or of features."""
    if isinstance(value, Tensor):
        return value[start:stop]
    return of_rows(value, lambda tensor: tensor[start:stop])
