"""Folders that ``save_to_disk`` of ``datasets`` wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.base.errors import CorpusError, one_line
from bench.base.parquet import TooLarge, limit_of, unpacked_column_bytes
from bench.data.reading.batches import records_of_batches
from bench.data.reading.lines import MOST_TIMES, Record

ROWS_AT_ONCE = 1000
_SPLITS = "dataset_dict.json"
_MARKS = ("state.json", "dataset_info.json", _SPLITS)


def is_saved(folder: Path) -> bool:
    """Say if a folder is one data set, or several splits of one, as ``save_to_disk`` writes it."""
    return any((folder / name).is_file() for name in _MARKS)


def has_splits(folder: Path) -> bool:
    """Say if a folder is a saved DatasetDict, with a folder per split."""
    return (folder / _SPLITS).is_file()


def split_names(folder: Path) -> tuple[str, ...]:
    """Return the splits of a saved DatasetDict; () for one data set.

    Raises CorpusError.
    """
    if not has_splits(folder):
        return ()
    return tuple(_load(folder))


def read_saved(
    where: str, folder: Path, choose: Callable[[list[str]], Sequence[str]] = list
) -> Iterator[tuple[int, Record]]:
    """Yield (number from 1, record) for each row of one saved data set; a class is its name and not
    its number.

    Only the columns that ``choose`` returns are read. ``where`` names the folder in messages.
    Raises CorpusError, naming the row.
    """
    _check_size(folder)
    dataset = _load(folder)
    wanted = list(choose(dataset.column_names))
    features = dataset.features
    names = {column: getattr(features[column], "names", None) for column in wanted}
    classes = {column: known for column, known in names.items() if isinstance(known, list)}
    batches = dataset.select_columns(wanted).with_format("arrow").iter(ROWS_AT_ONCE)
    for number, record in records_of_batches(where, batches):
        for column, known in classes.items():
            value = record[column]
            if value is not None and 0 <= value < len(known):
                record[column] = known[value]
        yield number, record


def _check_size(folder: Path) -> None:
    """Raise CorpusError if the files unpack to more than they may: ``datasets`` would read them."""
    import pyarrow

    files = sorted(folder.glob("*.arrow"))
    unpacked = 0
    try:
        limit = limit_of(sum(file.stat().st_size for file in files), MOST_TIMES)
        for file in files:
            with pyarrow.memory_map(str(file)) as source, pyarrow.ipc.open_stream(source) as table:
                for batch in table:
                    unpacked += sum(unpacked_column_bytes(column) for column in batch.columns)
                    if unpacked > limit:
                        raise TooLarge(f"it unpacks to more than {limit:,} bytes")
    except (pyarrow.ArrowException, OSError, TooLarge) as error:
        raise _damaged(folder, error) from None


def _load(folder: Path) -> Any:
    """Return the Dataset or DatasetDict in a folder, memory-mapped.

    Raises CorpusError.
    """
    import datasets

    try:
        loaded = datasets.load_from_disk(str(folder), keep_in_memory=False)
    except Exception as error:  # the files of a damaged folder may raise any error
        raise _damaged(folder, error) from None
    parts = loaded.values() if isinstance(loaded, datasets.DatasetDict) else [loaded]
    for part in parts:
        for file in part.cache_files:
            if not Path(file["filename"]).resolve().is_relative_to(folder.resolve()):
                raise CorpusError(
                    f"{folder}: it names a file outside of it: {file['filename']}",
                    "save the data set again",
                )
    return loaded


def _damaged(folder: Path, error: Exception) -> CorpusError:
    return CorpusError(
        f"{folder}: its files cannot be read: {one_line(error, 120)}", "save the data set again"
    )
