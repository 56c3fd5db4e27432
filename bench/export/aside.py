"""Write a folder next to its final place, and move it there when it is complete."""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from bench.base.errors import BenchError
from bench.base.files import share_files
from bench.base.hashes import has_same_files
from bench.base.locks import is_free, lock
from bench.base.reading import open_plain_file

OWNED = ".lock"
"""The file that a process locks in the folder that it writes."""
ABANDONED_SECONDS = 3600
"""A folder without that file and at least this old belongs to a killed process."""


def there_already(to: Path) -> BenchError:
    """Return the error for a target that holds something else."""
    return BenchError(
        f"--to {to} exists already; nothing was written",
        "name a new folder, or remove that one first",
    )


def is_empty(to: Path) -> bool:
    """Tell whether the target is an empty folder."""
    return to.is_dir() and not any(to.iterdir())


@contextlib.contextmanager
def write_aside(to: Path) -> Iterator[Path]:
    """Yield a folder next to ``to`` that replaces it at the end, and is removed after any error.

    Raises BenchError if it cannot be written, or if ``to`` then holds other files. If ``to`` has
    the same files already, it is not changed.
    """
    from safetensors import SafetensorError

    target = to.absolute()
    aside = target.parent / f".{target.name}.{secrets.token_hex(6)}.tmp"
    with contextlib.ExitStack() as held:
        held.callback(shutil.rmtree, aside, ignore_errors=True)
        try:
            aside.mkdir(parents=True)
            held.enter_context(lock(aside / OWNED))
            _remove_leftovers(target, aside)
            yield aside
            share_files(aside)
            (aside / OWNED).unlink()
            if has_same_files(aside, target):
                return
            if target.is_dir() and not is_empty(target):
                raise there_already(to)
            if target.is_dir():
                target.rmdir()
            os.replace(aside, target)
        except (OSError, SafetensorError) as error:
            reason = getattr(error, "strerror", None) or " ".join(str(error).split())
            raise BenchError(
                f"{to} cannot be written: {reason}", "free disk space, or another --to"
            ) from None


def _remove_leftovers(target: Path, own: Path) -> None:
    """Remove what killed processes left of exports to ``target``: each has the size of a model."""
    for folder in target.parent.glob(f".{glob.escape(target.name)}.*.tmp"):
        if folder == own:
            continue
        try:
            with open_plain_file(folder / OWNED) as file:
                is_abandoned = is_free(file.fileno())
        except OSError:  # killed before it held the file, or after it had removed it
            is_abandoned = time.time() - folder.lstat().st_mtime > ABANDONED_SECONDS
        if is_abandoned:
            shutil.rmtree(folder, ignore_errors=True)
