"""Takes what came back from a card into a runs folder."""

from __future__ import annotations

import json
import shutil
import tarfile
import tempfile
from pathlib import Path

from card_runs import ABOUT, PACKED
from msgspec.structs import replace

from bench.base.errors import BenchError
from bench.base.text import plural
from bench.records import RunRecord, RunsFolder
from bench.records.names import RECORD
from bench.records.record import Checkout
from bench.run.batch import JOBS_FOLDER


def collect(folder: Path, runs: Path) -> list[str]:
    """Take the runs of every ``runs.tar.xz`` below a folder; returns lines to print.

    Records get the commit that the kit was packed from; a finished run that is there already is
    left as it is. Raises BenchError for a folder without such a file, or one that is damaged.
    """
    archives = sorted(folder.rglob(PACKED)) if folder.is_dir() else []
    if not archives:
        raise BenchError(f"{folder} has no {PACKED}", "the folder that came back from the card")
    lines = []
    for archive in archives:
        with tempfile.TemporaryDirectory(prefix="bench-collect-") as scratch:
            try:
                with tarfile.open(archive) as opened:
                    opened.extractall(scratch, filter="data")
                about = json.loads((Path(scratch) / ABOUT).read_text(encoding="utf-8"))
            except (OSError, EOFError, tarfile.TarError, ValueError) as error:
                raise BenchError(f"{archive} is damaged: {error}", "fetch it again") from None
            lines += take_runs(Path(scratch) / "runs", runs, about)
    lines.append(f"next: bench compare --runs {runs}")
    return lines


def take_runs(source: Path, runs: Path, about: dict[str, str]) -> list[str]:
    """Copy the runs of an unpacked folder, and their logs; returns lines to print."""
    made, store = RunsFolder(source), RunsFolder(runs)
    counts = {"finished": 0, "interrupted": 0, "failed": 0}
    kept, problems = 0, []
    records, damaged = made.records() if source.is_dir() else ([], [])
    for record in records:
        with store.lock(record.run_id):
            earlier = store.get(record.run_id)
            if earlier is not None and earlier.status == "finished":
                kept += 1
                continue
            take_run(record, made.folder(record.run_id), store, about)
        counts[record.status] += 1
        if record.status == "failed":
            problems.append(f"{record.run_id}: {record.error}")
    for batch in sorted((source / JOBS_FOLDER).glob("*")):
        logs = runs / JOBS_FOLDER / f"card-{batch.name}" / "logs"
        if (batch / "logs").is_dir():
            shutil.copytree(batch / "logs", logs, dirs_exist_ok=True)
    said = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    line = f"{said or 'no runs'} into {runs}"
    if kept:
        line += f"; {plural(kept, 'finished run')} there already"
    lines = [f"on {about.get('machine', 'an unknown machine')}", line, *problems]
    return lines + [error.message for error in damaged]


def take_run(record: RunRecord, folder: Path, store: RunsFolder, about: dict[str, str]) -> None:
    """Copy a run's files, the record last, with the commit if the card knew none."""
    target = store.folder(record.run_id)
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder)
        if file.is_file() and str(name) != RECORD:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target / name)
    if record.provenance.git.commit is None and about.get("commit", "unknown") != "unknown":
        commit = about["commit"]
        git = Checkout(commit=commit.removesuffix("+"), dirty=commit.endswith("+"))
        record = replace(record, provenance=replace(record.provenance, git=git))
    store.write(record)
