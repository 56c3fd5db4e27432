"""The rows of a user's file, each with its place for messages, and the hash of the used rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.base.errors import DataDamaged
from bench.data.reading import TableFile, open_table
from bench.data.reading.lines import Record
from bench.data.reading.saved import is_saved, split_names

MOST_ROWS = 2_000_000
"""Rows of a file that are read; evaluation data is held in memory."""


@dataclass(frozen=True)
class FileRow:
    """One row of a user's file.

    ``place`` is for messages, as "pairs.tsv: line 3"; ``split`` the one that a saved data set
    keeps it in.
    """

    place: str
    cells: Record
    split: str | None = None


def _tables(path: Path) -> dict[str | None, TableFile]:
    """Return the tables in a file, or in a folder of ``save_to_disk``, by the names of their
    splits; None if there are none.

    Raises BenchError.
    """
    if not path.is_dir():
        table = open_table(path)
        if table.format == ".txt":
            raise DataDamaged(
                f"{path}: a text file has no columns",
                "name it .tsv or .csv, with a line of column names",
            )
        return {None: table}
    if not is_saved(path):
        raise DataDamaged(
            f"{path} is not a folder that save_to_disk wrote",
            "give a file, or the folder that Dataset.save_to_disk made",
        )
    splits = split_names(path)
    if not splits:
        return {None: open_table(path)}
    return {split: open_table(path / split) for split in splits}


def read_rows(path: Path) -> Iterator[FileRow]:
    """Yield the rows in their order. Raises BenchError, naming the row, if they cannot be read."""
    count = 0
    for split, table in _tables(path).items():
        for number, cells in table.records():
            count += 1
            if count > MOST_ROWS:
                raise DataDamaged(
                    f"{path}: more than {MOST_ROWS:,} rows",
                    "give a sample of it as evaluation data",
                )
            yield FileRow(f"{table.where}: {table.word} {number}", cells, split)


def no_rows(path: Path) -> DataDamaged:
    if path.is_file() and path.stat().st_size == 0:
        return DataDamaged(
            f"{path} is empty", "expected names of columns, and one item in each row"
        )
    return DataDamaged(f"{path}: it has no rows below its header", "expected one item in each row")


def cell_of(row: FileRow, column: str) -> Any:
    if column not in row.cells:
        raise DataDamaged(
            f"{row.place} has no '{column}', but the first row has",
            "write every column in every row",
        )
    return row.cells[column]


def hash_rows(rows: Iterable[Sequence[Any]]) -> str:
    """Return the hash of the scored data, which the file's format does not change: it is the hash
    of one JSON array, with one row at a time in memory.
    """
    digest = hashlib.sha256(b"[")
    separator = ""
    for row in rows:
        text = separator + json.dumps(row, ensure_ascii=False)
        digest.update(text.encode("utf-8", "surrogatepass"))
        separator = ", "
    digest.update(b"]")
    return digest.hexdigest()
