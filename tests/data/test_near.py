"""Nearly equal sentences: the index finds what comparing every two of them finds, no more and no
less.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bench.data.near import NearIndex


def by_comparing_all(batch: list[list[str]], here: list[list[str]]) -> list[tuple[int, int]]:
    """(place, number) of every two with Jaccard similarity at least 0.8, in exact arithmetic."""
    found = []
    for place, a in enumerate(map(set, batch)):
        for number, b in enumerate(map(set, here)):
            if a and b and 10 * len(a & b) >= 8 * len(a | b):
                found.append((place, number))
    return found


words = st.lists(st.sampled_from("abcdefghijklmnop"), max_size=14)


@settings(max_examples=60)
@given(st.lists(words, max_size=12), st.lists(words, max_size=12))
def test_as_comparing_all_with_all(batch: list[list[str]], here: list[list[str]]) -> None:
    assert NearIndex(here).near(batch) == by_comparing_all(batch, here)
