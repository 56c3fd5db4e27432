"""Where derived files lie (they can be deleted at any time), and how processes wait for each other there."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.base.files import write_whole

try:
    import fcntl
except ImportError:  # Windows: without a lock two builders do the work twice, and the last one's result stays
    fcntl = None  # type: ignore[assignment]

HAS_LOCKS = fcntl is not None
SETTLED_SECONDS = 2.0  # a file that was written later than this may change again within one tick of its clock


def default_cache() -> Path:
    """$BENCH_CACHE, else ~/.cache/sentence-bench."""
    given = os.environ.get("BENCH_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "sentence-bench"


@contextlib.contextmanager
def lock(path: Path) -> Iterator[bool]:
    """Hold ``path`` as a lock between processes, waiting for whoever has it. False where the file system has no locks."""
    with path.open("a") as file:
        held = False
        if fcntl is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
                held = True
        yield held  # closing the file releases the lock, also when the process is killed


def build_folder(place: Path, build: Callable[[Path], None], is_whole: Callable[[], bool]) -> None:
    """Make the folder ``place``, unless it is whole: of several processes one does, in a folder aside that then takes the place.

    Raises OSError, and what ``build`` (of that folder) raises; then nothing half made is left.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    with lock(place.with_name(f"{place.name}.lock")) as alone:
        if is_whole():
            return
        if alone:  # nobody else builds this one: what lies here is left from a process that was killed
            for left in place.parent.glob(f"{place.name}.*.part"):
                shutil.rmtree(left, ignore_errors=True)
        aside = place.with_name(f"{place.name}.{os.getpid()}.part")
        try:
            aside.mkdir()
            build(aside)
            shutil.rmtree(place, ignore_errors=True)
            aside.rename(place)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def is_settled(changed_ns: int) -> bool:
    """Whether a file that last changed then (ns since 1970) can no longer change without its time showing it."""
    return changed_ns < time.time_ns() - SETTLED_SECONDS * 1e9


def is_free(handle: int) -> bool:
    """Whether nobody holds the open file as a lock now; True also where there are no locks."""
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
    """A JSON value in the cache, below ``kind``: found by ``name``, and good for nothing but what it was kept ``about`` (JSON, too)."""

    kind: str
    name: str
    about: Any = None
    root: Path | None = None  # None: ``default_cache()``

    @property
    def file(self) -> Path:
        digest = hashlib.sha256(self.name.encode("utf-8", "surrogateescape")).hexdigest()
        return (self.root or default_cache()) / self.kind / f"{digest[:32]}.json"

    def read(self) -> Any:
        """The value; None where there is none, it is damaged, or it is about something else."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            content = json.loads(self.file.read_bytes())
            if content["about"] == self.about and content["sha256"] == self._sha256(content["value"]):
                return content["value"]
        return None

    def write(self, value: Any) -> bool:
        """Keep a value. False where the cache cannot be written, which costs time and nothing else."""
        content = json.dumps({"about": self.about, "value": value, "sha256": self._sha256(value)}, indent=1).encode() + b"\n"
        with contextlib.suppress(OSError):
            write_whole(self.file, content)
            return True
        return False

    def _sha256(self, value: Any) -> str:
        """By which a value is known to be the one that was kept: whoever reads it need not look at its parts."""
        return hashlib.sha256(json.dumps([self.about, value], sort_keys=True).encode()).hexdigest()
