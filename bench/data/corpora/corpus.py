"""A file of training text, read as a stream of rows."""

from __future__ import annotations

import hashlib
import itertools
import json
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from shlex import quote

import numpy as np

from bench.base.cache import CacheEntry, default_cache
from bench.base.errors import CorpusError, DataMissing
from bench.base.files import expand_home
from bench.base.text import list_names
from bench.data.corpora.columns import NUMBERS, Layout, Row, find_layout, kind_of
from bench.data.corpora.naming import EXAMPLE, ChosenColumns, parse_columns
from bench.data.reading import open_table
from bench.data.reading.lines import Record, Seen
from bench.data.reading.saved import has_splits, is_saved, split_names
from bench.data.reading.table import SAVED

BUILTIN = Path(__file__).parents[2] / "builtin" / "data" / "sentences.txt.xz"
TRAIN = "train"
PANDAS_INDEX = "__index_level_0__"  # a column of Parquet files that nobody asked for
SURVEY_VERSION = 4  # of the rules for counting rows


class Corpus:
    """Training text in a file, or in a folder of ``save_to_disk``, read as a stream.

    ``columns`` is one of ``bench.data.corpora.columns.KINDS``, or has more hard negatives;
    ``unread`` are the other columns of the file.

    ``chosen``: the columns of the file that a user named; None: all that make a corpus. ``column``:
    read only this column, as sentences; "all" takes every cell of every text column.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        cache: Path,
        column: str | None = None,
        chosen: ChosenColumns | None = None,
    ) -> None:
        self.path = path
        # the name with the chosen columns behind it; source_name is the name without them
        self.name = name
        self.source_name = name
        self.column = column
        self.unread: tuple[str, ...] = ()
        self._cache = cache
        self._table = open_table(path)
        self.format = self._table.format
        self.chosen: ChosenColumns | None = None
        if chosen is not None and not self._reads_the_same(chosen):
            self.chosen = chosen
        if self.chosen is not None:
            self.name = f"{name}:{','.join(self.chosen.typed)}"
        columns, rows = self._columns_and_rows()
        self.columns = columns if column is None else ("sentence",)
        next(rows)  # a first row that cannot be read is an error now, and not in the training

    @property
    def kind(self) -> str:
        """ "sentences", "pairs", "triplets", "n-tuples", "labelled" or "graded"."""
        return kind_of(self.columns)

    @property
    def parts(self) -> tuple[Corpus, ...]:
        """The corpora that it consists of, in their order: itself, if it is one file."""
        return (self,)

    def only(self, column: str | None) -> Corpus:
        """Return one column as a corpus of sentences.

        "all" means every text column, row by row; None means the only column. Raises CorpusError if
        the file has no such column, or if ``column`` is None and there are several.
        """
        texts = self._texts
        if column is None and len(self.columns) == 1:
            return self
        if column not in (*texts, "all"):
            problem = "several columns" if column is None else f"no column '{column}'"
            raise CorpusError(
                f"{self.path} has {problem}: {', '.join(texts)}",
                "name one of them, or all for every cell, row by row",
            )
        return Corpus(self.path, self.source_name, self._cache, column, self.chosen)

    def choose(self, columns: Sequence[str]) -> Corpus:
        """Return the same text with these columns, as ``parse_columns`` takes them.

        Raises CorpusError if it has no such columns.
        """
        chosen = parse_columns(columns, self.name)
        return Corpus(self.path, self.source_name, self._cache, chosen=chosen)

    def rows(self, seen: Seen = None) -> Iterator[Row]:
        """Yield the rows in the file's order: tuples of ``len(self.columns)`` sentences.

        No sentence is empty. Raises CorpusError, at the end if no row has any text.
        """
        blank = True
        for row in self._columns_and_rows(seen)[1]:
            blank = blank and all(text == " " for text in row)
            yield row
        if blank:
            raise CorpusError(f"{self.path}: no row has any text", "expected one sentence per line")

    def unchanged_rows(self) -> Iterator[Row]:
        """Yield :meth:`rows`. Raises CorpusError at the end if the content has changed."""
        expected = self.content_sha256
        digest = hashlib.sha256()
        yield from self.rows(digest.update)
        if digest.hexdigest() != expected:
            raise CorpusError(
                f"{self.path} changed while it was being read", "start again when it is complete"
            )

    def __len__(self) -> int:
        """Return the number of rows. The first time this reads the whole file."""
        return self._facts[1]

    def __bool__(self) -> bool:
        # `if corpus:` asks if there is one; without this it would read the file for its length
        return True

    @property
    def content_sha256(self) -> str:
        """The hash of a file's decompressed content, or of the rows of a saved folder.

        The first time this reads all of it.
        """
        return self._facts[0]

    @property
    def repeated(self) -> dict[str, int]:
        """How often each text column has a text that it had before.

        A contrastive loss takes equal texts in a batch for negatives. The first time this reads
        the whole file.
        """
        return self._facts[2]

    @property
    def sha256(self) -> str:
        """The hash that identifies the text: its content and the columns that a user chose."""
        # rows of saved data have only the chosen columns
        if self.chosen is None or self.format == SAVED:
            return self.content_sha256
        chosen = [self.content_sha256, self.format, list(self.chosen.as_text())]
        return hashlib.sha256(json.dumps(["chosen columns", chosen]).encode()).hexdigest()

    @cached_property
    def _facts(self) -> tuple[str, int, dict[str, int]]:
        """The hash of the content, the number of rows, and how often there is a text again.

        They come from the cache, or from reading the whole file.
        """
        where = [str(self.path.resolve()), self.column]
        if self.chosen is not None:
            where += self.chosen.as_text()
        entry = CacheEntry(
            "surveys",
            repr(tuple(where)),
            [SURVEY_VERSION, *where, *self._table.stamps()],
            self._cache,
        )
        known = entry.read()
        if known is None:
            digest = hashlib.sha256()
            count = 0
            # eight bytes of each text, in the place of the text
            hashes = {name: array("q") for name in self._texts}
            columns = [(self.columns.index(name), kept) for name, kept in hashes.items()]
            for row in self.rows(digest.update):
                count += 1
                for place, kept in columns:
                    kept.append(hash(row[place]))
            repeated = {name: count - distinct(kept) for name, kept in hashes.items()}
            known = {"rows": count, "sha256": digest.hexdigest(), "repeated": repeated}
            entry.write(known)
        return known["sha256"], known["rows"], known["repeated"]

    @property
    def _texts(self) -> list[str]:
        return [name for name in self.columns if name not in NUMBERS]

    def _columns_and_rows(self, seen: Seen = None) -> tuple[tuple[str, ...], Iterator[Row]]:
        """Return the columns of the file, and its rows.

        If only one column was requested, a row is a cell of it.
        """
        records = self._records(seen)
        head = next(records, None)
        if head is None:
            raise CorpusError(
                f"{self.path}: empty: it has no rows", "expected one sentence per line"
            )
        layout = self._layout(head[1])
        self.unread = tuple(name for name in layout.unread if name != PANDAS_INDEX)
        columns = layout.columns
        rows = layout.rows(itertools.chain([head], records))
        if self.format == SAVED and seen is not None:
            rows = _seen_as_json(columns, rows, seen)
        if self.column is None:
            return columns, rows
        places = []
        for i, name in enumerate(columns):
            if name == self.column or (self.column == "all" and name not in NUMBERS):
                places.append(i)
        return columns, _cells_as_rows(rows, places)

    def _records(self, seen: Seen) -> Iterator[tuple[int, Record]]:
        """Return the numbered records, with the chosen columns, or with all."""
        records = self._table.records(self._choose, seen)
        if self.chosen is None:
            return records
        return self._with_chosen_cells(records)

    def _choose(self, there: list[str]) -> Sequence[str]:
        """Return the columns to read, out of those that are ``there``.

        Raises CorpusError, with their names, if a chosen one is missing.
        """
        if self.chosen is None:
            return there
        for their in self.chosen.theirs:
            if their not in there:
                names = list_names([name[:30] for name in there], 12)
                raise CorpusError(f"{self.path} has no column '{their}'; it has {names}", EXAMPLE)
        return self.chosen.theirs

    def _with_chosen_cells(
        self, records: Iterator[tuple[int, Record]]
    ) -> Iterator[tuple[int, Record]]:
        assert self.chosen is not None
        wanted = self.chosen.theirs
        for count, (number, record) in enumerate(records):
            if count == 0:
                self._choose(list(record))
            yield number, {their: record[their] for their in wanted if their in record}

    def _layout(self, head: Record) -> Layout:
        """Find the cells in records like ``head``.

        Raises CorpusError if they make no training text.
        """
        where, word = self._table.where, self._table.word
        if self.chosen is None:
            return find_layout(where, head, exact=self.format in (".csv", ".tsv"), word=word)
        their_names = dict(zip(self.chosen.ours, self.chosen.theirs, strict=True))
        named = {our: head[their] for our, their in their_names.items()}
        layout = find_layout(where, named, exact=True, word=word)
        self._check_no_numbers(head)
        return replace(
            layout,
            keys=tuple(their_names[our] for our in layout.keys),
            names=frozenset(self.chosen.theirs),
        )

    def _check_no_numbers(self, head: Record) -> None:
        """Raise CorpusError if a text column holds a number in the first row, unless the user typed
        NAME=sent1 or so."""
        assert self.chosen is not None
        columns = zip(self.chosen.typed, self.chosen.theirs, self.chosen.ours, strict=True)
        for typed, their, our in columns:
            value = head[their]
            if our in NUMBERS or typed != their or not isinstance(value, str):
                continue
            if _is_number(value):
                hint = f"{their}={our} reads it as a text all the same"
                if our != "sentence":
                    hint = f"{their}=score reads it as scores, {their}={our} as a text"
                raise CorpusError(
                    f"{self.path}: '{their}' would be read as a text, and its first row has "
                    f"{value.strip()[:20]}",
                    hint,
                )

    def _reads_the_same(self, chosen: ChosenColumns) -> bool:
        """Return True if the file is read the same way without this choice: it is the same text."""
        with suppress(CorpusError):
            usual = next(self._records(None), None)
            if usual is None:
                return False
            layout = self._layout(usual[1])
            own = {}
            for our, their in zip(chosen.ours, chosen.theirs, strict=True):
                own["hard_neg" if our == "negatives" else our] = their
            keys = layout.columns[: len(layout.keys)]
            return dict(zip(keys, layout.keys, strict=True)) == own
        return False


def open_corpus_file(
    path: str | Path,
    cache: Path | None = None,
    columns: Sequence[str] = (),
) -> Corpus:
    """Open the corpus in a file or a saved folder; ``"builtin"`` is the one in the package.

    Only the first row is read. ``columns``: the columns to read, as ``parse_columns`` takes them;
    () for the columns that have our names. ``cache`` keeps hash and row count between runs
    (default: ``default_cache()``). In a folder with splits the split ``train`` is read.

    Raises DataMissing if there is no such file, and CorpusError if it is not in one of the known
    formats, or lacks a column; later rows are checked as they are read.
    """
    cache = cache or default_cache()
    chosen = parse_columns(columns, str(path)) if columns else None
    if str(path) == "builtin":
        return Corpus(BUILTIN, "builtin", cache, chosen=chosen)
    path = expand_home(path)
    if not path.exists():
        raise DataMissing(
            f"no corpus at {path}",
            "name an existing file (one sentence per line), or 'builtin' for the small corpus in "
            "the package",
        )
    if path.is_dir():
        path = _saved_folder(path)
    elif not path.is_file():
        raise CorpusError(
            f"{path} is not a regular file, and a corpus is read more than once",
            "name one file: .txt, .jsonl, .csv or .tsv, plain or with .gz or .xz, or .parquet",
        )
    return Corpus(path, _name_of(path), cache, chosen=chosen)


def _name_of(path: Path) -> str:
    """Return the name of a file or saved folder; a split has the name of the folder above, too."""
    name = path.resolve().name if path.name in ("", "..") else path.name
    above = path.resolve().parent
    if path.is_dir() and has_splits(above):
        return f"{above.name}/{name}"
    return name


def _saved_folder(folder: Path) -> Path:
    """Return the folder of the rows: the split ``train`` of several, or the only one.

    Raises CorpusError.
    """
    if not is_saved(folder):
        raise CorpusError(
            f"{folder} is a folder, and none that save_to_disk wrote",
            "name its files: --corpus A.txt --corpus B.txt; or the folder that "
            "Dataset.save_to_disk made",
        )
    splits = split_names(folder)
    if not splits:
        return folder
    if TRAIN not in splits and len(splits) > 1:
        raise CorpusError(
            f"{folder} has the splits {list_names(splits)}, and none is called {TRAIN}",
            f"name one: --corpus {quote(str(folder / splits[0]))}",
        )
    return folder / (TRAIN if TRAIN in splits else splits[0])


def distinct(hashes: array[int]) -> int:
    """Return how many different numbers there are."""
    return len(np.unique(np.frombuffer(hashes, dtype=np.int64)))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _cells_as_rows(rows: Iterator[Row], places: Sequence[int]) -> Iterator[Row]:
    """Yield the cells at these places, row by row, each as a row of its own."""
    for row in rows:
        for place in places:
            yield (row[place],)


def _seen_as_json(columns: Sequence[str], rows: Iterator[Row], seen: Seen) -> Iterator[Row]:
    """Yield the rows, and hand each over to ``seen`` as a line of JSON.

    ``bench.train`` writes a data set in this way: the same rows are the same text.
    """
    assert seen is not None
    for row in rows:
        cells = dict(zip(columns, row, strict=True))
        seen(f"{json.dumps(cells, ensure_ascii=False)}\n".encode())
        yield row
