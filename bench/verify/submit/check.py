"""What a board takes from strangers: files unpacked, every score computed again, and a line for whatever is not taken."""

from __future__ import annotations

import contextlib
import json
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from bench.base.errors import BenchError, DataDamaged, printable
from bench.base.files import file_sha256
from bench.runs.intact import CURVE
from bench.runs.predictions import Run
from bench.runs.record import REDUCED, RunRecord, Score
from bench.runs.store import RECORD, read_record
from bench.verify.attestation import Attestation, attestation, sent
from bench.verify.findings import AGREES, DIFFERS, Finding, RunReport, cell
from bench.verify.identity import check_checkpoint, check_data, check_fingerprint
from bench.verify.scores import StoredArrays, check_scores
from bench.verify.submit.unpacking import MiB, unpack

if TYPE_CHECKING:
    import numpy as np

    from bench.data.sets import DataFolder

ARRAY_BYTES, RUN_BYTES = 64 * MiB, 512 * MiB
"""Of all arrays of one predictions file, and of a run: unpacked."""
MOST_SCORES = 1000
MOST_ROWS, MOST_COLUMNS = 500_000, 100
MOST_NAMES = 400
"""Different sub-datasets, folds, classes or clusters: what computing a score again takes grows with their number, as with those above."""
NAMED = {"subset", "fold"}
# of a prediction, about, on one core; a thousand draws are taken of the first
SECONDS_PER_VALUE = {"cxc": 3e-5, "clustering": 4e-6}
OTHERWISE, PER_NAME = 1e-6, 5e-9  # the second for each different name in ``NAMED``
RUN_SECONDS, FILE_SECONDS = 60.0, 600.0
"""Of computing the scores of a run and of a submission again, by its arrays' shapes: a run of every suite takes some seven."""
LONGEST_LINE = 300


@dataclass(frozen=True, kw_only=True)
class SubmittedRun:
    """One run of a submission whose scores were computed again, in a folder of its own."""

    record: RunRecord
    folder: Path
    file: str  # name of the submission's file
    by: str | None
    report: RunReport
    attested: Attestation | None = None  # what the board's owner found on encoding again

    @property
    def sender(self) -> str:
        return self.by or f"an unnamed sender ({self.file})"

    def words(self) -> str:
        """What was looked at, for the reason of a grade."""
        scores, known = self.report.count("score"), self.report.count("gold")
        gold = (
            ""
            if known == scores
            else f"; the gold values of {scores - known} of them are not known here, and were taken as sent"
        )
        checkpoint = (
            "; its checkpoint came along and was not encoded again"
            if self.report.count("checkpoint")
            else ""
        )
        return f"sent in by {self.sender}; {scores} score{'s' * (scores != 1)} computed again from the predictions{gold}{checkpoint}"


@dataclass(frozen=True, kw_only=True)
class Submissions:
    """What a folder of submissions holds."""

    runs: tuple[SubmittedRun, ...] = ()
    refused: tuple[str, ...] = ()  # one line each: what was left out, and why


def collect(
    folder: Path,
    aside: Path,
    own: Sequence[Run] = (),
    data: DataFolder | None = None,
    keeper: Path | None = None,
) -> Submissions:
    """Every ``*.zip`` in ``folder``, unpacked below ``aside``, where the runs stay until the caller removes it.

    A run of ``own`` is never replaced: a submitted run of the same id or fingerprint is told of and left out. A file or run that is refused
    takes nothing else down. ``keeper``: the runs folder of the board, which holds what was found on encoding submissions again; None: nothing
    was. Raises BenchError where there is no such folder.
    """
    if not folder.is_dir():
        raise BenchError(
            f"no folder {folder} with submissions", "--submissions DIR, with files of bench submit"
        )
    own_names = {
        name for record, _ in own for name in (record.run_id.casefold(), record.fingerprint)
    }
    taken: dict[str, SubmittedRun] = {}
    refused: list[str] = []
    for i, file in enumerate(sorted(folder.glob("*.zip"))):
        for run in receive(file, aside / str(i), data, keeper):
            if isinstance(run, str):
                refused.append(run)
                continue
            names = (run.record.run_id.casefold(), run.record.fingerprint)
            before = taken.get(names[0]) or taken.get(names[1])
            if not own_names.isdisjoint(names):
                refused.append(
                    _line(
                        f"{file.name}: {run.record.run_id} is left out: this board has its own run of it"
                    )
                )
            elif before is not None:
                same = file_sha256(before.folder / RECORD) == file_sha256(run.folder / RECORD)
                which = "the same run" if same else "another run of that name or fingerprint"
                refused.append(
                    _line(
                        f"{file.name}: {run.record.run_id} is left out: {before.file} has {which}"
                    )
                )
            else:
                taken.update(dict.fromkeys(names, run))
    for file in sorted(
        folder.glob("*.verified.json")
    ):  # where an older bench kept them, and where anybody may put one
        why = "counts for nothing here: bench verify FILE.zip --retrain-free keeps its word in your runs folder"
        refused.append(_line(f"{file.name} {why}"))
    runs = {run.record.run_id: run for run in taken.values()}
    return Submissions(runs=tuple(runs[name] for name in sorted(runs)), refused=tuple(refused))


