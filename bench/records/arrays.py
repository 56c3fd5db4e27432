"""Files of predictions, also forged ones: nothing is unpickled, and a false size does not exhaust the memory.

A run's folder has one .npz file for each task. A published version may hold the predictions of all its runs in one Parquet file,
``predictions.parquet``, with a row for each array of each predictions file:

``file``: path below the version's folder that the array would have as an .npz file of its run (runs/ID/predictions/STS12.npz).
``array``: its name there. ``dtype``, ``shape``, ``data``: its values in row order, little-endian; text is a JSON list.
``same``: the row that holds these values (gold values are the same for every run), null if this row does.
``dtype`` ``d2``: ``data`` are 16-bit differences to the values of the row ``same``, first all low bytes, then all high ones. Two runs
rank the same pairs much alike, so that the differences take a quarter less room.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import math
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Container, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta, Struct

from bench.base.errors import DataDamaged, DataMissing, one_line
from bench.base.files import default_cache
from bench.base.parquet import TooLarge, read_batches
from bench.base.reading import (
    MANIFEST_BYTES,
    MIB,
    PREDICTIONS_BYTES,
    is_plain_file,
    open_plain_file,
    read_plain_file,
)

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
    """The arrays of an .npz file; if there is no such file, the arrays that its version has in ``predictions.parquet``. ``only``:
    these arrays, if they are there. ``inside``: the run's folder, below which no link is followed; None: the file's own. ``shared``: what
    comes from the data may be one array for many files, which cannot be written to; else each caller has its own.

    Raises DataMissing if there is no file, DataDamaged for a file with anything but arrays of numbers and text.
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
    """The arrays of an .npz file's bytes. Raises many kinds of errors for anything else."""
    _check_directory(data)
    arrays: dict[str, np.ndarray] = {}
    names: set[str] = set()
    members = _list_members(data)
    unpacked = sum(member.size for member in members)
    if len(members) > MOST or unpacked > LARGEST:
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


def _check_directory(data: bytes) -> None:
    """Raise ValueError for an archive with a list of members that would fill the memory."""
    end = data.rfind(b"PK\x05\x06")
    size = int.from_bytes(data[end + 12 : end + 16], "little")
    if end < 0 or size > DIRECTORY_BYTES or data[end - 20 : end - 16] == b"PK\x06\x07":
        raise ValueError("not an archive of a few arrays")


class Member(NamedTuple):
    """A file in an archive, still packed."""

    file: str
    compression: int
    size: int
    """Bytes that it says it has when it is unpacked."""
    crc32: int
    packed: bytes


END_RECORD = struct.Struct("<4s4H2LH")
"""The end of an archive: signature, two disks, entries on this disk, entries, bytes and place of the list of members, length of a comment."""
ENTRY = struct.Struct("<4s4B4HL2L5H2L")
"""A member in that list."""
LOCAL_HEADER = struct.Struct("<4s2B4HL2L2H")
"""What stands before a member."""


def _list_members(data: bytes) -> list[Member]:
    """The files in an archive, read as zipfile reads them, at a fifth of its time: a table of thousands of runs opens each of their files.

    Raises ValueError and struct.error for anything but a plain archive without a comment, encryption or sizes of 64 bits.
    """
    place = len(data) - END_RECORD.size
    signature, *_, entries, size, start, comment = END_RECORD.unpack_from(data, place)
    if signature != b"PK\x05\x06" or comment or start + size != place:
        raise ValueError("not a plain archive")
    if entries > MOST:
        raise ValueError(f"{entries:,} arrays: too much")
    members = []
    at = start
    for _ in range(entries):
        # the versions (4 bytes), flags, compression, time, date, CRC-32, packed and unpacked bytes, lengths, and where the member stands
        fields = ENTRY.unpack_from(data, at)
        flags, compression = fields[5:7]
        crc32, packed, unpacked = fields[9:12]
        name_length, more_length, comment_length = fields[12:15]
        before = fields[18]
        if fields[0] != b"PK\x01\x02" or flags & ~HARMLESS:
            raise ValueError("not a plain archive")
        name = data[at + ENTRY.size : at + ENTRY.size + name_length]
        at += ENTRY.size + name_length + more_length + comment_length
        header = LOCAL_HEADER.unpack_from(data, before)
        first = before + LOCAL_HEADER.size + header[10] + header[11]
        same_name = data[before + LOCAL_HEADER.size :][: header[10]] == name
        if header[0] != b"PK\x03\x04" or not same_name or first + packed > start:
            raise ValueError("a member is not where the archive says")
        content = data[first : first + packed]
        members.append(Member(name.decode("utf-8"), compression, unpacked, crc32, content))
    if at != place:
        raise ValueError("not a plain archive")
    return members


HARMLESS = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 11
"""Flags of a member that change nothing here: how well it is packed, that its sizes follow it too, that its name is UTF-8."""


