"""Whether a run is the one that its record says (fingerprint, data, files of its checkpoint), and a version what its manifest says."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError, DataMissing, RecordDamaged
from bench.base.files import file_sha256, folder_sha256
from bench.run import provenance
from bench.runs.record import AVERAGE, MANIFEST, RunRecord, Score, older_below, older_files
from bench.runs.store import RECORD, RunsFolder, data_key, read_record
from bench.score.suites import suite_names
from bench.score.suites.from_predictions import find_task
from bench.verify.findings import AGREES, DIFFERS, UNCHECKED, Finding, RunReport, cell
from bench.verify.scores import check_scores, known_hashes

if TYPE_CHECKING:
    from bench.data.sets import DataFolder


PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "auto")


def check_fingerprint(record: RunRecord) -> Finding:
    """From the record's own fields; of an older record, by trying what it does not say."""
    if not record.run_id.endswith(f"-{record.fingerprint[:8]}"):
        return Finding(
            "fingerprint",
            "run id",
            DIFFERS,
            f"{record.run_id} does not end in its fingerprint's {record.fingerprint[:8]}",
        )
    try:
        again = provenance.record_fingerprint(record)
        if again is None and any(
            provenance.record_fingerprint(record, rest) == record.fingerprint
            for rest in _guesses(record)
        ):
            again = record.fingerprint
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


def _guesses(record: RunRecord) -> Iterator[dict[str, object]]:
    """What records of the first schema left unsaid: precision, selection set, and recipe keys that name a place (left empty)."""
    empty = [key for key, value in record.recipe.items() if value.value is None]
    places: list[dict[str, None]] = [{}, *({key: None} for key in empty)]
    for precision, dev, place in itertools.product(
        PRECISIONS, (None, *known_hashes().dev.values()), places
    ):
        yield {"precision": precision, "dev": dev, "places": place}


def check_checkpoint(record: RunRecord, folder: Path) -> Finding:
    """Every file's hash; of an older record the size alone."""
    place = folder / "checkpoint"
    if not place.is_dir():
        return Finding("checkpoint", "checkpoint", UNCHECKED, "there is no checkpoint here")
    if record.checkpoint is None:
        expected, size = (
            record.cost.checkpoint_bytes,
            sum(path.stat().st_size for path in place.rglob("*") if path.is_file()),
        )
        if expected is not None and expected != size:
            return Finding(
                "checkpoint", "checkpoint", DIFFERS, f"{size:,} bytes found, {expected:,} recorded"
            )
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
    scored = find_task((name, task, protocol, text))
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


# --- folders of runs: which runs are in one, and whether a published version is as its manifest says ---


def runs_below(folder: Path) -> list[Path]:
    """The folders that hold a record, in alphabetical order: ``folder`` itself, or any below it. Links are not followed.

    Of a published version also those that an older version holds for it.
    """
    if (folder / RECORD).is_file():
        return [folder]
    runs = [
        place.parent
        for name, place in older_below(folder).items()
        if name.rsplit("/", 1)[-1] == RECORD
    ]
    for place, names, files in os.walk(folder):
        if RECORD in files and (Path(place) / RECORD).is_file():
            runs.append(Path(place))
            names.clear()  # a run holds no runs
        elif MANIFEST in files and Path(place) != folder:
            runs += [
                path.parent
                for name, path in older_below(Path(place)).items()
                if name.endswith(f"/{RECORD}")
            ]
        names[:] = sorted(name for name in names if not name.startswith("."))
    return [path for _, path in sorted({path.absolute(): path for path in runs}.items())]


def check_manifest(folder: Path) -> RunReport | None:
    """Every file of a published version against its manifest, and files that the manifest does not name; None where there is none.

    A manifest is ``{"files": {path: sha256, ...}}``, paths relative to it with forward slashes; a hash may also stand as
    ``{"sha256": ...}``. What older versions hold for it (``bench.runs.record``) is compared where it lies.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_bytes())
        listed = _listed(content)
        older = {
            version: _listed({"files": files})
            for version, files in content.get("older", {}).items()
        }
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        return RunReport(
            MANIFEST,
            [Finding("files", MANIFEST, DIFFERS, f"it cannot be read: {error}")],
            "damaged",
        )
    return RunReport(
        MANIFEST, [*_compare(folder, listed), *_compare_older(folder, older)], "published"
    )


def _listed(content: Any) -> dict[str, str]:
    files = content.get("files") if isinstance(content, Mapping) else None
    if not isinstance(files, Mapping):
        raise ValueError("it has no list of files")
    listed = {}
    for name, value in files.items():
        sha256 = value.get("sha256") if isinstance(value, Mapping) else value
        if not isinstance(sha256, str):
            raise ValueError(f"'{name}' has no sha256")
        listed[name] = sha256
    return listed


def _compare(folder: Path, listed: Mapping[str, str]) -> Iterator[Finding]:
    files = {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }
    files.pop(MANIFEST, None)
    for name in sorted({*listed, *files}):
        if name not in files:
            strange = PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts
            yield Finding(
                "files", name, DIFFERS, "leads out of the folder" if strange else "missing"
            )
        elif name not in listed:
            yield Finding("files", name, DIFFERS, "not in the manifest")
        elif files[name].is_symlink() or not files[name].is_file():
            yield Finding("files", name, DIFFERS, "a link or a pipe, not a file")
        else:
            yield _compared(files[name], name, listed[name])


def _compare_older(folder: Path, older: Mapping[str, Mapping[str, str]]) -> Iterator[Finding]:
    places = older_files(folder) or {}
    for version, files in sorted(older.items()):
        for name, expected in sorted(files.items()):
            what, place = f"{version}/{name}", places.get(name)
            if place is None:
                yield Finding("files", what, DIFFERS, "leads out of the folder")
            elif place.is_symlink() or not place.is_file():
                beside = (
                    ""
                    if (folder.parent / version).is_dir()
                    else f": {version} is not beside {folder.name}"
                )
                yield Finding("files", what, DIFFERS, f"missing{beside}")
            else:
                yield _compared(place, what, expected)


def _compared(path: Path, what: str, expected: str) -> Finding:
    with contextlib.suppress(OSError):  # what cannot be read is not what was published
        if file_sha256(path) == expected:
            return Finding("files", what, AGREES)
    return Finding("files", what, DIFFERS, "changed since it was published")
