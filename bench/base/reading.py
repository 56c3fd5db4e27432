"""Read plain files from folders that somebody else may have made.

A folder of runs, a version or a model may come from a colleague, an archive or a repository. A link
in it may lead to any file of this machine, a pipe never answers, and a device never ends. So no
link is followed in any part of a path below the folder, and only regular files up to the size of
their kind are read. Links above the folder are followed: the user chose that path.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from bench.base.errors import BenchError

MIB = 1 << 20
# the largest size of each kind of file, in bytes
RECORD_BYTES = 64 * MIB
"""The run.json of a run: some tens of kilobytes."""
CURVE_BYTES = 64 * MIB
"""The training curve of a run: 100 bytes for each logged step."""
PLAN_BYTES = MIB
"""A plan: a kilobyte for each run."""
PREDICTIONS_BYTES = 256 * MIB
"""The predictions of a task: some megabytes of arrays."""
MANIFEST_BYTES = 64 * MIB
"""The manifest of a version: 150 bytes for each file."""
SEARCH_BYTES = 64 * MIB
"""The trials of a search: a kilobyte for each."""
TABLES_BYTES = 256 * MIB
"""The tables.json of a version: two kilobytes for each row of a table."""
SETTINGS_BYTES = 16 * MIB
"""A JSON file of a model: config, list of modules, or index of weights."""
MOST_FILES = 500_000
"""Files and folders below one folder that are looked at."""

LINK = "a link, not a file"
SPECIAL = "a pipe or a device, not a file"

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


class NotPlainFile(OSError):
    """No regular file of the size that its kind may have. ``strerror`` has the reason."""


def open_plain_file(
    path: Path | str, limit: int | None = None, inside: Path | None = None
) -> BufferedReader:
    """Open a regular file to read its bytes.

    ``limit``: bytes that it may have. ``inside``: a folder above it; no part of the path below that
    folder may be a link. None: the file's own folder.

    Raises NotPlainFile, FileNotFoundError and other OSErrors; each has a ``strerror`` and names the
    file.

        file = run / "predictions" / "STS12.npz"
        with open_plain_file(file, PREDICTIONS_BYTES, inside=run) as stream:
            ...
    """
    handle, _ = _open_regular(path, limit, inside)
    try:
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_plain_file(path: Path | str, limit: int, inside: Path | None = None) -> bytes:
    """Return the bytes of a regular file, at most ``limit``. Raises as :func:`open_plain_file`."""
    handle, size = _open_regular(path, limit, inside)
    try:
        data = os.read(handle, size + 1)  # not limit + 1: memory would be reserved for it
        if len(data) != size:
            data = _read_on(handle, data, limit)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        os.close(handle)
    if len(data) > limit:  # it grew, or its file system does not know its size
        raise NotPlainFile(errno.EFBIG, f"too large: the limit is {limit:,} bytes", str(path))
    return data


def read_settings_text(path: Path) -> str:
    """Return the text of a settings file of a model, in UTF-8.

    The file itself may be a link, as the files of the hub's cache are. Raises UnicodeDecodeError,
    and otherwise as :func:`open_plain_file`.
    """
    return read_plain_file(os.path.realpath(path), SETTINGS_BYTES).decode("utf-8")


def _read_on(handle: int, data: bytes, limit: int) -> bytes:
    """Read what comes after ``data``, up to one byte more than ``limit``, and return all of it.

    One read may return less than requested.
    """
    parts = [data]
    size = len(data)
    while data and size <= limit:
        data = os.read(handle, min(MIB, limit + 1 - size))
        parts.append(data)
        size += len(data)
    return b"".join(parts)


def _open_regular(path: Path | str, limit: int | None, inside: Path | None) -> tuple[int, int]:
    """Return an open regular file and its size in bytes. Raises as ``open_plain_file``."""
    handle = _open_handle(path, inside or Path(path).parent)
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            if stat.S_ISDIR(facts.st_mode):
                raise NotPlainFile(errno.EISDIR, "a folder, not a file", str(path))
            raise NotPlainFile(errno.EINVAL, SPECIAL, str(path))
        if limit is not None and facts.st_size > limit:
            why = f"too large: {facts.st_size:,} bytes, the limit is {limit:,}"
            raise NotPlainFile(errno.EFBIG, why, str(path))
    except BaseException:
        os.close(handle)
        raise
    return handle, facts.st_size


def is_plain_file(path: Path) -> bool:
    """Return True if the path is a regular file and not a link to one."""
    with contextlib.suppress(OSError, ValueError):
        return stat.S_ISREG(os.lstat(path).st_mode)
    return False


def list_plain_files(folder: Path) -> list[Path]:
    """Return every file below a folder, sorted.

    Raises NotPlainFile, which names it, for a link, a pipe or a device, and for more than
    ``MOST_FILES`` entries.
    """
    found: list[Path] = []
    for i, entry in enumerate(_walk(folder)):
        if i >= MOST_FILES:
            raise NotPlainFile(errno.EFBIG, f"more than {MOST_FILES:,} files", str(folder))
        path = Path(entry.path)
        if entry.is_symlink():
            raise NotPlainFile(errno.ELOOP, LINK, str(path))
        if entry.is_file(follow_symlinks=False):
            found.append(path)
        elif not entry.is_dir(follow_symlinks=False):
            raise NotPlainFile(errno.EINVAL, SPECIAL, str(path))
    return sorted(found)


def refuse_links(folder: Path) -> None:
    """Raise BenchError for a folder with a link or a pipe: writing there would write elsewhere."""
    try:
        list_plain_files(folder)
    except (FileNotFoundError, NotADirectoryError):  # whoever writes there says so
        pass
    except NotPlainFile as error:
        raise BenchError(
            f"{error.filename}: {error.strerror}; nothing is written to a folder with one",
            "remove it, or choose another folder: --runs DIR",
        ) from None
    except OSError as error:
        raise BenchError(
            f"{error.filename} cannot be read: {error.strerror}", "another folder: --runs DIR"
        ) from None


def _walk(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield every entry below a folder, without following links."""
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path))


def _open_handle(path: Path | str, inside: Path) -> int:
    """Open a file without following links in its path below ``inside``. Raises OSError."""
    below = Path(path).relative_to(inside).parts
    if ".." in below:
        raise NotPlainFile(errno.EINVAL, "a path that leads out of its folder", str(path))
    folder = os.fspath(inside)
    try:
        for part in below[:-1]:
            folder = os.path.join(folder, part)
            if os.path.islink(folder):
                raise NotPlainFile(errno.ELOOP, f"{part} is a link, not a folder", str(path))
        return os.open(path, _FLAGS)
    except ValueError as error:  # a zero byte in a name
        raise FileNotFoundError(errno.ENOENT, str(error), str(path)) from None
    except NotPlainFile:
        raise
    except OSError as error:
        raise _named_error(error, Path(path)) from None


def _named_error(error: OSError, path: Path) -> OSError:
    """Return the error with the whole path and the reason: a link, a pipe, a device."""
    if error.errno == errno.ELOOP:
        return NotPlainFile(errno.ELOOP, LINK, str(path))
    if error.errno in (errno.ENXIO, errno.EOPNOTSUPP):  # a socket cannot be opened at all
        return NotPlainFile(errno.EINVAL, SPECIAL, str(path))
    return OSError(error.errno, error.strerror, str(path))
