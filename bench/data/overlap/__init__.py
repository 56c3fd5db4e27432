"""Which sentences of the evaluation sets stand in a training corpus: the same ones, and nearly the same ones. docs/overlap.md."""

from __future__ import annotations

from bench.data.overlap.count import RULE, Match, NearIndex, Overlap, Wanted, overlaps, scored_sentences, words_of

__all__ = ["RULE", "Match", "NearIndex", "Overlap", "Wanted", "overlaps", "scored_sentences", "words_of"]
