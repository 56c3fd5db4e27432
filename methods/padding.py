"""Padding on the left, as many decoders' own code has it. It knows no method.

n rows, T tokens (padded).
"""

from __future__ import annotations

from typing import Any

import torch

from bench.method import BenchError, Features, TorchMethod

CLOSE = 1e-4  # of the largest number: the two sides differ by rounding, of half precision by more
TEXTS = ("A man is playing a guitar .", "Yes")


def on_the_left(features: Features, first_position: int) -> Features:
    """Features that are padded on the right, padded on the left: with the same positions for the same tokens.

    ``first_position``: the position id of a sentence's first token (:attr:`Backbone.first_position`).
    """
    mask = features["attention_mask"]
    padding = mask.shape[1] - mask.sum(1, keepdim=True)
    order = (torch.arange(mask.shape[1])[None] - padding) % mask.shape[1]
    moved = {key: value.gather(1, order) for key, value in features.items()}
    counted = (moved["attention_mask"].cumsum(1) - 1).clamp(min=0)
    return moved | {"position_ids": first_position + counted}


def check_left_padding(method: TorchMethod) -> None:
    """Raises BenchError unless an encoder gives every token the same state on either side of the padding.

    Some families take no position ids, or count positions from the left edge whatever the ids.
    """
    features = method.tokenize(TEXTS)
    mask = features["attention_mask"].bool()
    problem = ""
    try:
        with torch.no_grad():
            right: Any = method.encoder(**features).last_hidden_state
            moved = on_the_left(features, method.backbone.first_position)
            left: Any = method.encoder(**moved).last_hidden_state
        there = moved["attention_mask"].bool()
        allowed = max(CLOSE, 8 * torch.finfo(right.dtype).eps)
        if (right[mask] - left[there]).abs().max() > allowed * right[mask].abs().max():
            problem = "its states change with the side of the padding"
    except TypeError:
        problem = "it takes no position ids"
    if problem:
        raise BenchError(
            f"padding=left does not work on {method.backbone.name}, a {method.backbone.family} model: {problem}",
            "leave padding out: the vectors are those of the usual padding on the right",
        )