@functools.lru_cache(maxsize=64)
def _remembered_array(member: Member) -> np.ndarray:
    array = _array(member)
    array.flags.writeable = False
    return array


def _array(member: Member) -> np.ndarray:
    """A member of the file, unpacked. Raises ValueError for anything but a complete array of plain values."""
    data = member.packed
    if member.compression == zipfile.ZIP_DEFLATED:
        # never more than it announces: what it unpacks to may be larger
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
    """(shape, whether values stand column by column, type) in the first bytes of a member. Raises ValueError for other than numbers and text."""
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


# --- predictions.parquet of a version ---

NAME, MANIFEST = "predictions.parquet", "MANIFEST.json"
DEPTH = 6  # folders from a predictions file up to its version: runs/ID/predictions/mteb/STS12.npz
LARGEST_PACKED = 1 << 31  # bytes of all its arrays
MOST_PACKED = 1 << 20  # arrays
DTYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "U")
DIFFERENCES = "d2"


class Packed:
    """Collects the arrays of a version's predictions files and writes them as one file."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self._row_of: dict[tuple[Any, ...], int] = {}
        self._first: dict[tuple[Any, ...], tuple[int, np.ndarray]] = {}  # ranks of a method, of all

    def add(self, file: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Raises DataDamaged for arrays of anything but numbers and text."""
        for name, values in sorted(arrays.items()):
            values = narrow(values)
            text = values.dtype.kind == "U"
            data = json.dumps(values.ravel().tolist()).encode() if text else values.tobytes()
            dtype, shape = "U" if text else values.dtype.str[1:], values.shape
            if dtype not in DTYPES:
                raise DataDamaged(f"{file}: the array '{name}' holds neither numbers nor text")
            row = len(self.rows)
            first = self._row_of.setdefault((dtype, shape, sha256(data).digest()), row)
            stored = (dtype, shape, data, None) if first == row else (dtype, shape, None, first)
            if first == row and dtype == "i2" and values.ndim == 1:
                of_all, of_method = (
                    self._first.setdefault((method, Path(file).name, name, shape), (row, values))
                    for method in ("", Path(file).parent.parent.name.rsplit("-", 2)[0])
                )
                alike, base = of_all if of_method[0] == row else of_method
                if alike != row:
                    planes = (values - base).view(np.uint8).reshape(-1, 2).T.tobytes()
                    stored = (DIFFERENCES, shape, planes, alike)
            self.rows.append((file, name, *stored))

    def write(self, path: Path) -> None:
        """The same arrays in the same order give the same bytes."""
        import pyarrow as pa
        from pyarrow import parquet

        names, text, number = ["file", "array", "dtype"], pa.string(), pa.int32()
        types = (text, text, text, pa.list_(number), pa.binary(), number)
        parquet.write_table(
            pa.table(
                [
                    pa.array(*column)
                    for column in zip(zip(*self.rows, strict=True), types, strict=True)
                ],
                names=[*names, "shape", "data", "same"],
            ),
            path,
            compression="zstd",
            compression_level=19,
            use_dictionary=names,
        )


def narrow(values: np.ndarray) -> np.ndarray:
    """The same values in row order, little-endian, in the narrowest type that holds each exactly."""
    values = np.asarray(values)
    kind = values.dtype.kind
    narrower = {"i": ("i1", "i2", "i4"), "u": ("i1", "i2", "i4"), "f": ("f2", "f4")}.get(kind, ())
    values = values.astype(values.dtype.newbyteorder("<"), order="C")
    for dtype in (name for name in narrower if np.dtype(name).itemsize < values.itemsize):
        with np.errstate(over="ignore", invalid="ignore"):
            smaller = values.astype(f"<{dtype}")
        back = smaller.astype(values.dtype)
        if back.tobytes() == values.tobytes() if kind == "f" else np.array_equal(back, values):
            return smaller  # NaN and -0.0 are the same, too
    return values


# --- where the file is: in its version, or at the URL in the version's manifest ---


class Elsewhere(Struct, frozen=True):
    """Predictions that are stored outside their version."""

    url: Annotated[str, Meta(pattern="^https?://")]
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
    bytes: Annotated[int, Meta(ge=0)]


class Manifest(Struct, frozen=True):
    """``MANIFEST.json`` of a version: path -> sha256, paths relative to it with forward slashes."""

    files: dict[str, str]
    predictions_url: Elsewhere | None = None


class PredictionsElsewhere(DataMissing):
    """The predictions of a version are at a URL, and were not fetched."""


def read_manifest(version: Path) -> Manifest | None:
    """The version's manifest; None if it has none. Raises DataDamaged."""
    file = version / MANIFEST
    try:
        return msgspec.json.decode(read_plain_file(file, MANIFEST_BYTES), type=Manifest)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DataDamaged(f"{file} cannot be read: {error.strerror or error}") from None
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        raise DataDamaged(f"{file} cannot be read: {one_line(error)}") from None


