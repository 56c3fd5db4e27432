"""Where this machine has the files and folders that records name by name and hash: ``RUNS/.places/HASH``, a path in each.

A record must not say where they lie, for it is published. These files are for this machine alone: nothing publishes or submits them.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from bench.base.files import write_whole

PLACES = ".places"
_HASH = re.compile(r"[0-9a-f]{16,64}")
MOST_BYTES = 1 << 14


def remember_place(runs: Path, content: str, place: Path) -> None:
    """Note where the content of this hash lies. A note that cannot be written costs a later command a question, and nothing else."""
    if not _HASH.fullmatch(content):
        return
    note, path = runs / PLACES / content, os.fsencode(place.expanduser().absolute()) + b"\n"
    with contextlib.suppress(OSError):
        if not note.is_file() or note.read_bytes() != path:
            write_whole(note, path)


def recall_place(runs: Path, content: str | None) -> Path | None:
    """Where the content of this hash was last; None if nobody noted it, or if nothing is there any more. What is there now has to be hashed."""
    if content is None or not _HASH.fullmatch(content):
        return None
    note = runs / PLACES / content
    try:
        if note.is_symlink() or not note.is_file() or note.stat().st_size > MOST_BYTES:
            return None
        place = Path(os.fsdecode(note.read_bytes().rstrip(b"\n")))
        return place if place.exists() else None
    except (OSError, ValueError):
        return None
