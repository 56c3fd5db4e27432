"""Facts about the models that this project knows by name: sizes, and commits on the hub."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.backbones.known_decoders import DECODER_SHAPES
from bench.base.errors import nearest_beginnings

KNOWN = {
    "builtin": "a small BERT that this project pretrained itself, on English only; comes with "
    "the package",
    "bert-base-uncased": "BERT base, 110 M parameters (Devlin et al. 2019)",
    "bert-large-uncased": "BERT large, 335 M parameters (Devlin et al. 2019)",
    "roberta-base": "RoBERTa base, 125 M parameters (Liu et al. 2019)",
    "roberta-large": "RoBERTa large, 355 M parameters (Liu et al. 2019)",
}
SHAPES: Mapping[str, Mapping[str, Any]] = {
    **DECODER_SHAPES,
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
