"""Files out of a tar or zip that nobody vouches for: no links, nothing outside, bounded sizes."""

from __future__ import annotations

import contextlib
import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from bench.base.errors import DataDamaged, FetchFailed

BLOCK = 1 << 20


@dataclass(frozen=True)
class Limits:
    members: int = 100_000
    bytes: int = 2_000_000_000
    """Of all that is unpacked, together."""


@dataclass(frozen=True)
class _Member:
    name: str
    size: int
    regular: bool
    open: Callable[[], IO[bytes]]


def unpack(
    archive: Path, place: Callable[[str], Path | None], limits: Limits | None = None, *, free: Callable[[Path], int] | None = None
) -> dict[str, Path]:  # fmt: skip
    """Write the members for which ``place`` (of the member's name, without "./") names a file; gives name -> file.

    Only regular files are written, to the paths that ``place`` gives and to no others, so that links, devices, owners and modes in the archive have no
    effect. Raises DataDamaged for an archive that is cut or damaged, has an absolute path or one with "..", has a link where
    a file is wanted or one file twice, or is larger than ``limits``; FetchFailed where the disk is full. Then nothing that
    was written stays.
    """
    limits = limits or Limits()
    written: dict[str, Path] = {}
    try:
        with _members(archive) as members:
            total = 0
            for count, member in enumerate(members, 1):
                if count > limits.members:
                    raise _hostile(archive, f"more than {limits.members:,} members")
                name = _safe(archive, member.name)
                to = place(name)
                if to is None:
                    continue
                if not member.regular:
                    raise _hostile(archive, f"{name} is no regular file but a link, folder or device")
                if to in written.values():
                    raise _hostile(archive, f"{to.name} is in it twice, the second time as {name}")
                total += member.size
                if total > limits.bytes:
                    raise _hostile(archive, f"unpacked it is larger than {limits.bytes:,} bytes")
                _check_room(to, member.size, free)
                written[name] = to
                _write(archive, member, to)
    except BaseException as error:
        for path in written.values():
            with contextlib.suppress(OSError):
                path.unlink()
        if isinstance(error, OSError) and not isinstance(error, tarfile.TarError | zipfile.BadZipFile):
            raise FetchFailed(f"{archive.name} could not be unpacked ({error.strerror or error})", "check the disk's free space, then run the command again") from None  # fmt: skip
        if isinstance(
            error, tarfile.TarError | zipfile.BadZipFile | EOFError | zlib.error | ValueError | NotImplementedError | RuntimeError
        ):
            raise DataDamaged(
                f"{archive.name} cannot be unpacked: {' '.join(str(error).split())[:120]}", "fetch it again"
            ) from None
        raise
    return written


def _hostile(archive: Path, what: str) -> DataDamaged:
    return DataDamaged(f"{archive.name} is refused: {what}", "nothing of it was kept; tell the maintainers where it came from")


def _safe(archive: Path, name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or (path.parts and ":" in path.parts[0]):
        raise _hostile(archive, f"it has a path that leads elsewhere: {name[:80]!r}")
    return str(path)


def _check_room(to: Path, size: int, free: Callable[[Path], int] | None) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    there = free(to.parent) if free else shutil.disk_usage(to.parent).free
    if there < size:
        raise FetchFailed(f"{to.name} needs {size / 1e6:,.0f} MB and {to.parent} has {there / 1e6:,.0f} MB free", "free some space, then run the command again")  # fmt: skip


def _write(archive: Path, member: _Member, to: Path) -> None:
    left = member.size
    with contextlib.suppress(FileNotFoundError):
        to.unlink()  # never through a link that somebody left there
    with member.open() as source, open(to, "xb") as file:
        while block := source.read(BLOCK):
            left -= len(block)
            if left < 0:
                raise _hostile(archive, f"{member.name} is larger than the archive says")
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    if left:
        raise DataDamaged(f"{archive.name}: {member.name} is cut, {left:,} bytes are missing", "fetch it again")


@contextlib.contextmanager
def _members(archive: Path) -> Iterator[Iterator[_Member]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            yield (_zip_member(opened, one) for one in opened.infolist())
    else:
        with tarfile.open(archive) as tar:
            yield (_tar_member(tar, one) for one in tar)


def _zip_member(opened: zipfile.ZipFile, one: zipfile.ZipInfo) -> _Member:
    mode = one.external_attr >> 16
    regular = not one.is_dir() and (mode & 0o170000) in (0, 0o100000)
    return _Member(one.filename, one.file_size, regular, lambda: opened.open(one))


def _tar_member(tar: tarfile.TarFile, one: tarfile.TarInfo) -> _Member:
    def open_it() -> Any:
        stream = tar.extractfile(one)
        assert stream is not None
        return stream

    return _Member(one.name, one.size, one.isreg(), open_it)
