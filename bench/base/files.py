"""Files: written whole or not at all, with one clear line where they cannot be written; and the hashes that name what is in them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bench.base import lease
from bench.base.errors import BenchError

if TYPE_CHECKING:
    import numpy as np

ELSEWHERE = "another folder: --runs DIR, or BENCH_RUNS"


def write_whole(path: Path, data: bytes, folder: Path | None = None) -> None:
    """Write ``data`` beside ``path``, flush it to the disk, rename it over ``path``. Raises OSError; then ``path`` is as it was.

    ``folder``: another one on the same disk to write in, of whoever removes what a killed process leaves there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    aside = (folder or lease.aside(path)) / f".{path.name}.{secrets.token_hex(6)}.tmp"
    try:
        with open(aside, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        if isinstance(error, FileNotFoundError):
            lease.check_owned(path)  # else another process that has taken the folder over would be no reason
        raise
    _sync_folder(path.parent)


def write_or_fail(path: Path, data: bytes, hint: str | None = ELSEWHERE, folder: Path | None = None) -> None:
    """As :func:`write_whole`. Raises BenchError where it cannot be."""
    with writing(path, hint):
        write_whole(path, data, folder)


@contextlib.contextmanager
def writing(path: Path, hint: str | None = ELSEWHERE) -> Iterator[None]:
    """While open, an OSError becomes a BenchError that names ``path``."""
    try:
        yield
    except OSError as error:
        raise BenchError(f"cannot write {path}: {error.strerror or error}", hint) from None


def _sweep(path: Path) -> None:
    """Remove what a killed process left beside ``path`` more than an hour ago."""
    for left in path.parent.glob(f".{path.name}.*.tmp"):
        with contextlib.suppress(OSError):
            if left.stat().st_mtime < time.time() - 3600:
                left.unlink()


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # some file systems have no such thing; the rename itself stands
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# --- hashes: by which a reader knows that what lies in a folder is what was recorded ---


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
