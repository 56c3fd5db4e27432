"""Write files whole or not at all, with one clear line if they cannot be written."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from bench.base.errors import BenchError, printable

ELSEWHERE = "another folder: --runs DIR, or BENCH_RUNS"


def expand_home(path: str | os.PathLike[str]) -> Path:
    """Return a path with the home folder that ``~`` or ``~NAME`` means.

    It is unchanged if there is no such user, for which ``Path.expanduser`` raises RuntimeError.
    """
    return Path(os.path.expanduser(path))


def write_whole(path: Path, data: bytes) -> None:
    """Write ``data`` to a temporary file, flush it to the disk, and rename it to ``path``.

    Raises OSError; then ``path`` is unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.parent / f".{path.name}.{secrets.token_hex(6)}.tmp"
    try:
        with open(aside, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        raise
    # some file systems cannot sync a folder; the rename still holds
    with contextlib.suppress(OSError):
        handle = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_or_fail(path: Path, data: bytes, hint: str | None = ELSEWHERE) -> None:
    """Write like :func:`write_whole`, and raise BenchError if the file cannot be written."""
    with writing(path, hint):
        write_whole(path, data)


def as_utf8(text: str) -> bytes:
    """Return the bytes of a text.

    Raises BenchError, naming the word, if it holds bytes that are not UTF-8, as the name of a file
    may.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        odd = re.search(r"[^\"'\s]*[\ud800-\udfff][^\"'\s]*", text)
        word = printable(odd[0]) if odd else ""
        raise BenchError(f"'{word}' is not UTF-8, and cannot be recorded", "rename it") from None


@contextlib.contextmanager
def writing(path: Path, hint: str | None = ELSEWHERE) -> Iterator[None]:
    """Turn an OSError into a BenchError that names ``path``."""
    try:
        yield
    except OSError as error:
        raise BenchError(f"cannot write {path}: {error.strerror or error}", hint) from None


def share_files(folder: Path) -> None:
    """Give files that only their owner may read the mode that umask gives every new file.

    The safetensors library writes through a temporary file, which has mode 600 whatever umask says.
    Raises OSError.
    """
    probe = folder / f".mode.{secrets.token_hex(6)}"
    probe.touch()
    usual = probe.stat().st_mode & 0o777
    probe.unlink()
    for file in folder.rglob("*"):
        facts = file.lstat()
        if stat.S_ISREG(facts.st_mode) and facts.st_mode & 0o777 == 0o600 != usual:
            file.chmod(usual)
