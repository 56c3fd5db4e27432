"""Files without a known checksum when their manifest was written.

Their rows are counted. A fetch writes the origin of such a file next to it, into ``NAME.from``: its
address with the commit, and its sha256. The records of runs that train on it have both.
"""

from __future__ import annotations

import csv
from pathlib import Path

from bench.base.files import write_whole
from bench.base.hashes import file_sha256
from bench.base.text import plural
from bench.data.sets.manifest import DataFile, DataSet, damaged_file, data_sets

NOTE = ".from"


def count_rows(wanted: DataSet, file: DataFile, path: Path) -> int:
    """Count the data rows of a CSV file (fields may hold line ends), the lines of any other.

    Raises DataDamaged.
    """
    try:
        with path.open(
            encoding=file.encoding, newline="" if path.suffix == ".csv" else "\n"
        ) as text:
            lines = (row for row in csv.reader(text) if row) if path.suffix == ".csv" else text
            return sum(1 for _ in lines) - file.header
    except (UnicodeDecodeError, csv.Error) as error:
        raise damaged_file(wanted, f"cannot read {path} ({error})") from None


def unexpected_rows(file: DataFile, rows: int) -> str:
    """Say that a file has another number of rows than its authors', "" if it has not."""
    return "" if rows == file.rows else f"{plural(rows, 'row')}, where {file.rows:,} were expected"


def unexpected_corpus(path: Path, rows: int) -> str:
    """Say the same of a training text, "" if its checksum or its name is not known."""
    for known in data_sets().values():
        for file in known.files:
            if file.first_use and file.name == path.name:
                return unexpected_rows(file, rows)
    return ""


def note_origin(path: Path, address: str) -> Path:
    """Write a file's origin and sha256 next to it; return that note. Raises OSError."""
    note = path.with_name(path.name + NOTE)
    write_whole(note, f"{address}\n{file_sha256(path)}\n".encode())
    return note


def read_origin(path: Path, sha256: str) -> str | None:
    """Return the origin of a file with this content; None if it is not known."""
    try:
        note = path.with_name(path.name + NOTE)
        address, noted = note.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return None
    return address if noted == sha256 else None
