"""The versions that are published in a folder, oldest first; checks that they are as they were
published.

A version is a plain folder that never changes. ``MANIFEST.json`` lists every file with its sha256.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bench.base.errors import BenchError, DataDamaged, one_line
from bench.base.reading import TABLES_BYTES, read_plain_file
from bench.board.pages.links import BESIDE
from bench.board.pages.matrix import ShownMatrix
from bench.board.verify import check_manifest
from bench.board.verify.findings import RunReport
from bench.compare.rule import RULE
from bench.records.packed import MANIFEST
from bench.records.record import RunRecord
from bench.records.run import Run
from bench.records.store import RunsFolder

RUNS = "runs"
"""The folder of a version's runs."""
PLAN = "plan.md"
"""The plan in a version: the question of the comparison, written before the runs."""
PLANS = "plans"
"""The folder of plans next to the versions: plans/vN.md."""
DOCS = ("README", "claims", "read-a-leaderboard", "statistics")
"""Pages of the documentation that the pages of versions link to."""
_NAME = re.compile(r"v([1-9][0-9]{0,8})")


class PublishedRow(Struct):
    """A run in the tables.json of a version."""

    run_id: str
    method: str
    # None: a run of the publisher
    submitted_by: str | None


class Judged(Struct):
    """How the tables of a version were judged: the number of the rule, and what was asked for."""

    rule: int = RULE
    baseline: str | None = None
    main_budget: str = ""


class Version(Struct):
    """A published version, as far as it is read from its ``tables.json``."""

    schema: str
    # date of its newest own run: "2026-11-21"
    date: str
    title: str
    note: str | None
    answer: str
    runs: list[PublishedRow]
    left_out: list[str]
    tables: list[dict[str, Any]] = []
    # None: a version from before rules had numbers
    judged: Judged | None = None
    # the address of the folder of all versions, with a slash at its end; "" if none was given
    address: str = ""
    # the address of the documentation; "" if none was known
    docs: str = ""
    # None: it has none, or was published before there was one
    matrix: ShownMatrix | None = None
    folder: Path = Path()

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def senders(self) -> dict[str, str | None]:
        """Run id -> who submitted it; None: the publisher's."""
        return {run.run_id: run.submitted_by for run in self.runs}

    @property
    def methods(self) -> list[str]:
        return sorted({run.method for run in self.runs})

    @property
    def baseline(self) -> str | None:
        """The row that the others of its first table are compared with."""
        first = self.tables[0]["table"] if self.tables else {}
        baseline: str | None = first.get("baseline")
        return baseline

    @property
    def main_budget(self) -> str:
        """The budget of its first table; "" if that is the budget of most runs."""
        if not self.tables:
            return ""
        return str(self.tables[0]["table"].get("budget") or "")

    def records(self) -> list[RunRecord]:
        """Read the records of its runs."""
        store = RunsFolder(self.folder / RUNS)
        return [store.read(run.run_id) for run in self.runs]


def version_folders(out: Path) -> list[Path]:
    """Return the folders "v1", "v2", ..., "v10" that have a manifest or tables."""
    folders = []
    for path in out.glob("v*"):
        if not _NAME.fullmatch(path.name) or path.is_symlink():
            continue
        if (path / MANIFEST).is_file() or (path / "tables.json").is_file():
            folders.append(path)
    return sorted(folders, key=lambda path: int(path.name[1:]))


def versions(out: Path) -> tuple[Version, ...]:
    """Read all versions in ``out``, oldest first. Raises DataDamaged if one cannot be read."""
    return tuple(map(read_version, version_folders(out)))


def read_version(folder: Path) -> Version:
    """Read the version in a folder. Raises DataDamaged."""
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


def judged_as(runs: Sequence[Run]) -> Judged:
    """Return what the tables of the version that all of these runs are in were asked for; nothing
    if there is no version. Its baseline counts only if it is a row of these.
    """
    folders = {run.folder.parent for run in runs}
    if len(folders) != 1:
        return Judged()
    folder = folders.pop()
    if folder.name != RUNS:
        return Judged()
    try:
        version = read_version(folder.parent)
    except DataDamaged:  # no version, or somebody's own tables.json
        return Judged()
    asked = Judged(main_budget=version.main_budget)
    rows: set[str] = set()
    for run in runs:
        rows |= {run.record.label, f"{run.record.label} {run.record.backbone_name}"}
    if version.judged is not None and version.baseline in rows:
        asked.baseline = version.judged.baseline
    return asked


def docs_beside(out: Path) -> str:
    """Return the address of the documentation from the folder of all versions, if that lies in a
    clone of this project; else ""."""
    docs = (out / BESIDE).parent
    there = all((docs / f"{page}.md").is_file() for page in DOCS)
    return BESIDE if there else ""


def check_versions(out: Path) -> list[RunReport]:
    """Compare every version with its manifest, one report each. Raises BenchError if nothing is
    published in ``out``."""
    folders = version_folders(out)
    if not folders:
        raise BenchError(f"no version in {out}", "bench publish, or another folder: --out DIR")
    reports = []
    for folder in folders:
        reports.append(replace(check_manifest(folder), name=folder.name))
    return reports


def refuse_altered(out: Path) -> None:
    """Raise BenchError if a published version is not as it was: the next one would be compared with
    it."""
    if not version_folders(out):
        return
    for report in check_versions(out):
        for difference in report.differences[:1]:
            raise BenchError(
                f"{report.name} has changed since it was published: "
                f"{difference.what}: {difference.why}",
                "bench publish --check names every file; restore it: git checkout",
            )
