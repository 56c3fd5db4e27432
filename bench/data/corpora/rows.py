"""Text to lines, lines to rows: a row is a tuple of one, two or three sentences. The rules and their reasons: docs/data.md."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import lzma
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.base.errors import CorpusError

COLUMNS = (
    ("sentence",),
    ("sent0", "sent1"),
    ("sent0", "sent1", "hard_neg"),
    ("sent0", "sent1", "label"),
    ("sent0", "sent1", "score"),
)
NUMBERS = ("label", "score")  # columns that hold no text
KINDS = dict(
    zip(COLUMNS, ("sentences", "pairs", "triplets", "labelled", "graded"), strict=True)
)  # what a method says that it needs
LABELS = {
    "entailment": 0,
    "neutral": 1,
    "contradiction": 2,
}  # and their ids in the hub's SNLI and MNLI
# other people's names: sentence-transformers', those of SNLI, MNLI, STS-B, AnglE's and CLAIF's data on the hub
ALSO = {
    "text": "sentence",
    "anchor": "sent0",
    "positive": "sent1",
    "negative": "hard_neg",
    "premise": "sent0",
    "hypothesis": "sent1",
    "sentence1": "sent0",
    "sentence2": "sent1",
    "text1": "sent0",
    "text2": "sent1",
    "text_a": "sent0",
    "text_b": "sent1",
    "gold_label": "label",
}

FORMATS = (".txt", ".csv", ".tsv", ".jsonl", ".json")  # of lines
PARQUET = ".parquet"
Row = tuple[str, ...]
Table = tuple[tuple[str, ...], Iterator[Row]]
Record = dict[str, Any]
"""The cells of a row by the names of their columns."""


def read_table(where: str, kind: str, numbered: Iterator[tuple[int, Record]]) -> Table:
    """Which of COLUMNS some records have, and their rows. ``kind`` is one of FORMATS or PARQUET; ``where`` is what messages call
    the text.

    Keys of JSON and Parquet that are no column are ignored; CSV and TSV have no further columns. Raises CorpusError, later ones
    while rows are read.
    """
    head = next(numbered, None)
    if head is None:
        raise CorpusError(f"{where}: empty: it has no rows", "expected one sentence a line")
    names = list(head[1])
    known = [ALSO.get(name.strip().lower(), name.strip().lower()) for name in names]
    named = "json" in kind or kind == PARQUET
    ours = [name for name in known if not named or name in set().union(*COLUMNS)]
    columns = next((one for one in COLUMNS if sorted(one) == sorted(ours)), None)
    if columns is None:
        listed = ", ".join(repr(name.strip()[:30]) for name in names[:8])
        raise CorpusError(
            f"{where}: line 1 has the columns {listed}; expected sentence, or sent0,sent1, or these two with hard_neg, label or score",
            "rename or drop columns",
        )
    keys = [names[known.index(column)] for column in columns]
    rows = itertools.chain([head], numbered)
    return columns, (row_of(where, number, record, keys, columns) for number, record in rows)


def row_of(
    where: str, number: int, record: Record, keys: Sequence[str], columns: Sequence[str]
) -> Row:
    """The texts of a record in the order of ``keys``, the record's names of ``columns``. A missing cell, or one of white space
    only, is one space, as in the training scripts of SimCSE and PromCSE; a label is its word, a score its number as Python
    writes it. Raises CorpusError, naming the line."""
    row = []
    for key, column in zip(keys, columns, strict=True):
        if key not in record:
            raise CorpusError(
                f"{where}: line {number} has no '{key}', which line 1 has", "null is a missing cell"
            )
        text = record[key]
        if column == "label":
            text = _label(where, number, text)
        elif column == "score":
            text = _score(where, number, text)
        elif not (text is None or isinstance(text, str)):
            raise CorpusError(
                f"{where}: line {number}: '{key}' is {json.dumps(text, default=str)[:40]}, expected a string or null"
            )
        row.append(" " if not text or text.isspace() else text)
    return tuple(row)


def _label(where: str, number: int, value: Any) -> str:
    """A label as its word. Raises CorpusError, naming the line, for anything that is none."""
    numbers = {str(i): label for label, i in LABELS.items()}
    text = str(value).strip().lower()
    label = numbers.get(text, text)
    if label not in LABELS:
        listed = ", ".join(f"{label} ({i})" for label, i in LABELS.items())
        raise CorpusError(
            f"{where}: line {number} has the label {value!r}; expected {listed}",
            "drop rows without a gold label; a column of graded scores is called score",
        )
    return label


def _score(where: str, number: int, value: Any) -> str:
    """A score as a finite number. Raises CorpusError, naming the line, for anything that is none."""
    try:
        score = float(value)
    except (TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        raise CorpusError(
            f"{where}: line {number} has the score {value!r}; expected a number",
            "drop rows without a score",
        )
    return repr(score)


def read_records(where: str, kind: str, lines: Iterator[str]) -> Iterator[tuple[int, Record]]:
    """(number of the line, record) for each row; the column of a text file is called "text". Raises CorpusError, naming the line."""
    if kind == ".txt":
        return ((i, {"text": line.removesuffix("\r")}) for i, line in enumerate(lines, start=1))
    if kind == ".csv":
        return _with_header(where, _csv(where, lines))
    if kind == ".tsv":  # nothing is quoted, a double quote is a character like any other
        cells = (line.removesuffix("\r").split("\t") for line in lines)
        return _with_header(where, enumerate(cells, start=1))
    return _json(where, lines)


def _csv(where: str, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """RFC 4180: commas, double quotes; a line break inside quotes belongs to the cell."""
    reader = csv.reader((line + "\n" for line in lines), strict=True)
    first = 1
    try:
        for cells in reader:
            yield first, cells or [""]
            first = reader.line_num + 1
    except csv.Error as error:
        raise CorpusError(
            f"{where}: the record that begins in line {first} is no CSV: {error}",
            'a cell with a comma, a quote or a line break stands in double quotes, and a quote inside it is written ""',
        ) from None


def _with_header(
    where: str, numbered: Iterator[tuple[int, list[str]]]
) -> Iterator[tuple[int, Record]]:
    _, header = next(numbered, (1, []))
    for number, cells in numbered:
        if len(cells) != len(header):
            raise CorpusError(
                f"{where}: line {number} has {len(cells)} cells, the header has {len(header)}",
                "an empty cell needs its separator too",
            )
        yield number, dict(zip(header, cells, strict=True))


def _json(where: str, lines: Iterator[str]) -> Iterator[tuple[int, Record]]:
    """One object a line."""
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise CorpusError(
                f"{where}: line {number} is no JSON object",
                "one object a line, no blank lines; an array is split by: jq -c '.[]'",
            )
        if "\\u" in line and not _is_text(record):
            raise CorpusError(
                f"{where}: line {number} has an escape that is no character (NUL or half a surrogate pair)"
            )
        yield number, record


def read_parquet(
    where: str,
    path: Path,
    seen: Callable[[bytes], object] | None = None,
    choose: Callable[[list[str]], Sequence[str]] = list,
) -> Iterator[tuple[int, Record]]:
    """(number of the row, record) for each row of a Parquet file, with those of its columns that ``choose`` takes.

    ``seen`` is called with every block of the file's bytes. Raises CorpusError.
    """
    import pyarrow
    import pyarrow.parquet

    try:
        if seen is not None:
            with path.open("rb") as file:
                while block := file.read(BLOCK):
                    seen(block)
        with pyarrow.parquet.ParquetFile(path) as table:
            columns = list(choose(table.schema_arrow.names))
            batches = table.iter_batches(batch_size=ROWS_AT_ONCE, columns=columns)
            for number, record in enumerate((r for b in batches for r in b.to_pylist()), start=1):
                if not _is_text(record):
                    raise CorpusError(f"{where}: row {number} has a NUL character")
                yield number, record
    except (pyarrow.ArrowException, OSError) as error:
        problem = " ".join(str(error).split())[:120]
        raise CorpusError(f"{where} is no parquet file that can be read: {problem}") from None


def _is_text(record: Record) -> bool:
    """Whether no string has half of a surrogate pair or a NUL, which no tokenizer takes and only an escape can make."""
    texts = "".join(value for value in record.values() if isinstance(value, str))
    return not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in texts)


# --- a file of text, plain or compressed, as checked lines: streamed, so that its size does not matter ---

BLOCK = 1 << 20  # bytes read at once
ROWS_AT_ONCE = 10_000  # of a Parquet file
LONGEST_LINE = (
    1 << 20
)  # bytes; a longer line is not one sentence, and would be held in memory whole

COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
TEXT_ONLY = "expected UTF-8 text, plain or packed as .gz or .xz under a name that ends so; UTF-16: iconv -f UTF-16 -t UTF-8"


def read_lines(path: Path, seen: Callable[[bytes], object] | None = None) -> Iterator[str]:
    r"""Lines without their LF; a CR before it stays. Only LF ends a line (not U+2028, not \x0b). A BOM is dropped.

    A missing LF at the end changes nothing. ``seen`` is called with every block of the decompressed content.
    Raises CorpusError, with the number of the line, for text that is not UTF-8, a NUL byte, an over-long line, and an
    archive that is damaged or ends too soon.
    """
    number, tail = 0, b""
    try:
        with COMPRESSED.get(path.suffix.lower(), open)(path, "rb") as file:
            while block := file.read(BLOCK):
                if seen is not None:
                    seen(block)
                if number == 0 and not tail:
                    block = block.removeprefix(b"\xef\xbb\xbf")
                *whole, tail = (tail + block).split(b"\n")
                for line in whole:
                    number += 1
                    yield _text(path, number, line)
                if len(tail) > LONGEST_LINE:
                    _text(path, number + 1, tail)
            if tail:
                yield _text(path, number + 1, tail)
    except EOFError:
        raise CorpusError(
            f"{path}: the archive ends too soon, after line {number}",
            "the download broke off: get it again",
        ) from None
    except (lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
        raise CorpusError(
            f"{path}: no {path.suffix} archive, or damaged, after line {number} ({error})",
            "get the file again, or give it the suffix of what it is",
        ) from None
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror or error}") from None


def _text(path: Path, number: int, line: bytes) -> str:
    if len(line) > LONGEST_LINE:
        raise CorpusError(
            f"{path}: line {number} is longer than {LONGEST_LINE:,} bytes; expected one sentence or record a line",
            "split the text into sentences, one a line",
        )
    if b"\0" in line:
        raise CorpusError(f"{path}: line {number} has a NUL byte: this is no UTF-8 text", TEXT_ONLY)
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"byte 0x{line[error.start]:02x} after {error.start} bytes"
        raise CorpusError(f"{path}: line {number} is not UTF-8: {problem}", TEXT_ONLY) from None
