"""Padding on the left, as many decoders' own code has it. It knows no method.

n rows, T tokens (padded).
"""

from __future__ import annotations

import torch

from bench.method import Features


def on_the_left(features: Features, first_position: int) -> Features:
    """Turn features that are padded on the right into such on the left, with the same positions.

    ``first_position``: the position id of a sentence's first token
    (:attr:`Backbone.first_position`).
    """
    mask = features["attention_mask"]
    padding = mask.shape[1] - mask.sum(1, keepdim=True)
    order = (torch.arange(mask.shape[1])[None] - padding) % mask.shape[1]
    moved = {key: value.gather(1, order) for key, value in features.items()}
    counted = moved["attention_mask"]
    if first_position:  # RoBERTa and its relatives count the tokens that are not the padding's id
        counted = counted * (moved["input_ids"] != first_position - 1)
    positions = counted.cumsum(1) * counted + first_position - 1
    return moved | {"position_ids": positions.clamp(min=0)}
