"""Reading a predictions file that anybody may have made: nothing is unpickled, and nothing it claims makes memory run out."""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import DataDamaged, DataMissing

if TYPE_CHECKING:
    import numpy as np

LARGEST = 1 << 30  # bytes of all arrays of one file, unpacked; the largest of ours are some megabytes
MOST = 1000  # arrays


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file. Raises DataMissing where there is no file, DataDamaged for anything that is not arrays alone."""
    import numpy as np

    try:
        if path.exists() and not path.is_file():
            raise ValueError("not a file")  # opening a pipe would wait for ever
        with zipfile.ZipFile(path) as archive:
            _check(archive)
        with np.load(path, allow_pickle=False) as stored:
            return {key: stored[key] for key in stored.files}
    except (FileNotFoundError, NotADirectoryError):
        raise DataMissing(f"there is no file {path}", "score it again with bench run") from None
    except (ValueError, OSError, EOFError, KeyError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        # RuntimeError: encrypted, or a compression that zipfile does not know
        what = " ".join(str(error).split()) or type(error).__name__
        raise DataDamaged(f"{path} is no predictions file: {what[:200]}") from None


def _check(archive: zipfile.ZipFile) -> None:
    """Before anything is unpacked. Raises ValueError."""
    from numpy.lib import format as npy

    members = archive.infolist()
    if len(members) > MOST or sum(member.file_size for member in members) > LARGEST:
        raise ValueError(f"{len(members)} arrays, {sum(member.file_size for member in members):,} bytes unpacked: too much")
    if len({member.filename for member in members}) < len(members):
        raise ValueError("two arrays have one name")
    for member in members:
        with archive.open(member) as stream:
            version = npy.read_magic(stream)
            read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
            if read is None:
                raise ValueError(f"{member.filename}: an array of format {version}")
            shape, _, dtype = read(stream)
            if dtype.hasobject:
                raise ValueError(f"{member.filename} holds Python objects")
            if math.prod(shape) * dtype.itemsize > member.file_size:
                raise ValueError(f"{member.filename}: an array of {math.prod(shape):,} values in {member.file_size:,} bytes")
