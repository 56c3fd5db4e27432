"""A file of text, plain or compressed, as checked lines: streamed, so that its size does not matter."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from bench.base.errors import CorpusError, UnknownName
from bench.data.corpora.rows import READERS, Row

BLOCK = 1 << 20  # bytes read at once
LONGEST_LINE = 1 << 20  # bytes; a longer line is not one sentence, and would be held in memory whole

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


def read_lines(path: Path, seen: Callable[[bytes], object] | None = None, stream: IO[bytes] | None = None) -> Iterator[str]:
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
        raise CorpusError(f"{path}: the archive ends too soon, after line {number}", "the download broke off: get it again") from None
    except (lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
        with path.open("rb") as file:
            right = file.read(6).startswith((b"\x1f\x8b", b"\xfd7zXZ"))
        where = f"the archive is damaged, after line {number}" if right else f"not a {path.suffix} archive"
        raise CorpusError(f"{path}: {where} ({error})", "get the file again, or give it the suffix of what it is") from None
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror or error}") from None


def _open(path: Path) -> IO[bytes]:
    return COMPRESSED.get(path.suffix.lower(), open)(path, "rb")


def _refuse_other_formats(path: Path, start: bytes) -> None:
    for magic, what in MAGIC.items():
        if start.startswith(magic):
            raise CorpusError(f"{path}: line 1: not text but {what}", "expected UTF-8 text, plain or as .gz or .xz")


def _text(path: Path, number: int, line: bytes) -> str:
    if len(line) > LONGEST_LINE:
        raise CorpusError(
            f"{path}: line {number} is longer than {LONGEST_LINE:,} bytes; expected one sentence or record a line",
            "split the text into sentences, one a line",
        )
    if b"\0" in line:
        raise CorpusError(f"{path}: line {number} has a NUL byte: this is no UTF-8 text", "binary, or UTF-16: convert it first")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path}: line {number} is not UTF-8: byte 0x{line[error.start]:02x} after {error.start} bytes",
            f"convert it, for example: iconv -f WINDOWS-1252 -t UTF-8 {path.name} > utf8-{path.name}",
        ) from None


# --- sentences from a stream that can be read once, such as standard input ---

NAME = Path("standard input")  # what messages call it


def piped_sentences(stream: IO[bytes], kind: str = "txt", column: str | None = None) -> Iterator[str]:
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
    found: Iterator[Row] = itertools.chain([first], rows)
    return (row[i] for row in found for i in texts)


def choose_columns(columns: tuple[str, ...], column: str | None, name: str) -> list[int]:
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
