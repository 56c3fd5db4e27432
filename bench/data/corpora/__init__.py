"""Training text: a file, or columns of a data set of the Hugging Face hub, as rows of one or more cells. See docs/data.md.

A file is streamed, so its size does not matter; it is surveyed once, and tokenised once into memory-mapped arrays:

corpus = open_corpus("wiki.txt.xz")               # reads the first row
len(corpus), corpus.sha256                        # one pass, remembered in the cache
ready = token_cache.tokenise(corpus, encode, tokenizer_key="...", vocab_size=8192)
ready.column(0).ids(np.array([5, 1, 9]))          # three arrays of token ids
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from bench.base.cache import CacheEntry, default_cache
from bench.base.errors import CorpusError, DataMissing
from bench.data.corpora.columns import NUMBERS, Row, find_layout, kind_of
from bench.data.corpora.records import LINES, PARQUET, Seen, format_of, read_records

BUILTIN = Path(__file__).parents[2] / "builtin" / "data" / "sentences.txt.xz"
PANDAS_INDEX = "__index_level_0__"  # a column of Parquet files that nobody asked for
SURVEY_VERSION = 3  # of the rules by which rows are counted


class Corpus:
    """Training text in a file, read as a stream. ``columns`` is one of ``bench.data.corpora.columns.KINDS``, or has more hard negatives;
    ``unread`` are the other columns of the file.

    With ``column``, only that column of a wider file, as sentences; "all" takes every cell of every text column.
    """

    def __init__(self, path: Path, name: str, cache: Path, column: str | None = None) -> None:
        self.path, self.name, self.column = path, name, column
        self.unread: tuple[str, ...] = ()
        self._cache = cache
        self.format = format_of(path)
        if self.format not in (*LINES, PARQUET):
            raise CorpusError(
                f"{path}: unknown format '{path.suffix}'; expected {', '.join(LINES)} (plain, .gz or .xz) or {PARQUET}",
                "rename the file by its content, for example .txt for one sentence per line",
            )
        columns, rows = self._table()
        self.columns = columns if column is None else ("sentence",)
        next(rows)

    @property
    def kind(self) -> str:
        """ "sentences", "pairs", "triplets", "n-tuples", "labelled" or "graded"."""
        return kind_of(self.columns)

    def only(self, column: str | None) -> Corpus:
        """One column as a corpus of sentences; "all": every text column, row by row; None: the only column.

        Raises CorpusError if the file has no such column, or if ``column`` is None and there are several.
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

    def rows(self, seen: Seen = None) -> Iterator[Row]:
        """The rows in the file's order, each a tuple of ``len(self.columns)`` sentences that are never empty.

        Raises CorpusError, at the end if no row has any text.
        """
        blank = True
        for row in self._table(seen)[1]:
            blank = blank and all(text == " " for text in row)
            yield row
        if blank:
            raise CorpusError(f"{self.path}: no row has any text", "expected one sentence per line")

    def unchanged_rows(self) -> Iterator[Row]:
        """:meth:`rows`, and CorpusError at the end if the content is not the one that was surveyed."""
        expected, digest = self.sha256, hashlib.sha256()
        yield from self.rows(digest.update)
        if digest.hexdigest() != expected:
            raise CorpusError(
                f"{self.path} changed while it was being read", "start again when it is complete"
            )

    def __len__(self) -> int:
        """The number of rows. The first time this reads the whole file."""
        return self._facts[1]

    def __bool__(self) -> bool:
        return True  # `if corpus:` asks whether there is one, and must not read it for its length

    @property
    def sha256(self) -> str:
        """Of the decompressed content. The first time this reads the whole file."""
        return self._facts[0]

    @cached_property
    def _facts(self) -> tuple[str, int]:
        """The hash of the content and the number of rows, from the cache or by reading the whole file."""
        stat, where = self.path.stat(), (str(self.path.resolve()), self.column)
        entry = CacheEntry(
            "surveys",
            repr(where),
            [SURVEY_VERSION, *where, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns],
            self._cache,
        )
        if (known := entry.read()) is None:
            digest = hashlib.sha256()
            known = {"rows": sum(1 for _ in self.rows(digest.update)), "sha256": digest.hexdigest()}
            entry.write(known)
        return known["sha256"], known["rows"]

    def _table(self, seen: Seen = None) -> tuple[tuple[str, ...], Iterator[Row]]:
        """The columns of the file, and its rows (cells of the one column, if only one was requested)."""
        where = str(self.path)
        records = read_records(where, self.path, self.format, seen)
        if (head := next(records, None)) is None:
            raise CorpusError(f"{where}: empty: it has no rows", "expected one sentence per line")
        layout = find_layout(where, head[1], exact=self.format in (".csv", ".tsv"))
        self.unread = tuple(name for name in layout.unread if name != PANDAS_INDEX)
        columns, rows = layout.columns, layout.rows(itertools.chain([head], records))
        if self.column is None:
            return columns, rows
        places = [
            i
            for i, name in enumerate(columns)
            if name == self.column or (self.column == "all" and name not in NUMBERS)
        ]
        return columns, ((row[i],) for row in rows for i in places)


def open_corpus(path: str | Path, cache: Path | None = None) -> Corpus:
    """The corpus in a file, or with ``"builtin"`` the one in the package. Reads no more than the first row.

    ``cache`` keeps hash and row count between runs (default: ``default_cache()``). Raises DataMissing if there is no such
    file, and CorpusError if it is not in one of the known formats; later rows are checked as they are read.
    """
    cache = cache or default_cache()
    if str(path) == "builtin":
        return Corpus(BUILTIN, "builtin", cache)
    path = Path(path).expanduser()
    if not path.exists():
        raise DataMissing(
            f"no corpus at {path}",
            "name an existing file (one sentence per line), or 'builtin' for the small corpus in the package",
        )
    if not path.is_file():
        raise CorpusError(
            f"{path} is not a regular file, and a corpus is read more than once",
            "name one file: .txt, .jsonl, .csv or .tsv, plain or with .gz or .xz, or .parquet",
        )
    return Corpus(path, path.name, cache)
