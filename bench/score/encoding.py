"""Sentences to vectors: each distinct sentence once, in batches of a bounded number of padded
tokens.

Imports no torch: the caller passes the tokenizer and the model as callables.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.base.errors import RunFailed
from bench.base.locks import lock

TOKENISE_AT_ONCE = 8192  # sentences: bounds the Python lists that a tokenizer returns


def encode_unique(
    sentences: Sequence[str],
    *,
    tokens: Callable[[Sequence[str]], Sequence[Sequence[int]]],
    embed: Callable[[list[Sequence[int]]], Any],
    budget: int,
    progress: Callable[[int, int], None] | None = None,
    gather: Callable[[list[Any]], np.ndarray] = np.concatenate,
    gathered: int = 0,
) -> np.ndarray:
    """Encode sentences as (n, dim) float32, row i for sentence i; (0, 0) if there are none.

    ``tokens`` turns sentences into ids, ``embed`` the ids of one batch into (rows, dim), and
    ``gather`` the results of some batches into one array: of one batch, or of as many as hold
    ``gathered`` numbers, so that the host need not wait for a GPU in each batch. A batch holds at
    most ``budget`` padded tokens (rows x longest row, of the ids as ``tokens`` gives them); a
    longer sentence is its own batch.
    ``progress(done, total)`` counts distinct sentences.

    The batches depend on the set of distinct sentences only, so that order and repetitions of the
    input change no bit of the result. Raises ValueError if a callable returns the wrong number of
    rows or ``budget`` is below 1.
    """
    if budget < 1:
        raise ValueError(f"budget is {budget} padded tokens; at least 1 is needed")
    distinct = sorted(set(sentences))
    if not distinct:
        return np.zeros((0, 0), dtype=np.float32)
    ids = _compact_ids(distinct, tokens)
    result = _encode_by_length(
        [len(row) for row in ids],
        lambda rows: embed([ids[row] for row in rows]),
        budget=budget,
        progress=progress,
        gather=gather,
        gathered=gathered,
    )
    return _rows_of(sentences, distinct, result)


def encode_texts(
    sentences: Sequence[str],
    *,
    lengths: Callable[[list[str]], Sequence[int]],
    embed: Callable[[list[str]], np.ndarray],
    budget: int,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Encode sentences as :func:`encode_unique` does, by a model that takes texts.

    ``lengths`` counts the tokens of each sentence, ``embed`` turns the sentences of one batch into
    (rows, dim) float32. Raises ValueError as :func:`encode_unique` does.
    """
    distinct = sorted(set(sentences))
    if not distinct:
        return np.zeros((0, 0), dtype=np.float32)
    result = _encode_by_length(
        lengths(distinct),
        lambda rows: embed([distinct[row] for row in rows]),
        budget=budget,
        progress=progress,
    )
    return _rows_of(sentences, distinct, result)


def _encode_by_length(
    lengths: Sequence[int],
    embed: Callable[[list[int]], Any],
    *,
    budget: int,
    progress: Callable[[int, int], None] | None = None,
    gather: Callable[[list[Any]], np.ndarray] = np.concatenate,
    gathered: int = 0,
) -> np.ndarray:
    """Encode rows of these lengths, at least one, as (n, dim) float32.

    ``embed`` gets the numbers of the rows of one batch.
    """
    result = np.zeros((0, 0), dtype=np.float32)
    # longest first: a batch that does not fit in memory fails at once, and the remaining time is
    # overestimated, never underestimated
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    done = 0
    # results of batches that are not gathered yet, and their rows in ``result``
    waiting: list[Any] = []
    places: list[int] = []
    for batch in batches_of([lengths[row] for row in order], budget):
        where = [order[place] for place in batch]
        vectors = embed(where)
        _check_shape(vectors, len(where), result.shape[1] if done else None)
        if not done:
            result = np.empty((len(lengths), vectors.shape[1]), dtype=np.float32)
        waiting.append(vectors)
        places += where
        done += len(where)
        if len(places) * vectors.shape[1] >= gathered or done == len(lengths):
            result[places] = gather(waiting)
            waiting.clear()
            places.clear()
        if progress is not None:
            progress(done, len(lengths))
    return result


