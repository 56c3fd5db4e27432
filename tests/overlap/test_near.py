"""Nearly equal sentences: the index finds what comparing every two of them finds, no more and no less."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.data.overlap import NearIndex


def by_comparing_all(batch: list[list[str]], here: list[list[str]]) -> list[tuple[int, int]]:
    """(place, number) of every two with Jaccard similarity at least 0.8, in exact arithmetic."""
    found = []
    for place, a in enumerate(map(set, batch)):
        for number, b in enumerate(map(set, here)):
            if a and b and 10 * len(a & b) >= 8 * len(a | b):
                found.append((place, number))
    return found


def pairs(index: NearIndex, batch: list[list[str]]) -> list[tuple[int, int]]:
    return [(place, number) for place, number, _ in index.near(batch)]


words = st.lists(st.sampled_from("abcdefghijklmnop"), max_size=14)


@settings(max_examples=150, deadline=None)
@given(st.lists(words, max_size=12), st.lists(words, max_size=12))
def test_as_comparing_all_with_all(batch: list[list[str]], here: list[list[str]]) -> None:
    assert pairs(NearIndex(here), batch) == by_comparing_all(batch, here)


def test_recall_and_precision_on_sentences_that_were_changed_a_little() -> None:
    """600 sentences of 3 to 40 words out of 400, frequent ones more often, and changed copies of them: recall and precision are 1."""
    drawn = random.Random(4)
    vocabulary = [f"w{i}" for i in range(400)]
    here = [
        [vocabulary[int(400 * drawn.random() ** 3)] for _ in range(drawn.randint(3, 40))]
        for _ in range(600)
    ]

    def changed(sentence: list[str]) -> list[str]:
        copy = list(sentence)
        for _ in range(drawn.randint(0, 1 + len(copy) // 6)):
            copy[drawn.randrange(len(copy))] = drawn.choice([*vocabulary, "unheard-of"])
        drawn.shuffle(copy)
        return copy

    batch = [changed(drawn.choice(here)) for _ in range(600)]
    wanted = by_comparing_all(batch, here)
    assert len(wanted) > 300, "the test has something to find"
    found = NearIndex(here).near(batch)
    assert [(a, b) for a, b, _ in found] == wanted
    for place, number, similarity in found[:50]:
        a, b = set(batch[place]), set(here[number])
        assert similarity == pytest.approx(len(a & b) / len(a | b))
