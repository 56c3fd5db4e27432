"""``predictions.parquet``: the predictions of all runs of a published version in one file."""

from __future__ import annotations

import functools
import json
import math
import os
import sys
from collections.abc import Container, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from bench.base.errors import DataDamaged, one_line
from bench.base.parquet import TooLarge, read_batches
from bench.base.reading import (
    MANIFEST_BYTES,
    PREDICTIONS_BYTES,
    is_plain_file,
    open_plain_file,
    read_plain_file,
)

NAME = "predictions.parquet"
MANIFEST = "MANIFEST.json"
DEPTH = 6  # folders from a predictions file up to its version: runs/ID/predictions/mteb/STS12.npz
LARGEST_PACKED = 1 << 31  # bytes of all its arrays
MOST_PACKED = 1 << 20  # arrays
AT_ONCE = 512  # arrays: while a batch is unpacked it takes twice its room
DTYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "U")
NARROWER = {"i": ("i1", "i2", "i4"), "u": ("i1", "i2", "i4"), "f": ("f2", "f4")}
"""Kind of a numpy type -> the types that may hold its values, narrowest first."""
REPEATED = ["file", "array", "dtype"]
"""Columns with few different texts: each text is stored once for all rows."""
COLUMNS = [*REPEATED, "shape", "data", "same"]


class Packed:
    """Collects the arrays of a version's predictions files and writes them as one file."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self._row_of: dict[tuple[Any, ...], int] = {}

    def add(self, file: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Add the arrays of one file.

        Raises DataDamaged for arrays of anything but numbers and text.
        """
        for name, values in sorted(arrays.items()):
            values = narrow(values)
            shape = values.shape
            if values.dtype.kind == "U":
                dtype = "U"
                data = json.dumps(values.ravel().tolist()).encode()
            else:
                dtype = values.dtype.str[1:]
                data = values.tobytes()
            if dtype not in DTYPES:
                raise DataDamaged(f"{file}: the array '{name}' holds neither numbers nor text")
            row = len(self.rows)
            first = self._row_of.setdefault((dtype, shape, sha256(data).digest()), row)
            if first != row:
                self.rows.append((file, name, dtype, shape, None, first))
                continue
            self.rows.append((file, name, dtype, shape, data, None))

    def write(self, path: Path) -> None:
        """Write the table. The same arrays in the same order give the same bytes."""
        import pyarrow as pa
        from pyarrow import parquet

        text = pa.string()
        number = pa.int32()
        types = (text, text, text, pa.list_(number), pa.binary(), number)
        columns = zip(*self.rows, strict=True)
        arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
        table = pa.table(arrays, names=COLUMNS)
        # level 11 saves an eighth of the bytes, and takes fifteen times as long
        parquet.write_table(
            table, path, compression="brotli", compression_level=9, use_dictionary=REPEATED
        )


def narrow(values: np.ndarray) -> np.ndarray:
    """Return the same values in row order, little-endian, in the narrowest type that holds each
    exactly.
    """
    values = np.asarray(values)
    kind = values.dtype.kind
    values = values.astype(values.dtype.newbyteorder("<"), order="C")
    for dtype in NARROWER.get(kind, ()):
        if np.dtype(dtype).itemsize >= values.itemsize:
            break
        with np.errstate(over="ignore", invalid="ignore"):
            smaller = values.astype(f"<{dtype}")
        back = smaller.astype(values.dtype)
        if kind == "f":
            is_exact = back.tobytes() == values.tobytes()  # NaN and -0.0 stay the same, too
        else:
            is_exact = np.array_equal(back, values)
        if is_exact:
            return smaller
    return values


class Manifest(Struct, frozen=True):
    """``MANIFEST.json`` of a version: path -> sha256, paths relative to it with forward slashes."""

    files: dict[str, str]


def read_manifest(version: Path) -> Manifest | None:
    """Read the version's manifest; None if it has none. Raises DataDamaged."""
    file = version / MANIFEST
    try:
        return msgspec.json.decode(read_plain_file(file, MANIFEST_BYTES), type=Manifest)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DataDamaged(f"{file} cannot be read: {error.strerror or error}") from None
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        raise DataDamaged(f"{file} cannot be read: {one_line(error)}") from None


