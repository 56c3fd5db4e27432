"""Text to lines, lines to rows: a row is a tuple of one, two or three sentences. The rules and their reasons: docs/corpora.md."""

from __future__ import annotations

import contextlib
import csv
import gzip
import itertools
import json
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from bench.base.errors import CorpusError, UnknownName

COLUMNS = (
    ("sentence",),
    ("sent0", "sent1"),
    ("sent0", "sent1", "hard_neg"),
    ("sent0", "sent1", "label"),
)
KINDS = dict(
    zip(COLUMNS, ("sentences", "pairs", "triplets", "labelled"), strict=True)
)  # what a method says that it needs
LABELS = {
    "entailment": 0,
    "neutral": 1,
    "contradiction": 2,
}  # and their ids in the hub's SNLI and MNLI
# other people's names: sentence-transformers', and those of SNLI and MNLI on the hub
ALSO = {
    "text": "sentence",
    "anchor": "sent0",
    "positive": "sent1",
    "negative": "hard_neg",
    "premise": "sent0",
    "hypothesis": "sent1",
    "gold_label": "label",
}
EXPECTED = "expected sentence, or sent0,sent1, or sent0,sent1,hard_neg, or sent0,sent1,label"

Row = tuple[str, ...]
Table = tuple[tuple[str, ...], Iterator[Row]]


def cell(text: str | None) -> str:
    """A missing cell, or one of white space only, is one space, as in the training scripts of SimCSE and PromCSE."""
    return " " if text is None or not text or text.isspace() else text


def label_cell(path: Path, number: int, text: str | None) -> str:
    """A label as its word. Raises CorpusError, naming the line, for anything that is none."""
    label = (text or "").strip().lower()
    if label.isdigit():
        label = next((word for word, i in LABELS.items() if i == int(label)), label)
    if label not in LABELS:
        words = ", ".join(f"{word} ({i})" for word, i in LABELS.items())
        raise CorpusError(
            f"{path}: line {number} has the label {text!r}; expected {words}",
            "drop rows without a gold label",
        )
    return label


def read_text(path: Path, lines: Iterator[str]) -> Table:
    return COLUMNS[0], ((cell(line.removesuffix("\r")),) for line in lines)


def read_csv(path: Path, lines: Iterator[str]) -> Table:
    """RFC 4180: a header, commas, double quotes; a line break inside quotes belongs to the cell."""
    reader = csv.reader((line + "\n" for line in lines), strict=True)

    def records() -> Iterator[tuple[int, list[str]]]:
        while True:
            first = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                where = (
                    f"line {first}"
                    if reader.line_num <= first
                    else f"the record of lines {first}-{reader.line_num}"
                )
                raise CorpusError(
                    f"{path}: {where} is no CSV: {error}",
                    'a cell with a comma, a quote or a line break stands in double quotes, and a quote inside it is written ""',
                ) from None
            yield first, cells

    return _with_header(path, records(), "commas")


def read_tsv(path: Path, lines: Iterator[str]) -> Table:
    """A header and tabs; nothing is quoted, a double quote is a character like any other."""
    records = (
        (number, line.removesuffix("\r").split("\t")) for number, line in enumerate(lines, start=1)
    )
    return _with_header(path, records, "tabs")


def _with_header(path: Path, records: Iterator[tuple[int, list[str]]], separator: str) -> Table:
    _, header = next(records, (1, []))
    names = [name.strip().lower() for name in header]
    columns, order = _columns(names)
    if not header:
        raise CorpusError(
            f"{path}: line 1 is missing or empty; {EXPECTED} as a header, separated by {separator}"
        )
    if columns is None:
        names_here = ", ".join(repr(name.strip()[:30]) for name in header[:8]) + (
            ", ..." if len(header) > 8 else ""
        )
        raise CorpusError(
            f"{path}: line 1 is the header {names_here}; {EXPECTED}, separated by {separator}",
            "rename or drop columns",
        )

    def rows() -> Iterator[Row]:
        for number, cells in records:
            if len(cells) != len(header):
                if not cells and len(header) == 1:
                    cells = [""]
                else:
                    raise CorpusError(
                        f"{path}: line {number} has {len(cells)} cells, the header has {len(header)}",
                        f"cells are separated by {separator}; an empty cell needs its separator too",
                    )
            row = tuple(cell(cells[i]) for i in order)
            yield (*row[:-1], label_cell(path, number, row[-1])) if labelled else row

    labelled = columns[-1] == "label"
    return columns, rows()


