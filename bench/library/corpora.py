"""Training text of a Python program, written as a corpus file into the cache.

So a run is identified by the text that it was trained on.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from bench.base.cache import default_cache
from bench.base.errors import BenchError, CorpusError
from bench.base.files import write_or_fail
from bench.base.text import list_names
from bench.data.corpora.columns import find_layout, negative_names

FOLDER = "given"  # of the cache
WHERE = "corpus"
UNORDERED = set | frozenset
EXPECTED = (
    "a list of sentences, of pairs (sent0, sent1), of triplets (sent0, sent1, hard_neg), or of "
    "dictionaries; columns as a dictionary; a datasets.Dataset; a DataFrame; or a file"
)


def corpus_place(corpus: Any) -> str | tuple[str, ...] | None:
    """Return the value of ``--corpus`` for a corpus of ``bench.train``.

    A path or a name is unchanged, and a list of Paths means several; anything else becomes a file
    in the cache, named by a hash of its content: the same rows are the same corpus. Sentences
    without line breaks become a .txt, as a file with these lines would be. Raises CorpusError,
    which names the row, for anything that is no training text.
    """
    if corpus is None:
        return None
    if isinstance(corpus, str | os.PathLike):
        return os.fspath(corpus)
    if isinstance(corpus, UNORDERED):
        raise CorpusError(
            f"{WHERE}: {_kind_of(corpus)} has no order, and each process reads it in another one",
            "corpus=sorted(...), or a list",
        )
    rows: Iterator[Any]
    if _is_frame(corpus):
        rows = iter(corpus.to_dict("records"))
    elif isinstance(corpus, Mapping) or not isinstance(corpus, Iterable):
        rows = _rows_of_columns(corpus)
    else:
        rows = iter(corpus)
    first = next(rows, None)
    if first is None:
        raise CorpusError(f"{WHERE}: {_kind_of(corpus)} has no rows", EXPECTED)
    rows = chain([first], rows)
    if isinstance(first, os.PathLike):
        return _several_files(list(rows))
    if isinstance(first, str):
        return str(_write_sentences(rows))
    if isinstance(first, Mapping):
        return str(_write_records(rows, corpus))
    if isinstance(first, Sequence) and not isinstance(first, bytes):
        return str(_write_records(_records_of_texts(rows), corpus))
    raise CorpusError(f"{WHERE}: row 1 is {first!r:.60}, of type {type(first).__name__}", EXPECTED)


def _several_files(paths: Sequence[Any]) -> tuple[str, ...]:
    """Return the paths as texts. Raises CorpusError for an item of another kind."""
    for number, path in enumerate(paths, 1):
        if not isinstance(path, os.PathLike):
            raise CorpusError(
                f"{WHERE}: row {number} is {path!r:.60}; row 1 is a Path", "every row of one kind"
            )
    return tuple(os.fspath(path) for path in paths)


def _kind_of(corpus: Any) -> str:
    return "the list" if isinstance(corpus, list) else f"the {type(corpus).__name__}"


def _is_frame(corpus: Any) -> bool:
    """Say if a corpus is a table of pandas, without importing pandas."""
    return hasattr(corpus, "iloc") and hasattr(corpus, "columns")


def _rows_of_columns(corpus: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a dictionary of columns.

    Raises CorpusError for a dictionary of splits, and for columns of different lengths.
    """
    if not isinstance(corpus, Mapping):
        raise CorpusError(f"corpus={corpus!r:.60}, of type {type(corpus).__name__}", EXPECTED)
    if any(hasattr(part, "column_names") for part in corpus.values()):
        raise CorpusError(
            f"{WHERE}: a {type(corpus).__name__} with the splits {list_names(corpus)}",
            f"name one: corpus=dataset[{next(iter(corpus))!r}]",
        )
    columns = {}
    for name, cells in corpus.items():
        if isinstance(cells, str | UNORDERED) or not isinstance(cells, Iterable):
            raise CorpusError(f"{WHERE}: the column {name!r} is {cells!r:.60}, no list", EXPECTED)
        columns[name] = list(cells)
    lengths = {name: len(cells) for name, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise CorpusError(f"{WHERE}: columns of different lengths: {listed}", EXPECTED)
    for cells in zip(*columns.values(), strict=True):
        yield dict(zip(columns, cells, strict=True))


def _write_sentences(rows: Iterable[Any]) -> Path:
    sentences: list[str] = []
    for number, sentence in enumerate(rows, 1):
        if not isinstance(sentence, str):
            kind = type(sentence).__name__
            raise CorpusError(
                f"{WHERE}: row {number} is {sentence!r:.60}, of type {kind}; row 1 is a sentence",
                "every row of one kind",
            )
        sentences.append(sentence)
    _refuse_files(sentences)
    has_breaks = any("\n" in sentence or "\r" in sentence for sentence in sentences)
    if has_breaks or sentences[0].startswith("\ufeff"):
        lines = []
        for sentence in sentences:
            lines.append(json.dumps({"sentence": sentence}, ensure_ascii=False))
        return _write("sentences", ".jsonl", lines)
    return _write("sentences", ".txt", sentences)


def _refuse_files(sentences: Sequence[str]) -> None:
    """Raise BenchError if every sentence is the name of a file, so that no name is trained on."""
    if len(sentences) > 100:
        return
    for sentence in sentences:
        if len(sentence) > 1000 or "\0" in sentence or not os.path.isfile(sentence):
            return
    raise BenchError(
        f"{WHERE}: a list holds sentences, and these are names of files: {list_names(sentences)}",
        f"corpus=[Path({sentences[0]!r})] trains on the file, further Paths on several together",
    )


def _records_of_texts(rows: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield pairs, and pairs with hard negatives, under the names of our columns."""
    names: tuple[str, ...] = ()
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Sequence) or isinstance(row, str | bytes):
            raise CorpusError(
                f"{WHERE}: row {number} is {row!r:.60}; row 1 has {len(names)} texts",
                "every row of one kind",
            )
        if not names:
            names = ("sent0", "sent1", *negative_names(max(0, len(row) - 2)))
        if len(row) != len(names):
            raise CorpusError(
                f"{WHERE}: row {number} has {len(row)} texts, expected {len(names)}", EXPECTED
            )
        for cell in row:
            if not isinstance(cell, str):
                raise CorpusError(
                    f"{WHERE}: row {number} has {cell!r:.60}, of type {type(cell).__name__}",
                    "labels and scores need their names: "
                    "{'sent0': ..., 'sent1': ..., 'score': 0.8}",
                )
        yield dict(zip(names, row, strict=True))


def _write_records(rows: Iterator[Any], corpus: Any) -> Path:
    """Write rows with named cells as JSON lines with our columns.

    Columns that are no training text are left out, with a warning.
    """
    first = next(rows)
    layout = find_layout(WHERE, _named(first), exact=False, word="row")
    if layout.unread:
        warnings.warn(
            f"{WHERE}: columns that are not read: {list_names(layout.unread)}", stacklevel=5
        )
        if hasattr(corpus, "select_columns"):  # a dataset may hold images in addition to the texts
            chosen = iter(corpus.select_columns(list(layout.keys)))
            first, rows = next(chosen), chosen
            layout = find_layout(WHERE, _named(first), exact=False, word="row")
    lines = []
    for number, row in enumerate(chain([first], rows), 1):
        if not isinstance(row, Mapping):
            raise CorpusError(
                f"{WHERE}: row {number} is {row!r:.60}; row 1 has named cells",
                "every row of one kind",
            )
        cells = dict(zip(layout.columns, layout.row(number, _named(row)), strict=True))
        lines.append(json.dumps(cells, ensure_ascii=False))
    return _write("rows", ".jsonl", lines)


def _named(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the cells of a row by names; a frame without a heading has numbers instead."""
    return {str(name): cell for name, cell in row.items()}


def _write(kind: str, suffix: str, lines: Sequence[str]) -> Path:
    """Write the lines into the cache, unless they are there.

    Raises CorpusError for a text that is not Unicode.
    """
    try:
        content = "".join(f"{line}\n" for line in lines).encode()
    except UnicodeEncodeError:
        for number, line in enumerate(lines, 1):
            if any("\ud800" <= character <= "\udfff" for character in line):
                raise CorpusError(
                    f"{WHERE}: row {number} has half of a character: {ascii(line)[:60]}",
                    'text.encode("utf-8", "replace").decode() replaces it',
                ) from None
        raise
    name = f"{kind}-{hashlib.sha256(content).hexdigest()[:16]}{suffix}"
    path = default_cache() / FOLDER / name
    if not path.exists():
        write_or_fail(path, content, "another cache: BENCH_CACHE=FOLDER")
    return path