def find_version(path: Path) -> Path | None:
    """Find the version that holds ``path`` and has its predictions in one file; None for other
    paths."""
    for version in list(path.absolute().parents)[:DEPTH]:
        if is_plain_file(version / NAME):
            return version
    return None


def has_predictions(folder: Path) -> bool:
    """Return True if predictions of the run in ``folder`` are here: in it, or in its version."""
    return (folder / "predictions").is_dir() or find_version(folder / "predictions") is not None


def read_packed(path: Path, only: Container[str] | None = None) -> dict[str, np.ndarray] | None:
    """Read the arrays of the predictions file ``path`` from its version's one file.

    None if it has none of them. Raises DataDamaged for anything that ``Packed`` does not write.
    """
    version = find_version(path)
    if version is None:
        return None
    file = version / NAME
    try:
        state = os.stat(file)
        table, rows = _read(file, state.st_mtime_ns, state.st_size)
        name = path.absolute().relative_to(version.absolute()).as_posix()
        named = rows.get(name)
        if named is None:
            return None
        wanted = {array: row for array, row in named.items() if only is None or array in only}
        return {array: _values(table, row) for array, row in wanted.items()}
    except Exception as error:  # pyarrow raises errors of many kinds for files that are not Parquet
        raise DataDamaged(f"{file} is not a predictions file: {one_line(error)}") from None


@functools.lru_cache(maxsize=4)
def _read(file: Path, changed: int, size: int) -> tuple[Any, dict[str, dict[str, int]]]:
    """Read the table, and the row of each array as file -> array -> row.

    Raises ValueError for a table that would fill the memory.
    """
    import pyarrow
    from pyarrow import parquet

    with open_plain_file(file, LARGEST_PACKED) as stream:
        arrays_there = parquet.ParquetFile(stream).metadata.num_rows
        if arrays_there > MOST_PACKED:
            raise TooLarge(f"{arrays_there:,} arrays, the limit is {MOST_PACKED:,}")
        batches = list(read_batches(stream, COLUMNS, LARGEST_PACKED, REPEATED, AT_ONCE))
    table = pyarrow.Table.from_batches(batches).select(["dtype", "shape", "data", "same"])
    rows: dict[str, dict[str, int]] = {}
    row = 0
    for batch in batches:
        files = _texts(batch["file"])
        arrays = _texts(batch["array"])
        for name, array in zip(files, arrays, strict=True):
            rows.setdefault(name, {})[array] = row
            row += 1
    return table, rows


def _texts(column: Any) -> list[str]:
    """Return the texts of a dictionary-encoded column; rows with the same text share one object."""
    dictionary = [sys.intern(text) for text in column.dictionary.to_pylist()]
    return [dictionary[index] for index in column.indices.to_pylist()]


def _values(table: Any, row: int) -> np.ndarray:
    """Return the array of a row.

    ``same`` is the number of an earlier row with the same values. Raises ValueError for a row that
    ``Packed`` does not write.
    """
    dtype = table["dtype"][row].as_py()
    shape = table["shape"][row].as_py()
    same = table["same"][row].as_py()
    data = table["data"][row].as_py()
    if same is not None:
        values = _values(table, same)
        if list(values.shape) != shape:
            raise ValueError(f"row {row}: another shape than row {same}")
        return values
    if dtype not in DTYPES or any(n < 0 for n in shape):
        raise ValueError(f"row {row}: an array of type {dtype[:20]} and shape {shape}")
    if dtype == "U":
        texts = json.loads(data)
        if not all(isinstance(text, str) for text in texts):
            raise ValueError(f"row {row}: not a list of texts")
        longest = max(map(len, texts), default=1) or 1
        if 4 * longest * len(texts) > PREDICTIONS_BYTES:  # numpy gives each the room of the longest
            raise ValueError(f"row {row}: {len(texts):,} texts of up to {longest:,} letters")
        values = np.array(texts, dtype=f"<U{longest}")
    else:
        values = np.frombuffer(data, f"<{dtype}").copy()
    if values.size != math.prod(shape):
        raise ValueError(f"row {row}: {values.size:,} values for shape {shape}")
    return values.reshape(shape)
