"""The vectors of one checkpoint: what one task needed is there when the next one asks, in this run or a later one.

On disk, two files that only grow:

    <key>-<dim>.f32    the vectors behind one another, little-endian float32
    <key>-<dim>.keys   16 bytes a row: blake2b of the sentence

A vector is written before its key, so that a process that is killed leaves at most rows nobody asks for, which the next one
cuts off.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bench.base.errors import RunFailed
from bench.base.lease import check_owned

KEY_BYTES = 16
CHUNK = 32768  # sentences that are encoded and written at once


class VectorStore:
    """Vectors of distinct sentences, each encoded once.

    store = VectorStore(folder, key)             # or VectorStore(): in memory only
    store.add(task.sentences, method.encode)     # encodes what is new
    vectors = store(task.sentences)              # (n, dim) float32, row i for sentence i
    """

    def __init__(self, folder: Path | None = None, key: str = "vectors") -> None:
        self._folder, self._key = folder, key
        self._row: dict[bytes, int] = {}
        self._vectors = np.zeros((0, 0), dtype=np.float32)
        if folder is not None:
            self._open(folder)

    def __len__(self) -> int:
        return len(self._row)

    def __contains__(self, sentence: object) -> bool:
        return isinstance(sentence, str) and _key_of(sentence) in self._row

    def first(self, count: int) -> np.ndarray:
        """The first ``count`` vectors that were added, or as many as there are: (n, dim) float32; (0, 0) of none."""
        return np.array(self._vectors[:count], dtype=np.float32)

    def missing(self, sentences: Sequence[str]) -> list[str]:
        """The distinct sentences that are not here yet."""
        return [s for s in dict.fromkeys(sentences) if _key_of(s) not in self._row]

    def add(self, sentences: Sequence[str], encode: Callable[[list[str]], np.ndarray], chunk: int = CHUNK) -> int:
        """Encode the distinct sentences that are not here yet, longest first, ``chunk`` at a time; returns how many they were.

        What is on disk stays there whatever happens to a later chunk. Raises ValueError when the shape of what ``encode``
        returns does not fit; then nothing of that chunk was added. Raises RunFailed where the disk refuses.
        """
        new = sorted(self.missing(sentences), key=lambda s: (-len(s), s))
        for start in range(0, len(new), chunk):
            part = new[start : start + chunk]
            vectors = np.ascontiguousarray(encode(part), dtype="<f4")
            if vectors.ndim != 2 or len(vectors) != len(part):
                raise ValueError(f"encode returned shape {vectors.shape} for {len(part)} sentences; expected ({len(part)}, dim)")
            if self._row and vectors.shape[1] != self._vectors.shape[1]:
                before = self._vectors.shape[1]
                raise ValueError(f"encode returned {vectors.shape[1]} dimensions, before {before}: use one store per model")
            self._append(part, vectors)
        return len(new)

    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        """(n, dim) float32. Raises KeyError for a sentence that was never added."""
        rows = np.fromiter((self._row[_key_of(s)] for s in sentences), dtype=np.int64, count=len(sentences))
        found = np.asarray(self._vectors[rows], dtype=np.float32)
        _release(self._vectors)
        return found

    def _append(self, sentences: Sequence[str], vectors: np.ndarray) -> None:
        keys = [_key_of(s) for s in sentences]
        if self._folder is None:
            self._vectors = np.concatenate([self._vectors, vectors]) if self._row else vectors
        else:
            files = self._files(vectors.shape[1])
            check_owned(self._folder)
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                for file, part in zip(files, (vectors, np.frombuffer(b"".join(keys), dtype=np.uint8)), strict=True):
                    with file.open("ab") as stream:
                        part.tofile(stream)
                        stream.flush()
                        os.fsync(stream.fileno())
            except OSError as error:
                raise RunFailed(f"vectors cannot be written to {self._folder}: {error.strerror or error}", "free disk space") from None
            self._vectors = _mapped(files[0], vectors.shape[1])
        self._row.update((key, i) for i, key in enumerate(keys, start=len(self._row)))

    def _files(self, dim: int) -> tuple[Path, Path]:
        assert self._folder is not None
        return self._folder / f"{self._key}-{dim}.f32", self._folder / f"{self._key}-{dim}.keys"

    def _open(self, folder: Path) -> None:
        for dim in {int(file.stem.rpartition("-")[2]) for end in ("f32", "keys") for file in folder.glob(f"{self._key}-*.{end}")}:
            vectors, keys = self._files(dim)
            sides = [(file, file.stat().st_size if file.exists() else 0, width) for file, width in ((vectors, 4 * dim), (keys, KEY_BYTES))]
            rows = min(size // width for _, size, width in sides)
            for file, size, width in sides:
                if size != rows * width:  # what a kill or a full disk left, also where it came before the first key
                    os.truncate(file, rows * width)
            if rows:
                data = keys.read_bytes()
                self._row = {data[i * KEY_BYTES : (i + 1) * KEY_BYTES]: i for i in range(rows)}
                self._vectors = _mapped(vectors, dim)


def _key_of(sentence: str) -> bytes:
    return hashlib.blake2b(sentence.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()


def _mapped(file: Path, dim: int) -> np.ndarray:
    return np.memmap(file, dtype="<f4", mode="r").reshape(-1, dim)


def _release(vectors: np.ndarray) -> None:
    """Give back the pages of the file that were looked at: a process that scores many sets would else hold all vectors in memory."""
    mapped = getattr(vectors, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
