"""Folders of runs: which runs are in one, and whether a published version is as its manifest says."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from bench.base.files import file_sha256
from bench.runs.reading import MANIFEST, older_below, older_files
from bench.runs.store import RECORD
from bench.verify.findings import AGREES, DIFFERS, Finding, RunReport


def runs_below(folder: Path) -> list[Path]:
    """The folders that hold a record, in alphabetical order: ``folder`` itself, or any below it. Links are not followed.

    Of a published version also those that an older version holds for it.
    """
    if (folder / RECORD).is_file():
        return [folder]
    runs = [place.parent for name, place in older_below(folder).items() if name.rsplit("/", 1)[-1] == RECORD]
    for place, names, files in os.walk(folder):
        if RECORD in files and (Path(place) / RECORD).is_file():
            runs.append(Path(place))
            names.clear()  # a run holds no runs
        elif MANIFEST in files and Path(place) != folder:
            runs += [path.parent for name, path in older_below(Path(place)).items() if name.endswith(f"/{RECORD}")]
        names[:] = sorted(name for name in names if not name.startswith("."))
    return [path for _, path in sorted({path.absolute(): path for path in runs}.items())]


def check_manifest(folder: Path) -> RunReport | None:
    """Every file of a published version against its manifest, and files that the manifest does not name; None where there is none.

    A manifest is ``{"files": {path: sha256, ...}}``, paths relative to it with forward slashes; a hash may also stand as
    ``{"sha256": ...}``. What older versions hold for it (``bench.runs.reading``) is compared where it lies.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_bytes())
        listed = _listed(content)
        older = {version: _listed({"files": files}) for version, files in content.get("older", {}).items()}
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        return RunReport(MANIFEST, [Finding("files", MANIFEST, DIFFERS, f"it cannot be read: {error}")], "damaged")
    return RunReport(MANIFEST, [*_compare(folder, listed), *_compare_older(folder, older)], "published")


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
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()}
    files.pop(MANIFEST, None)
    for name in sorted({*listed, *files}):
        if name not in files:
            strange = PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts
            yield Finding("files", name, DIFFERS, "leads out of the folder" if strange else "missing")
        elif name not in listed:
            yield Finding("files", name, DIFFERS, "not in the manifest")
        elif files[name].is_symlink() or not files[name].is_file():
            yield Finding("files", name, DIFFERS, "a link or a pipe, not a file")
        else:
            yield _compared(files[name], name, listed[name])


def _compare_older(folder: Path, older: Mapping[str, Mapping[str, str]]) -> Iterator[Finding]:
    places = older_files(folder) or {}
    for version, files in sorted(older.items()):
        for name, expected in sorted(files.items()):
            what, place = f"{version}/{name}", places.get(name)
            if place is None:
                yield Finding("files", what, DIFFERS, "leads out of the folder")
            elif place.is_symlink() or not place.is_file():
                beside = "" if (folder.parent / version).is_dir() else f": {version} is not beside {folder.name}"
                yield Finding("files", what, DIFFERS, f"missing{beside}")
            else:
                yield _compared(place, what, expected)


def _compared(path: Path, what: str, expected: str) -> Finding:
    with contextlib.suppress(OSError):  # what cannot be read is not what was published
        if file_sha256(path) == expected:
            return Finding("files", what, AGREES)
    return Finding("files", what, DIFFERS, "changed since it was published")
