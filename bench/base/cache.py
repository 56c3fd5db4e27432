"""Derived files: they can be deleted at any time, and several processes share them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.base.errors import BenchError
from bench.base.files import share_files, write_whole
from bench.base.locks import lock

SETTLED_SECONDS = 2.0
"""A file that was written later may change again within one tick of its clock."""


def default_cache() -> Path:
    """Return $BENCH_CACHE, else ~/.cache/sentence-bench. Raises BenchError without a home."""
    named = os.environ.get("BENCH_CACHE")
    if named:
        return Path(named)
    try:
        return Path.home() / ".cache" / "sentence-bench"
    except RuntimeError:
        raise BenchError(
            "HOME is not set, and this user has no home folder", "set BENCH_CACHE to a folder"
        ) from None


def build_folder(place: Path, build: Callable[[Path], None], is_whole: Callable[[], bool]) -> None:
    """Make the folder ``place``, unless it is whole.

    One of several processes builds it, in a temporary folder that is then renamed. ``build`` is
    called with the temporary folder. Raises OSError and the errors of ``build``; then nothing
    unfinished is left.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    with lock(place.with_name(f"{place.name}.lock")) as is_locked:
        if is_whole():
            return
        # no other process builds this folder: leftovers are from a process that was killed
        if is_locked:
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
    """Tell whether a file that was last changed at that time cannot change without a new time.

    ``changed_ns``: nanoseconds since 1970.
    """
    return changed_ns < time.time_ns() - SETTLED_SECONDS * 1e9


@dataclass(frozen=True)
class CacheEntry:
    """A JSON value in the cache.

        entry = CacheEntry("overlap", name=str(file), about={"size": 12})
        value = entry.read()

    A value is valid only while ``about`` is the same.
    """

    # the folder of such values in the cache
    kind: str
    name: str
    # the state that the value was made from, in JSON
    about: Any = None
    # None: ``default_cache()``
    root: Path | None = None

    @property
    def file(self) -> Path:
        """The file of this entry."""
        digest = hashlib.sha256(self.name.encode("utf-8", "surrogateescape")).hexdigest()
        root = self.root or default_cache()
        return root / self.kind / f"{digest[:32]}.json"

    def read(self) -> Any:
        """Return the value; None if there is none, it is damaged, or it is about something else."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            content = json.loads(self.file.read_bytes())
            if content["about"] == self.about:
                return content["value"]
        return None

    def write(self, value: Any) -> None:
        """Store a value. A cache that cannot be written costs time and nothing else."""
        content = {"about": self.about, "value": value}
        with contextlib.suppress(OSError):
            write_whole(self.file, json.dumps(content, indent=1).encode() + b"\n")
