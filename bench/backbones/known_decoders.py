"""Sizes of the usual decoders, from their configs, for plans on a machine without the models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_COLUMNS = (
    "model_type",
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
)
_ROWS: Mapping[str, tuple[str, int, int, int, int, int, int, int, int]] = {
    "Qwen2.5-0.5B": ("qwen2", 24, 896, 14, 2, 64, 4864, 151936, 32768),
    "Qwen2.5-1.5B": ("qwen2", 28, 1536, 12, 2, 128, 8960, 151936, 131072),
    "Qwen2.5-7B": ("qwen2", 28, 3584, 28, 4, 128, 18944, 152064, 131072),
    "Qwen3-0.6B": ("qwen3", 28, 1024, 16, 8, 128, 3072, 151936, 40960),
    "Qwen3-1.7B": ("qwen3", 28, 2048, 16, 8, 128, 6144, 151936, 40960),
    "Qwen3-4B": ("qwen3", 36, 2560, 32, 8, 128, 9728, 151936, 40960),
    "Qwen3-8B": ("qwen3", 36, 4096, 32, 8, 128, 12288, 151936, 40960),
    "Llama-2-7b-hf": ("llama", 32, 4096, 32, 32, 128, 11008, 32000, 4096),
    "Llama-2-13b-hf": ("llama", 40, 5120, 40, 40, 128, 13824, 32000, 4096),
    "Meta-Llama-3-8B": ("llama", 32, 4096, 32, 8, 128, 14336, 128256, 8192),
    "Llama-3.2-1B": ("llama", 16, 2048, 32, 8, 64, 8192, 128256, 131072),
    "Llama-3.2-3B": ("llama", 28, 3072, 24, 8, 128, 8192, 128256, 131072),
    "Mistral-7B-v0.1": ("mistral", 32, 4096, 32, 8, 128, 14336, 32000, 32768),
    "opt-1.3b": ("opt", 24, 2048, 32, 32, 64, 8192, 50272, 2048),
    "opt-2.7b": ("opt", 32, 2560, 32, 32, 80, 10240, 50272, 2048),
    "opt-6.7b": ("opt", 32, 4096, 32, 32, 128, 16384, 50272, 2048),
}
DECODER_SHAPES: Mapping[str, Mapping[str, Any]] = {
    name: dict(zip(_COLUMNS, row, strict=True)) for name, row in _ROWS.items()
}
"""The last part of a hub name -> the sizes in its config. They were written down from memory of
these configs: once a model is here, its own config counts.
"""