def _columns(names: Iterable[str]) -> tuple[tuple[str, ...] | None, list[int]]:
    """Which of COLUMNS the names are, in any order, and where each stands; None where they are none of them."""
    known = [ALSO.get(name, name) for name in names]
    columns = next((c for c in COLUMNS if sorted(c) == sorted(known)), None)
    return columns, [known.index(name) for name in columns or ()]


def read_json_lines(path: Path, lines: Iterator[str]) -> Table:
    """One object a line; keys other than the columns' are ignored; null is a missing cell."""
    numbered = enumerate(lines, start=1)
    number, line = next(numbered, (1, ""))
    if not line:
        raise CorpusError(f"{path}: line 1 is empty; expected a JSON object on every line")
    first = _object(path, number, line)
    names = _keys(first)
    columns, order = _columns(names)
    if columns is None:
        raise CorpusError(
            f"{path}: line 1 has the keys {', '.join(map(repr, list(first)[:8])) or 'none'}; {EXPECTED}",
            "rename the keys",
        )
    keys = [names[i] for i in order]

    def rows() -> Iterator[Row]:
        yield _row(path, number, first, line, keys)
        for later, text in numbered:
            record = _object(path, later, text)
            if len(record) != len(first) or record.keys() != first.keys():
                others = _keys(record)
                if sorted(others) != sorted(keys):
                    raise CorpusError(
                        f"{path}: line {later} has {', '.join(others) or 'no column'}; line 1 has {', '.join(keys)}",
                        "every line needs the same keys; write null for a missing sentence",
                    )
            yield _row(path, later, record, text, keys)

    return columns, rows()


def _keys(record: dict[str, Any]) -> list[str]:
    known = set().union(*COLUMNS)
    return [key for key in record if ALSO.get(key, key) in known]


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        if number == 1 and line.strip() in {"[", "{"}:
            hint = "a JSON document over several lines: write one object a line, for example: jq -c '.[]'"
        else:
            hint = "one JSON object a line, no blank lines"
        raise CorpusError(f"{path}: line {number} is no JSON: {error}", hint) from None
    if not isinstance(record, dict):
        raise CorpusError(
            f"{path}: line {number} is a JSON {type(record).__name__}, expected an object with sentence, or sent0 and sent1",
            "one JSON object a line; an array is split by: jq -c '.[]'",
        )
    return record


def _row(path: Path, number: int, record: dict[str, Any], line: str, keys: list[str]) -> Row:
    """The texts of a record in the order of ``keys``; a label stands last. Raises CorpusError, naming the line."""
    labelled = ALSO.get(keys[-1], keys[-1]) == "label"
    texts = [record[key] for key in keys]
    for key, text in zip(keys, texts, strict=True):
        is_number = labelled and key == keys[-1] and type(text) is int
        if not (text is None or isinstance(text, str) or is_number):
            raise CorpusError(
                f"{path}: line {number}: '{key}' is {json.dumps(text)[:40]}, expected a string or null"
            )
    if (
        "\\u" in line
    ):  # only an escape can make half of a surrogate pair or a NUL, which no tokenizer takes
        for key, text in zip(keys, texts, strict=True):
            if isinstance(text, str) and (
                "\0" in text or any("\ud800" <= c <= "\udfff" for c in text)
            ):
                raise CorpusError(
                    f"{path}: line {number}: '{key}' has an escape that is no character (NUL or half a surrogate pair)"
                )
    row = tuple(cell(str(text) if isinstance(text, int) else text) for text in texts)
    return (*row[:-1], label_cell(path, number, row[-1])) if labelled else row


READERS: dict[str, Callable[[Path, Iterator[str]], Table]] = {
    ".txt": read_text,
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".jsonl": read_json_lines,
    ".json": read_json_lines,
}


# --- a file of text, plain or compressed, as checked lines: streamed, so that its size does not matter ---

BLOCK = 1 << 20  # bytes read at once
LONGEST_LINE = (
    1 << 20
)  # bytes; a longer line is not one sentence, and would be held in memory whole

COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
MAGIC = {
    b"\x1f\x8b": "gzip data: its name must end in .gz",
    b"\xfd7zXZ\x00": "xz data: its name must end in .xz",
    b"PK\x03\x04": "a zip archive: unpack it first",
    b"BZh": "bzip2 data: unpack it first",
    b"\x28\xb5\x2f\xfd": "zstandard data: unpack it first",
    b"\xff\xfe": "UTF-16: convert it with: iconv -f UTF-16 -t UTF-8",
    b"\xfe\xff": "UTF-16: convert it with: iconv -f UTF-16 -t UTF-8",
    b"PAR1": "a Parquet file: convert it to .jsonl or .csv first",
}