@dataclass
class Work:
    """What computing scores again may still take, in seconds of one core; estimated from shapes, so that it is the same everywhere."""

    left: float = FILE_SECONDS

    def take(self, seconds: float) -> None:
        """Raises DataDamaged where a run takes too much, or more than is left."""
        if seconds > RUN_SECONDS:
            raise DataDamaged(
                f"computing its scores again would take about {seconds:,.0f} s; at most {RUN_SECONDS:.0f} are spent on a run"
            )
        if seconds > self.left:
            raise DataDamaged(
                f"the scores of this file take more than {FILE_SECONDS:.0f} s to compute again; send it in several files"
            )
        self.left -= seconds


def receive(
    file: Path, aside: Path, data: DataFolder | None = None, keeper: Path | None = None
) -> Iterator[SubmittedRun | str]:
    """The runs of one submission, unpacked to ``aside``; a line for each that is refused, or one for the whole file.

    ``keeper``: as ``collect``. A word on a run that came without a checkpoint counts for nothing: nobody can have encoded it.
    """
    try:
        unpacked = unpack(file, aside)
    except BenchError as error:
        yield _line(error.message)
        return
    work = Work()
    for run_id in unpacked.runs:
        folder = unpacked.folder.absolute() / run_id
        try:
            report = check_run(folder, data, work)
        except (
            Exception
        ) as error:  # what a stranger made up may be wrong in ways that nobody thought of
            what = (
                error.message
                if isinstance(error, BenchError)
                else f"it cannot be checked: {type(error).__name__}: {error}"
            )
            why = what.replace(f"{folder}/", "").replace(f"{run_id} has", "it has")
            yield _line(f"{file.name}: {run_id} is refused: {why}")
            continue
        assert report.record is not None
        yield SubmittedRun(
            record=report.record,
            folder=folder,
            file=file.name,
            by=unpacked.by,
            report=report,
            attested=attestation(folder, sent(keeper, folder))
            if keeper is not None and report.count("checkpoint")
            else None,
        )


def check_run(folder: Path, data: DataFolder | None = None, work: Work | None = None) -> RunReport:
    """What ``bench verify`` finds of a run that may be published. Raises BenchError, with the first reason, for any other."""
    report = examine_run(folder, data, work)
    for score in uncomputable(report):
        raise DataDamaged(
            f"its {cell(score)} cannot be computed again from what it keeps; bench submit leaves such scores out"
        )
    return report


def examine_run(
    folder: Path, data: DataFolder | None = None, work: Work | None = None
) -> RunReport:
    """As ``check_run``, of a run that may have scores that nobody can compute again. What is cheap is looked at first, and the first
    difference ends it: a refusal costs little."""
    record = read_record(folder / RECORD)
    if record.run_id != folder.name:
        raise DataDamaged(f"its record is of {record.run_id}")
    if record.status != "finished":
        raise DataDamaged(f"it is not finished, but {record.status}")
    _check_moment(record.provenance.created)
    if not 0 < len(record.scores) <= MOST_SCORES:
        raise DataDamaged(f"it has {len(record.scores):,} scores; 1 to {MOST_SCORES:,} are taken")
    stored = StoredArrays(record, folder)
    seconds = _check_files(stored, folder)
    findings = []
    for finding in _findings(record, folder, data, work or Work(), seconds, stored):
        if finding.outcome == DIFFERS:
            what = (
                finding.kind
                if finding.what == finding.kind
                else f"{finding.kind} of {finding.what}"
            )
            raise DataDamaged(f"{what}: {finding.why}")
        findings.append(finding)
    return RunReport(record.run_id, findings, record.status, record)


def _findings(
    record: RunRecord,
    folder: Path,
    data: DataFolder | None,
    work: Work,
    seconds: float,
    stored: StoredArrays,
) -> Iterator[Finding]:
    """Those of ``verify_run``, the cheapest first; scores are computed when everything else agrees."""
    yield check_fingerprint(record)
    yield check_checkpoint(record, folder)
    for score in stored.scores:
        for finding in stored.given(score):
            if finding.outcome == DIFFERS:  # those that agree come again, with their scores
                yield finding
    yield from check_data(record, data)
    work.take(seconds)
    yield from check_scores(record, folder, stored)


