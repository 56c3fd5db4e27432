"""A corpus as memory-mapped token ids: built once per content and tokenizer, and opened at once
from then on.

One folder a corpus and tokenizer, ``CACHE/tokenised/<corpus hash>-<key>/``:

    meta.json          the text and tokenizer that it was made from; sha256 of each file
    <column>.ids       all ids in a row, little-endian uint8, uint16 (vocabulary up to 65,536) or
                       uint32
                       label: the number of the label; score: the number itself, little-endian
                       float64
    <column>.offsets   (rows + 1,) little-endian int64: row i is ids[offsets[i]:offsets[i + 1]]
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from bench.base.cache import build_folder, default_cache
from bench.base.errors import BenchError
from bench.base.files import write_whole
from bench.base.hashes import file_sha256
from bench.data.corpora import Corpus
from bench.data.corpora.columns import LABELS, NUMBERS

LAYOUT = 3
MAX_TOKENS = 512  # ids kept of one sentence, without special tokens: no backbone here reads more
MAX_BYTES = 4096  # of one sentence that is kept as text
AS_TEXT = "utf-8"  # the "tokenizer" of a corpus with sentences kept as text
CHUNK = 10_000  # rows tokenised at once

Encode = Callable[[list[str]], Sequence[Sequence[int]]]


class TokenisedColumn:
    """One column: ids in a row, and the start of each text.

    The ids are a tokenizer's, or the bytes of the text.
    """

    def __init__(self, ids: np.ndarray, offsets: np.ndarray, *, text: bool = False) -> None:
        self._ids = ids
        self._offsets = offsets
        self._text = text

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def ids(self, rows: np.ndarray | Sequence[int]) -> list[np.ndarray]:
        """Return the ids of these rows: read-only (k,) views of uint16 or uint32, no special
        tokens."""
        index = np.asarray(rows, dtype=np.int64)
        if index.size and not (index.min() >= 0 and index.max() < len(self)):
            raise IndexError(f"rows {index.min()} to {index.max()} asked of {len(self)}")
        starts, ends = self._offsets[index].tolist(), self._offsets[index + 1].tolist()
        return [self._ids[a:b] for a, b in zip(starts, ends, strict=True)]

    def rows(self, rows: np.ndarray | Sequence[int]) -> list[np.ndarray] | list[str]:
        """Return these rows as ids, or as strings if the corpus was kept as text."""
        ids = self.ids(rows)
        if not self._text:
            return ids
        return [row.astype(np.uint8).tobytes().decode("utf-8", "ignore") for row in ids]

    def hashes(self) -> np.ndarray:
        """Return (n,) 64-bit hashes of the ids of each text, the same in every process."""
        spans = itertools.pairwise(self._offsets.tolist())
        digests = (blake2b(self._ids[a:b].tobytes(), digest_size=8).digest() for a, b in spans)
        numbers = (int.from_bytes(digest, "little") for digest in digests)
        return np.fromiter(numbers, dtype=np.uint64, count=len(self))


class TokenisedCorpus:
    """A corpus as ids, as :func:`tokenise` returns it.

    ``columns`` and ``sha256`` are the corpus's; len() counts rows.
    """

    def __init__(self, path: Path, meta: dict[str, Any], columns: list[TokenisedColumn]) -> None:
        self.path = path
        self.name: str = meta["name"]
        self.sha256: str = meta["sha256"]
        self.columns: tuple[str, ...] = tuple(meta["columns"])
        self._columns, self._rows = columns, int(meta["rows"])

    def __len__(self) -> int:
        return self._rows

    def column(self, i: int) -> TokenisedColumn:
        return self._columns[i]

    @cached_property
    def text_hashes(self) -> np.ndarray:
        """Hashes of the text columns, (rows, columns): equal for equal ids, in any column."""
        columns = zip(self.columns, self._columns, strict=True)
        hashes = [column.hashes() for name, column in columns if name not in NUMBERS]
        return np.stack(hashes, axis=1)


def tokenise(
    corpus: Corpus,
    encode: Encode,
    tokenizer_key: str,
    vocab_size: int,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TokenisedCorpus:
    """Return the corpus as ids, from the cache or built now.

    ``encode`` turns a list of sentences into their ids without special tokens; ``tokenizer_key``
    names everything that decides these (two tokenizers that differ need different keys); ids beyond
    MAX_TOKENS a sentence are dropped. ``progress(done, total)`` counts rows. A damaged cache is
    built again; of two processes that build, the second waits and uses the cache of the first; a
    process that is killed leaves nothing that looks complete. Raises BenchError when the cache
    cannot be written, CorpusError when the text cannot be read.
    """
    about = {
        "layout": LAYOUT,
        "sha256": corpus.sha256,
        "format": corpus.format,
        "columns": list(corpus.columns),
        "tokenizer": tokenizer_key,
        "vocab_size": vocab_size,
        "column": corpus.column,
        "max_tokens": MAX_BYTES if tokenizer_key == AS_TEXT else MAX_TOKENS,
    }
    key = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
    folder = (cache or default_cache()) / "tokenised" / f"{corpus.sha256[:16]}-{key[:16]}"
    if (tokenised := _open(folder, about)) is None:
        try:
            build_folder(
                folder,
                lambda aside: _build(aside, corpus, encode, about, progress),
                lambda: _open(folder, about) is not None,
            )
        except OSError as error:
            raise BenchError(
                f"the tokenised corpus cannot be written to {folder.parent}: "
                f"{error.strerror or error}",
                "set BENCH_CACHE to a folder with space",
            ) from None
        tokenised = _open(folder, about)
    assert tokenised is not None, f"{folder} was written and cannot be read"
    tokenised.name = corpus.name  # the same text may have two names
    return tokenised


def as_text(
    corpus: Corpus, cache: Path | None = None, progress: Callable[[int, int], None] | None = None
) -> TokenisedCorpus:
    """Return the corpus with its sentences as text:

    ``column(i).rows(rows)`` gives strings, cut at MAX_BYTES bytes.
    """
    return tokenise(
        corpus, lambda texts: [list(text.encode()) for text in texts], AS_TEXT, 256, cache, progress
    )


def _dtype(vocab_size: int, column: str) -> np.dtype:
    """Return the narrowest type that holds every id; float64 for scores."""
    if column == "score":
        return np.dtype("<f8")
    for kind in ("<u1", "<u2"):
        if vocab_size - 1 <= np.iinfo(kind).max:
            return np.dtype(kind)
    return np.dtype("<u4")


def _build(
    folder: Path,
    corpus: Corpus,
    encode: Encode,
    about: dict[str, Any],
    progress: Callable[[int, int], None] | None,
) -> None:
    total = len(corpus)
    names = [f"{name}.{part}" for name in corpus.columns for part in ("ids", "offsets")]
    with contextlib.ExitStack() as stack:
        files = {name: stack.enter_context((folder / name).open("wb")) for name in names}
        ends = dict.fromkeys(corpus.columns, 0)
        for name in corpus.columns:
            files[f"{name}.offsets"].write(bytes(8))
        rows, done = corpus.unchanged_rows(), 0
        while chunk := list(itertools.islice(rows, CHUNK)):
            for name, texts in zip(corpus.columns, zip(*chunk, strict=True), strict=True):
                if name in NUMBERS:
                    numbers = map(LABELS.__getitem__ if name == "label" else float, texts)
                    ids, lengths = np.array(list(numbers)), np.ones(len(texts), dtype=np.int64)
                else:
                    ids, lengths = _encoded(list(texts), encode, about)
                offsets = ends[name] + np.cumsum(lengths)
                ends[name] = int(offsets[-1])
                files[f"{name}.ids"].write(ids.astype(_dtype(about["vocab_size"], name)).tobytes())
                files[f"{name}.offsets"].write(offsets.astype("<i8").tobytes())
            done += len(chunk)
            if progress is not None:
                progress(done, total)
    meta = {
        **about,
        "name": corpus.name,
        "rows": done,
        "files": {name: file_sha256(folder / name) for name in names},
    }
    write_whole(folder / "meta.json", (json.dumps(meta, indent=1) + "\n").encode())


def _encoded(
    texts: list[str], encode: Encode, about: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Return all ids of the texts in a row, and the number of ids of each."""
    longest, vocab_size = about["max_tokens"], about["vocab_size"]
    encoded = encode(texts)
    lengths = np.fromiter(
        (min(len(row), longest) for row in encoded), dtype=np.int64, count=len(texts)
    )
    ids = np.fromiter(
        itertools.chain.from_iterable(row[:longest] for row in encoded),
        dtype=np.int64,
        count=int(lengths.sum()),
    )
    if ids.size and not (ids.min() >= 0 and ids.max() < vocab_size):
        raise ValueError(
            f"encode returned ids {ids.min()} to {ids.max()}; the vocabulary has {vocab_size}"
        )
    return ids, lengths


def _open(folder: Path, about: dict[str, Any]) -> TokenisedCorpus | None:
    """Open the corpus in the folder; None if it is missing, incomplete, or from another text."""
    try:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        if any(meta[key] != value for key, value in about.items()):
            return None
        columns = [
            TokenisedColumn(
                _mapped(folder / f"{name}.ids", _dtype(about["vocab_size"], name), meta),
                _mapped(folder / f"{name}.offsets", np.dtype("<i8"), meta),
                text=meta["tokenizer"] == AS_TEXT and name not in NUMBERS,
            )
            for name in meta["columns"]
        ]
        if any(len(column) != meta["rows"] for column in columns):
            return None
        return TokenisedCorpus(folder, meta, columns)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _mapped(path: Path, dtype: np.dtype, meta: dict[str, Any]) -> np.ndarray:
    """Return the file as a read-only array. Raises ValueError when it is not the one that was
    written.
    """
    if file_sha256(path) != meta["files"][path.name]:
        raise ValueError(f"{path}: wrong content")
    if not path.stat().st_size:
        return np.zeros(0, dtype=dtype)
    # a plain ndarray over the map: slicing a memmap costs microseconds, and a batch slices hundreds
    # of rows
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))
