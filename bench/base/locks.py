"""Locks between processes, held on an open file."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def lock(path: Path) -> Iterator[bool]:
    """Hold ``path`` as a lock between processes, after waiting for the current holder.

    Yields False if the file system has no locks.
    """
    with path.open("a") as file:
        held = False
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
            held = True
        yield held  # closing the file releases the lock, also when the process is killed


def is_free(handle: int) -> bool:
    """Tell whether no process holds the open file as a lock; True also if there are no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        pass
    return True
