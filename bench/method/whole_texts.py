"""Encode sentences with a model that takes texts, as a ready-made encoder's own library does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch

from bench.method.passes import compute_exactly
from bench.method.torch_method import TorchMethod, report_encoded, tokens_at_once


def encode_whole(
    method: TorchMethod,
    sentences: Sequence[str],
    *,
    lengths: Callable[[list[str]], Sequence[int]],
    embed: Callable[[list[str]], np.ndarray],
    alone: bool = False,
) -> np.ndarray:
    """Encode each distinct sentence once, in batches of sentences with a like number of tokens.

    ``lengths`` counts the tokens of each sentence, ``embed`` turns the sentences of one batch into
    (n, d) float32. ``alone``: each batch is one sentence. Returns (n, d) float32, row i for
    sentence i. Raises Interrupted.
    """
    from bench.score.encoding import encode_texts

    with torch.inference_mode(), compute_exactly(method.encoder):
        return encode_texts(
            sentences,
            lengths=lengths,
            embed=embed,
            budget=1 if alone else tokens_at_once(method),
            progress=partial(report_encoded, method),
        )
