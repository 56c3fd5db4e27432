"""Remember where this machine has the files and folders that records name by hash.

The file ``RUNS/.places`` has a hash and a path on each line. A record must not say where files are,
because it is published. This file is for this machine only: it is never published or submitted.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path

from bench.base.files import expand_home
from bench.base.reading import read_plain_file

PLACES = ".places"
MOST_BYTES = 1 << 22
_HASH = re.compile(r"[0-9a-f]{16,64}")


def remember_place(runs: Path, content: str, place: Path) -> None:
    """Note the path of the content with this hash.

    A line is added at the end, so that several processes may write. A note that cannot be written
    costs a later command a question, and nothing else.
    """
    path = str(expand_home(place).absolute())
    if not _HASH.fullmatch(content) or _places_in(runs).get(content) == path:
        return
    line = f"{content} {json.dumps(path)}\n".encode()
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    with contextlib.suppress(OSError, ValueError):
        runs.mkdir(parents=True, exist_ok=True)
        handle = os.open(runs / PLACES, flags, 0o666)
        try:
            os.write(handle, line)
        finally:
            os.close(handle)


def recall_place(runs: Path, content: str | None) -> Path | None:
    """Return the last known path of the content with this hash; None if nothing is there now.

    The caller has to hash the content there again.
    """
    path = _places_in(runs).get(content or "")
    with contextlib.suppress(OSError, ValueError):
        if path is not None and Path(path).exists():
            return Path(path)
    return None


def _places_in(runs: Path) -> dict[str, str]:
    """Return hash -> path, the last line of each hash; damaged lines are left out."""
    places: dict[str, str] = {}
    try:
        lines = read_plain_file(runs / PLACES, MOST_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return places
    for line in lines:
        content, _, path = line.partition(" ")
        with contextlib.suppress(ValueError, RecursionError):
            known = json.loads(path)
            if _HASH.fullmatch(content) and isinstance(known, str):
                places[content] = known
    return places
