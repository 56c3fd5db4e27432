"""Sentences to vectors: each distinct sentence once, sorted by length, in batches of a bounded number of padded tokens.

Imports no torch: the tokenizer and the model are callables that the caller hands over.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from bench.score.encoding.store import VectorStore

__all__ = ["VectorStore", "batches_of", "encode_unique"]

TOKENISE_AT_ONCE = 8192  # sentences: bounds the Python lists that a tokenizer returns


def encode_unique(
    sentences: Sequence[str],
    *,
    tokens: Callable[[Sequence[str]], list[Sequence[int]]] | Callable[[Sequence[str]], list[list[int]]],
    embed: Callable[[list[Sequence[int]]], np.ndarray],
    budget: int,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Vectors (n, dim) float32; row i belongs to sentence i. No sentences give shape (0, 0).

    ``tokens`` turns sentences into ids, ``embed`` the ids of one batch into (rows, dim). A batch holds at most ``budget``
    padded tokens (rows x longest row, of the ids as ``tokens`` gives them); a sentence longer than that is its own batch.
    ``progress(done, total)`` counts distinct sentences. Which sentences share a batch depends on the set of distinct
    sentences only, so that the order and repetitions of the input change no bit of the result.
    Raises ValueError when a callable returns the wrong number of rows or ``budget`` is below 1.
    """
    if budget < 1:
        raise ValueError(f"budget is {budget} padded tokens; at least 1 is needed")
    distinct = sorted(set(sentences))
    if not distinct:
        return np.zeros((0, 0), dtype=np.float32)
    ids = _compact_ids(distinct, tokens)
    # longest first: a batch that does not fit in memory fails at once, and the time left is over- and not underestimated
    order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))

    result: np.ndarray | None = None
    done = 0
    for rows in batches_of([len(ids[i]) for i in order], budget):
        where = [order[i] for i in rows]
        vectors = np.asarray(embed([ids[i] for i in where]))
        if vectors.ndim != 2 or len(vectors) != len(where):
            raise ValueError(f"embed returned shape {vectors.shape} for {len(where)} sentences; expected ({len(where)}, dim)")
        if result is None:
            result = np.empty((len(distinct), vectors.shape[1]), dtype=np.float32)
        result[where] = vectors
        done += len(where)
        if progress is not None:
            progress(done, len(distinct))
    assert result is not None
    row_of = {sentence: i for i, sentence in enumerate(distinct)}
    return result[np.fromiter((row_of[s] for s in sentences), dtype=np.int64, count=len(sentences))]


def batches_of(lengths: Sequence[int], budget: int) -> Iterator[range]:
    """Cut rows 0..n-1, whose ``lengths`` never grow, into runs of at most ``budget`` = rows x longest; never an empty run.

    A row of length 0 counts as 1.
    """
    start = 0
    while start < len(lengths):
        end = min(len(lengths), start + max(1, budget // max(1, lengths[start])))
        yield range(start, end)
        start = end


def _compact_ids(sentences: list[str], tokens: Callable[[Sequence[str]], list]) -> list[Sequence[int]]:
    """The ids of all sentences at 4 bytes each; as lists of Python's they would take 36."""
    compact: list[Sequence[int]] = []
    for start in range(0, len(sentences), TOKENISE_AT_ONCE):
        chunk = sentences[start : start + TOKENISE_AT_ONCE]
        ids = tokens(chunk)
        if len(ids) != len(chunk):
            raise ValueError(f"tokens returned {len(ids)} rows for {len(chunk)} sentences")
        compact.extend(array("i", row) for row in ids)
    return compact
