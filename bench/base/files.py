"""Files: written whole or not at all, with one clear line if they cannot be written; their hashes; and the cache of derived ones."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError
from bench.base.reading import list_plain_files, open_plain_file

if TYPE_CHECKING:
    import numpy as np


ELSEWHERE = "another folder: --runs DIR, or BENCH_RUNS"


def write_whole(path: Path, data: bytes, folder: Path | None = None) -> None:
    """Write ``data`` beside ``path``, flush it to the disk, rename it over ``path``. Raises OSError; then ``path`` is unchanged.

    ``folder``: another one on the same disk to write in, whose owner removes what a killed process leaves there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for leftover in path.parent.glob(f".{path.name}.*.tmp"):  # of a process that was killed
        with contextlib.suppress(OSError):
            if leftover.stat().st_mtime < time.time() - 3600:
                leftover.unlink()
    aside = (folder or path.parent) / f".{path.name}.{secrets.token_hex(6)}.tmp"
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
    with contextlib.suppress(OSError):  # some file systems cannot sync a folder; the rename stands
        handle = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_or_fail(path: Path, data: bytes, hint: str | None = ELSEWHERE) -> None:
    """As :func:`write_whole`. Raises BenchError if the file cannot be written."""
    with writing(path, hint):
        write_whole(path, data)


@contextlib.contextmanager
def writing(path: Path, hint: str | None = ELSEWHERE) -> Iterator[None]:
    """While open, an OSError becomes a BenchError that names ``path``."""
    try:
        yield
    except OSError as error:
        raise BenchError(f"cannot write {path}: {error.strerror or error}", hint) from None


def share_files(folder: Path) -> None:
    """Give the files below a folder that only their owner may read the mode that umask gives every new file. Raises OSError.

    The safetensors library writes through a temporary file, which has mode 600 whatever umask says.
    """
    probe = folder / f".mode.{secrets.token_hex(6)}"
    probe.touch()
    usual = probe.stat().st_mode & 0o777
    probe.unlink()
    for file in folder.rglob("*"):
        facts = file.lstat()
        if stat.S_ISREG(facts.st_mode) and facts.st_mode & 0o777 == 0o600 != usual:
            file.chmod(usual)


# --- hashes: whether the files in a folder are those that were recorded ---


def values_sha256(arrays: Mapping[str, np.ndarray]) -> str:
    """Hash of the values of arrays, whatever their compression and the width of their numbers.

    Over the names in alphabetical order, each followed by its shape and its values in the order of rows: numbers as little-endian
    64-bit integers or floats, text as a JSON list. Raises ValueError for anything except numbers and text.
    """
    import numpy as np

    digest = hashlib.sha256()
    for name in sorted(arrays):
        values = np.asarray(arrays[name])
        kind = values.dtype.kind
        if kind == "U":
            data = json.dumps(values.ravel().tolist()).encode()
        elif kind in "biuf":
            data = values.astype("<f8" if kind == "f" else "<i8").tobytes()
        else:
            raise ValueError(f"the array '{name}' has neither numbers nor text: {values.dtype}")
        what = {"U": "text", "f": "floats"}.get(kind, "integers")
        digest.update(json.dumps([name, what, list(values.shape)]).encode() + b"\n")
        digest.update(data)
    return digest.hexdigest()


