"""The versions that are published in a folder, oldest first; whether they are as they were published; and where a new one is written.

A version is a plain folder that never changes. ``MANIFEST.json`` lists every file with its sha256.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bench.base.errors import DIFFERS, BenchError, DataDamaged, Finding, one_line
from bench.base.files import file_sha256
from bench.base.reading import TABLES_BYTES, read_plain_file
from bench.records.arrays import MANIFEST, NAME
from bench.records.record import RunRecord
from bench.records.store import RunsFolder
from bench.verify import check_manifest
from bench.verify.findings import RunReport

RUNS, PLAN, PLANS = "runs", "plan.md", "plans"
"""Folder of a version's runs. What was to be found out, written before the runs: PLANS/vN.md beside the versions, PLAN in the version."""
_NAME = re.compile(r"v([1-9][0-9]{0,8})")


class PublishedRow(Struct):
    run_id: str
    method: str
    submitted_by: str | None  # None: a run of the publisher


class Version(Struct):
    """A published version, as far as it is read of its ``tables.json``."""

    date: str  # of its newest own run: "2026-11-21"
    title: str
    note: str | None
    answer: str
    runs: list[PublishedRow]
    left_out: list[str]
    tables: list[dict[str, Any]] = []
    folder: Path = Path()

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def senders(self) -> dict[str, str | None]:
        """Run id -> who submitted it."""
        return {run.run_id: run.submitted_by for run in self.runs}

    @property
    def methods(self) -> list[str]:
        return sorted({run.method for run in self.runs})

    def records(self) -> list[RunRecord]:
        return list(map(RunsFolder(self.folder / RUNS).read, (run.run_id for run in self.runs)))


def version_folders(out: Path) -> list[Path]:
    """ "v1", "v2", ..., "v10": folders with a manifest or tables."""
    return sorted(
        (
            path
            for path in out.glob("v*")
            if _NAME.fullmatch(path.name)
            and not path.is_symlink()
            and ((path / MANIFEST).is_file() or (path / "tables.json").is_file())
        ),
        key=lambda path: int(path.name[1:]),
    )


def versions(out: Path) -> tuple[Version, ...]:
    """All versions in ``out``, oldest first. Raises DataDamaged where one cannot be read."""
    return tuple(map(read_version, version_folders(out)))


def read_version(folder: Path) -> Version:
    """Raises DataDamaged."""
    path = folder / "tables.json"
    try:
        version = msgspec.json.decode(read_plain_file(path, TABLES_BYTES), type=Version)
    except (OSError, ValueError, msgspec.ValidationError, RecursionError) as error:
        raise DataDamaged(
            f"{path} cannot be read: {one_line(error)}",
            "a published version never changes: restore it (git checkout)",
        ) from None
    version.folder = folder
    return version


# --- whether published versions are as they were published ---


def check(out: Path) -> list[RunReport]:
    """One report per version. Raises BenchError where nothing is published in ``out``."""
    folders = version_folders(out)
    if not folders:
        raise BenchError(f"no version in {out}", "bench publish, or another folder: --out DIR")
    return [
        replace(
            check_manifest(folder)
            or RunReport("", [Finding("files", MANIFEST, DIFFERS, "missing")], "published"),
            name=folder.name,
        )
        for folder in folders
    ]


def refuse_altered(out: Path) -> None:
    """Raises BenchError where a published version is not as it was: the next one would be compared with it."""
    for report in check(out) if version_folders(out) else ():
        for difference in report.differences[:1]:
            raise BenchError(
                f"{report.name} has changed since it was published: {difference.what}: {difference.why}",
                "bench publish --check names every file; restore it: git checkout",
            )


def seal(version: Path, hashes: Mapping[str, str], predictions: Path, url: str | None) -> None:
    """Write ``MANIFEST.json``, which lists every file but itself; predictions that will lie at ``url`` by hash, size and address."""
    digest, size = file_sha256(predictions), predictions.stat().st_size
    listed = hashes if url else {**hashes, NAME: digest}
    content: dict[str, Any] = {"files": dict(sorted(listed.items()))}
    if url is not None:
        content["predictions_url"] = {"name": NAME, "url": url, "sha256": digest, "bytes": size}
    (version / MANIFEST).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
