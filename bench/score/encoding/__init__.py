"""Sentences to vectors: each distinct sentence once, sorted by length, in batches of a bounded number of padded tokens.

Imports no torch: the tokenizer and the model are callables that the caller hands over.
"""

from __future__ import annotations

from bench.score.encoding.batches import batches_of, encode_unique
from bench.score.encoding.store import VectorStore

__all__ = ["VectorStore", "batches_of", "encode_unique"]
