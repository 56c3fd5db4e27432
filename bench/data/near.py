"""Finds all pairs of nearly equal sentences, exactly: none is missed.

Two sentences are nearly equal if they share at least 4 of 5 words that either has, so that |x & y|
/ |x | y| >= 4/5 (Jaccard). Only sets are compared that share two of their rarest words. That is
prefix filtering (Chaudhuri, Ganti, Kaushik, ICDE 2006; with several words, Wang, Li, Feng, SIGMOD
2012): with the words of every set ordered from rare to frequent, two sets that near share two words
among the first |x| - ceil(4/5 |x|) + 2 of each. For they share at least a = ceil(4/5 max(|x|,
|y|)), so that at most |x| - a words of x come before the second shared one.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

# the threshold as a fraction of whole numbers: no rounding decides a pair
SHARED, OF = 4, 5
_WORD = re.compile(r"[^\W_]+")


def words_of(sentence: str) -> list[str]:
    """Return runs of letters and digits, lower-cased, in their order; of compatibility forms
    (full-width, ligatures) the plain ones.

    What a tokeniser puts between or takes from words is not among them: joined, "Don't!" and "do
    n't !" are both "dont".
    """
    if not sentence.isascii():
        sentence = unicodedata.normalize("NFKC", sentence)
    return _WORD.findall(sentence.lower())


class NearIndex:
    """Sentences to look for, by their words:

    ``near(batch)`` gives those that are nearly the same.
    """

    def __init__(self, sentences: Sequence[Iterable[str]]) -> None:
        sets = [set(words) for words in sentences]
        counts = Counter(word for words in sets for word in words)
        self._rank = {
            word: i for i, (_, word) in enumerate(sorted((n, word) for word, n in counts.items()))
        }
        self._sets = [frozenset(self._rank[word] for word in set_) for set_ in sets]
        self._sizes = np.array([len(ranks) for ranks in self._sets], dtype=np.int64)
        keys, numbers = self._signatures((sorted(ranks), len(ranks)) for ranks in self._sets)
        order = np.argsort(keys, kind="stable")
        self._keys, self._numbers = keys[order], numbers[order]

    def near(self, batch: Sequence[Iterable[str]]) -> list[tuple[int, int]]:
        """Return (place in the batch, number of the sentence here) of every two that are nearly
        equal, in order.
        """
        sets = [set(words) for words in batch]
        known = []
        for words in sets:
            known.append(sorted(self._rank[word] for word in words if word in self._rank))
        keys, places = self._signatures(
            (ranks, len(words)) for ranks, words in zip(known, sets, strict=True)
        )
        first = np.searchsorted(self._keys, keys, "left")
        counts = np.searchsorted(self._keys, keys, "right") - first
        ends = np.cumsum(counts)
        if not len(ends) or not ends[-1]:
            return []
        inside = np.arange(ends[-1]) - np.repeat(
            ends - counts, counts
        )  # 0, 1, ... within each run of equal keys
        numbers = self._numbers[np.repeat(first, counts) + inside]
        n = np.array([len(set_) for set_ in sets], dtype=np.int64)[np.repeat(places, counts)]
        m = self._sizes[numbers]
        fits = (SHARED * n <= OF * m) & (SHARED * m <= OF * n)
        pairs = np.unique(np.stack([np.repeat(places, counts)[fits], numbers[fits]]), axis=1)
        alike = []
        for place, number in zip(*pairs.tolist(), strict=True):
            both = len(self._sets[number].intersection(known[place]))
            either = len(sets[place]) + len(self._sets[number]) - both
            if OF * both >= SHARED * either:
                alike.append((place, number))
        return alike

    def _signatures(self, sets: Iterable[tuple[list[int], int]]) -> tuple[np.ndarray, np.ndarray]:
        """Return every pair among the first words of each set, as one number, and its set.

        A set is (the ranks of its words that are known here, rare ones first; how many words it has
        in all).
        """
        keys = array("q")
        places = array("q")
        base = len(self._rank)
        for place, (ranks, size) in enumerate(sets):
            # words that no sentence here has are the rarest of all, and come before these
            first = ranks[: max(0, size - -(-SHARED * size // OF) + 2 - (size - len(ranks)))]
            if size > 1:
                pairs = [a * base + b for a, b in combinations(first, 2)]
            else:  # a sentence of one word: the word with itself
                pairs = [a * base + a for a in first[:1]]
            keys.extend(pairs)
            places.extend([place] * len(pairs))
        return np.frombuffer(keys, dtype=np.int64), np.frombuffer(places, dtype=np.int64)
