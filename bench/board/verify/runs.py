"""Check that a run is the one that its record describes. All checks of one run: scores, data,
files, checkpoint and fingerprint.
"""

from __future__ import annotations

import os
from pathlib import Path

from bench.base.errors import BenchError
from bench.base.findings import DIFFERS, UNCHECKED, Finding
from bench.base.reading import CURVE_BYTES, list_plain_files, open_plain_file
from bench.board.verify.findings import NotChecked, RunReport, make_finding, name_score
from bench.board.verify.scores import check_scores
from bench.board.verify.versions import compare_files
from bench.records.fingerprint import record_fingerprint
from bench.records.names import CURVE, data_key
from bench.records.record import AVERAGE, RunRecord, Score
from bench.records.run import Run
from bench.records.selection import known_sets
from bench.records.store import RunsFolder
from bench.score.suites import OWN


def _fingerprint_difference(record: RunRecord) -> str:
    if not record.run_id.endswith(f"-{record.fingerprint[:8]}"):
        return f"{record.run_id} does not end in its fingerprint's {record.fingerprint[:8]}"
    try:
        again = record_fingerprint(record)
    except (TypeError, ValueError) as error:
        return f"it cannot be computed from this record: {error}"
    if again is None:
        raise NotChecked(
            "a record of an older bench does not hold everything that it is computed from"
        )
    if again == record.fingerprint:
        return ""
    return f"{record.fingerprint[:12]} is recorded, the record's fields give {again[:12]}"


def _data_difference(score: Score, record: RunRecord) -> str:
    """Compare the recorded hash of the data with the one that bench knows."""
    recorded = record.provenance.data.get(data_key(score.task, score.protocol, score.suite))
    expected = known_sets()["data"].get(f"{score.suite}/{data_key(score.task, score.protocol)}")
    if recorded is None:
        return "the record has no hash of the data that was scored"
    if expected not in (None, recorded):
        return "the recorded hash is not that of this data set"
    if score.suite == OWN:
        raise NotChecked("a file that somebody added: bench has no hash for it")
    if expected is None:
        raise NotChecked("bench has no hash of this set")
    return ""


def _checkpoint_difference(run: Run) -> str:
    """Name the first file with another hash than the recorded one."""
    if not run.checkpoint.is_dir():
        raise NotChecked("there is no checkpoint here")
    if run.record.checkpoint is None:
        raise NotChecked("the record has no hashes of its files")
    for name, why in compare_files(run.checkpoint, run.record.checkpoint).items():
        if why:
            return f"{name}: {why}"
    return ""


def verify_run(folder: Path) -> RunReport:
    """Compare everything in one run's folder with its record. Damaged files are findings, never
    exceptions.

    A run that is locked by a process is not checked: its files may be newer than its record.
    """
    folder = folder.absolute()
    store = RunsFolder(folder.parent)
    try:
        holder = store.worked_on_by(folder.name)
        if holder:
            return RunReport(
                folder.name,
                [Finding("record", "run", UNCHECKED, f"it is locked by {holder}")],
                "in work",
            )
        run = Run(store.read(folder.name), folder)
    except BenchError as error:
        return RunReport(
            folder.name, [Finding("record", "record", DIFFERS, error.message)], "damaged"
        )
    findings = [*check_scores(run)]
    for score in run.scores:
        if score.task != AVERAGE:
            name = name_score(score)
            findings.append(make_finding("data", name, _data_difference, score, run.record))
    findings += check_folder(folder)
    findings.append(make_finding("checkpoint", "checkpoint", _checkpoint_difference, run))
    findings.append(make_finding("fingerprint", "fingerprint", _fingerprint_difference, run.record))
    return RunReport(run.record.run_id, findings, run.record.status)


def check_folder(folder: Path) -> list[Finding]:
    """Return one finding if a run's folder holds what is never read: a link, a pipe, a device, or a
    curve that is too large for one.
    """
    try:
        list_plain_files(folder)
        with open_plain_file(folder / CURVE, CURVE_BYTES):
            return []
    except FileNotFoundError:  # a method without training has no curve
        return []
    except OSError as error:
        name = os.path.relpath(error.filename or folder, folder)
        return [Finding("files", name, DIFFERS, str(error.strerror))]
