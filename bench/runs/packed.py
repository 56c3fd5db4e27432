"""All predictions of a published version in one Parquet file, ``predictions.parquet``: a row for each array of each predictions file.

``file``: path below the version's folder that the array would have as an .npz file of its run (runs/ID/predictions/STS12.npz).
``array``: its name there. ``dtype``, ``shape``, ``data``: its values in row order, little end first; text is a JSON list.
``same``: the row that holds these values (gold values are the same for every run), null where this row does.
"""

from __future__ import annotations

import functools
import json
import math
import os
import sys
from collections.abc import Container, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.base.errors import DataDamaged
from bench.base.files import default_cache, values_sha256

if TYPE_CHECKING:
    import numpy as np

NAME, MANIFEST = "predictions.parquet", "MANIFEST.json"
DEPTH = 6  # folders from a predictions file up to its version: runs/ID/predictions/mteb/STS12.npz
LARGEST = 1 << 31  # bytes of all arrays of one file
DTYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "U")


class Packed:
    """Collects the arrays of a version's predictions files and writes them as one file."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Any]] = {
            name: [] for name in ("file", "array", "dtype", "shape", "data", "same")
        }
        self._row_of: dict[str, int] = {}

    def add(self, file: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Raises ValueError for arrays of anything but numbers and text."""
        import numpy as np

        for name, values in sorted(arrays.items()):
            values = narrow(np.asarray(values))
            text = values.dtype.kind == "U"
            data = json.dumps(values.ravel().tolist()).encode() if text else values.tobytes()
            dtype, shape = "U" if text else values.dtype.str[1:], list(values.shape)
            if dtype not in DTYPES:
                raise ValueError(f"the array '{name}' holds neither numbers nor text")
            row = len(self.rows["file"])
            first = self._row_of.setdefault(f"{dtype} {shape} {sha256(data).hexdigest()}", row)
            held = first == row
            of = (file, name, dtype, shape, data if held else None, None if held else first)
            for column, value in zip(self.rows.values(), of, strict=True):
                column.append(value)

    def write(self, path: Path) -> None:
        """The same arrays in the same order give the same bytes."""
        import pyarrow as pa
        from pyarrow import parquet

        text, number = pa.string(), pa.int32()
        types = (text, text, text, pa.list_(number), pa.binary(), number)
        table = pa.table(
            {
                name: pa.array(values, kind)
                for (name, values), kind in zip(self.rows.items(), types, strict=True)
            }
        )
        names = ["file", "array", "dtype"]
        parquet.write_table(
            table, path, compression="zstd", compression_level=9, use_dictionary=names
        )


def narrow(values: np.ndarray) -> np.ndarray:
    """The same values in row order, in the narrowest type that holds each exactly; little end first."""
    import numpy as np

    kind = values.dtype.kind
    wanted = {"i": ("i1", "i2", "i4"), "u": ("i1", "i2", "i4"), "f": ("f2", "f4")}.get(kind, ())
    values = values.astype(values.dtype.newbyteorder("<"), order="C")
    for dtype in wanted:
        if np.dtype(dtype).itemsize >= values.dtype.itemsize:
            break
        with np.errstate(over="ignore", invalid="ignore"):
            smaller = values.astype(f"<{dtype}")
        if values_sha256({"": smaller}) == values_sha256({"": values}):  # NaN and -0.0, too
            return smaller
    return values


def version_of(path: Path) -> Path | None:
    """The published version with one file of predictions in which ``path`` lies; None for other places."""
    return next((above for above in _above(path) if packed_file(above) is not None), None)


def packed_file(version: Path) -> Path | None:
    """The predictions of a version: beside its manifest or, where the manifest names them by hash, in the cache."""
    if (version / NAME).is_file():
        return version / NAME
    known = elsewhere(version)
    path = None if known is None else cached(known["sha256"])
    return path if path is not None and path.is_file() else None