def read_lines(
    path: Path, seen: Callable[[bytes], object] | None = None, stream: IO[bytes] | None = None
) -> Iterator[str]:
    r"""Lines without their LF; a CR before it stays. Only LF ends a line (not U+2028, not \x0b). A BOM is dropped.

    A missing LF at the end changes nothing. ``seen`` is called with every block of the decompressed content. With ``stream``
    that is read instead, and left open; ``path`` is then only what messages call it.
    Raises CorpusError, with the number of the line, for text that is not UTF-8, a NUL byte, an over-long line, and an
    archive that is damaged or ends too soon.
    """
    number, tail = 0, b""
    try:
        with contextlib.nullcontext(stream) if stream is not None else _open(path) as file:
            while block := file.read(BLOCK):
                if seen is not None:
                    seen(block)
                if number == 0 and not tail:
                    _refuse_other_formats(path, block)
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
        with path.open("rb") as file:
            right = file.read(6).startswith((b"\x1f\x8b", b"\xfd7zXZ"))
        where = (
            f"the archive is damaged, after line {number}"
            if right
            else f"not a {path.suffix} archive"
        )
        raise CorpusError(
            f"{path}: {where} ({error})", "get the file again, or give it the suffix of what it is"
        ) from None
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror or error}") from None


def _open(path: Path) -> IO[bytes]:
    return COMPRESSED.get(path.suffix.lower(), open)(path, "rb")


def _refuse_other_formats(path: Path, start: bytes) -> None:
    for magic, what in MAGIC.items():
        if start.startswith(magic):
            raise CorpusError(
                f"{path}: line 1: not text but {what}",
                "expected UTF-8 text, plain or as .gz or .xz",
            )


def _text(path: Path, number: int, line: bytes) -> str:
    if len(line) > LONGEST_LINE:
        raise CorpusError(
            f"{path}: line {number} is longer than {LONGEST_LINE:,} bytes; expected one sentence or record a line",
            "split the text into sentences, one a line",
        )
    if b"\0" in line:
        raise CorpusError(
            f"{path}: line {number} has a NUL byte: this is no UTF-8 text",
            "binary, or UTF-16: convert it first",
        )
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path}: line {number} is not UTF-8: byte 0x{line[error.start]:02x} after {error.start} bytes",
            f"convert it, for example: iconv -f WINDOWS-1252 -t UTF-8 {path.name} > utf8-{path.name}",
        ) from None


# --- sentences from a stream that can be read once, such as standard input ---

NAME = Path("standard input")  # what messages call it


def piped_sentences(
    stream: IO[bytes], kind: str = "txt", column: str | None = None
) -> Iterator[str]:
    """Every sentence of a stream of text, not compressed, in its order. The first row is read at once, the rest as it is asked for.

    ``kind`` is the suffix that such a file would have ("txt", "csv", "tsv", "jsonl"); ``column`` as in ``Corpus.only``.
    Raises CorpusError where the text is not of that kind or empty; UnknownName for a kind or column that there is not.
    """
    if f".{kind}" not in READERS:
        raise UnknownName("format", kind, [suffix[1:] for suffix in READERS], "of standard input")
    columns, rows = READERS[f".{kind}"](NAME, read_lines(NAME, stream=stream))
    texts = choose_columns(columns, column, str(NAME))
    first = next(rows, None)
    if first is None:
        raise CorpusError(f"{NAME} is empty", "expected one sentence a line")
    return (row[i] for row in itertools.chain([first], rows) for i in texts)


def choose_columns(columns: tuple[str, ...], column: str | None, name: str) -> list[int]:
    """The places of the columns that are meant: all text columns for "all", the only one for None. Raises CorpusError."""
    texts = [i for i, one in enumerate(columns) if one != "label"]
    if column == "all" or (column is None and len(texts) == 1):
        return texts
    named = [i for i in texts if columns[i] == column]
    if not named:
        have = ", ".join(columns[i] for i in texts)
        problem = (
            f"has several columns: {have}"
            if column is None
            else f"has no column '{column}'; it has {have}"
        )
        raise CorpusError(
            f"{name} {problem}",
            f"--column {columns[texts[0]]}, or --column all for every cell, row by row",
        )
    return named
