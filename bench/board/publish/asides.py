"""Folders that are written next to their place and then renamed to it, so that a killed command
leaves nothing half-written there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from bench.base.errors import BenchError
from bench.base.files import writing
from bench.base.locks import lock


@contextlib.contextmanager
def alone_in(folder: Path, prefix: str) -> Iterator[None]:
    """Let one process of a user write folders into ``folder`` at a time; others wait.

    Folders that killed processes left there are removed. ``prefix``: how the names of their
    temporary folders begin. Raises BenchError if the lock cannot be written.
    """
    home = os.path.expanduser("~")  # "~" for a user without one
    name = sha256(os.fsencode(f"{home}\0{folder.absolute()}")).hexdigest()[:16]
    with contextlib.ExitStack() as held:
        place = Path(tempfile.gettempdir()) / f"bench-publish-{name}.lock"
        with writing(place, "another folder for temporary files: TMPDIR"):
            held.enter_context(lock(place))
        for leftover in folder.glob(f"{prefix}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        yield


@contextlib.contextmanager
def folder_beside(folder: Path, prefix: str, hint: str) -> Iterator[Path]:
    """Make a new folder in ``folder``, and remove it at the end.

    ``folder`` is made if it is not there, and removed if nothing was put into it. Raises BenchError
    if it cannot be written.
    """
    with contextlib.ExitStack() as made:
        if not os.path.lexists(folder):
            made.callback(_remove_empty, folder)
        with writing(folder, hint):
            folder.mkdir(parents=True, exist_ok=True)
            aside = tempfile.mkdtemp(prefix=prefix, dir=folder)
        made.callback(shutil.rmtree, aside, ignore_errors=True)
        yield Path(aside)


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # it has something in it
        folder.rmdir()


def move_to_place(made: Path, place: Path, hint: str) -> None:
    """Rename a folder to its place, which must not exist yet. Raises BenchError."""
    if os.path.lexists(place):
        raise BenchError(f"{place} already exists", hint)
    with writing(place, hint):
        made.rename(place)
