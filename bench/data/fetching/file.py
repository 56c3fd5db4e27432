"""One file from the network: resumed, checked, locked between processes, put in place whole; and what is unpacked out of it."""

from __future__ import annotations

import contextlib
import errno
import http.client
import json
import os
import shutil
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from bench.base.errors import DataDamaged, FetchFailed
from bench.base.files import file_sha256, lock, write_whole
from bench.data.fetching.http import TRIES, Answer, Passing, Quiet, Report, Site, get, host, pause

BLOCK = 1 << 18
SPARE = 50_000_000
"""Bytes that a download leaves free on the disk."""


def free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


@dataclass(frozen=True)
class Download:
    """A file that is here. ``fetched`` is False where it was here before and nothing was asked of the network."""

    path: Path
    sha256: str
    bytes: int
    fetched: bool


def download(
    where: Site,
    to: Path,
    *,
    sha256: str | None = None,
    most_bytes: int | None = None,
    report: Report | None = None,
    name: str | None = None,
    sleep: Callable[[float], None] = time.sleep,
    free: Callable[[Path], int] = free_bytes,
) -> Download:
    """Fetch ``where`` into the file ``to``. A file of that name and checksum that is there already is taken as it is.

    A cut download goes on where it stopped, in this call and in later ones (``to`` + ".part"); two processes take turns. Passing
    failures are tried again, after what Retry-After asks for. ``sha256`` (else the one that the server itself names, if it
    does) is checked; ``name`` is what messages call the file. Raises FetchFailed (refused, unreachable, disk full, larger than
    ``most_bytes``) or DataDamaged (another checksum); then ``to`` is as it was.
    """
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with lock(to.with_name(to.name + ".lock")):
            if sha256 is not None and to.is_file() and file_sha256(to) == sha256:
                return Download(to, sha256, to.stat().st_size, False)
            part = _Part(where, to, name or to.name, sha256, most_bytes, report or Quiet(), free)
            arrived = part.fetch(sleep)
            os.replace(part.path, to)
            part.forget()
            return Download(to, arrived, to.stat().st_size, True)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise FetchFailed(
                f"no space left for {to.name} in {to.parent}",
                "free some space and run the command again: it goes on where it stopped",
            ) from None
        raise FetchFailed(
            f"{to} cannot be written ({error.strerror or error})",
            "check the folder and its permissions",
        ) from None


