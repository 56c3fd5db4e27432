"""Hashes by which a reader knows that what lies in a run's folder is what was recorded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def values_sha256(arrays: Mapping[str, np.ndarray]) -> str:
    """Hash of what arrays say, not of how they are kept: another compression or a narrower type of number changes nothing.

    Over the names in alphabetical order, each followed by its shape and its values in the order of rows: numbers as 64-bit integers or
    floats, little end first, text as a JSON list. Raises ValueError for anything but numbers and text.
    """
    import numpy as np

    digest = hashlib.sha256()
    for name in sorted(arrays):
        values = np.asarray(arrays[name])
        kind = values.dtype.kind
        if kind in "biu":
            what, data = "integers", values.astype("<i8").tobytes()
        elif kind == "f":
            what, data = "floats", values.astype("<f8").tobytes()
        elif kind == "U":
            what, data = "text", json.dumps(values.ravel().tolist()).encode()
        else:
            raise ValueError(f"the array '{name}' holds neither numbers nor text, but {values.dtype}")
        digest.update(json.dumps([name, what, list(values.shape)]).encode() + b"\n")
        digest.update(data)
    return digest.hexdigest()


def file_sha256(path: Path) -> str:
    """Of the file's bytes, as sha256sum prints it. Raises OSError."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def files_sha256(files: Iterable[Path], root: Path) -> str:
    """One hash over several files below ``root``: their paths from there, sizes and bytes, in the order of their paths."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file.relative_to(root)}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as stream:
            hashlib.file_digest(stream, lambda: digest)
    return digest.hexdigest()


def folder_sha256(folder: Path) -> dict[str, str]:
    """Every file below ``folder``, by its path with forward slashes, in alphabetical order; empty where there is none.

    Links are not followed: what they point to is not the folder's.
    """
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return {path.relative_to(folder).as_posix(): file_sha256(path) for path in sorted(files)}
