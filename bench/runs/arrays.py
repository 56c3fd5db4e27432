"""Reading a predictions file that anybody may have made: nothing is unpickled, and nothing it claims makes memory run out."""

from __future__ import annotations

import io
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Container
from pathlib import Path

import numpy as np

from bench.base.errors import DataDamaged, DataMissing
from bench.runs.packed import DEPTH, read_packed

LARGEST = 1 << 30  # bytes of all arrays of one file, unpacked; ours have some megabytes
MOST = 1000  # arrays
GIVEN_SHA256 = "given_sha256"
"""leaderboards/v3 keeps what all runs of a task share (gold values, folds) once, as ``given/<hash of its values>.npz``; a
predictions file then holds that hash, as text, in the place of those arrays."""
# RuntimeError: encrypted, or a compression that zipfile does not know
WRONG = (
    ValueError,
    OSError,
    EOFError,
    KeyError,
    RuntimeError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)
"""What reading a file that somebody made up may raise."""


def read_arrays(path: Path, only: Container[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, or ``only`` those that are named, as far as they are there; with those that its version keeps once.

    Where there is no such file, those that its version has in its one file of predictions (``bench.runs.packed``).

    Raises DataMissing where there is no file, DataDamaged for anything that is not arrays alone.
    """
    if not os.path.exists(path) and (packed := read_packed(path, only)) is not None:
        return packed
    arrays, sha256 = _read_file(path, only)
    return arrays if sha256 is None else _shared(path, sha256, only) | arrays


def _read_file(path: Path, only: Container[str] | None) -> tuple[dict[str, np.ndarray], str | None]:
    """What the file itself holds, and the hash of the arrays that its version stores for it. Raises as ``read_arrays``."""
    try:
        if not path.is_file() and path.exists():
            raise ValueError("not a file")  # opening a pipe would wait for ever
        if path.stat().st_size > LARGEST:
            raise ValueError("the file is too large")
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:  # faster than many reads
            members = archive.infolist()
            unpacked = sum(member.file_size for member in members)
            if len(members) > MOST or unpacked > LARGEST:
                raise ValueError(f"{len(members)} arrays, {unpacked:,} bytes unpacked: too much")
            named = {member.filename.removesuffix(".npy"): member for member in members}
            if len(named) < len(members):
                raise ValueError("two arrays have one name")
            arrays = {
                name: _array(archive.read(member), member.filename)
                for name, member in named.items()
                if only is None or name in only or name == GIVEN_SHA256
            }
            if (shared := arrays.pop(GIVEN_SHA256, None)) is None:
                return arrays, None
            sha256 = str(shared.item())  # ValueError for several
            if not re.fullmatch("[0-9a-f]{64}", sha256):
                raise ValueError(f"{GIVEN_SHA256} is no hash")
            return arrays, sha256
    except (FileNotFoundError, NotADirectoryError):
        raise DataMissing(f"there is no file {path}", "the run's command makes it again") from None
    except WRONG as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataDamaged(f"{path} is no predictions file: {reason[:200]}") from None


def _shared(path: Path, sha256: str, only: Container[str] | None) -> dict[str, np.ndarray]:
    """What the version of a predictions file stores once for all its runs."""
    name = f"given/{sha256}.npz"
    for version in list(path.absolute().parents)[:DEPTH]:
        if (version / name).is_file():
            return _read_file(version / name, only)[0]
    raise DataMissing(
        f"{path} says that its gold values are in {name}, which is not there",
        "restore the version: git checkout",
    )


def _array(data: bytes, name: str) -> np.ndarray:
    """A member of the file, unpacked. Raises ValueError for anything but an array of plain values that is wholly there."""
    array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    if array.size > len(data):  # rows of text without letters take no bytes
        raise ValueError(f"{name}: an array of {array.size:,} values in {len(data):,} bytes")
    return array
