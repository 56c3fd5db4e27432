"""Encode sentences with a model that takes texts, as a ready-made encoder's own library does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from bench.base.errors import Interrupted
from bench.method.passes import compute_exactly
from bench.method.torch_method import CPU_TOKENS, GPU_TOKENS, TorchMethod


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

    context = method.context
    on_cpu = torch.device(context.device).type == "cpu"
    budget = CPU_TOKENS if on_cpu else GPU_TOKENS

    def progress(done: int, total: int) -> None:
        if context.should_stop():
            raise Interrupted(
                f"stopped after encoding {done} of {total} sentences; "
                "the same command encodes them again"
            )
        context.reporter.advance(done, total=total)

    with torch.inference_mode(), compute_exactly(method.encoder):
        return encode_texts(
            sentences,
            lengths=lengths,
            embed=embed,
            budget=1 if alone else budget,
            progress=progress,
        )
