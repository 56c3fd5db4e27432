"""One run, all checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import BenchError, RecordDamaged
from bench.runs.record import RunRecord
from bench.runs.store import RECORD, RunsFolder, read_record
from bench.verify.findings import DIFFERS, UNCHECKED, Finding, RunReport
from bench.verify.identity import check_checkpoint, check_data, check_fingerprint
from bench.verify.scores import check_scores

if TYPE_CHECKING:
    from bench.datasets import DataFolder

More = Callable[[RunRecord, Path], Iterable[Finding]]


def verify_run(folder: Path, data: DataFolder | None = None, more: More | None = None) -> RunReport:
    """What agrees and what does not in one run's folder. Raises nothing for whatever lies there.

    ``data``: also compare with the data sets in that folder. ``more``: further findings, such as those of encoding again. A run that
    another process works on is left alone: what it has written may not be what it has recorded.
    """
    folder = folder.absolute()
    try:
        if holder := RunsFolder(folder.parent).worked_on_by(folder.name):
            return RunReport(folder.name, [Finding("record", "run", UNCHECKED, f"it is being worked on by {holder}")], "in work")
        record = read_record(folder / RECORD)
        if record.run_id != folder.name:
            raise RecordDamaged(f"{folder / RECORD}: run_id is '{record.run_id}', not the folder's name")
    except BenchError as error:
        return RunReport(folder.name, [Finding("record", "record", DIFFERS, error.message)], "damaged")
    findings = [
        *check_scores(record, folder), *check_data(record, data), check_checkpoint(record, folder), check_fingerprint(record),
        *(more(record, folder) if more is not None else ()),
    ]  # fmt: skip
    return RunReport(record.run_id, findings, record.status, record)
