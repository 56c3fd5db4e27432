"""The part of a run that is published with it: its record, its curve, its predictions. No checkpoint and no vectors.

A run that an older version holds is left there: its record is the same to the last byte, and the older version was checked.
Predictions of other runs are stored without what all models are given (gold values, folds, draws), which the version keeps once.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.errors import DataDamaged, DataMissing
from bench.publish.packed import Packed, pack
from bench.publish.place import Place
from bench.runs.curve import CURVE
from bench.runs.reading import loads
from bench.runs.record import RunRecord
from bench.runs.store import RECORD, RunsFolder
from bench.statistics.grouping import AVERAGE
from bench.suites.rescore import GIVEN

LARGEST_CURVE = 1 << 24  # bytes; a real one has some tens of kilobytes


def leave_run(
    record: RunRecord, folder: Path, place: Place, manifests: Mapping[str, Mapping[str, str]]
) -> tuple[str, str] | None:
    """(version, sha256 of the record) of the older version that holds this very run, where it is left; None where none does.

    ``manifests``: version -> path -> sha256, of what each holds itself. Raises DataDamaged as ``store_run``.
    """
    data = _record(record, folder)
    version = place.leave(RECORD, data)
    if version is None:
        return None
    for path, sha256 in manifests[version].items():
        if path.startswith(place.prefix) and not path.endswith((".html", ".csv")):  # those are made again
            place.older[path] = version, sha256
    return version, place.older[f"{place.prefix}{RECORD}"][1]


def store_run(record: RunRecord, folder: Path, place: Place, packed: Packed | None = None, given: Place | None = None) -> str:
    """Copy what lies in ``folder`` to ``place``; returns the sha256 of the record's file. Predictions are compared with the record's hashes.

    ``given``: where what all models are given is stored, once; without it each file holds it.

    Raises DataMissing where a score has no predictions, DataDamaged where they are not those that were recorded, for nobody could
    check such a run; and where the record in the folder is not ``record`` any more.
    """
    packed, here = packed or Packed(), RunsFolder(folder.parent)
    hashes: dict[Path, str] = {}
    for score in record.scores:
        if score.task == AVERAGE:
            continue
        path = here.predictions_path(folder.name, score.task, score.text, score.suite)
        if path not in hashes:  # two protocols may score one file
            hashes[path], data, shared = _packed(packed, path, score.task, whole=given is None)
            place.write(path.relative_to(folder).as_posix(), data)
            if given is not None and shared is not None:
                _store_given(path, shared, given)
        if score.predictions_sha256 not in (None, hashes[path]):  # a record of the first schema has no hash
            raise DataDamaged(f"predictions of {score.task} are not those that were recorded: another hash")
    if (curve := _curve(folder)) is not None:
        place.write(CURVE, curve)
    return place.write(RECORD, _record(record, folder))


def _store_given(path: Path, sha256: str, given: Place) -> None:
    """What the file at ``path`` shares with other runs, where it is not stored yet."""
    from bench.runs.arrays import read_arrays

    name = f"{sha256}.npz"
    if f"{given.prefix}{name}" not in {**given.hashes, **given.older}:
        data = pack({key: values for key, values in read_arrays(path).items() if key in GIVEN})
        if given.leave(name, data) is None:
            given.write(name, data)


def _packed(packed: Packed, path: Path, task: str, *, whole: bool) -> tuple[str, bytes, str | None]:
    try:
        return (*packed.read(path), None) if whole else packed.apart(path)
    except DataMissing:
        raise DataMissing(f"it has no predictions of {task}", "the run's command makes them again") from None
    except DataDamaged as error:
        raise DataDamaged(f"predictions of {task}: {error.message}") from None


def _record(record: RunRecord, folder: Path) -> bytes:
    """The record as it lies there: whoever publishes the same run publishes the same bytes."""
    path = folder / RECORD
    try:
        data = path.read_bytes()
        if RunRecord.from_json(loads(data)) == record:
            return data
    except (OSError, ValueError, RecursionError) as error:
        raise DataDamaged(f"{path}: {error}") from None
    raise DataDamaged(f"{path}: it changed while the version was made")


def _curve(folder: Path) -> bytes | None:
    """The training curve as it lies there; None where there is none."""
    path = folder / CURVE
    if not path.is_file():
        return None
    try:
        if path.stat().st_size > LARGEST_CURVE:
            raise DataDamaged(f"{path}: {path.stat().st_size:,} bytes are too many for a curve")
        return path.read_bytes()
    except OSError as error:
        raise DataMissing(f"{path}: {error.strerror}") from None
