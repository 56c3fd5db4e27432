"""Files of predictions, also forged ones: nothing is unpickled, and a false size does not exhaust
the memory.

A run's folder has one .npz file for each task. A published version may hold the predictions of all
its runs in one Parquet file, ``predictions.parquet``, with a row for each array of each predictions
file:

``file``: path below the version's folder that the array would have as an .npz file of its run
(runs/ID/predictions/STS12.npz). ``array``: its name there. ``dtype``, ``shape``, ``data``: its
values in row order, little-endian; text is a JSON list. ``same``: the row that holds these values
(gold values are the same for every run), null if this row does. ``dtype`` ``d2``: ``data`` are
16-bit differences to the values of the row ``same``, first all low bytes, then all high ones. Two
runs rank the same pairs similarly, so that the differences take a quarter less room.
"""

from __future__ import annotations

import functools
import io
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Container
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.base.errors import DataDamaged, DataMissing
from bench.base.reading import (
    MIB,
    PREDICTIONS_BYTES,
    read_plain_file,
)
from bench.records.packed import read_packed

LARGEST = PREDICTIONS_BYTES
"""Bytes of one .npz file, and of its arrays unpacked; ours have some megabytes."""
MOST = 1000
"""Arrays of one .npz file."""
PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Compressions that can be unpacked up to a given size; others unpack all at once."""
DIRECTORY_BYTES = MIB
"""Bytes of an archive's list of its members: all of it is read before any member is."""


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
    names: set[str] = set()
    members = _list_members(data)
    unpacked = 0
    for member in members:
        unpacked += member.size
    if unpacked > LARGEST:
        raise ValueError(f"{len(members)} arrays, {unpacked:,} bytes unpacked: too much")
    for member in members:
        name = member.file.removesuffix(".npy")
        if name in names:
            raise ValueError("two arrays have the same name")
        names.add(name)
        if member.compression not in PLAIN:
            raise ValueError(f"{member.file}: neither stored nor deflated")
        if only is None or name in only:
            if name == "prediction":
                arrays[name] = _array(member)
                continue
            from_data = _remembered_array(member)  # the same in every run
            arrays[name] = from_data if shared else from_data.copy()
    return arrays


class Member(NamedTuple):
    """A file in an archive, still packed."""

    file: str
    compression: int
    size: int
    """Bytes that it says it has when it is unpacked."""
    crc32: int
    packed: bytes


END_RECORD = struct.Struct("<4s4H2LH")
"""The end of an archive: signature, two disks, entries on this disk, entries, bytes and place of
the list of members, length of a comment.
"""
ENTRY = struct.Struct("<4s4x2H4x3L3H8xL")
"""A member in that list: signature, flags, compression, CRC-32, packed and unpacked bytes, lengths
of its name, of more fields and of a comment, and the position of its header. Two versions, a
moment, a disk and attributes are left out.
"""
LOCAL_HEADER = struct.Struct("<4s22x2H")
"""The header of a member: signature, and lengths of its name and of more fields. What the list says
too is left out.
"""


def _list_members(data: bytes) -> list[Member]:
    """Return the files in an archive, read as zipfile reads them, at a fifth of its time: a table
    of thousands of runs opens each of their files.

    Raises ValueError and struct.error for anything but a plain archive without a comment,
    encryption or sizes of 64 bits.
    """
    place = len(data) - END_RECORD.size
    signature, *_, entries, size, start, comment = END_RECORD.unpack_from(data, place)
    if signature != b"PK\x05\x06" or comment or start + size != place:
        raise ValueError("not a plain archive")
    if entries > MOST or size > DIRECTORY_BYTES:
        raise ValueError(f"{entries:,} arrays in a list of {size:,} bytes: too much")
    members = []
    at = start
    for _ in range(entries):
        mark, flags, compression, crc32, packed, unpacked, *lengths, before = ENTRY.unpack_from(
            data, at
        )
        if mark != b"PK\x01\x02" or flags & ~HARMLESS:
            raise ValueError("not a plain archive")
        begin = at + ENTRY.size
        name = data[begin : begin + lengths[0]]
        at = begin + sum(lengths)
        mark, name_length, more_length = LOCAL_HEADER.unpack_from(data, before)
        begin = before + LOCAL_HEADER.size
        first = begin + name_length + more_length
        same_name = data[begin : begin + name_length] == name
        if mark != b"PK\x03\x04" or not same_name or first + packed > start:
            raise ValueError("a member is not where the archive says")
        content = data[first : first + packed]
        members.append(Member(name.decode("utf-8"), compression, unpacked, crc32, content))
    if at != place:
        raise ValueError("not a plain archive")
    return members


HARMLESS = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 11
"""Flags of a member that change nothing here: how well it is packed, that its sizes follow it too,
that its name is UTF-8.
"""


@functools.lru_cache(maxsize=64)
def _remembered_array(member: Member) -> np.ndarray:
    array = _array(member)
    array.flags.writeable = False
    return array


def _array(member: Member) -> np.ndarray:
    """Return a member of the file, unpacked.

    Raises ValueError for anything but a complete array of plain values.
    """
    data = member.packed
    if member.compression == zipfile.ZIP_DEFLATED:
        # never more than it announces: a bad file may unpack to more
        data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, member.size + 1)
    if len(data) != member.size or zlib.crc32(data) != member.crc32:
        raise ValueError(f"{member.file} is cut short or altered")
    start = 12 if data[6:7] != b"\x01" else 10
    start += int.from_bytes(data[8:start], "little")
    shape, in_columns, dtype = _read_header(data[:start], member.file)
    size = math.prod(shape)
    if size > len(data) or size * dtype.itemsize > len(data) - start:
        # rows of text without letters take no bytes
        raise ValueError(f"{member.file}: an array of {size:,} values in {len(data):,} bytes")
    if size == 0 or dtype.itemsize == 0:
        return np.zeros(shape, dtype)
    values = np.frombuffer(data, dtype, size, start)
    return values.reshape(shape, order="F" if in_columns else "C").copy()


@functools.lru_cache(maxsize=256)
def _read_header(data: bytes, file: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read from the first bytes of a member: shape, True if values are in column order, type.

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
