"""Reads the rows of a user's file: CSV, TSV, JSON lines, Parquet, or a folder that ``datasets`` saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.base.errors import CorpusError, DataDamaged
from bench.data.corpora.records import Record, format_of, read_records

MOST_ROWS = 2_000_000
"""Rows of a file that are read; evaluation data is held in memory."""


@dataclass(frozen=True)
class Row:
    """One row: ``place`` says where it stands, as "line 3" or "row 2 of test"."""

    place: str
    cells: Mapping[str, Any]
    split: str | None = None
    """The split that a saved data set keeps it in; None for a file."""


def column_names(path: Path) -> list[str]:
    """The names of the columns, from the first row. Raises DataDamaged if the file has no rows or cannot be read."""
    for row in read_rows(path):
        return list(row.cells)
    raise DataDamaged(f"{path}: it has no rows below its header", "expected one item in each row")


def read_rows(path: Path) -> Iterator[Row]:
    """The rows in their order. Raises DataDamaged, naming the row, for a file that cannot be read."""
    try:
        rows = _saved(path) if path.is_dir() else _of_file(path)
        for count, row in enumerate(rows, start=1):
            if count > MOST_ROWS:
                raise DataDamaged(
                    f"{path}: more than {MOST_ROWS:,} rows",
                    "give a sample of it as evaluation data",
                )
            yield row
    except CorpusError as error:  # the reader is that of training text
        raise DataDamaged(error.message, error.hint) from None


def _of_file(path: Path) -> Iterator[Row]:
    kind = format_of(path)
    if kind == ".txt":
        raise DataDamaged(
            f"{path}: a text file has no columns",
            "name it .tsv or .csv, with a line of column names",
        )
    word = "row" if kind == ".parquet" else "line"
    record: Record
    for number, record in read_records(str(path), path, kind):
        yield Row(f"{word} {number}", record)


def _saved(path: Path) -> Iterator[Row]:
    """The rows of a folder that ``Dataset.save_to_disk`` or ``DatasetDict.save_to_disk`` wrote; label names stand for their numbers."""
    from datasets import ClassLabel, DatasetDict, load_from_disk

    try:
        loaded = load_from_disk(str(path))
    except Exception as error:  # datasets raises errors of several libraries
        raise DataDamaged(
            f"{path} is not a folder that save_to_disk wrote: {' '.join(str(error).split())[:120]}",
            "give a file, or the folder that Dataset.save_to_disk made",
        ) from None
    parts = loaded.items() if isinstance(loaded, DatasetDict) else [(None, loaded)]
    for split, part in parts:
        names = {
            column: feature.names
            for column, feature in part.features.items()
            if isinstance(feature, ClassLabel)
        }
        for number, cells in enumerate(part, start=1):
            yield Row(_place(number, split), _with_names(cells, names), split)


def _place(number: int, split: str | None) -> str:
    return f"row {number}" if split is None else f"row {number} of {split}"


def _with_names(cells: Mapping[str, Any], names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The cells, with the name of each class in the place of its number."""
    named = dict(cells)
    for column, classes in names.items():
        number = cells[column]
        if isinstance(number, int) and 0 <= number < len(classes):
            named[column] = classes[number]
    return named
