"""Sizes that a model's config.json names, against the weights beside it: a forged one would fill the memory before anything is compared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.base.errors import NotAModel

LAYERS = ("num_hidden_layers", "n_layers", "num_layers", "n_layer", "num_decoder_layers")
TABLES = (
    "vocab_size",
    "max_position_embeddings",
    "hidden_size",
    "intermediate_size",
    "type_vocab_size",
)
MOST_ROWS = 1 << 26
"""Rows or columns of a matrix of weights; the largest vocabularies have some hundred thousand tokens."""


def check_sizes(name: str, folder: Path, config: Mapping[str, Any], tensors: int) -> None:
    """Raise NotAModel if the config in a folder names more layers than its weights have tensors, or a size beyond any model's.

    ``tensors``: how many its weights hold.
    """
    file = folder / "config.json"
    for key in LAYERS:
        layers = config.get(key)
        if isinstance(layers, int) and layers > tensors:
            raise NotAModel(
                f"{name}: {key} is {layers:,} in {file}, and its weights hold {tensors:,} tensors",
                "take the config.json that belongs to these weights",
            )
    for key in TABLES:
        size = config.get(key)
        if isinstance(size, int) and size > MOST_ROWS:
            raise NotAModel(
                f"{name}: {key} is {size:,} in {file}: no model has that",
                "take the config.json that belongs to these weights",
            )