def cached(digest: str) -> Path:
    """Where a predictions file of this sha256 is after it was fetched."""
    return default_cache() / "predictions" / f"{digest}.parquet"


def find_packed(path: Path) -> tuple[Path, Path] | None:
    """(version that holds ``path``, its file of predictions, which may have to be fetched); None for other paths."""
    for version in list(path.absolute().parents)[:DEPTH]:
        if is_plain_file(version / NAME):
            return version, version / NAME
        with contextlib.suppress(DataDamaged):  # check_manifest reports it
            if (manifest := read_manifest(version)) and manifest.predictions_url is not None:
                return version, cached(manifest.predictions_url.sha256)
    return None


def has_predictions(folder: Path) -> bool:
    """Whether predictions of the run in ``folder`` are here: in its folder, or in its version."""
    if (folder / "predictions").is_dir():
        return True
    located = find_packed(folder / "predictions")
    return located is not None and is_plain_file(located[1])


def read_packed(path: Path, only: Container[str] | None = None) -> dict[str, np.ndarray] | None:
    """The arrays of the predictions file ``path`` from its version's one file; None if that has none of them.

    Raises PredictionsElsewhere, and DataDamaged for anything that ``Packed`` would not have written.
    """
    if (located := find_packed(path)) is None:
        return None
    version, file = located
    if not is_plain_file(file):
        raise PredictionsElsewhere(
            f"the predictions of {version.name} are stored elsewhere and were not fetched",
            f"bench verify {version} fetches them",
        )
    try:
        state = os.stat(file)
        table, rows = _read(file, state.st_mtime_ns, state.st_size)
        named = rows.get(path.absolute().relative_to(version.absolute()).as_posix())
        return (
            None
            if named is None
            else {
                array: _values(table, row)
                for array, row in named.items()
                if only is None or array in only
            }
        )
    except Exception as error:  # pyarrow raises errors of many kinds for files that are not Parquet
        raise DataDamaged(f"{file} is not a predictions file: {one_line(error)}") from None


@functools.lru_cache(maxsize=4)
def _read(file: Path, changed: int, size: int) -> tuple[Any, dict[str, dict[str, int]]]:
    """(the table, file -> array -> row). Raises ValueError for a table that would fill the memory."""
    import pyarrow
    from pyarrow import parquet

    names = ["file", "array", "dtype"]  # each is stored once, however many rows have it
    with open_plain_file(file, LARGEST_PACKED) as stream:
        stored = parquet.ParquetFile(stream, read_dictionary=names)
        if stored.metadata.num_rows > MOST_PACKED:
            raise TooLarge(f"{stored.metadata.num_rows:,} arrays, the limit is {MOST_PACKED:,}")
        batches = list(read_batches(stored, [*names, "shape", "data", "same"], LARGEST_PACKED))
    table = pyarrow.Table.from_batches(batches).select(["dtype", "shape", "data", "same"])
    table = table.combine_chunks()  # a value is then found in the same time wherever it is
    rows: dict[str, dict[str, int]] = {}
    row = 0
    for batch in batches:
        files, arrays = _texts(batch["file"]), _texts(batch["array"])
        for of, array in zip(files, arrays, strict=True):
            rows.setdefault(of, {})[array] = row
            row += 1
    return table, rows


def _texts(column: Any) -> list[str]:
    """The texts of a dictionary-encoded column; rows with the same text share it."""
    dictionary = [sys.intern(text) for text in column.dictionary.to_pylist()]
    return [dictionary[index] for index in column.indices.to_pylist()]


def _values(table: Any, row: int) -> np.ndarray:
    dtype, shape, same, data = (
        table[name][row].as_py() for name in ("dtype", "shape", "same", "data")
    )
    if same is not None:
        values = _values(table, same)
        if dtype == DIFFERENCES:
            planes = np.frombuffer(data, np.uint8).reshape(2, -1)
            values = values + planes.T.copy().view("<i2").reshape(shape)
        if list(values.shape) != shape:
            raise ValueError(f"row {row}: another shape than row {same}")
        return values
    if dtype not in DTYPES or any(n < 0 for n in shape):
        raise ValueError(f"row {row}: an array of type {dtype[:20]} and shape {shape}")
    if dtype == "U":
        texts = json.loads(data)
        if not all(isinstance(text, str) for text in texts):
            raise ValueError(f"row {row}: not a list of texts")
        values = np.array(texts, dtype=f"<U{max(map(len, texts), default=1) or 1}")
    else:
        values = np.frombuffer(data, f"<{dtype}").copy()
    if values.size != math.prod(shape):
        raise ValueError(f"row {row}: {values.size:,} values for shape {shape}")
    return values.reshape(shape)
