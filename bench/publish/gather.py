"""Which runs a version has: those of a runs folder and those that others submitted; and what is left out."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bench.base.errors import BenchError, RecordDamaged
from bench.base.files import file_sha256
from bench.board.board import PublishedRun
from bench.board.names import search_file
from bench.publish.submissions import Work, check_submission, sender_of
from bench.publish.versions import RUNS, Version, read_version
from bench.runs.record import RunRecord
from bench.runs.searches import Search, read_search, read_search_file, search_of
from bench.runs.store import RECORD, RunsFolder

if TYPE_CHECKING:
    from bench.data.sets.folder import DataFolder

_PLACE = re.compile(r"(?:^|[\s='\"])(?:/|~/|[A-Za-z]:[\\/])(?=\w)")
LONGEST = 200  # characters of an error that are shown


@dataclass
class Gathered:
    """Runs of a version, and one line for each that is not in it."""

    runs: list[PublishedRun] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # for the page
    refused: list[str] = field(default_factory=list)  # submissions, for the publisher alone

    @property
    def with_local_paths(self) -> tuple[str, ...]:
        """Runs whose command names a folder of the publisher's machine: a record is published as it is."""
        return tuple(
            run.record.run_id
            for run in self.runs
            if _PLACE.search(run.record.provenance.command or "")
        )


def gather(
    runs: Path | None, submissions: Path | None = None, data: DataFolder | None = None
) -> Gathered:
    """All finished runs in the folder ``runs``, which may be that of a version (leaderboards/v3/runs), and those in ``submissions``.

    Raises BenchError where there are none at all, or where a folder cannot be read.
    """
    store, gathered = RunsFolder(runs), Gathered()
    above = store.path.absolute().parent
    is_version = store.path.name == RUNS and (above / "tables.json").is_file()
    senders = read_version(above).senders if is_version else {}
    for run_id in store.ids():
        folder = store.folder(run_id)
        try:
            record = store.read(run_id)
        except RecordDamaged as error:
            gathered.left_out.append(left_out(run_id, "damaged", error.message, folder))
            continue
        if record.status == "finished" and record.scores:
            run = PublishedRun(record=record, folder=folder, submitted_by=senders.get(run_id))
            gathered.runs.append(run)
        else:
            why = "it has no scores" if record.status == "finished" else record.status
            gathered.left_out.append(left_out(run_id, why, record.error or "", folder))
    if submissions is not None:
        _add_submitted(submissions, data, gathered)
    if not gathered.runs:
        hint = "bench run ..., or another folder: --runs DIR"
        raise BenchError(f"no finished run in {store.path}", hint)
    return gathered


def _add_submitted(submissions: Path, data: DataFolder | None, gathered: Gathered) -> None:
    """One that is published already is skipped; one with the id or the fingerprint of another run is refused."""
    if not submissions.is_dir():
        raise BenchError(f"there is no folder {submissions}", "--submissions DIR")
    known = {
        name: run for run in gathered.runs for name in (run.record.run_id, run.record.fingerprint)
    }
    work = Work()
    for folder in sorted(path for path in submissions.iterdir() if path.name[0] != "."):
        try:
            record = check_submission(folder, data, work)
            run = PublishedRun(record=record, folder=folder, submitted_by=sender_of(folder))
            before = known.get(record.run_id) or known.get(record.fingerprint)
            if before is None:
                gathered.runs.append(run)
                known |= {record.run_id: run, record.fingerprint: run}
            elif file_sha256(before.folder / RECORD) != file_sha256(folder / RECORD):
                raise BenchError(f"{before.record.run_id} has the same id or fingerprint")
        except BenchError as error:
            gathered.refused.append(left_out(folder.name, "refused", error.message, folder))


def searches(
    runs: Sequence[PublishedRun], store: RunsFolder, last: Version | None
) -> tuple[list[Search], list[str]]:
    """(the searches of recipe values of own runs, the names of those that are not there or that do not fit these runs).

    A search is read from its folder, or from the last version, which may hold it.
    """
    named: dict[str, list[RunRecord]] = {}
    for run in runs:
        name = search_of(run.record).get("name")
        if run.submitted_by is None and isinstance(name, str):
            named.setdefault(name, []).append(run.record)
    read, missing = [], []
    for name, records in sorted(named.items()):
        search = _search(name, store, last)
        if search is not None and all(map(search.of, records)):
            read.append(search)
        else:
            missing.append(name)
    return read, missing


def _search(name: str, store: RunsFolder, last: Version | None) -> Search | None:
    if Path(name).name != name or name.startswith("."):  # a record may hold anything
        return None
    with contextlib.suppress(BenchError, ValueError):  # ValueError: not the name of a file
        search = read_search(store.path / name)
        if search is None and last is not None:
            search = read_search_file(last.folder / search_file(name, "json"))
        return search
    return None


def left_out(run_id: str, what: str, why: str, folder: Path) -> str:
    """ "simcse-builtin-s42-1a2b3c4d: failed: out of memory", on one line and without the publisher's own folders."""
    for path, text in (
        (f"{folder / RECORD}: ", ""),
        (f"{folder}/", ""),
        (str(folder), "its folder"),
    ):
        why = why.replace(path, text)
    text = " ".join(why.split())
    return f"{run_id}: {what}" + (f": {text[:LONGEST]}" if text else "")
