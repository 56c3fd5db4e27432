"""Whether a run is the one that its record says (fingerprint, data, files of its checkpoint), and a version what its manifest says."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from bench.base.errors import BenchError, DataMissing, RecordDamaged
from bench.base.files import file_sha256, folder_sha256, write_or_fail
from bench.run import provenance
from bench.runs.packed import MANIFEST, NAME, cached, elsewhere
from bench.runs.record import AVERAGE, RunRecord, Score, ScoreKey
from bench.runs.store import RECORD, RunsFolder, data_key, read_record
from bench.score.suites import suite_names
from bench.score.suites.from_predictions import find_task
from bench.verify.findings import AGREES, DIFFERS, UNCHECKED, Finding, RunReport, cell
from bench.verify.scores import check_scores, known_hashes

if TYPE_CHECKING:
    from bench.data.sets.folder import DataFolder


def check_fingerprint(record: RunRecord) -> Finding:
    """From the record's own fields."""
    if not record.run_id.endswith(f"-{record.fingerprint[:8]}"):
        return Finding(
            "fingerprint",
            "run id",
            DIFFERS,
            f"{record.run_id} does not end in its fingerprint's {record.fingerprint[:8]}",
        )
    try:
        again = provenance.record_fingerprint(record)
    except (TypeError, ValueError) as error:
        return Finding(
            "fingerprint", "fingerprint", DIFFERS, f"it cannot be made from this record: {error}"
        )
    if again is None:
        return Finding(
            "fingerprint",
            "fingerprint",
            UNCHECKED,
            "the record, of an older bench, does not keep all that it was made of",
        )
    if again != record.fingerprint:
        why = f"{record.fingerprint[:12]} is recorded, the record's own fields give {again[:12]}"
        return Finding("fingerprint", "fingerprint", DIFFERS, why)
    return Finding("fingerprint", "fingerprint", AGREES)


def check_checkpoint(record: RunRecord, folder: Path) -> Finding:
    """Every file's hash."""
    place = folder / "checkpoint"
    if not place.is_dir():
        return Finding("checkpoint", "checkpoint", UNCHECKED, "there is no checkpoint here")
    if record.checkpoint is None:
        return Finding("checkpoint", "checkpoint", UNCHECKED, "the record keeps no hash of it")
    try:
        files = folder_sha256(place)
    except OSError as error:
        return Finding("checkpoint", "checkpoint", DIFFERS, f"it cannot be read: {error.strerror}")
    for name in sorted({*files, *record.checkpoint}):
        if name not in files:
            return Finding("checkpoint", "checkpoint", DIFFERS, f"{name} is missing")
        if name not in record.checkpoint:
            return Finding("checkpoint", "checkpoint", DIFFERS, f"{name} is not recorded")
        if files[name] != record.checkpoint[name]:
            return Finding("checkpoint", "checkpoint", DIFFERS, f"{name} was changed")
    return Finding("checkpoint", "checkpoint", AGREES)


def check_data(record: RunRecord, data: DataFolder | None) -> Iterator[Finding]:
    """The recorded hash of each set, against the sets in ``data`` and against those that bench knows."""
    for score in record.scores:
        if score.task == AVERAGE:
            continue
        what, recorded = (
            cell(score),
            record.provenance.data.get(data_key(score.task, score.text, score.suite)),
        )
        expected = (
            known_hashes().data.get(f"{score.suite}/{score.task}", {}).get(score.text or "any")
        )
        if recorded is None:
            yield Finding("data", what, DIFFERS, "the record does not say which data was scored")
        elif expected is not None and recorded != expected:
            yield Finding("data", what, DIFFERS, "the recorded hash is not that of this data set")
        elif data is not None:
            yield _in_folder(score, str(recorded), data, expected is not None)
        elif expected is None:
            yield Finding(
                "data",
                what,
                UNCHECKED,
                "bench knows no hash of this set in this form; --data DIR reads it",
            )
        else:
            yield Finding("data", what, AGREES)


def _in_folder(score: Score, recorded: str, data: DataFolder, known_hash: bool) -> Finding:
    """The set as it lies in the folder; where it does not lie there, a hash that bench knows is enough."""
    what = cell(score)
    if score.suite not in suite_names() or score.suite == "mteb":
        return Finding("data", what, UNCHECKED, f"the data of {score.suite} is not read here")
    try:
        sha256 = _sha256(data, score.suite, score.task, score.protocol, score.text or "tokenised")
    except DataMissing as error:
        return (
            Finding("data", what, AGREES)
            if known_hash
            else Finding("data", what, UNCHECKED, error.message)
        )
    except BenchError as error:
        return Finding("data", what, UNCHECKED, error.message)
    if sha256 != recorded:
        return Finding(
            "data", what, DIFFERS, "the set in the data folder is not the one that was scored"
        )
    return Finding("data", what, AGREES)


