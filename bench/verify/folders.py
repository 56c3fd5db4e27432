"""Folders of runs: which runs are in one, and whether a published version is as its manifest says."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from bench.hashes import file_sha256
from bench.runs.store import RECORD
from bench.verify.findings import AGREES, DIFFERS, Finding, RunReport

MANIFEST = "MANIFEST.json"


def runs_below(folder: Path) -> list[Path]:
    """The folders that hold a record, in alphabetical order: ``folder`` itself, or any below it. Links are not followed."""
    if (folder / RECORD).is_file():
        return [folder]
    found = []
    for place, names, files in os.walk(folder):
        if RECORD in files and (Path(place) / RECORD).is_file():
            found.append(Path(place))
            names.clear()  # a run holds no runs
        names[:] = sorted(name for name in names if not name.startswith("."))
    return sorted(found)


def check_manifest(folder: Path) -> RunReport | None:
    """Every file of a published version against its manifest, and files that the manifest does not name; None where there is none.

    A manifest is ``{"files": {path: sha256, ...}}``, paths relative to it with forward slashes; a hash may also stand as
    ``{"sha256": ...}``.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        listed = _listed(json.loads(path.read_bytes()))
    except (OSError, ValueError, RecursionError) as error:
        return RunReport(MANIFEST, [Finding("files", MANIFEST, DIFFERS, f"it cannot be read: {error}")], "damaged")
    return RunReport(MANIFEST, list(_compare(folder, listed)), "published")


def _listed(content: Any) -> dict[str, str]:
    files = content.get("files") if isinstance(content, Mapping) else None
    if not isinstance(files, Mapping):
        raise ValueError("it has no list of files")
    listed = {}
    for name, value in files.items():
        sha256 = value.get("sha256") if isinstance(value, Mapping) else value
        if not isinstance(sha256, str):
            raise ValueError(f"'{name}' has no sha256")
        listed[name] = sha256
    return listed


def _compare(folder: Path, listed: Mapping[str, str]) -> Iterator[Finding]:
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()}
    found.pop(MANIFEST, None)
    for name in sorted({*listed, *found}):
        if name not in found:
            strange = PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts
            yield Finding("files", name, DIFFERS, "leads out of the folder" if strange else "missing")
        elif name not in listed:
            yield Finding("files", name, DIFFERS, "not in the manifest")
        elif found[name].is_symlink() or not found[name].is_file():
            yield Finding("files", name, DIFFERS, "a link or a pipe, not a file")
        elif _sha256(found[name]) != listed[name]:
            yield Finding("files", name, DIFFERS, "changed since it was published")
        else:
            yield Finding("files", name, AGREES)


def _sha256(path: Path) -> str:
    try:
        return file_sha256(path)
    except OSError:
        return ""
