"""Token ids of sentences that are scored again and again: a dev set's, during a training."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MOST_IDS = 1 << 22
"""Ids that are kept at most: 16 MiB."""


class RememberedIds:
    """The ids that a tokenizer gave for sentences, so that each is tokenised once.

    A tokenizer gives the same ids for the same text, so that none grows stale. They are used only
    while :meth:`in_use` is open, and only on the thread that opened it: batches are made on
    another one, of sentences that hardly come again.
    """

    def __init__(self) -> None:
        self._kept: dict[str, array[int]] = {}
        self._room = MOST_IDS
        self._thread: int | None = None

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep and use ids on this thread while open."""
        self._thread = threading.get_ident()
        try:
            yield
        finally:
            self._thread = None

    def ids(
        self, sentences: list[str], tokenise: Callable[[list[str]], list[list[int]]]
    ) -> list[list[int]]:
        """Return each sentence's ids; those that are not known are asked of ``tokenise``."""
        if self._thread != threading.get_ident():
            return tokenise(sentences)
        new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in self._kept]
        found = dict(zip(new, tokenise(new), strict=True))
        rows = []
        for sentence in sentences:
            # a list of its own: a method may change it
            rows.append(list(found[sentence] if sentence in found else self._kept[sentence]))
        self._keep(found)
        return rows

    def _keep(self, found: dict[str, list[int]]) -> None:
        for sentence, ids in found.items():
            self._room -= len(ids) + 1
            if self._room < 0:
                return
            self._kept[sentence] = array("i", ids)
