"""Published versions: each file against the manifest."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct

from bench.base.errors import DataDamaged
from bench.base.findings import DIFFERS, Finding
from bench.base.hashes import file_sha256
from bench.base.reading import TABLES_BYTES, read_plain_file
from bench.board.verify.findings import RunReport, make_finding
from bench.compare.senders import BOARD
from bench.records.names import RECORD
from bench.records.packed import MANIFEST, NAME, read_manifest

TABLES = "tables.json"
"""The file of a version with its tables and the list of its runs."""


def runs_below(folder: Path) -> list[Path]:
    """Return the folders that hold a record, in alphabetical order: ``folder`` itself, or any below
    it. Links are not followed.
    """
    if (folder / RECORD).is_file():
        return [folder]
    runs = []
    for place, names, files in os.walk(folder):
        if RECORD in files and (Path(place) / RECORD).is_file():
            runs.append(Path(place))
            names.clear()  # a run holds no runs
        names[:] = [name for name in names if not name.startswith(".")]
    return sorted(runs)


class _AnyTables(Struct):
    schema: str = ""


def is_version(folder: Path) -> bool:
    """Say if a folder is a published version, also one that lost its manifest or its tables."""
    if (folder / MANIFEST).is_file() or (folder / NAME).is_file():
        return True
    try:
        content = read_plain_file(folder / TABLES, TABLES_BYTES)
        return msgspec.json.decode(content, type=_AnyTables).schema.startswith(BOARD)
    except (OSError, ValueError, RecursionError):  # none, or somebody's own file of that name
        return False


def compare_files(folder: Path, listed: Mapping[str, str]) -> dict[str, str]:
    """Path -> how a file in ``folder`` differs from its listed sha256, "" if it agrees; also for
    files that are not listed."""
    there = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }
    return {
        name: _file_difference(folder, name, listed[name]) if name in listed else "not listed"
        for name in sorted({*listed, *there})
    }


def _file_difference(folder: Path, name: str, sha256: str) -> str:
    path = folder / name
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        return "leads out of the folder"
    if path.is_symlink() or (path.exists() and not path.is_file()):
        return "a link or a pipe, not a file"
    if not path.exists():
        return "missing"
    try:
        return "" if file_sha256(path, inside=folder) == sha256 else "changed"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


MOST_DIFFERENCES = 10
"""Files of a version that are named; the others are counted."""


def check_manifest(version: Path) -> RunReport:
    """Return every file of a published version against its manifest, and files that the manifest
    does not list.
    """
    try:
        manifest = read_manifest(version)
    except DataDamaged as error:
        return RunReport(MANIFEST, [Finding("files", MANIFEST, DIFFERS, error.message)], "damaged")
    if manifest is None:
        why = "missing: nothing says which files were published"
        return RunReport(MANIFEST, [Finding("files", MANIFEST, DIFFERS, why)], "published")
    differences = compare_files(version, manifest.files)
    differences.pop(MANIFEST, None)
    findings: list[Finding] = []
    wrong = 0
    for name, why in differences.items():
        wrong += bool(why)
        if not why or wrong <= MOST_DIFFERENCES:
            findings.append(make_finding("files", name, str, why))
    if wrong > MOST_DIFFERENCES:
        more = f"and {wrong - MOST_DIFFERENCES:,} more files differ"
        findings.append(Finding("files", "others", DIFFERS, more))
    return RunReport(MANIFEST, findings, "published")
