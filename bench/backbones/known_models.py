"""Facts about the models that this project knows by name: sizes, and commits on the hub."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.base.errors import nearest_beginnings

KNOWN = {
    "builtin": "a small BERT that this project pretrained itself, on English only; comes with "
    "the package",
    "bert-base-uncased": "BERT base, 110 M parameters (Devlin et al. 2019)",
    "bert-large-uncased": "BERT large, 335 M parameters (Devlin et al. 2019)",
    "roberta-base": "RoBERTa base, 125 M parameters (Liu et al. 2019)",
    "roberta-large": "RoBERTa large, 355 M parameters (Liu et al. 2019)",
}
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
_DECODERS: Mapping[str, Mapping[str, Any]] = {
    name: dict(zip(_COLUMNS, row, strict=True)) for name, row in _ROWS.items()
}
"""The last part of a hub name -> the sizes in its config. They were written down from memory of
these configs: once a model is here, its own config counts.
"""
SHAPES: Mapping[str, Mapping[str, Any]] = {
    **_DECODERS,
    **{
        name: {
            "model_type": family,
            "num_hidden_layers": layers,
            "hidden_size": hidden,
            "num_attention_heads": hidden // 64,
            "intermediate_size": 4 * hidden,
            "vocab_size": vocabulary,
            "max_position_embeddings": positions,
            "type_vocab_size": types,
        }
        for name, (family, layers, hidden, vocabulary, positions, types) in {
            "bert-base-uncased": ("bert", 12, 768, 30522, 512, 2),
            "bert-large-uncased": ("bert", 24, 1024, 30522, 512, 2),
            "roberta-base": ("roberta", 12, 768, 50265, 514, 1),
            "roberta-large": ("roberta", 24, 1024, 50265, 514, 1),
        }.items()
    },
}
"""Sizes from the configs of these models, for plans on a machine that does not have the models."""


CANONICAL = {
    "bert-base-uncased": "google-bert",
    "bert-large-uncased": "google-bert",
    "roberta-base": "FacebookAI",
    "roberta-large": "FacebookAI",
}
PINNED = {
    "google-bert/bert-base-uncased": "86b5e0934494bd15c9632b12f734a8a67f723594",
    "google-bert/bert-large-uncased": "6da4b6a26a1877e173fca3225479512db81a5e5b",
    "FacebookAI/roberta-base": "e2da8e2f811d1448a5b465c236feacd80ffbac7b",
    "FacebookAI/roberta-large": "722cf37b1afa9454edce342e7895e588b6ff1d59",
}
"""The commit that a name without a revision means: the one that published work uses."""


PARAMETERS = {
    "bert-base-uncased": 110_104_890,
    "bert-large-uncased": 336_224_058,
    "roberta-base": 125_288_793,
    "roberta-large": 356_462_681,
}
"""Numbers in each checkpoint, the dense layer of the MLM head included; each takes four bytes."""


def nearest_known(model: str) -> str | None:
    """Return the known name that an unknown one is most like, or None if none is like it."""
    if model in KNOWN:
        return None
    near = nearest_beginnings(model.lower(), list(KNOWN))
    return near[0] if near else None


def nearest_words(model: str) -> str:
    """Return "; nearest known name: bert-base-uncased", or "" if no known name is like it."""
    near = nearest_known(model)
    return "" if near is None else f"; nearest known name: {near}"
