"""Reads the rows of a user's file:

CSV, TSV, JSON lines, Parquet, or a folder that ``datasets`` saved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.base.errors import CorpusError, DataDamaged
from bench.data.corpora.records import PARQUET, format_of, read_records
from bench.data.corpora.saved import is_saved, read_saved, saved_splits

MOST_ROWS = 2_000_000
"""Rows of a file that are read; evaluation data is held in memory."""


@dataclass(frozen=True)
class FileRow:
    """One row of a user's file."""

    place: str
    """Where it is, for messages: "line 3" or "row 2 of test"."""
    cells: Mapping[str, Any]
    split: str | None = None
    """The split that a saved data set keeps it in; None for a file."""


def column_names(path: Path) -> list[str]:
    """Return the names of the columns, from the first row.

    Raises DataDamaged if the file has no rows or cannot be read.
    """
    first = next(read_file_rows(path), None)
    if first is None:
        raise no_rows(path)
    return list(first.cells)


def no_rows(path: Path) -> DataDamaged:
    """Return the error for a file without rows."""
    if path.is_file() and path.stat().st_size == 0:
        return DataDamaged(
            f"{path} is empty", "expected names of columns, and one item in each row"
        )
    return DataDamaged(f"{path}: it has no rows below its header", "expected one item in each row")


def read_file_rows(path: Path) -> Iterator[FileRow]:
    """Yield the rows in their order. Raises DataDamaged, naming the row, if they cannot be read."""
    try:
        rows = _rows_of_folder(path) if path.is_dir() else _rows_of_file(path)
        for count, row in enumerate(rows, start=1):
            if count > MOST_ROWS:
                raise DataDamaged(
                    f"{path}: more than {MOST_ROWS:,} rows",
                    "give a sample of it as evaluation data",
                )
            yield row
    except CorpusError as error:  # the reader of training text is used here too
        raise DataDamaged(error.message, error.hint) from None


def _rows_of_file(path: Path) -> Iterator[FileRow]:
    kind = format_of(path)
    if kind == ".txt":
        raise DataDamaged(
            f"{path}: a text file has no columns",
            "name it .tsv or .csv, with a line of column names",
        )
    word = "row" if kind == PARQUET else "line"
    for number, record in read_records(str(path), path, kind):
        yield FileRow(f"{word} {number}", record)


def _rows_of_folder(folder: Path) -> Iterator[FileRow]:
    """Yield the rows of a folder that ``save_to_disk`` of ``datasets`` wrote, of all its splits."""
    if not is_saved(folder):
        raise DataDamaged(
            f"{folder} is not a folder that save_to_disk wrote",
            "give a file, or the folder that Dataset.save_to_disk made",
        )
    for split in saved_splits(folder):
        for number, record in read_saved(f"{folder}/{split}", folder / split):
            yield FileRow(f"row {number} of {split}", record, split)
    if not saved_splits(folder):
        for number, record in read_saved(str(folder), folder):
            yield FileRow(f"row {number}", record)
