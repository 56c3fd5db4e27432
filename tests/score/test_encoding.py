"""Encoding: the same vectors whatever the batch and the order, each distinct sentence once, the
budget kept.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.score.encoding import batches_of, encode_unique

WORDS = ["red", "green", "blue", "cat", "dog", "house", "runs", "sees"]
WORDS += ["under", "over", "very", "small", "big", "old"]


def sentences(n: int, seed: int = 3) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(1, 30))) for _ in range(n)]


def tokens(texts):
    return [[5 + WORDS.index(w) for w in text.split()] for text in texts]


class CountingModel:
    """The vector of a sentence is (its length, the sum of its ids); keeps every batch that it
    saw.
    """

    def __init__(self):
        self.batches: list[list[tuple[int, ...]]] = []

    def embed(self, ids):
        self.batches.append([tuple(row) for row in ids])
        return np.array([[len(row), sum(row)] for row in ids], dtype=np.float64)


def test_each_distinct_sentence_once_and_rows_in_place():
    texts = sentences(40)
    texts = texts + texts[::-1] + [texts[0]] * 5
    model = CountingModel()
    result = encode_unique(texts, tokens=tokens, embed=model.embed, budget=64)
    assert result.tolist() == [[len(t), sum(t)] for t in tokens(texts)]
    seen = Counter(row for batch in model.batches for row in batch)
    assert seen == Counter({tuple(t): 1 for t in tokens(set(texts))})


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(1, 100))
def test_batches_cover_every_row_once_and_cannot_take_one_more(lengths, budget):
    lengths = sorted(lengths, reverse=True)
    batches = list(batches_of(lengths, budget))
    assert [i for batch in batches for i in batch] == list(range(len(lengths)))
    for batch in batches:
        longest = max(1, lengths[batch[0]])
        assert len(batch) == 1 or len(batch) * longest <= budget
        if batch[-1] + 1 < len(lengths):
            assert (len(batch) + 1) * longest > budget


def test_empty_list_empty_sentence_and_wrong_rows():
    model = CountingModel()
    assert encode_unique([], tokens=tokens, embed=model.embed, budget=10).shape == (0, 0)
    found = encode_unique(["", "cat"], tokens=tokens, embed=model.embed, budget=10)
    assert found.tolist() == [[0, 0], [1, 8]]
    with pytest.raises(ValueError, match="expected \\(2, dim\\)"):
        encode_unique(["cat", "dog"], tokens=tokens, embed=lambda ids: np.zeros((1, 4)), budget=10)
    with pytest.raises(ValueError, match="1 rows for 2"):
        encode_unique(["cat", "dog"], tokens=lambda texts: [[1]], embed=model.embed, budget=10)
    with pytest.raises(ValueError, match="budget"):
        encode_unique(["cat"], tokens=tokens, embed=model.embed, budget=0)
