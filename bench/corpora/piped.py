"""Sentences from a stream that can be read once, such as standard input."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from bench.corpora.lines import read_lines
from bench.corpora.rows import READERS, Row
from bench.errors import CorpusError, UnknownName

NAME = Path("standard input")  # what messages call it


def piped_sentences(stream: IO[bytes], kind: str = "txt", column: str | None = None) -> Iterator[str]:
    """Every sentence of a stream of text, not compressed, in its order. The first row is read at once, the rest as it is asked for.

    ``kind`` is the suffix that such a file would have ("txt", "csv", "tsv", "jsonl"); ``column`` as in ``Corpus.only``.
    Raises CorpusError where the text is not of that kind or empty; UnknownName for a kind or column that there is not.
    """
    if f".{kind}" not in READERS:
        raise UnknownName("format", kind, [suffix[1:] for suffix in READERS], "of standard input")
    columns, rows = READERS[f".{kind}"](NAME, read_lines(NAME, stream=stream))
    texts = which(columns, column, str(NAME))
    first = next(rows, None)
    if first is None:
        raise CorpusError(f"{NAME} is empty", "expected one sentence a line")
    found: Iterator[Row] = itertools.chain([first], rows)
    return (row[i] for row in found for i in texts)


def which(columns: tuple[str, ...], column: str | None, name: str) -> list[int]:
    """The places of the columns that are meant: all text columns for "all", the only one for None. Raises CorpusError."""
    texts = [i for i, one in enumerate(columns) if one != "label"]
    if column == "all" or (column is None and len(texts) == 1):
        return texts
    named = [i for i in texts if columns[i] == column]
    if not named:
        have = ", ".join(columns[i] for i in texts)
        problem = f"has several columns: {have}" if column is None else f"has no column '{column}'; it has {have}"
        raise CorpusError(f"{name} {problem}", f"--column {columns[texts[0]]}, or --column all for every cell, row by row")
    return named
