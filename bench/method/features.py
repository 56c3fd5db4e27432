"""Features, the tensors of some sentences: padded, joined, and cut into groups of similar length.

Shapes: n rows of a batch, T tokens (padded).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

Ids = Sequence[int] | np.ndarray
"""The token ids of one sentence."""
Features = dict[str, Tensor]
"""input_ids (n, T) int64, attention_mask (n, T) int64, and tensors of a method: (n,) describes
rows, (n, T, ...) their tokens.

A number without a dimension is the largest over all rows. It stays in main memory, so that the host
need not wait for a GPU to read a size that ``collate`` knows.
"""
PASS_TOKENS = 128
"""Cost of one more pass through a small encoder on a CPU, in tokens."""


def pad(
    rows: Sequence[Ids],
    pad_id: int,
    *,
    before: Ids = (),
    after: Ids = (),
    longest: int | None = None,
) -> Features:
    """Turn ids of different lengths into (n, T) input_ids and attention_mask, padded on the right.

    T is at least 1: a row may be empty, and an encoder reads at least one token.

    Args:
        rows: The ids of n rows.
        pad_id: The id of the padding token.
        before: Ids before each row.
        after: Ids after each row.
        longest: Ids of a row that are kept, its first ones. None: all.

    Returns:
        Both tensors, under these names.
    """
    cut = [np.asarray(row[:longest], dtype=np.int64) for row in rows]
    ends = len(before) + np.fromiter((len(row) for row in cut), dtype=np.int64, count=len(cut))
    T = max(1, int(ends.max(initial=0)) + len(after)) if cut else 0
    positions = np.arange(T)
    ids = np.full((len(cut), T), pad_id, dtype=np.int64)
    ids[:, : len(before)] = before
    if cut:
        ids[(positions >= len(before)) & (positions < ends[:, None])] = np.concatenate(cut)
    for i, token in enumerate(after):
        ids[np.arange(len(cut)), ends + i] = token
    return {
        "input_ids": torch.from_numpy(ids),
        "attention_mask": torch.from_numpy(
            (positions < (ends + len(after))[:, None]).astype(np.int64)
        ),
    }


def join(parts: Sequence[Features], pad_id: int) -> Features:
    """Join features of several texts of the same rows, for one encoder pass.

    Each row has its own dropout mask in that pass.

    Args:
        parts: Features of n_i rows, (n_i, T_i).
        pad_id: The id of the padding token.

    Returns:
        Features of all rows, (sum n_i, max T_i).
    """
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
    """Fill an (n, T, ...) tensor up on the right to (n, length, ...)."""
    return nn.functional.pad(
        tensor, [0, 0] * (tensor.ndim - 2) + [0, length - tensor.shape[1]], value=fill
    )


def take(features: Features, rows: Tensor, length: int) -> Features:
    """Return some rows of features, cut to their first ``length`` tokens."""
    return map_rows(features, lambda value: value[rows, :length] if value.ndim > 1 else value[rows])


def map_rows(features: Features, change: Callable[[Tensor], Tensor]) -> Features:
    """Apply a change to every tensor with rows; numbers without a dimension are unchanged."""
    return {key: change(value) if value.ndim else value for key, value in features.items()}


@cache
def constant(numbers: tuple[int, ...], device: torch.device) -> Tensor:
    """Return numbers that never change as a tensor on a device.

    It is copied there once, because a copy in each step would make the host wait.
    """
    with torch.inference_mode(False):
        return torch.tensor(numbers, device=device)


def group_by_length(mask: Tensor) -> list[Tensor]:
    """Return the row numbers of an (n, T) mask in groups of similar length, longest first.

    A row's length counts up to its last 1. Every row is in exactly one group. A new group begins as
    soon as the padding that it saves costs more than a pass.
    """
    positions = torch.arange(1, mask.shape[1] + 1)
    lengths, order = (mask * positions).amax(1).sort(descending=True, stable=True)
    sizes = lengths.tolist()
    starts = [0]
    for row, length in enumerate(sizes):
        saved = (sizes[starts[-1]] - length) * (len(sizes) - row)
        if saved >= PASS_TOKENS:
            starts.append(row)
    ends = [*starts[1:], len(sizes)]
    return [order[start:end] for start, end in zip(starts, ends, strict=True)]


def longest_row(mask: Tensor) -> int:
    """Return the length of the longest row of an (n, T) mask, at least 1."""
    seen = mask.any(0).nonzero()
    return int(seen.max()) + 1 if len(seen) else 1


def slice_rows(value: Any, start: int, stop: int) -> Any:
    """Return rows ``start`` to before ``stop`` of a tensor or of features."""
    if isinstance(value, Tensor):
        return value[start:stop]
    return map_rows(value, lambda tensor: tensor[start:stop])
