"""Text, CSV, TSV and JSON lines, plain or compressed, as numbered records; read as a stream.

Python's own readers give every cell as it is written. Those of ``datasets`` make numbers and dates
of texts, and drop rows and cells.
"""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.base.errors import CorpusError, printable
from bench.base.parquet import limit_of

LINES = (".txt", ".csv", ".tsv", ".jsonl", ".json")  # formats of lines
COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
BLOCK = 1 << 20  # bytes read at once
MOST_TIMES = 1000
"""How many times as large as its file a table may be when it is unpacked; text shrinks to a fifth.
"""
LONGEST_LINE = 1 << 20  # bytes; a longer line is not one sentence, and would be held in memory
TEXT_ONLY = (
    "expected UTF-8 text, plain or compressed (named .gz or .xz); another encoding: "
    "iconv -f UTF-16 -t UTF-8, or -f WINDOWS-1252"
)
ENDS = r"only LF and CR LF end a line; to make both of CR alone: perl -pe 's/\r\n?/\n/g' OLD > NEW"
SEPARATORS = {";": "semicolons", "|": "|", "\t": "tabs", ",": "commas"}
"""What columns of other files are separated by -> its name."""
NOT_TEXT = re.compile("[\0\ud800-\udfff]")
Seen = Callable[[bytes], object] | None
"""Called with every block of a file's (decompressed) content."""
Record = dict[str, Any]
"""The cells of a row by the names of their columns."""


def read_line_records(
    where: str, path: Path, kind: str, seen: Seen = None
) -> Iterator[tuple[int, Record]]:
    """Return (number of the line, record) for each row of a file of the format ``kind``; the column
    of a text file is "text".

    ``where`` names the file in messages. Raises CorpusError, naming the line.
    """
    lines = read_lines(path, seen)
    if kind == ".txt":
        return ((i, {"text": line}) for i, line in whole_lines(where, lines))
    if kind == ".csv":
        return _with_header(where, _csv(where, lines))
    if kind == ".tsv":  # nothing is quoted, a double quote is a character like any other
        cells = ((i, line.split("\t")) for i, line in whole_lines(where, lines))
        return _with_header(where, cells)
    return _json(where, lines)


def whole_lines(where: str, lines: Iterator[str]) -> Iterator[tuple[int, str]]:
    """Yield numbered lines without the CR of a CR LF.

    Raises CorpusError for a line with another CR: it is several lines of somebody.
    """
    for number, line in enumerate(lines, start=1):
        line = line.removesuffix("\r")
        if "\r" in line:
            raise _inner_cr(where, number)
        yield number, line


def _inner_cr(where: str, number: int) -> CorpusError:
    return CorpusError(f"{where}: line {number} has a carriage return (CR) in it", ENDS)


def _csv(where: str, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield rows as in RFC 4180: commas, double quotes; a line break in quotes is in the cell."""
    csv.field_size_limit(LONGEST_LINE)  # as long as a line of any other format
    reader = csv.reader((line + "\n" for line in lines), strict=True)
    first = 1
    try:
        for cells in reader:
            yield first, cells or [""]
            first = reader.line_num + 1
    except csv.Error as error:
        if str(error).startswith("new-line character seen in unquoted field"):
            raise _inner_cr(where, first) from None
        raise CorpusError(
            f"{where}: the record that starts on line {first} is not valid CSV: {error}",
            "put a cell with a comma, a quote or a line break in double quotes, and write a "
            'quote inside it as ""',
        ) from None


def _with_header(
    where: str, numbered: Iterator[tuple[int, list[str]]]
) -> Iterator[tuple[int, Record]]:
    _, header = next(numbered, (1, []))
    _check_separator(where, header)
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise CorpusError(
            f"{where}: line 1 has the column '{twice[0].strip()[:30]}' twice",
            "rename or drop one of them",
        )
    for number, cells in numbered:
        if len(cells) != len(header):
            raise CorpusError(
                f"{where}: line {number} has {len(cells)} cells, the header has {len(header)}",
                "an empty cell needs its separator too",
            )
        yield number, dict(zip(header, cells, strict=True))


def _check_separator(where: str, header: list[str]) -> None:
    """Raise CorpusError if a header of one name holds what other programs separate columns by."""
    if len(header) != 1:
        return
    for separator, name in SEPARATORS.items():
        if separator in header[0]:
            raise CorpusError(
                f"{where}: line 1 is one name, '{printable(header[0])[:60]}': its columns are "
                f"separated by {name}",
                "expected commas in a .csv file and tabs in a .tsv file (with a decimal point in "
                "numbers); save it so",
            )


def _json(where: str, lines: Iterator[str]) -> Iterator[tuple[int, Record]]:
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict) and "\r" in line.strip("\r"):
            raise _inner_cr(where, number)
        if not isinstance(record, dict):
            raise CorpusError(
                f"{where}: line {number} is not a JSON object",
                "expected one object per line and no blank lines; to split an array: jq -c '.[]'",
            )
        if "\\u" in line and not is_text(record):
            raise CorpusError(
                f"{where}: line {number} has an escape that is not a character (NUL or half a "
                "surrogate pair)"
            )
        yield number, record


def is_text(record: Record) -> bool:
    """Say if no string has half a surrogate pair or a NUL, which no tokenizer takes and only an
    escape can make."""
    for value in record.values():
        for text in value if isinstance(value, list) else (value,):
            if isinstance(text, str) and NOT_TEXT.search(text):
                return False
    return True


def read_lines(path: Path, seen: Seen = None) -> Iterator[str]:
    r"""Yield lines without their LF; a CR before it stays. Only LF ends a line (not U+2028, not
    \x0b). A BOM is dropped.

    A missing LF at the end changes nothing. Raises CorpusError, with the number of the line, for
    text that is not UTF-8, a NUL byte, a line that is too long, and an archive that is damaged or
    ends too soon.
    """
    number = 0
    unpacked = 0
    tail = b""
    try:
        limit = limit_of(path.stat().st_size, MOST_TIMES)
        with COMPRESSED.get(path.suffix.lower(), open)(path, "rb") as file:
            while block := file.read(BLOCK):
                unpacked += len(block)
                if unpacked > limit:
                    raise CorpusError(f"{path} unpacks to more than {limit:,} bytes")
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
            "the download was cut off: get the file again",
        ) from None
    except (lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
        raise CorpusError(
            f"{path}: not a {path.suffix} archive, or damaged, after line {number} ({error})",
            "get the file again, or rename it by its content",
        ) from None
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror or error}") from None


def _text(path: Path, number: int, line: bytes) -> str:
    if len(line) > LONGEST_LINE:
        raise CorpusError(
            f"{path}: line {number} is longer than {LONGEST_LINE:,} bytes; expected one sentence "
            "or record per line",
            ENDS if b"\r" in line.strip(b"\r") else "split the text into sentences, one per line",
        )
    if b"\0" in line:
        raise CorpusError(f"{path}: line {number} has a NUL byte: not UTF-8 text", TEXT_ONLY)
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"byte 0x{line[error.start]:02x} after {error.start} bytes"
        raise CorpusError(f"{path}: line {number} is not UTF-8: {problem}", TEXT_ONLY) from None
