"""Training text in a file: what it is called, what it holds, the hash that names its content. See docs/data.md.

It is streamed, surveyed once, and tokenised once into memory-mapped arrays:

corpus = open_corpus("wiki.txt.xz")               # reads the first row
len(corpus), corpus.sha256                        # one pass, remembered in the cache
ready = token_cache.tokenise(corpus, encode, tokenizer_key="...", vocab_size=8192)
ready.column(0).ids(np.array([5, 1, 9]))          # three arrays of token ids
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.base.errors import CorpusError, DataMissing
from bench.base.files import CacheEntry, default_cache
from bench.data.corpora.rows import (
    COLUMNS,
    COMPRESSED,
    FORMATS,
    KINDS,
    NUMBERS,
    PARQUET,
    Row,
    Table,
    read_lines,
    read_parquet,
    read_records,
    read_table,
)

__all__ = ["COLUMNS", "KINDS", "NUMBERS", "Corpus", "default_cache", "open_corpus"]


BUILTIN = Path(__file__).parents[2] / "builtin" / "data" / "sentences.txt.xz"
SURVEY_VERSION = 2  # of the rules by which rows are counted


class Corpus:
    """Training text in a file, read as a stream. ``columns`` is one of ``bench.data.corpora.COLUMNS``.

    With ``column``, only that column of a wider file, as sentences; "all" takes every cell of every text column.
    """

    def __init__(self, path: Path, name: str, cache: Path, column: str | None = None) -> None:
        self.path, self.name, self.column = path, name, column
        self._cache = cache
        suffix = path.suffix.lower()
        self.format = Path(path.stem).suffix.lower() if suffix in COMPRESSED else suffix
        if self.format not in (*FORMATS, PARQUET):
            raise CorpusError(
                f"{path}: unknown format '{path.suffix}'; expected {', '.join(FORMATS)}, plain or with .gz or .xz behind it, or {PARQUET}",
                "give it the suffix of what it is: .txt for one sentence a line",
            )
        self.columns, rows = self._table()
        if column is not None:
            self.columns = ("sentence",)
        next(rows)
        self._facts: tuple[str, int] | None = None

    @property
    def kind(self) -> str:
        """ "sentences", "pairs", "triplets", "labelled" or "graded"."""
        return KINDS[self.columns]

    def only(self, column: str | None) -> Corpus:
        """One column as a corpus of sentences; with "all" every text column, row by row; None is the only one.

        Raises CorpusError where the file has no such column, or None and several.
        """
        texts = [name for name in self.columns if name not in NUMBERS]
        if column is None and len(self.columns) == 1:
            return self
        if column not in (*texts, "all"):
            problem = "several columns" if column is None else f"no column '{column}'"
            raise CorpusError(
                f"{self.path} has {problem}: {', '.join(texts)}",
                "name one of them, or all for every cell, row by row",
            )
        return Corpus(self.path, self.name, self._cache, column)

    def rows(self, seen: Callable[[bytes], object] | None = None) -> Iterator[Row]:
        """The rows in the file's order, each a tuple of ``len(self.columns)`` sentences that are never empty.

        ``seen`` is called with every block of the content. Raises CorpusError, at the end where no row has any text.
        """
        blank = True
        for row in self._table(seen)[1]:
            blank = blank and all(text == " " for text in row)
            yield row
        if blank:
            raise CorpusError(f"{self.path}: no row has any text", "expected one sentence a line")

    def unchanged_rows(self) -> Iterator[Row]:
        """:meth:`rows`, and CorpusError at the end if the content is not the one that was surveyed."""
        expected = self.sha256
        digest = hashlib.sha256()
        yield from self.rows(digest.update)
        if digest.hexdigest() != expected:
            raise CorpusError(
                f"{self.path}: changed while it was read", "start again when it is complete"
            )

    def __len__(self) -> int:
        """How many rows there are. The first time this reads the whole file."""
        return self._survey()[1]

    def __bool__(self) -> bool:
        return True  # `if corpus:` asks whether there is one, and must not read it for its length

    @property
    def sha256(self) -> str:
        """Of the decompressed content. The first time this reads the whole file."""
        return self._survey()[0]

    def _table(self, seen: Callable[[bytes], object] | None = None) -> Table:
        where = str(self.path)
        if self.format == PARQUET:
            records = read_parquet(where, self.path, seen)
        else:
            records = read_records(where, self.format, read_lines(self.path, seen))
        columns, rows = read_table(where, self.format, records)
        if self.column is None:
            return columns, rows
        places = [
            i
            for i, name in enumerate(columns)
            if name == self.column or (self.column == "all" and name not in NUMBERS)
        ]
        return columns, ((row[i],) for row in rows for i in places)

    def _survey(self) -> tuple[str, int]:
        if self._facts is None:
            before = self.path.stat()
            where = str(self.path.resolve()), self.column
            about = [SURVEY_VERSION, *where, before.st_size, before.st_mtime_ns, before.st_ctime_ns]
            entry = CacheEntry("surveys", repr(where), about, self._cache)
            if (known := entry.read()) is not None:
                self._facts = known["sha256"], known["rows"]
            else:
                self._facts = self._read_whole()
                entry.write({"sha256": self._facts[0], "rows": self._facts[1]})
        return self._facts

    def _read_whole(self) -> tuple[str, int]:
        digest = hashlib.sha256()
        count = sum(1 for _ in self.rows(digest.update))
        return digest.hexdigest(), count


def open_corpus(path: str | Path, cache: Path | None = None) -> Corpus:
    """The corpus in a file, or the one that the package carries for ``"builtin"``. Reads no more than the first row.

    ``cache`` keeps hash and row count between runs (default: ``default_cache()``). Raises DataMissing where there is no
    such file, and CorpusError where it cannot be read as one of the known formats; later rows are checked as they are read.
    """
    cache = cache or default_cache()
    if str(path) == "builtin":
        return Corpus(BUILTIN, "builtin", cache)
    path = Path(path).expanduser()
    if not path.exists():
        raise DataMissing(
            f"no corpus at {path}",
            "give a file that is there (one sentence a line), or 'builtin' for the small one that comes with the package",
        )
    if not path.is_file():
        raise CorpusError(
            f"{path} is no regular file, and a corpus is read more than once",
            "give one file: .txt, .jsonl, .csv or .tsv, plain or with .gz or .xz, or .parquet",
        )
    return Corpus(path, path.name, cache)
