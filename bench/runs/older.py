"""Files of a published version that lie in an older one: its manifest names them, with their sha256, and nothing is copied.

A manifest is ``{"files": {path: sha256}, "older": {"v1": {path: sha256}}}``: what stands under "older" has the same path below that
version's folder, which lies beside this one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

MANIFEST = "MANIFEST.json"
DEPTH = 6  # folders between a file of a version and the version: runs/<run id>/predictions/mteb/STS12.npz
_VERSION = re.compile(r"v[1-9][0-9]{0,8}")


def place_of(path: Path) -> Path:
    """Where a file lies: ``path`` itself, or its place in the older version that holds it; ``path`` where nobody has it."""
    if path.exists():
        return path
    for above in list(path.absolute().parents)[:DEPTH]:
        if (found := older_files(above)) is not None:
            return found.get(path.absolute().relative_to(above).as_posix(), path)
    return path


def older_below(folder: Path) -> dict[str, Path]:
    """Path below ``folder`` -> place, of all that older versions hold of it: a version's folder, or one in a version."""
    folder = folder.absolute()
    for above in (folder, *list(folder.parents)[:DEPTH]):
        if (found := older_files(above)) is not None:
            start = "" if above == folder else folder.relative_to(above).as_posix() + "/"
            return {name.removeprefix(start): place for name, place in found.items() if name.startswith(start)}
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
