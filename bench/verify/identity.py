"""Whether a run is the one that its record says (fingerprint, data, files of its checkpoint), and a version what its manifest says."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from bench.base.errors import BenchError, DataDamaged, DataMissing, FetchFailed
from bench.base.files import file_sha256
from bench.data.fetching import Site, download
from bench.runs.packed import MANIFEST, NAME, Elsewhere, cached, read_manifest
from bench.runs.record import AVERAGE, RunRecord, Score, ScoreKey, record_fingerprint
from bench.runs.run import Run
from bench.runs.store import RECORD, RunsFolder, data_key
from bench.score.suites import suite_names
from bench.score.suites.from_predictions import find_task
from bench.verify.findings import DIFFERS, UNCHECKED, Finding, NotChecked, RunReport, cell, check
from bench.verify.scores import check_scores, known_hashes

if TYPE_CHECKING:
    from bench.data.sets import DataFolder


def check_fingerprint(record: RunRecord) -> Finding:
    """From the record's own fields."""
    return check("fingerprint", "fingerprint", _fingerprint_difference, record)


def _fingerprint_difference(record: RunRecord) -> str:
    if not record.run_id.endswith(f"-{record.fingerprint[:8]}"):
        return f"{record.run_id} does not end in its fingerprint's {record.fingerprint[:8]}"
    try:
        again = record_fingerprint(record)
    except (TypeError, ValueError) as error:
        return f"it cannot be made from this record: {error}"
    if again is None:
        raise NotChecked("the record, of an older bench, does not keep all that it was made of")
    if again == record.fingerprint:
        return ""
    return f"{record.fingerprint[:12]} is recorded, the record's own fields give {again[:12]}"


def check_data(record: RunRecord, data: DataFolder | None) -> Iterator[Finding]:
    """The recorded hash of each set, against the sets in ``data`` and against those that bench knows."""
    for score in record.scores:
        if score.task != AVERAGE:
            yield check("data", cell(score), _data_difference, score, record, data)


def _data_difference(score: Score, record: RunRecord, data: DataFolder | None) -> str:
    """Where the set is not in the folder, a hash that bench knows is enough."""
    recorded = record.provenance.data.get(data_key(score.task, score.text, score.suite))
    forms = known_hashes().data.get(f"{score.suite}/{score.task}", {})
    expected = forms.get(score.text or "any")
    if recorded is None:
        return "the record does not say which data was scored"
    if expected not in (None, recorded):
        return "the recorded hash is not that of this data set"
    if data is None and expected is None:
        raise NotChecked("bench knows no hash of this set in this form; --data DIR reads it")
    if data is None:
        return ""
    if score.suite not in suite_names() or score.suite == "mteb":
        raise NotChecked(f"the data of {score.suite} is not read here")
    try:
        sha256 = _set_sha256(data, score.key)
    except BenchError as error:
        if expected is not None and isinstance(error, DataMissing):
            return ""
        raise NotChecked(error.message) from None
    if sha256 == recorded:
        return ""
    return "the set in the data folder is not the one that was scored"


@functools.lru_cache(maxsize=256)
def _set_sha256(data: DataFolder, key: ScoreKey) -> str:
    """Of a set in a folder, read once for all runs. Raises DataMissing, DataDamaged."""
    task = find_task(key)
    if task is None:
        raise DataMissing(f"{key.suite} has no task {key.task} under {key.protocol}")
    return task.load(data, key.text or "tokenised").sha256


def _checkpoint_difference(run: Run) -> str:
    """The first file whose hash is not the recorded one."""
    if not run.checkpoint.is_dir():
        raise NotChecked("there is no checkpoint here")
    if run.record.checkpoint is None:
        raise NotChecked("the record keeps no hash of it")
    compared = compare_files(run.checkpoint, run.record.checkpoint)
    return next((f"{name}: {why}" for name, why in compared.items() if why), "")


# --- one run, all checks ---

More = Callable[[Run], Iterable[Finding]]


def verify_run(folder: Path, data: DataFolder | None = None, more: More | None = None) -> RunReport:
    """What agrees and what does not in one run's folder. Raises nothing for whatever lies there.

    ``data``: also compare with the data sets in that folder. ``more``: further findings, such as those of encoding again. A run that
    another process works on is left alone: what it has written may not be what it has recorded.
    """
    folder = folder.absolute()
    store = RunsFolder(folder.parent)
    try:
        if holder := store.worked_on_by(folder.name):
            why = f"it is being worked on by {holder}"
            return RunReport(folder.name, [Finding("record", "run", UNCHECKED, why)], "in work")
        run = Run(store.read(folder.name), folder)
    except BenchError as error:
        damaged = Finding("record", "record", DIFFERS, error.message)
        return RunReport(folder.name, [damaged], "damaged")
    findings = [
        *check_scores(run),
        *check_data(run.record, data),
        check("checkpoint", "checkpoint", _checkpoint_difference, run),
        check_fingerprint(run.record),
        *(more(run) if more is not None else ()),
    ]
    return RunReport(run.record.run_id, findings, run.record.status)


# --- published versions: each file against the manifest, and predictions that lie elsewhere ---


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
    """Path -> how a file in ``folder`` differs from its listed sha256, "" where it does not; files that are not listed, too."""
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
        return "" if file_sha256(path) == sha256 else "changed"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"


def check_manifest(version: Path) -> RunReport | None:
    """Every file of a published version against its manifest, and files that the manifest does not list; None where there is none.

    v3 also lists under ``older`` files of v1 that its pages link to; they are compared where they lie, next to the version.
    """
    try:
        manifest = read_manifest(version)
    except DataDamaged as error:
        damaged = Finding("files", MANIFEST, DIFFERS, error.message)
        return RunReport(MANIFEST, [damaged], "damaged")
    if manifest is None:
        return None
    differences = compare_files(version, manifest.files)
    differences.pop(MANIFEST, None)
    for other, files in manifest.older.items():
        for name, sha256 in files.items():
            path = f"{other}/{name}"
            differences[f"../{path}"] = _file_difference(version.parent, path, sha256)
    findings = [check("files", name, str, why) for name, why in differences.items()]
    return RunReport(MANIFEST, findings, "published")


def fetch_predictions(version: Path, *, offline: bool = False) -> Finding | None:
    """Fetch the predictions of a version whose manifest names them by URL and sha256, to the cache; None where they lie in the version.

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
        raise NotChecked(f"it lies at {elsewhere.url}, and --offline fetches nothing")
    return ""
