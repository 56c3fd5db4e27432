"""Is a record true? Every score again from stored predictions, every hash again from the files; without torch and without the model.

from bench.verify import runs_below, verify_run

for place in runs_below(Path("leaderboards/v4")):
    print(verify_run(place).differences)

Scores are in ``bench.verify.scores``. Here: whether a run is the one that its record describes (fingerprint, data, checkpoint), and
whether the files of a version are those of its manifest.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath

from bench.base.errors import BenchError, DataDamaged, DataMissing, FetchFailed
from bench.base.findings import DIFFERS, UNCHECKED, Finding
from bench.base.hashes import file_sha256
from bench.base.reading import CURVE_BYTES, list_plain_files, open_plain_file
from bench.data.fetching import Site, download
from bench.data.sets import DataFolder
from bench.records.fingerprint import record_fingerprint
from bench.records.names import CURVE, RECORD, data_key
from bench.records.packed import MANIFEST, NAME, Elsewhere, cached, read_manifest
from bench.records.record import AVERAGE, RunRecord, Score, ScoreKey
from bench.records.run import Run
from bench.records.selection import known_sets
from bench.records.store import RunsFolder
from bench.score.suites import find_task, suite_names
from bench.verify.scores import (
    NotChecked,
    RunReport,
    cell,
    check,
    check_scores,
)


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
    return (
        ""
        if again == record.fingerprint
        else f"{record.fingerprint[:12]} is recorded, the record's fields give {again[:12]}"
    )


def _data_difference(score: Score, record: RunRecord, data: DataFolder | None) -> str:
    """The recorded hash against the hash that bench knows and, if it is there, against the set in ``data``."""
    recorded = record.provenance.data.get(data_key(score.task, score.text, score.suite))
    expected = known_sets()["data"].get(f"{score.suite}/{score.task}", {}).get(score.text or "any")
    if recorded is None:
        return "the record has no hash of the data that was scored"
    if expected not in (None, recorded):
        return "the recorded hash is not that of this data set"
    if data is None and expected is None:
        raise NotChecked("bench has no hash of this set in this text form; add --data DIR")
    if data is None:
        return ""
    if score.suite not in suite_names() or score.suite == "mteb":
        raise NotChecked(f"verify does not read the data of {score.suite}")
    try:
        sha256 = _set_sha256(data, score.key)
    except BenchError as error:
        if expected is not None and isinstance(error, DataMissing):
            return ""
        raise NotChecked(error.message) from None
    return "" if sha256 == recorded else "the set in the data folder is not the set that was scored"


@functools.lru_cache(maxsize=256)
def _set_sha256(data: DataFolder, key: ScoreKey) -> str:
    """Of a set in a folder, read once for all runs. Raises DataMissing, DataDamaged."""
    if (task := find_task(key)) is None:
        raise DataMissing(f"{key.suite} has no task {key.task} under {key.protocol}")
    return task.load(data, key.text or "tokenised").sha256


def _checkpoint_difference(run: Run) -> str:
    """The first file whose hash differs from the recorded one."""
    if not run.checkpoint.is_dir():
        raise NotChecked("there is no checkpoint here")
    if run.record.checkpoint is None:
        raise NotChecked("the record has no hashes of its files")
    return next(
        (
            f"{name}: {why}"
            for name, why in compare_files(run.checkpoint, run.record.checkpoint).items()
            if why
        ),
        "",
    )


# --- one run, all checks ---


More = Callable[[Run], Iterable[Finding]]


def verify_run(
    folder: Path,
    data: DataFolder | None = None,
    more: More | None = None,
) -> RunReport:
    """What agrees and what differs in one run's folder. Damaged files are findings, never exceptions.

    ``data``: also compare with the data sets in that folder. ``more``: further findings, such as those of encoding again. A run that
    is locked by a process is not checked: its files may be newer than its record.
    """
    folder = folder.absolute()
    store = RunsFolder(folder.parent)
    try:
        if holder := store.worked_on_by(folder.name):
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
    return RunReport(
        run.record.run_id,
        [
            *check_scores(run),
            *(
                check("data", cell(score), _data_difference, score, run.record, data)
                for score in run.scores
                if score.task != AVERAGE
            ),
            *check_folder(folder),
            check("checkpoint", "checkpoint", _checkpoint_difference, run),
            check("fingerprint", "fingerprint", _fingerprint_difference, run.record),
            *(more(run) if more is not None else ()),
        ],
        run.record.status,
    )


def check_folder(folder: Path) -> list[Finding]:
    """One finding if a run's folder holds what is never read: a link, a pipe, a device, or a curve that is too large for one."""
    try:
        list_plain_files(folder)
        with open_plain_file(folder / CURVE, CURVE_BYTES):
            return []
    except FileNotFoundError:  # a method without training has no curve
        return []
    except OSError as error:
        name = os.path.relpath(error.filename or folder, folder)
        return [Finding("files", name, DIFFERS, str(error.strerror))]