class _Part:
    """A file that is arriving: what is here of it, and of which version at the server (its ETag)."""

    def __init__(
        self,
        where: Site,
        to: Path,
        name: str,
        sha256: str | None,
        most_bytes: int | None,
        report: Report,
        free: Callable[[Path], int],
    ) -> None:
        self.where, self.name, self.expected, self.most_bytes = where, name, sha256, most_bytes
        self.report, self.free = report, free
        self.path, self.about = (
            to.with_name(to.name + ".part"),
            to.with_name(to.name + ".part.json"),
        )
        self.named: str | None = None  # the checksum that the server names
        self.resumed = False

    def fetch(self, sleep: Callable[[float], None]) -> str:
        """All of the file in ``path``; gives its sha256."""
        failures = 0
        while True:
            before = self._here()
            try:
                self._once()
                arrived = file_sha256(self.path)
                wanted = self.expected or self.named
                if wanted is None or arrived == wanted:
                    return arrived
                size = self._here()
                self.forget()
                if self.resumed:  # two halves of different files: once more, from the start
                    self.resumed = False
                    continue
                raise DataDamaged(
                    f"{self.where.url} is not what it should be: sha256 {arrived[:12]} ({size:,} bytes) found, {wanted[:12]} expected",
                    "nothing was kept; the file has changed at its source, or something on the way altered it",
                )
            except Passing as failure:
                failures = 1 if self._here() > before else failures + 1
                if failures >= TRIES:
                    kept = f"; {self._here():,} bytes are kept" if self._here() else ""
                    raise FetchFailed(
                        f"{self.name}: {failure}, {TRIES} times{kept}",
                        "run the command again: it goes on where it stopped",
                    ) from None
                pause(failure, failures, self.name, self.report, sleep)

    def _here(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def _version(self) -> str | None:
        """The ETag of what is here, if it comes from the same address."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            about = json.loads(self.about.read_text(encoding="utf-8"))
            if about["url"] == self.where.url:
                return str(about["etag"])
        return None

    def forget(self) -> None:
        for path in (self.path, self.about):
            path.unlink(missing_ok=True)

    def _once(self) -> None:
        """One request. Returns when the file is complete; Passing where it broke off."""
        start, version = self._here(), self._version()
        if start and version is None:
            self.forget()
            start = 0
        asked = {"Range": f"bytes={start}-", "If-Range": version or ""} if start else {}
        with get(self.where, asked) as answer:
            if answer.status == 416:
                if answer.headers.get("content-range", "") != f"bytes */{start}":
                    self.forget()
                    raise Passing("the part that was here does not fit the file any more", 0.0)
                return
            if answer.status != 206:
                start = 0
            elif not answer.headers.get("content-range", "").startswith(f"bytes {start}-"):
                self.forget()
                raise Passing("the server sent another range than was asked for", 0.0)
            self.resumed = self.resumed or start > 0
            self._take(answer, start)

    def _take(self, answer: Answer, start: int) -> None:
        named = answer.headers.get("x-linked-etag", "").removeprefix("W/").strip('"')
        if len(named) == 64:
            self.named = named
        length = answer.headers.get("content-length", "")
        total = start + int(length) if length.isdigit() else None
        self._check_room(total, start)
        version = answer.headers.get("etag", "")
        if version and not version.startswith("W/"):
            write_whole(self.about, json.dumps({"url": self.where.url, "etag": version}).encode())
        here = start
        self.report.start(self.name, total, start)
        try:
            with self.path.open("r+b" if start else "wb") as file:
                file.seek(start)
                while block := answer.read(BLOCK):
                    here += len(block)
                    if self.most_bytes is not None and here > self.most_bytes:
                        raise self._too_large(here)
                    file.write(block)
                    self.report.advance(len(block))
                file.flush()
                os.fsync(file.fileno())
        except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
            raise Passing(
                f"{host(self.where.url)} broke off after {here:,} bytes ({type(error).__name__})"
            ) from None
        finally:
            self.report.finish()
        if total is not None and here < total:
            raise Passing(f"{host(self.where.url)} broke off after {here:,} of {total:,} bytes")

    def _too_large(self, size: int) -> FetchFailed:
        self.forget()
        return FetchFailed(
            f"{self.where.url} is larger ({size:,} bytes) than it may be ({self.most_bytes:,})",
            "nothing was kept; this is not the file that was meant",
        )

    def _check_room(self, total: int | None, start: int) -> None:
        if total is None:
            return
        if self.most_bytes is not None and total > self.most_bytes:
            raise self._too_large(total)
        free = self.free(self.path.parent)
        if free < total - start + SPARE:
            raise FetchFailed(
                f"{self.name} needs {(total - start) / 1e6:,.0f} MB more, and {self.path.parent} has {free / 1e6:,.0f} MB free",
                "free some space, or fetch into another disk with --data DIR",
            )


# --- files out of a tar or zip that nobody vouches for: no links, nothing outside, bounded sizes ---


@dataclass(frozen=True)
class _Member:
    name: str
    size: int
    regular: bool
    open: Callable[[], Any]  # for reading bytes; of a regular file


def unpack(
    archive: Path,
    place: Callable[[str], Path | None],
    *,
    most_bytes: int = 2_000_000_000,
    most_members: int = 100_000,
    free: Callable[[Path], int] = free_bytes,
) -> dict[str, Path]:
    """Write the members for which ``place`` (of the member's name, without "./") names a file; gives name -> file.

    Only regular files are written, to the paths that ``place`` gives and to no others, so that links, devices, owners and modes
    in the archive have no effect. Raises DataDamaged for an archive that is cut or damaged, has an absolute path or one with
    "..", has a link where a file is wanted or one file twice, or is larger than allowed; FetchFailed where the disk is full. Then
    nothing that was written stays.
    """
    written: dict[str, Path] = {}
    try:
        with _members(archive) as members:
            total = 0
            for count, member in enumerate(members, 1):
                if count > most_members:
                    raise _hostile(archive, f"more than {most_members:,} members")
                name = _safe(archive, member.name)
                to = place(name)
                if to is None:
                    continue
                if not member.regular:
                    raise _hostile(
                        archive, f"{name} is no regular file but a link, folder or device"
                    )
                if to in written.values():
                    raise _hostile(archive, f"{to.name} is in it twice, the second time as {name}")
                total += member.size
                if total > most_bytes:
                    raise _hostile(archive, f"unpacked it is larger than {most_bytes:,} bytes")
                _check_room(to, member.size, free)
                written[name] = to
                _write(archive, member, to)
    except BaseException as error:
        for path in written.values():
            with contextlib.suppress(OSError):
                path.unlink()
        if isinstance(error, OSError) and not isinstance(
            error, tarfile.TarError | zipfile.BadZipFile
        ):
            raise FetchFailed(
                f"{archive.name} could not be unpacked ({error.strerror or error})",
                "check the disk's free space, then run the command again",
            ) from None
        if isinstance(
            error,
            tarfile.TarError
            | zipfile.BadZipFile
            | EOFError
            | zlib.error
            | ValueError
            | NotImplementedError
            | RuntimeError,
        ):
            raise DataDamaged(
                f"{archive.name} cannot be unpacked: {' '.join(str(error).split())[:120]}",
                "fetch it again",
            ) from None
        raise
    return written


def _hostile(archive: Path, what: str) -> DataDamaged:
    return DataDamaged(
        f"{archive.name} is refused: {what}",
        "nothing of it was kept; tell the maintainers where it came from",
    )


def _safe(archive: Path, name: str) -> str:
    path = PurePosixPath(name)
    if (
        path.is_absolute()
        or ".." in path.parts
        or "\\" in name
        or "\0" in name
        or (path.parts and ":" in path.parts[0])
    ):
        raise _hostile(archive, f"it has a path that leads elsewhere: {name[:80]!r}")
    return str(path)


def _check_room(to: Path, size: int, free: Callable[[Path], int]) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    there = free(to.parent)
    if there < size:
        raise FetchFailed(
            f"{to.name} needs {size / 1e6:,.0f} MB and {to.parent} has {there / 1e6:,.0f} MB free",
            "free some space, then run the command again",
        )


def _write(archive: Path, member: _Member, to: Path) -> None:
    left = member.size
    to.unlink(missing_ok=True)  # never through a link that somebody left there
    with member.open() as source, open(to, "xb") as file:
        while block := source.read(1 << 20):
            left -= len(block)
            if left < 0:
                raise _hostile(archive, f"{member.name} is larger than the archive says")
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    if left:
        raise DataDamaged(
            f"{archive.name}: {member.name} is cut, {left:,} bytes are missing", "fetch it again"
        )


@contextlib.contextmanager
def _members(archive: Path) -> Iterator[Iterator[_Member]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            yield (_zip_member(opened, member) for member in opened.infolist())
    else:
        with tarfile.open(archive) as tar:
            yield (
                _Member(member.name, member.size, member.isreg(), partial(tar.extractfile, member))
                for member in tar
            )


def _zip_member(opened: zipfile.ZipFile, member: zipfile.ZipInfo) -> _Member:
    mode = member.external_attr >> 16
    regular = not member.is_dir() and (mode & 0o170000) in (0, 0o100000)
    return _Member(member.filename, member.file_size, regular, partial(opened.open, member))