def elsewhere(version: Path) -> dict[str, Any] | None:
    """{"url", "sha256", "bytes"} where a version's manifest says that its predictions lie elsewhere; else None."""
    try:
        known = json.loads((version / MANIFEST).read_bytes())["predictions_url"]
        int(known["sha256"], 16)
        if len(known["sha256"]) == 64:
            return {
                "url": str(known["url"]),
                "sha256": known["sha256"],
                "bytes": int(known["bytes"]),
            }
    except (OSError, ValueError, ArithmeticError, KeyError, TypeError, RecursionError):
        pass
    return None


def elsewhere_of(folder: Path) -> dict[str, Any] | None:
    """``elsewhere`` of the version in which the run in ``folder`` lies; None for other runs."""
    return next((known for above in _above(folder) if (known := elsewhere(above))), None)


def cached(digest: str) -> Path:
    """Where a predictions file of this sha256 lies after it was fetched."""
    return default_cache() / "predictions" / f"{digest}.parquet"


def has_predictions(folder: Path) -> bool:
    """Whether predictions of the run in ``folder`` are here: its own files, or those of its version."""
    return (folder / "predictions").is_dir() or version_of(folder / "predictions") is not None


def read_packed(path: Path, only: Container[str] | None = None) -> dict[str, np.ndarray] | None:
    """The arrays of the predictions file ``path`` out of its version's one file; None where that has none of it.

    Raises DataDamaged for anything that ``Packed`` would not have written.
    """
    version = version_of(path)
    if version is None or (file := packed_file(version)) is None:
        return None
    try:
        state = os.stat(file)
        columns, places = _read(file, state.st_mtime_ns, state.st_size)
        name = path.absolute().relative_to(version.absolute()).as_posix()
        arrays = {
            array: _values(columns, row)
            for array, row in places.get(name, {}).items()
            if only is None or array in only
        }
    except DataDamaged:
        raise
    except Exception as error:  # pyarrow raises errors of many kinds for files that are not Parquet
        why = " ".join(str(error).split())[:200]
        raise DataDamaged(f"{file} is not a file of predictions: {why}") from None
    return arrays if name in places else None


def _above(path: Path) -> list[Path]:
    return list(path.absolute().parents)[:DEPTH]


@functools.lru_cache(maxsize=4)
def _read(file: Path, changed: int, size: int) -> tuple[Any, dict[str, dict[str, int]]]:
    """(the columns shape, dtype, data, same; file -> array -> row)."""
    from pyarrow import parquet

    groups = parquet.ParquetFile(file).metadata
    total = sum(groups.row_group(i).total_byte_size for i in range(groups.num_row_groups))
    if total > LARGEST:
        raise DataDamaged(f"{file}: {total:,} bytes unpacked are too many for predictions")
    table = parquet.read_table(file)
    places: dict[str, dict[str, int]] = {}
    names = zip(table["file"].to_pylist(), table["array"].to_pylist(), strict=True)
    for row, (of, array) in enumerate(names):
        places.setdefault(of, {})[sys.intern(array)] = row
    return {name: table[name] for name in ("dtype", "shape", "data", "same")}, places


def _values(columns: Any, row: int) -> np.ndarray:
    import numpy as np

    dtype, shape, same, data = (
        columns[name][row].as_py() for name in ("dtype", "shape", "same", "data")
    )
    data = columns["data"][same].as_py() if same is not None else data
    if dtype not in DTYPES or any(n < 0 for n in shape):
        raise ValueError(f"row {row}: an array of type {dtype[:20]} and shape {shape}")
    if dtype == "U":
        texts = json.loads(data)
        if not all(isinstance(text, str) for text in texts):
            raise ValueError(f"row {row}: not a list of texts")
        width = max(map(len, texts), default=1) or 1
        values = np.array(texts, dtype=f"<U{width}")
    else:
        values = np.frombuffer(data, f"<{dtype}").copy()
    if values.size != math.prod(shape):
        raise ValueError(f"row {row}: {values.size:,} values for shape {shape}")
    return values.reshape(shape)
