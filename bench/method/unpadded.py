"""``--set unpadded=true``: rows go through the encoder without their padding while training.

The real tokens of all rows are one long row, each with the position that it has in its own row, and
a token attends to its own row alone. The states come back padded, so that a method does not notice.

On a GPU attention is torch's for jagged tensors, which takes the kernels for rows of different
lengths and draws dropout; ``torch.nn.attention.varlen`` draws none. Not verified on a GPU: tests
run that function on the CPU. There a training computes row by row, for a check of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.method.attention_dropout import (
    HEAD_SIZE,
    HEADS,
    ROWS,
    TOKENS,
    TOLERANCE,
    attention_dropouts,
)
from bench.method.masks import takes_whole_mask

NAME = "bench_packed"
"""The attention's name among those of transformers."""
POSITIONS_FROM_IDS = ("camembert", "roberta", "xlm-roberta")
"""Families that count positions from the first id that is no padding, after the padding's id."""


class Packing:
    """The passes of one encoder without padding, or, after one line, with it."""

    def __init__(self, encoder: Any, note: Callable[[str], None]) -> None:
        self.encoder = encoder
        self.note = note
        self.active = True
        self.passes = 0
        reason = refuse_packing(encoder)
        if reason is not None:
            self.stop(reason)

    def stop(self, reason: str) -> None:
        """Pad rows from now on, and say why."""
        self.active = False
        self.note(f"unpadded: rows are padded, because {reason}")

    def states(self, inputs: Mapping[str, Tensor]) -> Tensor | None:
        """Return the last layer's states, (n, T, H), 0 in the padding; None if the pass needs it.

        ``inputs``: those of the encoder. The host waits for the device once, to learn the lengths.
        """
        if not self.active or "attention_mask" not in inputs:
            return None
        if has_hooks(self.encoder):
            self.stop("something changes the states inside of the encoder, and expects padded rows")
            return None
        self.passes += 1
        return packed_states(self.encoder, inputs)


def refuse_packing(encoder: Any) -> str | None:
    """Say why an encoder needs padded rows, or None if it does not."""
    family = getattr(getattr(encoder, "config", None), "model_type", type(encoder).__name__)
    if not takes_whole_mask(encoder):
        return f"{family} was not tried without padding, or does not use fused attention"
    if getattr(encoder.config, "position_embedding_type", "absolute") != "absolute":
        return f"{family} has positions relative to other tokens"
    if any(getattr(module, "gradient_checkpointing", False) for module in encoder.modules()):
        return "gradient_checkpointing computes layers again later"
    device = next(encoder.parameters()).device
    if device.type == "cpu":
        return None
    for p in sorted(attention_dropouts(encoder)):
        drawn = measure_packed_dropout(p, device, torch.bfloat16)
        if abs(drawn - p) > TOLERANCE:
            return f"attention without padding drops {drawn:.4f} of its weights, not {p:g}"
    return None


def has_hooks(encoder: nn.Module) -> bool:
    """Say if a module inside of the encoder has a hook, which reads or changes its states."""
    for module in encoder.modules():
        if module is not encoder and (module._forward_hooks or module._forward_pre_hooks):
            return True
    return False


def packed_states(encoder: Any, inputs: Mapping[str, Tensor]) -> Tensor:
    """Compute the states of real tokens alone, and return them padded, (n, T, H)."""
    mask = inputs["attention_mask"]
    rows, width = mask.shape
    counts = mask.bool().sum(1)
    lengths = counts.tolist()
    total = sum(lengths)
    # the places of real tokens, in their order; nonzero would make the host wait once more
    kept = mask.bool().logical_not().flatten().sort(stable=True).indices[:total]

    def packed(value: Tensor) -> Tensor:
        return value.reshape(rows * width, *value.shape[2:])[kept][None]

    given = {key: packed(value) for key, value in inputs.items() if key != "attention_mask"}
    given["position_ids"] = packed(positions_of(encoder, inputs))
    if "token_type_ids" not in given:
        # the encoder's own zeros are only as long as its longest row
        given["token_type_ids"] = torch.zeros_like(given["position_ids"])
    starts = F.pad(counts[counts > 0] if 0 in lengths else counts, (1, 0)).cumsum(0)
    with attention_within_rows(encoder):
        output = encoder(
            **given,
            cu_seq_lens_q=starts,
            cu_seq_lens_k=starts,
            max_length_q=max(lengths),
            max_length_k=max(lengths),
        )
    states = output.last_hidden_state[0]
    padded = states.new_zeros((rows * width, states.shape[-1]))
    return padded.index_copy(0, kept, states).view(rows, width, -1)