def file_sha256(path: Path, inside: Path | None = None) -> str:
    """Hash the file's bytes, as sha256sum does. Raises OSError.

    ``inside``: a folder above the file that others may have made; no link below it is followed, and no pipe is read.
    """
    with path.open("rb") if inside is None else open_plain_file(path, inside=inside) as stream:
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
    """Every file below ``folder``, by its path with forward slashes, in alphabetical order. Links are not followed."""
    return {
        path.relative_to(folder).as_posix(): file_sha256(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def has_same_files(folder: Path, other: Path) -> bool:
    """Tell whether two folders hold files of the same names and bytes, and no link and no pipe."""
    found: list[dict[str, str]] = []
    for one in (folder, other):
        hashes: dict[str, str] = {}
        try:
            for file in list_plain_files(one):
                hashes[file.relative_to(one).as_posix()] = file_sha256(file, inside=one)
        except OSError:
            return False
        found.append(hashes)
    return found[0] == found[1]


# --- where derived files lie (they can be deleted at any time), and how processes wait for each other there ---


try:
    import fcntl
except (
    ImportError
):  # Windows: without a lock two processes do the work twice, and the last result stays
    fcntl = None  # type: ignore[assignment]

SETTLED_SECONDS = 2.0  # a file written later may change again within one tick of its clock


def default_cache() -> Path:
    """$BENCH_CACHE, else ~/.cache/sentence-bench. Raises BenchError for a user without a home."""
    named = os.environ.get("BENCH_CACHE")
    if named:
        return Path(named)
    try:
        return Path.home() / ".cache" / "sentence-bench"
    except RuntimeError:
        raise BenchError(
            "HOME is not set, and this user has no home folder", "set BENCH_CACHE to a folder"
        ) from None


@contextlib.contextmanager
def lock(path: Path) -> Iterator[bool]:
    """Hold ``path`` as a lock between processes, waiting for the one that has it. False if the file system has no locks."""
    with path.open("a") as file:
        held = False
        if fcntl is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
                held = True
        yield held  # closing the file releases the lock, also when the process is killed


def build_folder(place: Path, build: Callable[[Path], None], is_whole: Callable[[], bool]) -> None:
    """Make the folder ``place``, unless it is whole. One of several processes does, in a temporary folder that is then renamed.

    Raises OSError, and what ``build`` (called with the temporary folder) raises; then nothing unfinished is left.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    with lock(place.with_name(f"{place.name}.lock")) as alone:
        if is_whole():
            return
        if alone:  # no other process builds this folder: these are leftovers of one that was killed
            for leftover in place.parent.glob(f"{place.name}.*.part"):
                shutil.rmtree(leftover, ignore_errors=True)
        aside = place.with_name(f"{place.name}.{os.getpid()}.part")
        try:
            aside.mkdir()
            build(aside)
            share_files(aside)
            shutil.rmtree(place, ignore_errors=True)
            aside.rename(place)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def is_settled(changed_ns: int) -> bool:
    """Whether a file that was last changed at that time (ns since 1970) cannot change again without a new time."""
    return changed_ns < time.time_ns() - SETTLED_SECONDS * 1e9


def is_free(handle: int) -> bool:
    """Whether no process holds the open file as a lock; True also if there are no locks."""
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            pass
    return True


@dataclass(frozen=True)
class CacheEntry:
    """A JSON value in the cache, below ``kind``: found by ``name``, and valid only while ``about`` (JSON, too) is the same."""

    kind: str
    name: str
    about: Any = None
    root: Path | None = None  # None: ``default_cache()``

    @property
    def file(self) -> Path:
        digest = hashlib.sha256(self.name.encode("utf-8", "surrogateescape")).hexdigest()
        return (self.root or default_cache()) / self.kind / f"{digest[:32]}.json"

    def read(self) -> Any:
        """The value; None if there is none, it is damaged, or it is about something else."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            content = json.loads(self.file.read_bytes())
            if content["about"] == self.about and content["sha256"] == self._sha256(
                content["value"]
            ):
                return content["value"]
        return None

    def write(self, value: Any) -> None:
        """Store a value. A cache that cannot be written costs time and nothing else."""
        content = {"about": self.about, "value": value, "sha256": self._sha256(value)}
        with contextlib.suppress(OSError):
            write_whole(self.file, json.dumps(content, indent=1).encode() + b"\n")

    def _sha256(self, value: Any) -> str:
        """Shows that a value is the stored one, so that readers need not check its parts."""
        return hashlib.sha256(json.dumps([self.about, value], sort_keys=True).encode()).hexdigest()
