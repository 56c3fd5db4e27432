"""Which runs a version has: those of a runs folder, those that others sent in, those of the last version; and what is left out."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.base.errors import BenchError, RecordDamaged, UnknownName
from bench.board.board import GRADES, PublishedRun
from bench.runs.predictions import Run
from bench.runs.record import RunRecord
from bench.runs.store import RECORD, RunsFolder

if TYPE_CHECKING:
    from bench.data.sets import DataFolder
    from bench.publish.versions import Version

_PLACE = re.compile(r"(?:^|[\s='\"])(?:/|~/|[A-Za-z]:[\\/])(?=\w)")
LONGEST = 200  # characters of an error that are told


@dataclass
class Gathered:
    """Runs of a version, and one line for each that is none."""

    runs: tuple[PublishedRun, ...] = ()
    left_out: list[str] = field(default_factory=list)  # for the page: runs that failed or cannot be published
    refused: tuple[str, ...] = ()  # for the publisher alone: submissions that were not taken

    @property
    def told_of_here(self) -> list[str]:
        """Runs whose command names a folder of the publisher's machine: a record is published as it is."""
        return [one.record.run_id for one in self.runs if _PLACE.search(one.record.provenance.command or "")]


def gather(
    runs: Path | None, aside: Path, *, submissions: Path | None = None, last: Version | None = None, data: DataFolder | None = None
) -> Gathered:  # fmt: skip
    """All finished runs in the folder ``runs``, with their grades.

    ``submissions``: also those sent in, whose files are unpacked in ``aside``. ``last``: also the runs of that version that are not
    in the folder. Raises BenchError where there are none at all, or where a folder cannot be read.
    """
    from bench.board.grades import graded

    store, found = RunsFolder(runs), Gathered()
    own = _own(store, found)
    kept = _kept(last, {record.run_id for record, _ in own})
    own += [(one.record, one.folder) for one in kept if one.submitted_by is None]
    taken = None
    if submissions is not None:
        from bench.verify.submit import collect

        taken = collect(submissions, aside, own, data, store.path)
        found.refused = taken.refused
    before = {one.record.run_id: one for one in kept}
    found.runs = tuple(_stronger(one, before.get(one.record.run_id)) for one in graded(own, taken))
    have = {one.record.run_id for one in found.runs}
    found.runs += tuple(one for one in kept if one.record.run_id not in have)
    if not found.runs:
        raise BenchError(f"no finished run in {store.path}", "bench run ..., or another folder: --runs DIR")
    return found


def _kept(last: Version | None, have: Container[str]) -> list[PublishedRun]:
    return [] if last is None else [one for one in last.published() if one.record.run_id not in have]


def _stronger(run: PublishedRun, before: PublishedRun | None) -> PublishedRun:
    """A run that was checked for an earlier version has been checked: what that needed is no part of a version. Another run of its name,
    whoever sent it, has not."""
    same = before is not None and (run.record, run.submitted_by) == (before.record, before.submitted_by)
    if before is None or not same or GRADES.index(run.grade) > GRADES.index(before.grade):
        return run
    return replace(run, grade=before.grade, reason=before.reason)


def _own(store: RunsFolder, found: Gathered) -> list[Run]:
    own: list[Run] = []
    for run_id in store.ids():
        try:
            record = store.read(run_id)
        except RecordDamaged as error:
            found.left_out.append(left_out(run_id, "damaged", error.message, store.folder(run_id)))
        except UnknownName:  # removed since it was listed
            continue
        else:
            if why := _why_not(record):
                found.left_out.append(left_out(run_id, why, record.error or "", store.folder(run_id)))
            else:
                own.append((record, store.folder(run_id)))
    return own


def _why_not(record: RunRecord) -> str:
    """Empty where the run may be published."""
    return record.status if record.status != "finished" else "" if record.scores else "it has no scores"


def left_out(run_id: str, what: str, why: str, folder: Path) -> str:
    """ "simcse-builtin-s42-1a2b3c4d: failed: out of memory", on one line and without the publisher's own folders."""
    text = " ".join(why.replace(f"{folder / RECORD}: ", "").replace(f"{folder}/", "").replace(str(folder), "its folder").split())
    return f"{run_id}: {what}" + (f": {text[:LONGEST]}" if text else "")