def _check_moment(created: str) -> None:
    """Raises DataDamaged for a moment that no calendar has, or that is yet to come: a day ahead is another time zone."""
    try:
        moment = datetime.fromisoformat(created)
        ahead = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime.now(
            UTC
        ) > timedelta(days=1)
    except (ValueError, OverflowError):
        raise DataDamaged(f"it was made at {created}, which is no moment of the calendar") from None
    if ahead:
        raise DataDamaged(f"it was made at {created}, which is yet to come")


def uncomputable(report: RunReport) -> list[Score]:
    """Scores that do not follow from the predictions, as far as anybody can tell."""
    computed = {
        finding.what
        for finding in report.findings
        if finding.kind in ("score", "average") and finding.outcome == AGREES
    }
    return (
        [score for score in report.record.scores if cell(score) not in computed]
        if report.record
        else []
    )


def _check_files(stored: StoredArrays, folder: Path) -> float:
    """Each predictions file belongs to a score and is of arrays that can be scored in reasonable time, which is given, and the curve is one."""
    place = folder / "predictions"
    expected: dict[Path, list[Score]] = {}
    for score in stored.scores:  # two protocols may score one file
        expected.setdefault(stored.path(score), []).append(score)
    total, seconds = 0, 0.0
    for path in sorted(file for file in place.rglob("*") if not file.is_dir()):
        if path not in expected:
            raise DataDamaged(
                f"predictions/{path.relative_to(place).as_posix()} belongs to none of its scores"
            )
        total += _unpacked_bytes(path)
        if total > RUN_BYTES:
            raise DataDamaged(f"its predictions unpack to more than {RUN_BYTES:,} bytes")
        seconds += sum(_check_arrays(path, score, stored.arrays(score)) for score in expected[path])
    if (folder / CURVE).exists():
        for i, line in enumerate((folder / CURVE).read_bytes().splitlines(), 1):
            if line.strip() and not _is_entry(line):
                raise DataDamaged(f"line {i} of its {CURVE} is no entry of a training curve")
    return seconds


def _is_entry(line: bytes) -> bool:
    with contextlib.suppress(ValueError, RecursionError):
        return isinstance(json.loads(line), dict)
    return False


def _unpacked_bytes(path: Path) -> int:
    """Of a predictions file that is small enough and compressed in a way that takes no more memory than it holds."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (OSError, ValueError, RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
        raise DataDamaged(
            f"predictions/{path.name} is no predictions file: {str(error)[:100]}"
        ) from None
    if any(
        member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members
    ):
        raise DataDamaged(
            f"predictions/{path.name} is compressed in a way that bench submit does not use"
        )
    size = sum(member.file_size for member in members)
    if size > ARRAY_BYTES:
        raise DataDamaged(
            f"predictions/{path.name} unpacks to {size:,} bytes; at most {ARRAY_BYTES:,} are taken"
        )
    return size


def _check_arrays(path: Path, score: Score, arrays: dict[str, np.ndarray] | BenchError) -> float:
    """Seconds that computing the score again takes, about."""
    import numpy as np

    name, names = f"predictions/{path.name}", 1
    if isinstance(arrays, BenchError):
        raise DataDamaged(
            f"{name} is no predictions file: {arrays.message.rpartition(' is no predictions file: ')[2]}"
        )
    if REDUCED in arrays:  # the record's details would be anybody's word
        raise DataDamaged(
            f"{name} holds only what the score needs; a submission has all of the predictions: run its command again"
        )
    for key, values in arrays.items():
        if values.dtype.kind not in "biufU":
            raise DataDamaged(f"{name}: {key} holds neither numbers nor text")
        if values.ndim > 2 or any(
            n > most for n, most in zip(values.shape, (MOST_ROWS, MOST_COLUMNS), strict=False)
        ):
            raise DataDamaged(
                f"{name}: {key} has the shape {values.shape}; at most {MOST_ROWS:,} by {MOST_COLUMNS} are taken"
            )
        labels = key in NAMED or (score.suite == "clustering" and key in ("prediction", "gold"))
        if labels and (different := len(np.unique(values))) > MOST_NAMES:
            raise DataDamaged(f"{name}: {key} has more than {MOST_NAMES} different values")
        names = max(names, different) if key in NAMED else names
    rows = {
        key: len(values)
        for key, values in arrays.items()
        if key in ("prediction", "gold", "subset", "fold") and values.ndim
    }
    if len(set(rows.values())) > 1:
        raise DataDamaged(
            f"{name}: its arrays differ in length: {', '.join(f'{key} {n:,}' for key, n in sorted(rows.items()))}"
        )
    count = arrays["prediction"].size if "prediction" in arrays else 0
    return count * (SECONDS_PER_VALUE.get(score.suite, OTHERWISE) + names * PER_NAME)


def _line(text: str) -> str:
    """Foreign names and messages as one line that can be shown anywhere."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"
