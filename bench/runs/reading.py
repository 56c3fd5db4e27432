"""Reading one record's file, whoever wrote it, wherever it lies: in its folder, or in an older version of the leaderboards."""

from __future__ import annotations

import contextlib
import json
import re
import stat
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from bench.base.errors import RecordDamaged
from bench.runs.record import RunRecord

LARGEST = 1 << 26  # bytes of a record; real ones have some tens of kilobytes


def read_record(path: Path) -> RunRecord:
    """The record in one file. Raises RecordDamaged, naming the file and the field."""
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):  # reading a pipe would wait for ever
            raise RecordDamaged("not a file")
        if facts.st_size > LARGEST:
            raise RecordDamaged(f"{facts.st_size:,} bytes are too many for a record")
        data = path.read_bytes()
        with contextlib.suppress(msgspec.DecodeError):
            if not _has_long_number(data):
                return RunRecord.decode(data)
        return RunRecord.from_json(loads(data))  # an older schema, or damaged: this says where
    except RecordDamaged as error:
        what, hint = error.message, error.hint
    except (ValueError, RecursionError) as error:
        what, hint = f"not JSON: {error}", None
    except OSError as error:
        what, hint = str(error.strerror), None
    # the message may quote what a damaged file holds: nothing in it may move the cursor
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in f"{path}: {what}")
    raise RecordDamaged(line, hint)


_DIGITS = bytes(ord("0") if chr(i).isdecimal() and i < 128 else ord(".") for i in range(256))


def _has_long_number(data: bytes) -> bool:
    """Whether a number may be too long for a float; looking at each number takes three times as long as reading the record."""
    return b"0" * 300 in data.translate(_DIGITS)


def loads(text: str | bytes) -> Any:
    """JSON, without numbers that would be infinite or that nobody could print. Raises ValueError, RecursionError."""
    words = text if isinstance(text, str) else text.decode()
    return json.loads(words, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if value - value != 0:
        raise ValueError(f"{text[:20]} is no finite number")
    return value


def _whole(text: str) -> int:
    if len(text) > 300:  # more than a float can hold
        raise ValueError(f"{text[:20]}... has {len(text)} digits")
    return int(text)


# --- files of a published version that lie in an older one: its manifest names them, with their sha256, and nothing is copied ---
# A manifest is ``{"files": {path: sha256}, "older": {"v1": {path: sha256}}}``: what stands under "older" has the same path below that
# version's folder, which lies beside this one.

MANIFEST = "MANIFEST.json"
DEPTH = 6  # folders between a file of a version and the version: runs/<run id>/predictions/mteb/STS12.npz
_VERSION = re.compile(r"v[1-9][0-9]{0,8}")


def place_of(path: Path) -> Path:
    """Where a file lies: ``path`` itself, or its place in the older version that holds it; ``path`` where nobody has it."""
    if path.exists():
        return path
    for above in list(path.absolute().parents)[:DEPTH]:
        if (older := older_files(above)) is not None:
            return older.get(path.absolute().relative_to(above).as_posix(), path)
    return path


def older_below(folder: Path) -> dict[str, Path]:
    """Path below ``folder`` -> place, of all that older versions hold of it: a version's folder, or one in a version."""
    folder = folder.absolute()
    for above in (folder, *list(folder.parents)[:DEPTH]):
        if (older := older_files(above)) is not None:
            start = "" if above == folder else folder.relative_to(above).as_posix() + "/"
            return {name.removeprefix(start): place for name, place in older.items() if name.startswith(start)}
    return {}


def older_files(version: Path) -> Mapping[str, Path] | None:
    """Path below a version's folder -> place in an older version; None where the folder has no manifest, or a damaged one."""
    manifest = version / MANIFEST
    try:
        state = manifest.stat()
        return _read(manifest, state.st_mtime_ns, state.st_size)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None


@lru_cache(maxsize=64)
def _read(manifest: Path, changed: int, size: int) -> Mapping[str, Path]:
    versions = manifest.parent.parent
    return {
        name: versions / version / name
        for version, files in json.loads(manifest.read_bytes()).get("older", {}).items()
        if _VERSION.fullmatch(version)
        for name in files
        if ".." not in name.split("/") and not name.startswith("/")
    }
