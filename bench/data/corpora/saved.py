"""Folders that ``save_to_disk`` of ``datasets`` wrote, read as records without that library."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.base.errors import CorpusError
from bench.base.parquet import TooLarge, limit_of, unpacked_column_bytes
from bench.data.corpora.records import MOST_TIMES, Record, is_text

SAVED = "saved"
"""The name of this format, in the place of a file ending such as ".csv"."""
TRAIN = "train"
_STATE = "state.json"
_INFO = "dataset_info.json"
_SPLITS = "dataset_dict.json"


def is_saved(folder: Path) -> bool:
    """Say if a folder is one data set, or several splits of one, as ``save_to_disk`` writes it."""
    return any((folder / name).is_file() for name in (_STATE, _INFO, _SPLITS))


def saved_splits(folder: Path) -> tuple[str, ...]:
    """Return the splits of a saved DatasetDict, each in its own folder; () for one data set.

    Raises CorpusError.
    """
    if not (folder / _SPLITS).is_file():
        return ()
    splits = _read_json(folder, _SPLITS).get("splits")
    if not isinstance(splits, list) or not splits:
        raise CorpusError(f"{folder}: {_SPLITS} names no splits", "save the data set again")
    return tuple(Path(str(split)).name for split in splits)


def saved_files(folder: Path) -> list[Path]:
    """Return the Arrow files of one saved data set, in the order of its rows.

    Raises CorpusError.
    """
    named = _read_json(folder, _STATE).get("_data_files")
    if not isinstance(named, list) or not all(isinstance(entry, dict) for entry in named):
        raise CorpusError(f"{folder}: {_STATE} names no files", "save the data set again")
    return [folder / Path(str(entry.get("filename"))).name for entry in named]


def read_saved(
    where: str, folder: Path, choose: Callable[[list[str]], Sequence[str]] = list
) -> Iterator[tuple[int, Record]]:
    """Yield (number from 1, record) for each row of one saved data set; a class is its name and not
    its number.

    Only the columns that ``choose`` returns are read. ``where`` names the folder in messages.
    Raises CorpusError, naming the row.
    """
    import pyarrow

    files = saved_files(folder)
    classes = _class_names(folder)
    number = 0
    try:
        limit = limit_of(sum(file.stat().st_size for file in files), MOST_TIMES)
        unpacked = 0
        for file in files:
            with pyarrow.memory_map(str(file)) as source, pyarrow.ipc.open_stream(source) as table:
                wanted = list(choose(table.schema.names))
                for batch in table:
                    chosen = batch.select(wanted)
                    unpacked += sum(unpacked_column_bytes(column) for column in chosen.columns)
                    if unpacked > limit:
                        raise TooLarge(f"it unpacks to more than {limit:,} bytes")
                    for record in chosen.to_pylist():
                        number += 1
                        if not is_text(record):
                            raise CorpusError(f"{where}: row {number} has a NUL character")
                        yield number, _with_class_names(record, classes)
    except (pyarrow.ArrowException, OSError, TooLarge) as error:
        problem = " ".join(str(error).split())[:120]
        raise CorpusError(
            f"{where}: its files cannot be read: {problem}", "save the data set again"
        ) from None


def _class_names(folder: Path) -> dict[str, Sequence[str]]:
    """Return the names of the classes of each column that is a ClassLabel."""
    features = _read_json(folder, _INFO).get("features") or {}
    found: dict[str, Sequence[str]] = {}
    for column, feature in features.items():
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
            found[column] = feature.get("names") or ()
    return found


def _with_class_names(record: Record, classes: dict[str, Sequence[str]]) -> Record:
    for column, names in classes.items():
        value = record.get(column)
        if isinstance(value, int) and 0 <= value < len(names):
            record[column] = names[value]
    return record


def _read_json(folder: Path, name: str) -> dict[str, Any]:
    try:
        content = json.loads((folder / name).read_text(encoding="utf-8"))
        if isinstance(content, dict):
            return content
        problem = "it is no JSON object"
    except OSError as error:
        problem = error.strerror or str(error)
    except (ValueError, RecursionError):
        problem = "it is not JSON"
    raise CorpusError(f"{folder}: {name}: {problem}", "save the data set again")