@functools.lru_cache(maxsize=256)
def _sha256(data: DataFolder, name: str, task: str, protocol: str, text: str) -> str:
    """Of a set in a folder, read once for all runs. Raises DataMissing, DataDamaged."""
    scored = find_task(ScoreKey(name, task, protocol, text))
    if scored is None:
        raise DataMissing(f"{name} has no task {task} under {protocol}")
    return scored.load(data, text).sha256


# --- one run, all checks ---

More = Callable[[RunRecord, Path], Iterable[Finding]]


def verify_run(folder: Path, data: DataFolder | None = None, more: More | None = None) -> RunReport:
    """What agrees and what does not in one run's folder. Raises nothing for whatever lies there.

    ``data``: also compare with the data sets in that folder. ``more``: further findings, such as those of encoding again. A run that
    another process works on is left alone: what it has written may not be what it has recorded.
    """
    folder = folder.absolute()
    try:
        if holder := RunsFolder(folder.parent).worked_on_by(folder.name):
            return RunReport(
                folder.name,
                [Finding("record", "run", UNCHECKED, f"it is being worked on by {holder}")],
                "in work",
            )
        record = read_record(folder / RECORD)
        if record.run_id != folder.name:
            raise RecordDamaged(
                f"{folder / RECORD}: run_id is '{record.run_id}', not the folder's name"
            )
    except BenchError as error:
        return RunReport(
            folder.name, [Finding("record", "record", DIFFERS, error.message)], "damaged"
        )
    findings = [
        *check_scores(record, folder),
        *check_data(record, data),
        check_checkpoint(record, folder),
        check_fingerprint(record),
        *(more(record, folder) if more is not None else ()),
    ]
    return RunReport(record.run_id, findings, record.status, record)


# --- published versions: each file against the manifest, and predictions that lie elsewhere ---

WAIT = 60  # seconds without an answer from the server of a predictions file


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


def check_manifest(folder: Path) -> RunReport | None:
    """Every file of a published version against its manifest, and files that the manifest does not name; None where there is none.

    A manifest is ``{"files": {path: sha256}}``, paths relative to it with forward slashes. v3 also lists under ``older`` files of
    v1 that its pages link to; they are compared where they lie, beside the version.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_bytes())
        older = {
            f"../{version}/{name}": sha256
            for version, files in content.get("older", {}).items()
            for name, sha256 in files.items()
        }
        listed = {**content["files"], **older}
        if not all(isinstance(sha256, str) for sha256 in listed.values()):
            raise ValueError("a file has no sha256")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = f"it cannot be read: {error}"
        return RunReport(MANIFEST, [Finding("files", MANIFEST, DIFFERS, why)], "damaged")
    there = {
        place.relative_to(folder).as_posix()
        for place in folder.rglob("*")
        if place.is_symlink() or not place.is_dir()
    }
    names = sorted({*listed, *there} - {MANIFEST})
    findings = [_compared(folder, name, listed.get(name), beside=name in older) for name in names]
    return RunReport(MANIFEST, findings, "published")


def _compared(folder: Path, name: str, expected: str | None, *, beside: bool) -> Finding:
    path, parts = folder / name, PurePosixPath(name).parts
    if PurePosixPath(name).is_absolute() or ".." in parts[1 if beside else 0 :]:
        return Finding("files", name, DIFFERS, "leads out of the folder")
    if expected is None:
        return Finding("files", name, DIFFERS, "not in the manifest")
    if path.is_symlink() or (path.exists() and not path.is_file()):
        return Finding("files", name, DIFFERS, "a link or a pipe, not a file")
    if not path.exists():
        return Finding("files", name, DIFFERS, "missing")
    with contextlib.suppress(OSError):  # what cannot be read is not what was published
        if file_sha256(path) == expected:
            return Finding("files", name, AGREES)
    return Finding("files", name, DIFFERS, "changed since it was published")


def fetch_predictions(folder: Path, *, offline: bool = False) -> Finding | None:
    """Fetch the predictions of a version whose manifest names them by URL and sha256, to the cache; None where they are not elsewhere.

    The download stops at the size that the manifest names.
    """
    known = elsewhere(folder)
    if known is None or (folder / NAME).is_file():
        return None
    to, url = cached(known["sha256"]), known["url"]
    if to.is_file() and file_sha256(to) == known["sha256"]:
        return Finding("files", NAME, AGREES)
    if offline:
        return Finding("files", NAME, UNCHECKED, f"it lies at {url}, and --offline fetches nothing")
    try:
        if not url.startswith(("https://", "http://")):
            raise ValueError("the address is not http or https")
        with urllib.request.urlopen(url, timeout=WAIT) as answer:  # noqa: S310
            data = answer.read(known["bytes"] + 1)
    except (OSError, ValueError) as error:
        why = f"it lies at {url}, which cannot be fetched: {error}; no score was computed again"
        return Finding("files", NAME, UNCHECKED, why)
    if hashlib.sha256(data).hexdigest() != known["sha256"]:
        return Finding("files", NAME, DIFFERS, f"{url} is another file: another sha256")
    write_or_fail(to, data)
    return Finding("files", NAME, AGREES)
