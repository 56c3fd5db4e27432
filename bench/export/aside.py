"""Write a folder next to its final place, and move it there when it is complete."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from bench.base.errors import BenchError
from bench.base.files import share_files
from bench.base.hashes import has_same_files


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
    try:
        aside.mkdir(parents=True)
        yield aside
        share_files(aside)
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
    finally:
        shutil.rmtree(aside, ignore_errors=True)
