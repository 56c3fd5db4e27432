"""Augmentations: ways to make a second view of a sentence. They know no method.

T tokens, H hidden size, n rows of a batch. A view is drawn from a numpy generator that the caller
hands in; a method takes one for each sentence (``rng_for(seed, what, epoch, row)``), so that
neither batch order nor a resumed training changes the view. Only :class:`DropHead` draws from
torch's generator, because it is a kind of dropout.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bench.method import Ids
from bench.methods.layer_hooks import encoder_layers, output_projection


def repeat_tokens(ids: Ids, rate: float, rng: np.random.Generator, *, around: int = 2) -> list[int]:
    """Double some of the tokens in place.

    How many is uniform below min(10, rate x length), and the length counts the ``around`` special
    tokens, too. Which ones is uniform, each at most once. ``ids`` come without special tokens, so
    that these are never doubled.
    """
    bound = min(10, int(rate * (len(ids) + around)))
    count = min(int(rng.integers(bound)), len(ids)) if bound > 0 else 0
    doubled = np.ones(len(ids), dtype=np.int64)
    doubled[rng.choice(len(ids), size=count, replace=False)] = 2
    return np.repeat(np.asarray(ids, dtype=np.int64), doubled).tolist()


def split_words(ids: Ids, inside: Container[int]) -> list[list[int]]:
    """Cut ids into words: a token of ``inside`` belongs to the word before it."""
    words: list[list[int]] = []
    for token in ids:
        if words and token in inside:
            words[-1].append(int(token))
        else:
            words.append([int(token)])
    return words


def inside_words(tokenizer: Any) -> frozenset[int]:
    """Return the tokens that continue a word.

    They are "##ing" and the like in a WordPiece vocabulary. A vocabulary that marks the beginnings
    of words has all others.
    """
    pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    if any(piece.startswith("##") for piece in pieces):
        return frozenset(i for i, piece in enumerate(pieces) if piece.startswith("##"))
    # of BPE; of SentencePiece
    return frozenset(
        i for i, piece in enumerate(pieces) if not piece.startswith(("\u0120", "\u2581"))
    )


def cropped(words: Sequence[Ids], share: float, rng: np.random.Generator) -> list[int]:
    """Return a stretch of the words at a random place without ``share`` of them (rounded), at least
    one word.
    """
    left = max(1, len(words) - round(share * len(words)))
    start = int(rng.integers(len(words) - left + 1))
    return [token for word in words[start : start + left] for token in word]


def without_words(words: Sequence[Ids], count: int, rng: np.random.Generator) -> list[int]:
    """Leave out ``count`` of the words at random places; at least one stays."""
    lost = set(rng.permutation(len(words))[: min(count, len(words) - 1)].tolist())
    kept_words = [word for i, word in enumerate(words) if i not in lost]
    return [token for word in kept_words for token in word]


def mask_span(
    text: str,
    rng: np.random.Generator,
    *,
    length: int = 5,
    shortest: int = 30,
    mask: str = "[MASK]",
    faithful: bool = False,
) -> str:
    """Replace one span of ``length`` characters, at a random place, by the mask between two blanks.

    A text below ``shortest`` characters, or no longer than the span, stays as it is. ``faithful``:
    as in mirror-bert's src/data_loader.py, which never draws the last span, and replaces the first
    occurrence of the drawn characters.
    """
    if len(text) < max(shortest, length + 1):
        return text
    start = int(rng.integers(len(text) - length + (not faithful)))
    if faithful:
        start = text.index(text[start : start + length])
    return f"{text[:start]} {mask} {text[start + length :]}"


def kept(size: int, rate: float, rng: np.random.Generator) -> np.ndarray:
    """Return (size,) bools, int(rate x size) of them False at random places.

    Over the H features it is feature cut-off, over the T tokens token cut-off, over all T x H
    entries dropout of an exact count.
    """
    keep = np.ones(size, dtype=bool)
    keep[rng.permutation(size)[: int(rate * size)]] = False
    return keep


def shuffled(
    positions: Sequence[int] | np.ndarray, tokens: int, rng: np.random.Generator
) -> np.ndarray:
    """Permute the first ``tokens`` of the (T,) position ids; the padding's ids stay."""
    mixed = np.array(positions, dtype=np.int64)
    mixed[:tokens] = rng.permutation(mixed[:tokens])
    return mixed


class DropHead:
    """Dropout of whole attention heads while an encoder trains: each head of each row with
    ``probability``.

    The remaining heads are scaled by heads / remaining, so that the sum keeps its size. A row that
    would lose every head keeps all of them (the published hook divides by zero there). It is made
    once for an encoder and stays attached to it.

    Raises BenchError if the encoder's layers are not known.
    """

    def __init__(self, encoder: Any, probability: float) -> None:
        self.probability, self.heads = probability, int(encoder.config.num_attention_heads)
        for layer in encoder_layers(encoder):
            # the input of the output projection is the heads' results, one behind the other
            output_projection(layer).register_forward_pre_hook(self)

    def __call__(
        self, projection: nn.Module, inputs: tuple[Tensor, ...]
    ) -> tuple[Tensor, ...] | None:
        if not projection.training:
            return None
        (states_nTH,) = inputs
        keep_nA = (
            torch.rand(len(states_nTH), self.heads, device=states_nTH.device) >= self.probability
        )
        keep_nA = keep_nA | ~keep_nA.any(1, keepdim=True)
        scale_nA = keep_nA * (self.heads / keep_nA.sum(1, keepdim=True))
        each_nTAd = states_nTH.unflatten(-1, (self.heads, -1))
        return ((each_nTAd * scale_nA[:, None, :, None].to(states_nTH.dtype)).flatten(-2),)
