"""Hash files and arrays, to tell whether a folder holds the files that were recorded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bench.base.reading import list_plain_files, open_plain_file

if TYPE_CHECKING:
    import numpy as np


def values_sha256(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the hash of the values of arrays, independent of compression and number width.

    Names in alphabetical order are hashed, each followed by its shape and its values in row order:
    numbers as little-endian 64-bit integers or floats, text as a JSON list. Raises ValueError for
    anything except numbers and text.
    """
    import numpy as np

    digest = hashlib.sha256()
    for name in sorted(arrays):
        values = np.asarray(arrays[name])
        kind = values.dtype.kind
        if kind == "U":
            type_name = "text"
            data = json.dumps(values.ravel().tolist()).encode()
        elif kind == "f":
            type_name = "floats"
            data = values.astype("<f8").tobytes()
        elif kind in "biu":
            type_name = "integers"
            data = values.astype("<i8").tobytes()
        else:
            raise ValueError(f"the array '{name}' has neither numbers nor text: {values.dtype}")
        digest.update(json.dumps([name, type_name, list(values.shape)]).encode() + b"\n")
        digest.update(data)
    return digest.hexdigest()


def file_sha256(path: Path, inside: Path | None = None) -> str:
    """Return the hash of a file's bytes, as sha256sum does. Raises OSError.

    ``inside``: a folder above the file that others may have made; no link below it is followed, and
    no pipe is read.
    """
    stream = path.open("rb") if inside is None else open_plain_file(path, inside=inside)
    with stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def files_sha256(files: Iterable[Path], root: Path) -> str:
    """Return one hash over several files below ``root``, in the order of their paths.

    The paths from ``root``, the sizes and the bytes count.
    """
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file.relative_to(root)}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as stream:
            hashlib.file_digest(stream, lambda: digest)
    return digest.hexdigest()


def folder_sha256(folder: Path) -> dict[str, str]:
    """Return the hash of every file below ``folder``, by its path with forward slashes.

    Paths are in alphabetical order; links are not followed.
    """
    return {
        path.relative_to(folder).as_posix(): file_sha256(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def has_same_files(folder: Path, other: Path) -> bool:
    """Tell whether two folders hold files of the same names and bytes, and no link and no pipe."""
    try:
        return _plain_hashes(folder) == _plain_hashes(other)
    except OSError:
        return False


def _plain_hashes(folder: Path) -> dict[str, str]:
    """Return the hash of every plain file below a folder, by its path. Raises OSError."""
    hashes: dict[str, str] = {}
    for file in list_plain_files(folder):
        hashes[file.relative_to(folder).as_posix()] = file_sha256(file, inside=folder)
    return hashes
