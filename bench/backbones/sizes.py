"""Compare the sizes in a model's config.json with its weights.

A forged size would fill the memory when the model is built.
"""

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
"""Rows or columns of a matrix of weights; the largest vocabularies have some hundred thousand
tokens.
"""


def check_sizes(name: str, folder: Path, config: Mapping[str, Any], tensors: int) -> None:
    """Raise NotAModel for more layers than tensors, or for a size beyond any model's.

    ``tensors``: how many tensors the folder's weights hold.
    """
    file = folder / "config.json"
    for key in (*LAYERS, *TABLES):
        size = config.get(key)
        if not isinstance(size, int):
            continue
        if key in LAYERS and size > tensors:
            problem = f"but its weights hold {tensors:,} tensors"
        elif key in TABLES and size > MOST_ROWS:
            problem = "more than any model has"
        else:
            continue
        raise NotAModel(
            f"{name}: {key} is {size:,} in {file}, {problem}",
            "take the config.json that belongs to these weights",
        )
