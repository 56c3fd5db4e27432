"""Files out of a tar or zip."""

from __future__ import annotations

import errno
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from bench.base.errors import DataDamaged
from bench.data.fetching import BLOCK


def unpack(
    archive: Path, place: Callable[[str], Path | None], *, most_bytes: int = 2_000_000_000
) -> dict[str, Path]:
    """Write the regular files of an archive for which ``place(name)`` is a path.

    Returns name -> path.

    Nothing is written anywhere else, so that paths, links, owners and modes in the archive have no
    effect. Raises DataDamaged for an archive that is damaged, hostile or larger than allowed, after
    removing what was written; OSError if the disk fails.
    """
    written: dict[str, Path] = {}
    try:
        for name, size, content in _members(archive):
            to = place(name)
            if to is None:
                continue
            most_bytes -= size
            if most_bytes < 0 or to in written.values():
                raise ValueError(f"it is larger than allowed, or has {to.name} twice")
            to.parent.mkdir(parents=True, exist_ok=True)
            to.unlink(missing_ok=True)  # never through a link at that place
            written[name] = to
            with content() as source, to.open("xb") as file:
                shutil.copyfileobj(source, file, BLOCK)
    except Exception as error:  # the bytes of a damaged archive may raise any error
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):  # the disk
            raise
        for path in written.values():
            path.unlink(missing_ok=True)
        why = " ".join(str(error).split())[:120]
        raise DataDamaged(f"{archive.name} cannot be unpacked: {why}", "fetch it again") from None
    return written


def _members(archive: Path) -> Iterator[tuple[str, int, Callable[[], Any]]]:
    """Yield (name, size, how to open it) of the regular files of an archive."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            for entry in opened.infolist():
                if not entry.is_dir() and (entry.external_attr >> 16) & 0o170000 in (0, 0o100000):
                    yield entry.filename, entry.file_size, partial(opened.open, entry)
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isreg():
                yield str(PurePosixPath(member.name)), member.size, partial(tar.extractfile, member)
