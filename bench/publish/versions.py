"""The versions that are published in a folder, oldest first; whether they are as they were published; and where a new one is written.

A version is a plain folder that never changes. ``MANIFEST.json`` lists every file with its sha256.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.base.errors import BenchError, DataDamaged, one_line
from bench.base.files import file_sha256
from bench.runs.packed import MANIFEST, NAME
from bench.runs.record import loads
from bench.verify.findings import DIFFERS, Finding, RunReport
from bench.verify.identity import check_manifest

RUNS, PLAN, PLANS = "runs", "plan.md", "plans"
"""Folder of a version's runs. What was to be found out, written before the runs: PLANS/vN.md beside the versions, PLAN in the version."""
ELSEWHERE = "another folder: --out DIR"
_NAME = re.compile(r"v([1-9][0-9]{0,8})")


@dataclass(frozen=True)
class StagedFolder:
    """A folder, and the sha256 of all that was written to it, by path."""

    folder: Path
    hashes: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, data: bytes) -> None:
        """Not synced: the whole folder is renamed when it is done. Raises BenchError."""
        path = self.folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as error:
            why = f"cannot write {name} of the new version: {error.strerror or error}"
            raise BenchError(f"{why}; nothing was published", ELSEWHERE) from None
        self.hashes[name] = hashlib.sha256(data).hexdigest()

    def seal(self, predictions_url: Mapping[str, Any] | None = None) -> None:
        """Write ``MANIFEST.json``, which lists every file but itself, and the predictions where they lie elsewhere."""
        content: dict[str, Any] = {"files": dict(sorted(self.hashes.items()))}
        if predictions_url is not None:
            content["predictions_url"] = predictions_url
        self.write(MANIFEST, (json.dumps(content, indent=1) + "\n").encode())


@dataclass(frozen=True, kw_only=True)
class Version:
    """A published version, from its ``tables.json``."""

    folder: Path
    date: str  # of its newest own run: "2026-11-21"
    title: str
    note: str | None
    answer: str
    senders: Mapping[str, str | None]  # run id -> who submitted it; None: the board's own
    methods: tuple[str, ...]
    left_out: int  # runs that could not be published

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def has_page(self) -> bool:
        return (self.folder / "index.html").is_file()

    @property
    def has_readme(self) -> bool:
        return (self.folder / "README.md").is_file()

    def records(self) -> dict[str, str]:
        """Run id -> sha256 of its record."""
        return {run: file_sha256(self.folder / RUNS / run / "run.json") for run in self.senders}


def version_folders(out: Path) -> list[Path]:
    """ "v1", "v2", ..., "v10": folders with a manifest or tables."""
    if not out.is_dir():
        return []
    found = [
        path
        for path in out.iterdir()
        if _NAME.fullmatch(path.name)
        and not path.is_symlink()
        and ((path / MANIFEST).is_file() or (path / "tables.json").is_file())
    ]
    return sorted(found, key=lambda path: int(path.name[1:]))


def versions(out: Path) -> tuple[Version, ...]:
    """All versions in ``out``, oldest first. Raises DataDamaged where one cannot be read."""
    return tuple(map(read_version, version_folders(out)))


def read_version(folder: Path) -> Version:
    """Raises DataDamaged."""
    path = folder / "tables.json"
    try:
        content = loads(path.read_bytes())
        texts = {key: _text(content[key]) for key in ("date", "title", "answer")}
        note = content["note"]
        senders = {
            _text(run["run_id"]): None
            if run["submitted_by"] is None
            else _text(run["submitted_by"])
            for run in content["runs"]
        }
        return Version(
            folder=folder,
            note=None if note is None else _text(note),
            senders=senders,
            methods=tuple(sorted({_text(run["method"]) for run in content["runs"]})),
            left_out=len(content["left_out"]),
            **texts,
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        hint = "a published version never changes: restore it (git checkout)"
        raise DataDamaged(f"{path} cannot be read: {one_line(error)[:200]}", hint) from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, found {str(value)[:40]}")
    return value


def next_name(found: Sequence[Version]) -> str:
    return f"v{int(found[-1].name[1:]) + 1 if found else 1}"


def read_plan(out: Path, version: str) -> bytes | None:
    """The plan of the next version; None where none was written. Raises BenchError where it is not UTF-8 text."""
    path = out / PLANS / f"{version}.md"
    if not path.exists():
        return None
    try:
        data = path.read_bytes()
        data.decode()
    except (OSError, ValueError) as error:
        raise BenchError(f"{path} cannot be read: {error}", "a plan is a Markdown file") from None
    return data


# --- whether published versions are as they were published ---


def check(out: Path) -> list[RunReport]:
    """One report per version. Raises BenchError where nothing is published in ``out``."""
    folders = version_folders(out)
    if not folders:
        raise BenchError(f"no version in {out}", "bench publish, or another folder: --out DIR")
    return [_checked(folder) for folder in folders]


def _checked(folder: Path) -> RunReport:
    report = check_manifest(folder)
    missing = [Finding("files", MANIFEST, DIFFERS, "missing")]
    findings = missing if report is None else [*report.findings]
    try:
        read_version(folder)
    except BenchError as error:
        findings.append(Finding("files", "tables.json", DIFFERS, error.message))
    return RunReport(folder.name, findings, "published")


def refuse_altered(out: Path) -> None:
    """Raises BenchError where a published version is not as it was: the next one would be compared with it."""
    if out.exists() and not out.is_dir():
        raise BenchError(f"{out} is not a folder", "--out DIR")
    for report in check(out) if version_folders(out) else ():
        for found in report.differences[:1]:
            what = f"{report.name} is not as it was published: {found.what}: {found.why}"
            raise BenchError(
                what, "bench publish --check names every file; restore it: git checkout"
            )


def predictions_entry(path: Path, url: str) -> dict[str, Any]:
    """What the manifest says of predictions that lie elsewhere."""
    return {
        "name": NAME,
        "url": url,
        "sha256": file_sha256(path),
        "bytes": path.stat().st_size,
    }