def _rows_of(sentences: Sequence[str], distinct: list[str], result: np.ndarray) -> np.ndarray:
    """Return a row for each sentence, out of the rows of the distinct ones."""
    row_of = {sentence: i for i, sentence in enumerate(distinct)}
    return result[np.fromiter((row_of[s] for s in sentences), dtype=np.int64, count=len(sentences))]


def _check_shape(vectors: Any, rows: int, dimensions: int | None) -> None:
    """Raise ValueError for another number of rows or, if it is known, of dimensions."""
    if vectors.ndim != 2 or len(vectors) != rows:
        raise ValueError(
            f"embed returned shape {tuple(vectors.shape)} for {rows} sentences; "
            f"expected ({rows}, dim)"
        )
    if dimensions is not None and vectors.shape[1] != dimensions:
        raise ValueError(f"embed returned {vectors.shape[1]} dimensions, before {dimensions}")


def batches_of(lengths: Sequence[int], budget: int) -> Iterator[range]:
    """Cut rows 0..n-1 into batches of at most ``budget`` = rows x longest row, never an empty one.

    ``lengths`` of the rows must not grow. A row of length 0 counts as 1.
    """
    start = 0
    while start < len(lengths):
        end = min(len(lengths), start + max(1, budget // max(1, lengths[start])))
        yield range(start, end)
        start = end


def _compact_ids(
    sentences: list[str], tokens: Callable[[Sequence[str]], Sequence[Sequence[int]]]
) -> list[Sequence[int]]:
    """Tokenise all sentences, with 4 bytes for each id; in Python lists they would take 36."""
    compact: list[Sequence[int]] = []
    for start in range(0, len(sentences), TOKENISE_AT_ONCE):
        chunk = sentences[start : start + TOKENISE_AT_ONCE]
        ids = tokens(chunk)
        if len(ids) != len(chunk):
            raise ValueError(f"tokens returned {len(ids)} rows for {len(chunk)} sentences")
        compact.extend(array("i", row) for row in ids)
    return compact


KEY_BYTES = 16
CHUNK = 32768  # sentences that are encoded and written at once
LOCK = ".lock"  # held while rows are added


class VectorStore:
    """Vectors of distinct sentences, each encoded once, for the next task or a later run.

    store = VectorStore(folder, key)             # or VectorStore(): in memory only
    store.add(task.sentences, method.encode)     # encodes new sentences
    vectors = store(task.sentences)              # (n, dim) float32, row i for sentence i

    On disk, it has two files that only grow:

    <key>-<dim>.f32    the vectors one after another, little-endian float32
    <key>-<dim>.keys   16 bytes a row: blake2b of the sentence

    A vector is written before its key, so that a process that is killed, or finds the disk full,
    leaves at most rows without a key, which the next one that adds rows cuts off. Several processes
    may use one store.
    """

    def __init__(self, folder: Path | None = None, key: str = "vectors") -> None:
        self._folder, self._key = folder, key
        self._row: dict[bytes, int] = {}
        self._vectors = np.zeros((0, 0), dtype=np.float32)
        if folder is not None:
            for file in sorted(folder.glob(f"{key}-*.keys")):
                if not self._row:
                    self._read(int(file.stem.rpartition("-")[2]))

    def __len__(self) -> int:
        return len(self._row)

    def first(self, count: int) -> np.ndarray:
        """Return the first vectors, at most ``count``, as (n, dim) float32; (0, 0) if none was
        added.
        """
        return np.array(self._vectors[:count], dtype=np.float32)

    def missing(self, sentences: Sequence[str]) -> list[str]:
        """Return the distinct sentences that are not stored yet."""
        return [s for s in dict.fromkeys(sentences) if _key_of(s) not in self._row]

    def add(
        self,
        sentences: Sequence[str],
        encode: Callable[[list[str]], np.ndarray],
        chunk: int = CHUNK,
    ) -> int:
        """Encode the sentences that are not stored yet, longest first; returns their number.

        ``chunk`` sentences are encoded and written at a time. A chunk on disk stays there if a
        later one fails. Raises ValueError if ``encode`` returns an array of the wrong shape
        (nothing of that chunk is added then), RunFailed if the disk cannot be written.
        """
        new = sorted(self.missing(sentences), key=lambda s: (-len(s), s))
        for start in range(0, len(new), chunk):
            part = new[start : start + chunk]
            vectors = np.ascontiguousarray(encode(part), dtype="<f4")
            if vectors.ndim != 2 or len(vectors) != len(part):
                shape, count = vectors.shape, len(part)
                raise ValueError(
                    f"encode returned shape {shape} for {count} sentences; expected ({count}, dim)"
                )
            if self._row and vectors.shape[1] != self._vectors.shape[1]:
                now, before = vectors.shape[1], self._vectors.shape[1]
                raise ValueError(
                    f"encode returned {now} dimensions, before {before}: use one store per model"
                )
            self._append(part, vectors)
        return len(new)

    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        """Return (n, dim) float32. Raises KeyError for a sentence that was never added."""
        rows = np.fromiter(
            (self._row[_key_of(s)] for s in sentences), dtype=np.int64, count=len(sentences)
        )
        vectors = np.asarray(self._vectors[rows], dtype=np.float32)
        # Release the pages that were read: otherwise a process that scores many sets would hold the
        # whole file in memory.
        mapped = getattr(self._vectors, "_mmap", None)
        if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED)
        return vectors

    def _append(self, sentences: Sequence[str], vectors: np.ndarray) -> None:
        if self._folder is None:
            first = len(self._row)
            self._vectors = np.concatenate([self._vectors, vectors]) if first else vectors
            self._row.update((_key_of(s), i) for i, s in enumerate(sentences, first))
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with lock(self._folder / LOCK):
                self._write(sentences, vectors)
        except OSError as error:
            raise RunFailed(
                f"vectors cannot be written to {self._folder}: {error.strerror or error}",
                "free disk space",
            ) from None

    def _write(self, sentences: Sequence[str], vectors: np.ndarray) -> None:
        """Add rows to the files, without those that another process has added meanwhile.

        Raises OSError.
        """
        dim = vectors.shape[1]
        self._read(dim)
        new = [i for i, s in enumerate(sentences) if _key_of(s) not in self._row]
        keys = b"".join(_key_of(sentences[i]) for i in new)
        parts: tuple[memoryview | bytes, ...] = (vectors[new].data, keys)
        for (file, width), part in zip(self._files(dim), parts, strict=True):
            with file.open("ab") as stream:
                # what a killed process, or a full disk, left behind the last whole row
                stream.truncate(len(self._row) * width)
                stream.write(part)
                stream.flush()
                os.fsync(stream.fileno())
        self._read(dim)

    def _files(self, dim: int) -> tuple[tuple[Path, int], tuple[Path, int]]:
        """Return the files of the vectors and of the keys, each with the bytes of a row."""
        assert self._folder is not None
        name = f"{self._key}-{dim}"
        return (self._folder / f"{name}.f32", 4 * dim), (self._folder / f"{name}.keys", KEY_BYTES)

    def _read(self, dim: int) -> None:
        """Read the rows that were added to the files since they were last read.

        Raises RunFailed if rows are gone.
        """
        files = self._files(dim)
        rows = min(file.stat().st_size // width if file.exists() else 0 for file, width in files)
        known = len(self._row)
        if rows < known:
            raise RunFailed(
                f"vectors in {self._folder} were removed while they were used",
                "the same command encodes them again",
            )
        if rows == known:
            return
        (vectors, _), (keys, _) = files
        with keys.open("rb") as stream:
            stream.seek(known * KEY_BYTES)
            for row in range(known, rows):
                self._row[stream.read(KEY_BYTES)] = row
        self._vectors = np.memmap(vectors, dtype="<f4", mode="r", shape=(rows, dim))


def _key_of(sentence: str) -> bytes:
    return hashlib.blake2b(
        sentence.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES
    ).digest()
