"""The attention mask of a pass on a GPU, made without asking the GPU anything.

transformers looks at a mask of two dimensions to find out if it can be left out, and the host waits
for that answer in each pass. A mask of four dimensions is taken as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

TAKE_WHOLE_MASKS = ("bert", "camembert", "electra", "roberta", "xlm-roberta")
"""Families of transformers with layers that take a mask of four dimensions as it is."""


def with_whole_mask(inputs: Mapping[str, Tensor], encoder: Any) -> dict[str, Tensor]:
    """Return the encoder's inputs with a mask of shape (n, 1, T, T): True if a token is attended.

    ``inputs``: "attention_mask" (n, T), and "input_ids" (n, T) or "inputs_embeds" (n, T, H). They
    stay as they are on a CPU, without a mask, and for an encoder that takes no such mask.
    """
    mask = inputs.get("attention_mask")
    if mask is None or mask.device.type == "cpu" or not takes_whole_mask(encoder):
        return dict(inputs)
    return {**inputs, "attention_mask": whole_mask(mask)}


def whole_mask(mask: Tensor) -> Tensor:
    """Turn a mask of tokens, (n, T), into one of pairs of tokens, (n, 1, T, T)."""
    rows, tokens = mask.shape
    return mask.bool()[:, None, None, :].expand(rows, 1, tokens, tokens)


def takes_whole_mask(encoder: Any) -> bool:
    """Return True if the encoder's family takes such masks, and its attention is fused."""
    config = getattr(encoder, "config", None)
    if getattr(config, "model_type", None) not in TAKE_WHOLE_MASKS:
        return False
    if getattr(config, "is_decoder", False):
        return False
    return getattr(config, "_attn_implementation", None) == "sdpa"
