"""A run that somebody else made, in ``leaderboards/submissions/ID/``: what may be in that folder, and the checks that it has to pass.

    run.json                  the record
    submitted_by.txt          who made it, on one line, as the board shows it
    predictions/STS12.npz     what the model said of every item; predictions/mteb/... for tasks of mteb
    curve.jsonl               the training curve; may be missing

Nothing in it is executed or unpickled. Names, sizes and shapes are checked before a file is read whole.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from bench.base.errors import BenchError, DataDamaged, one_line, printable
from bench.runs.intact import CURVE
from bench.runs.record import AVERAGE, REDUCED, RunRecord, Score
from bench.runs.run import Run
from bench.runs.store import RECORD, predictions_name, read_record
from bench.verify.findings import DIFFERS, UNCHECKED, Finding, cell
from bench.verify.identity import check_data, check_fingerprint
from bench.verify.scores import check_average, check_gold, check_hash, check_score

if TYPE_CHECKING:
    from bench.data.sets.folder import DataFolder

MiB = 1 << 20
SENDER_FILE = "submitted_by.txt"
TOTAL_BYTES, MOST_FILES = 50 * MiB, 1000
NAMES = {  # name below the submission's folder -> bytes at most
    re.compile(r"run\.json"): 8 * MiB,
    re.compile(r"curve\.jsonl"): 4 * MiB,
    re.compile(r"submitted_by\.txt"): 1024,
    re.compile(r"predictions/(mteb/)?[A-Za-z0-9_%~][A-Za-z0-9_.~ @%-]{0,199}\.npz"): 16 * MiB,
}
LONGEST_NAME = 120  # characters of who submits
ARRAY_BYTES, ALL_ARRAY_BYTES = 64 * MiB, 256 * MiB
"""Of the arrays of one predictions file and of all, unpacked; a run of every suite has some 20 MB. This limits the work, too."""
MOST_SCORES = 1000
MOST_ROWS, MOST_COLUMNS = 500_000, 100
MOST_NAMES = 400  # different sub-datasets, folds, classes or clusters: scoring time grows with them
NAMED = {"subset", "fold"}
ROWS = ("prediction", "gold", "subset", "fold")  # arrays with a row for each item


def check_submission(folder: Path, data: DataFolder | None = None) -> RunRecord:
    """The record of a run that may be published. Raises BenchError, with the first reason, for any other. What is cheap is checked first."""
    try:
        return _check(folder.absolute(), data)
    except BenchError:
        raise
    except Exception as error:  # a stranger's file may be wrong in ways that nobody thought of
        raise DataDamaged(f"it cannot be checked: {one_line(error)}") from None


def _check(folder: Path, data: DataFolder | None) -> RunRecord:
    _check_names(folder)
    sender_of(folder)
    record = read_record(folder / RECORD)
    if record.run_id != folder.name:
        raise DataDamaged(f"its record is of {record.run_id}")
    if record.status != "finished":
        raise DataDamaged(f"it is {record.status}, not finished")
    _check_moment(record.provenance.created)
    if not 0 < len(record.scores) <= MOST_SCORES:
        raise DataDamaged(f"it has {len(record.scores):,} scores; the limit is {MOST_SCORES:,}")
    run = Run(record, folder)
    _check_files(run)
    refuse(_cheap_findings(run, data))
    for score in record.scores:
        findings = [check_average(score, record)]
        if score.task != AVERAGE:
            findings = [*check_score(score, run.predictions(score.key))]
        refuse(findings, f"its {cell(score)} cannot be computed from its predictions")
    return record


def _cheap_findings(run: Run, data: DataFolder | None) -> Iterator[Finding]:
    """What is checked before any score is computed. Raises DataMissing, DataDamaged."""
    yield check_fingerprint(run.record)
    for score in run.scores:
        if score.task != AVERAGE:
            arrays = run.predictions(score.key)
            _check_arrays(score, arrays)
            yield check_hash(score, arrays)
            yield check_gold(score, arrays)
    yield from check_data(run.record, data)


def refuse(findings: Iterable[Finding], unchecked: str = "") -> None:
    """Raises DataDamaged for the first that differs and, where ``unchecked`` says why, that could not be checked."""
    for finding in findings:
        if finding.outcome == DIFFERS:
            of = "" if finding.what == finding.kind else f" of {finding.what}"
            raise DataDamaged(f"{finding.kind}{of}: {finding.why}")
        if finding.outcome == UNCHECKED and finding.kind != "detail" and unchecked:
            raise DataDamaged(unchecked, "bench submit RUN --suite NAME leaves other suites out")


def sender_of(folder: Path) -> str:
    """Who submits the run. Raises DataDamaged for anything but a name on one line."""
    path = folder / SENDER_FILE
    try:
        name = " ".join(path.read_text(encoding="utf-8").split())
    except (OSError, ValueError) as error:
        raise DataDamaged(f"{SENDER_FILE} cannot be read: {error}") from None
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise DataDamaged(f"{SENDER_FILE} has to hold a name of at most {LONGEST_NAME} characters")
    return name


def _check_names(folder: Path) -> None:
    """Each file has a known name and is small enough; nothing is a link, a pipe or a program."""
    if folder.is_symlink() or not folder.is_dir():
        raise DataDamaged("it is not a folder")
    total = 0
    for i, path in enumerate(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        shown = printable(name)[:80]
        if i >= MOST_FILES:
            raise DataDamaged(f"it has more than {MOST_FILES:,} files")
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise DataDamaged(f"'{shown}' is a link or a device, not a file")
        if path.is_dir():
            continue
        most = next((size for pattern, size in NAMES.items() if pattern.fullmatch(name)), None)
        if most is None:
            raise DataDamaged(f"'{shown}' does not belong in a submission")
        total += (size := path.stat().st_size)
        if size > most or total > TOTAL_BYTES:
            limit = f"{most // MiB or 1} MiB, {TOTAL_BYTES // MiB} for all"
            raise DataDamaged(f"'{shown}' has {size:,} bytes; the limit is {limit}")


def _check_moment(created: str) -> None:
    """Raises DataDamaged for a moment that no calendar has, or in the future: a day ahead is another time zone."""
    try:
        ahead = datetime.fromisoformat(created).astimezone(UTC) - datetime.now(UTC)
    except (ValueError, OverflowError):
        raise DataDamaged(f"created is '{created}', not a date of the calendar") from None
    if ahead > timedelta(days=1):
        raise DataDamaged(f"created is {created}, which is in the future")


def _check_files(run: Run) -> None:
    """Each predictions file belongs to a score, all are small when unpacked, and each line of the curve is a JSON object."""
    expected = {run.predictions_file(score.key) for score in run.scores if score.task != AVERAGE}
    total = 0
    for path in sorted((run.folder / "predictions").rglob("*.npz")):
        if path not in expected:
            raise DataDamaged(f"{path.name} belongs to none of its scores")
        total += _unpacked_bytes(path)
        if total > ALL_ARRAY_BYTES:
            why = f"its predictions unpack to more than {ALL_ARRAY_BYTES:,} bytes"
            raise DataDamaged(why)
    curve = run.folder / CURVE
    try:
        msgspec.json.Decoder(dict).decode_lines(curve.read_bytes() if curve.exists() else b"")
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise DataDamaged(f"{CURVE}: not a JSON object on each line: {one_line(error)}") from None


def _unpacked_bytes(path: Path) -> int:
    """Of a predictions file, which has to be compressed in a way that takes no more memory than it holds. Raises DataDamaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (OSError, ValueError, RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
        raise DataDamaged(f"{path.name} is no predictions file: {one_line(error)}") from None
    plain = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    if any(member.compress_type not in plain for member in members):
        raise DataDamaged(f"{path.name} is compressed in a way that bench does not use")
    size = sum(member.file_size for member in members)
    if size > ARRAY_BYTES:
        raise DataDamaged(f"{path.name} unpacks to {size:,} bytes; the limit is {ARRAY_BYTES:,}")
    return size


def _check_arrays(score: Score, arrays: Mapping[str, np.ndarray]) -> None:
    """Raises DataDamaged for what should not be computed at all."""
    name = predictions_name(score.task, score.text, score.suite)
    if REDUCED in arrays:  # nobody could check the record's details
        raise DataDamaged(f"{name} has only ranks; a submission needs all of the predictions")
    for key, values in arrays.items():
        if values.dtype.kind not in "biufU":
            raise DataDamaged(f"{name}: {key} holds neither numbers nor text")
        shape, most = (*values.shape, 1)[:2], (MOST_ROWS, MOST_COLUMNS)
        if values.ndim > 2 or any(n > limit for n, limit in zip(shape, most, strict=False)):
            limit = f"{MOST_ROWS:,} by {MOST_COLUMNS}"
            raise DataDamaged(f"{name}: {key} has shape {values.shape}; the limit is {limit}")
        if key == "prediction" and values.dtype.kind == "f" and not np.isfinite(values).all():
            raise DataDamaged(f"{name}: a prediction is NaN or infinite")
        labels = key in NAMED or (score.suite == "clustering" and key in ("prediction", "gold"))
        if labels and len(np.unique(values)) > MOST_NAMES:
            raise DataDamaged(f"{name}: {key} has more than {MOST_NAMES} different values")
    rows = {key: len(arrays[key]) for key in ROWS if key in arrays and arrays[key].ndim}
    if len(set(rows.values())) > 1:
        raise DataDamaged(f"{name}: arrays differ in length: {rows}")