# --- published versions: each file against the manifest, and predictions that are stored elsewhere ---


def runs_below(folder: Path) -> list[Path]:
    """The folders that hold a record, in alphabetical order: ``folder`` itself, or any below it. Links are not followed."""
    if (folder / RECORD).is_file():
        return [folder]
    runs = []
    for place, names, files in os.walk(folder):
        if RECORD in files and (Path(place) / RECORD).is_file():
            runs.append(Path(place))
            names.clear()  # a run holds no runs
        names[:] = [name for name in names if not name.startswith(".")]
    return sorted(runs)


def compare_files(folder: Path, listed: Mapping[str, str]) -> dict[str, str]:
    """Path -> how a file in ``folder`` differs from its listed sha256, "" if it agrees; also for files that are not listed."""
    there = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }
    return {
        name: _file_difference(folder, name, listed[name]) if name in listed else "not listed"
        for name in sorted({*listed, *there})
    }


def _file_difference(folder: Path, name: str, sha256: str) -> str:
    path = folder / name
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        return "leads out of the folder"
    if path.is_symlink() or (path.exists() and not path.is_file()):
        return "a link or a pipe, not a file"
    if not path.exists():
        return "missing"
    try:
        return "" if file_sha256(path, inside=folder) == sha256 else "changed"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


MOST_DIFFERENCES = 10
"""Files of a version that are named; the others are counted."""


def check_manifest(version: Path) -> RunReport | None:
    """Every file of a published version against its manifest, and files that the manifest does not list; None without a manifest."""
    try:
        manifest = read_manifest(version)
    except DataDamaged as error:
        return RunReport(MANIFEST, [Finding("files", MANIFEST, DIFFERS, error.message)], "damaged")
    if manifest is None:
        return None
    differences = compare_files(version, manifest.files)
    differences.pop(MANIFEST, None)
    findings: list[Finding] = []
    wrong = 0
    for name, why in differences.items():
        wrong += bool(why)
        if not why or wrong <= MOST_DIFFERENCES:
            findings.append(check("files", name, str, why))
    if wrong > MOST_DIFFERENCES:
        more = f"and {wrong - MOST_DIFFERENCES:,} more files differ"
        findings.append(Finding("files", "others", DIFFERS, more))
    return RunReport(MANIFEST, findings, "published")


def fetch_predictions(version: Path, *, offline: bool = False) -> Finding | None:
    """Fetch the predictions of a version whose manifest has their URL and sha256 to the cache; None if the version holds them.

    The download stops at the size that the manifest names.
    """
    try:
        manifest = read_manifest(version)
    except DataDamaged:  # check_manifest reports it
        return None
    if manifest is None or manifest.predictions_url is None or (version / NAME).is_file():
        return None
    return check("files", NAME, _fetched_difference, manifest.predictions_url, offline)


def _fetched_difference(elsewhere: Elsewhere, offline: bool) -> str:
    path = cached(elsewhere.sha256)
    if not offline:
        try:
            download(Site(elsewhere.url), path, sha256=elsewhere.sha256, most_bytes=elsewhere.bytes)
        except FetchFailed as error:
            raise NotChecked(f"{error.message}; no score was computed again") from None
    elif not path.is_file() or file_sha256(path) != elsewhere.sha256:
        raise NotChecked(f"it is at {elsewhere.url}; run again without --offline to fetch it")
    return ""
