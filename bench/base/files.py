"""Writing a file whole or not at all, whatever happens meanwhile; and one clear line where it cannot be written."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from bench.base import lease
from bench.base.errors import BenchError

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
