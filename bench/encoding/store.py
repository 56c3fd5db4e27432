"""The vectors of a run: what one task needed is there when the next one asks for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np


class VectorStore:
    """Vectors of distinct sentences, each encoded once over all tasks of a run.

    store = VectorStore()
    store.add(task.sentences, method.encode)     # encodes what is new
    vectors = store(task.sentences)              # (n, dim) float32, row i for sentence i
    """

    def __init__(self) -> None:
        self._row: dict[str, int] = {}
        self._vectors = np.zeros((0, 0), dtype=np.float32)

    def __len__(self) -> int:
        return len(self._row)

    def __contains__(self, sentence: object) -> bool:
        return sentence in self._row

    def add(self, sentences: Sequence[str], encode: Callable[[list[str]], np.ndarray]) -> int:
        """Encode the distinct sentences that are not here yet, in one call of ``encode``; returns how many they were.

        Raises ValueError when the shape of what ``encode`` returns does not fit; then nothing was added.
        """
        new = [s for s in dict.fromkeys(sentences) if s not in self._row]
        if not new:
            return 0
        vectors = np.asarray(encode(new), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(new):
            raise ValueError(f"encode returned shape {vectors.shape} for {len(new)} sentences; expected ({len(new)}, dim)")
        if self._row and vectors.shape[1] != self._vectors.shape[1]:
            before = self._vectors.shape[1]
            raise ValueError(f"encode returned {vectors.shape[1]} dimensions, before {before}: use one store per model")
        self._vectors = np.concatenate([self._vectors, vectors]) if self._row else vectors
        self._row.update((s, i) for i, s in enumerate(new, start=len(self._row)))
        return len(new)

    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        """(n, dim) float32. Raises KeyError for a sentence that was never added."""
        rows = np.fromiter((self._row[s] for s in sentences), dtype=np.int64, count=len(sentences))
        return self._vectors[rows]
