"""The word that ``bench verify --retrain-free`` leaves beside a run: these predictions were made again from the checkpoint.

It holds hashes of what was looked at, and counts only as long as they fit: a record that was changed since has lost it. It is the word of
whoever keeps the runs folder: of an own run it lies in the run's folder, of one that was sent in below ``SENT`` of the runs folder. It is never
looked for where submissions lie, because others may write there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.base.errors import BenchError
from bench.base.files import file_sha256, write_or_fail
from bench.runs.record import AVERAGE, RunRecord, loads
from bench.runs.store import RECORD, RunsFolder
from bench.verify.findings import AGREES, RunReport, cell

SCHEMA = "bench.verified/1"
NAME = "verified.json"
SENT = ".verified"
"""Folder in the keeper's runs folder, of what was found of submissions: a file for each record."""
LARGEST = 1 << 24  # bytes


@dataclass(frozen=True, kw_only=True)
class Attestation:
    """Of one run."""

    date: str  # "2026-11-21"
    bench_version: str
    device: str
    tasks: int  # encoded again
    sentences: int = 0  # encoded for them, one that several tasks ask for counted once; 0: an older bench did not count

    def words(self) -> str:
        tasks = f"{self.tasks} task{'s' * (self.tasks != 1)}"
        what = f"all {self.sentences:,} sentences " if self.sentences else ""
        return f"{what}encoded again from its checkpoint on {self.date} ({self.device}, bench {self.bench_version}): the same predictions on {tasks}"


def sent(runs: Path, folder: Path) -> Path:
    """Where the word on the submitted run in ``folder`` lies: in the keeper's folder ``runs``, under the record's hash, so that another
    run of its name does not take it away."""
    return runs / SENT / f"{folder.name}-{file_sha256(folder / RECORD)[:16]}.json"


def entry(report: RunReport, folder: Path, *, date: str, device: str) -> dict[str, Any] | None:
    """What is kept of a run of which nothing differs and every task was encoded again; None of any other."""
    from bench import __version__

    record = report.record
    if record is None or report.differences or record.status != "finished":
        return None
    encoded = {
        finding.what
        for finding in report.findings
        if (finding.kind, finding.outcome) == ("encoding", AGREES)
    }
    tasks = {cell(score) for score in record.scores if score.task != AVERAGE}
    if not tasks or not tasks <= encoded:
        return None
    return {
        "record_sha256": file_sha256(folder / RECORD),
        "files": _unhashed(record, folder),
        "date": date,
        "bench_version": __version__,
        "device": device,
        "tasks": report.count("encoding"),
        "sentences": max((finding.sentences for finding in report.findings), default=0),
    }


def write(path: Path, runs: Mapping[str, Mapping[str, Any]]) -> None:
    """Entries by run id, in the place of what was there. Raises BenchError where it cannot be written."""
    write_or_fail(
        path, json.dumps({"schema": SCHEMA, "runs": dict(runs)}, indent=1).encode() + b"\n"
    )


def attestation(folder: Path, path: Path | None = None) -> Attestation | None:
    """That of the run in ``folder``, read from ``path`` (its own verified.json); None where there is none, or it no longer fits."""
    path = path or folder / NAME
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:
            return None
        content = loads(path.read_bytes())
        kept = content["runs"][folder.name]
        if content["schema"] != SCHEMA or kept["record_sha256"] != file_sha256(folder / RECORD):
            return None
        if any(
            file_sha256(folder / "predictions" / name) != sha256
            for name, sha256 in kept["files"].items()
        ):
            return None
        texts = {key: str(kept[key]) for key in ("date", "bench_version", "device")}
        return Attestation(
            **texts, tasks=int(kept["tasks"]), sentences=int(kept.get("sentences", 0))
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _unhashed(record: RunRecord, folder: Path) -> dict[str, str]:
    """Predictions whose hash the record does not keep: a file below predictions/ -> sha256."""
    store, place = RunsFolder(folder.parent), folder / "predictions"
    paths = {
        store.predictions_path(folder.name, score.task, score.text, score.suite)
        for score in record.scores
        if score.task != AVERAGE and score.predictions_sha256 is None
    }
    try:
        return {
            path.relative_to(place).as_posix(): file_sha256(path)
            for path in sorted(paths)
            if path.is_file()
        }
    except OSError as error:
        raise BenchError(
            f"predictions of {folder.name} cannot be read: {error.strerror or error}"
        ) from None
