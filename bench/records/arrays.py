"""Files of predictions, also forged ones: nothing is unpickled, and a false size does not exhaust
the memory.

A run's folder has one .npz file for each task. A published version may hold the predictions of all
its runs in one Parquet file, ``predictions.parquet``, with a row for each array of each predictions
file:

``file``: path below the version's folder that the array would have as an .npz file of its run
(runs/ID/predictions/STS12.npz). ``array``: its name there. ``dtype``, ``shape``, ``data``: its
values in row order, little-endian; text is a JSON list. ``same``: the row that holds these values
(gold values are the same for every run), null if this row does.
"""

from __future__ import annotations

import functools
import io
import math
import os
import zipfile
from collections.abc import Container
from pathlib import Path

import numpy as np

from bench.base.errors import DataDamaged, DataMissing
from bench.base.reading import PREDICTIONS_BYTES, read_plain_file
from bench.records.packed import read_packed

LARGEST = PREDICTIONS_BYTES
"""Bytes of one .npz file, and of its arrays unpacked; ours have some megabytes."""
MOST = 1000
"""Arrays of one .npz file."""
PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Compressions that can be unpacked up to a given size; others unpack all at once."""


def read_arrays(
    path: Path | str,
    only: Container[str] | None = None,
    inside: Path | None = None,
    *,
    shared: bool = False,
) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file; if there is no such file, the arrays that its version has
    in ``predictions.parquet``. ``only``: these arrays, if they are there. ``inside``: the run's
    folder, below which no link is followed; None: the file's own. ``shared``: what comes from the
    data may be one array for many files, which cannot be written to; else each caller has its own.


    Raises DataMissing if there is no file, DataDamaged for a file with anything but arrays of
    numbers and text.
    """
    try:
        return _unpack(read_plain_file(path, LARGEST, inside), only, shared)
    except (FileNotFoundError, NotADirectoryError):
        if not os.path.lexists(path) and (packed := read_packed(Path(path), only)) is not None:
            return packed
        raise DataMissing(
            f"there is no file {path}", "the run's command creates it again"
        ) from None
    except OSError as error:
        raise DataDamaged(f"{path} cannot be read: {error.strerror or error}") from None
    except Exception as error:  # zipfile and numpy raise errors of many kinds for forged files
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataDamaged(f"{path} is not a predictions file: {reason[:200]}") from None


def _unpack(data: bytes, only: Container[str] | None, shared: bool) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file's bytes. Raises many kinds of errors for anything else."""
    arrays: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        unpacked = sum(member.file_size for member in members)
        if len(members) > MOST or unpacked > LARGEST:
            raise ValueError(f"{len(members)} arrays, {unpacked:,} bytes unpacked: too much")
        if len({member.filename for member in members}) < len(members):
            raise ValueError("two arrays have the same name")
        for member in members:
            name = member.filename.removesuffix(".npy")
            if only is not None and name not in only:
                continue
            if member.compress_type not in PLAIN:
                raise ValueError(f"{member.filename}: neither stored nor deflated")
            content = archive.read(member)  # never more than it announces
            if name == "prediction":
                arrays[name] = _array(content, member.filename)
                continue
            from_data = _remembered_array(content, member.filename)  # the same in every run
            arrays[name] = from_data if shared else from_data.copy()
    return arrays


@functools.lru_cache(maxsize=64)
def _remembered_array(content: bytes, file: str) -> np.ndarray:
    array = _array(content, file)
    array.flags.writeable = False
    return array


def _array(content: bytes, file: str) -> np.ndarray:
    """Return the array of an .npy file's bytes.

    Raises ValueError for anything but a complete array of plain values.
    """
    start = 12 if content[6:7] != b"\x01" else 10
    start += int.from_bytes(content[8:start], "little")
    shape, in_columns, dtype = _read_header(content[:start], file)
    size = math.prod(shape)
    if size > len(content) or size * dtype.itemsize > len(content) - start:
        # rows of text without letters take no bytes
        raise ValueError(f"{file}: an array of {size:,} values in {len(content):,} bytes")
    if size == 0 or dtype.itemsize == 0:
        return np.zeros(shape, dtype)
    values = np.frombuffer(content, dtype, size, start)
    return values.reshape(shape, order="F" if in_columns else "C").copy()


@functools.lru_cache(maxsize=256)
def _read_header(data: bytes, file: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read from the first bytes of an .npy file: shape, True if values are in column order, type.

    Raises ValueError for other than numbers and text.
    """
    header = io.BytesIO(data)
    if np.lib.format.read_magic(header) == (1, 0):
        shape, in_columns, dtype = np.lib.format.read_array_header_1_0(header)
    else:  # a name of a type that is not ASCII
        shape, in_columns, dtype = np.lib.format.read_array_header_2_0(header)
    if dtype.kind not in "biufU" or dtype.hasobject:
        raise ValueError(f"{file} holds neither numbers nor text: {str(dtype)[:40]}")
    if min(shape, default=0) < 0:
        raise ValueError(f"{file}: an array of shape {shape}")
    return shape, in_columns, dtype
