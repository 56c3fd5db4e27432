"""Vocabularies of words and pieces that are the same in every process.

The trainers of `tokenizers` for word pieces and unigrams order equals by chance, so that a random
model's scores with them would differ from run to run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def word_pieces(specials: Iterable[str], words: Iterable[str]) -> dict[str, int]:
    """Return the ids of the special tokens, every character (alone and inside a word), and the
    words.
    """
    words = sorted(set(words))
    characters = sorted({character for word in words for character in word})
    inside = [f"##{character}" for character in characters]
    pieces = dict.fromkeys([*specials, *characters, *inside, *words])
    return {piece: number for number, piece in enumerate(pieces)}


def unigrams(trained: Any, specials: Iterable[str]) -> list[tuple[str, float]]:
    """Return the special tokens and the pieces of a trained unigram tokenizer, all equally
    likely.
    """
    specials = list(specials)
    pieces = {piece for piece, _ in json.loads(trained.to_str())["model"]["vocab"]}
    ordered = [*specials, *sorted(pieces.difference(specials))]
    return [(piece, 0.0 if piece in specials else -5.0) for piece in ordered]