def positions_of(encoder: Any, inputs: Mapping[str, Tensor]) -> Tensor:
    """Return the positions that the padded pass gives to all tokens, (n, T)."""
    mask = inputs["attention_mask"]
    if "position_ids" in inputs:
        return inputs["position_ids"].expand(mask.shape)
    config = encoder.config
    if config.model_type not in POSITIONS_FROM_IDS:
        return torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
    first = config.pad_token_id + 1
    if "input_ids" not in inputs:
        return torch.arange(first, first + mask.shape[1], device=mask.device).expand(mask.shape)
    is_real = inputs["input_ids"].ne(config.pad_token_id).long()
    return is_real.cumsum(1) * is_real + config.pad_token_id


@contextmanager
def attention_within_rows(encoder: Any) -> Iterator[None]:
    """Let the encoder's attention stay within the rows that its call names, while open."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, packed_attention)
    before = encoder.config._attn_implementation
    encoder.config._attn_implementation = NAME
    try:
        yield
    finally:
        encoder.config._attn_implementation = before


def packed_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Any,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attend within rows, as transformers calls an attention.

    ``query``, ``key`` and ``value``: (1, heads, tokens, size); ``cu_seq_lens_q``: the first token
    of each row, and the number of tokens; ``max_length_q``: the longest row. Returns (1, tokens,
    heads, size).
    """
    starts = kwargs["cu_seq_lens_q"]
    attend = by_row if query.device.type == "cpu" else as_jagged
    q, k, v = (tensor[0].transpose(0, 1) for tensor in (query, key, value))
    found = attend(q, k, v, starts, kwargs["max_length_q"], dropout, scaling)
    return found[None], None


def by_row(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    starts: Tensor,
    longest: int,
    dropout: float,
    scaling: float | None,
) -> Tensor:
    """Attend in one row after the other; tensors are (tokens, heads, size)."""
    sizes = starts.diff().tolist()
    parts = []
    for row in zip(*(tensor.split(sizes) for tensor in (query, key, value)), strict=True):
        q, k, v = (part.transpose(0, 1)[None] for part in row)
        found = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, scale=scaling)
        parts.append(found[0].transpose(0, 1))
    return torch.cat(parts)


def as_jagged(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    starts: Tensor,
    longest: int,
    dropout: float,
    scaling: float | None,
) -> Tensor:
    """Attend in all rows at once, as jagged tensors; arguments as of :func:`by_row`."""

    def jagged(tensor: Tensor) -> Tensor:
        return torch.nested.nested_tensor_from_jagged(
            tensor.contiguous(), starts, min_seqlen=1, max_seqlen=longest
        ).transpose(1, 2)

    found = F.scaled_dot_product_attention(
        jagged(query), jagged(key), jagged(value), dropout_p=dropout, scale=scaling
    )
    return found.transpose(1, 2).values()


def measure_packed_dropout(
    p: float,
    device: torch.device,
    dtype: torch.dtype,
    attend: Callable[..., Tensor] = as_jagged,
) -> float:
    """Return the share of attention weights that attention without padding drops at ``p``.

    All weights are equal and the values are the unit vectors, so that an output is 0 exactly if its
    weight was dropped. The generators of random numbers are left as they were.
    """
    indices = [device.index or 0] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=indices):
        zeros = torch.zeros(ROWS * TOKENS, HEADS, HEAD_SIZE, device=device, dtype=dtype)
        unit: Tensor = torch.eye(TOKENS, HEAD_SIZE, device=device, dtype=dtype)
        value = unit[:, None].expand(TOKENS, HEADS, HEAD_SIZE).repeat(ROWS, 1, 1)
        starts = torch.arange(0, ROWS * TOKENS + 1, TOKENS, device=device)
        found = attend(zeros.requires_grad_(), zeros, value, starts, TOKENS, p, None)
        return float((found[..., :TOKENS] == 0).float().mean())
