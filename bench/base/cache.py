"""Where derived files lie (they can be deleted at any time), and how processes wait for each other there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: without a lock two builders do the work twice, and the last one's result stays
    fcntl = None  # type: ignore[assignment]


def default_cache() -> Path:
    """$BENCH_CACHE, else ~/.cache/sentence-bench."""
    given = os.environ.get("BENCH_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "sentence-bench"


@contextlib.contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold ``path`` as a lock between processes, waiting for whoever has it. False where the file system has no locks."""
    with path.open("a") as file:
        held = False
        if fcntl is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
                held = True
        yield held  # closing the file releases the lock, also when the process is killed
