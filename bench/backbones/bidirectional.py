"""Attention to both sides in a decoder: every token attends to every other one (LLM2Vec)."""

from __future__ import annotations

from typing import Any

from bench.backbones.direction import reads_ahead
from bench.base.errors import BenchError

SINCE = "5.2"
"""The first version of transformers that reads ``is_causal`` from a model's config. Older ones
ignore it, and would read an export as a causal model.
"""


def look_both_ways(encoder: Any, name: str) -> None:
    """Let a decoder attend to both sides, now and in every copy that is saved and loaded again.

    transformers makes its masks by ``config.is_causal``, and the attention kernels ask their own
    modules if there is no mask. Raises BenchError for an encoder that reads both ways by itself,
    and for a family that cannot be switched.
    """
    if reads_ahead(encoder):
        if was_switched(encoder):
            return  # a run or a folder that was switched before
        raise BenchError(
            f"attention=bidirectional: {name} reads both ways already", "leave attention out"
        )
    encoder.config.is_causal = False
    for module in encoder.modules():
        if getattr(module, "is_causal", None) is True:
            module.is_causal = False
    if not reads_ahead(encoder):
        raise BenchError(
            f"attention=bidirectional does not arrive in {name}: its first token's state does not "
            "change with its last token",
            "take a decoder of another family (Qwen, Llama, Mistral, Gemma), or leave it causal",
        )


def was_switched(encoder: Any) -> bool:
    """Tell whether a decoder was made to attend to both sides."""
    config = getattr(encoder, "config", None)
    return getattr(config, "is_causal", None) is False
