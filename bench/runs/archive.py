"""A run as one archive, for its way back from a machine that shares no folder."""

from __future__ import annotations

import io
import shutil
import zipfile
from pathlib import Path

from bench.base.errors import DataDamaged
from bench.base.lease import check_owned
from bench.runs.store import RECORD

STAYS = ("state", "vectors")  # of use only while a run is worked on


def packed(folder: Path) -> bytes:
    """Everything in a run's folder but what only its worker needs."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", strict_timestamps=False) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            name = path.relative_to(folder)
            if name.parts[0] not in STAYS and not name.parts[0].startswith("."):
                archive.write(path, name.as_posix())
    return made.getvalue()


def unpack(data: bytes, into: Path) -> None:
    """Raises DataDamaged where it is no whole archive. Nothing is written outside of ``into``, which is made here."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            archive.extractall(into)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, ValueError) as error:
        raise DataDamaged(f"it is no whole archive: {error}") from None


def put(run: Path, folder: Path) -> None:
    """Make the run in ``run`` that of ``folder``, on the same disk, which this process owns; the record last."""
    check_owned(folder)
    for old in [path for path in folder.iterdir() if not path.name.startswith(".")]:
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    for path in sorted(run.iterdir(), key=lambda path: path.name == RECORD):
        path.rename(folder / path.name)
