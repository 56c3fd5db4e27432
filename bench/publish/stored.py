"""The part of a run that is published with it: its record, its curve, its predictions. No checkpoint and no vectors.

A run that an older version holds is left there: its record is the same to the last byte, and the older version was checked.
Predictions of other runs are stored without what all models are given (gold values, folds, draws), which the version keeps once.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bench.base.errors import DataDamaged, DataMissing
from bench.base.files import folder_sha256, values_sha256
from bench.publish.versions import StagedFolder
from bench.runs.arrays import GIVEN_SHA256, LARGEST, read_arrays, read_own
from bench.runs.intact import CURVE
from bench.runs.record import AVERAGE, REDUCED, RunRecord, Score, loads
from bench.runs.store import RECORD
from bench.score.suites.from_predictions import GIVEN, reduce_predictions
from bench.verify.scores import StoredArrays

if TYPE_CHECKING:
    import numpy as np


LARGEST_CURVE = 1 << 24  # bytes; a real one has some tens of kilobytes


def leave_run(
    record: RunRecord, folder: Path, place: StagedFolder, manifests: Mapping[str, Mapping[str, str]]
) -> tuple[str, str] | None:
    """(version, sha256 of the record) of the older version that holds this very run, where it is left; None where none does.

    ``manifests``: version -> path -> sha256, of what each holds itself. Raises DataDamaged as ``store_run``.
    """
    path = f"{place.prefix}{RECORD}"
    if not any(path in files for files in manifests.values()):
        return None
    version = place.leave(RECORD, _record(record, folder))
    if version is None:
        return None
    for path, sha256 in manifests[version].items():
        if path.startswith(place.prefix) and not path.endswith(
            (".html", ".csv")
        ):  # those are made again
            place.older[path] = version, sha256
    return version, place.older[f"{place.prefix}{RECORD}"][1]


def store_run(
    record: RunRecord,
    folder: Path,
    place: StagedFolder,
    packed: Packed | None = None,
    given: StagedFolder | None = None,
    stored: StoredArrays | None = None,
    *,
    reduced: bool = False,
) -> str:
    """Copy what lies in ``folder`` to ``place``; returns the sha256 of the record's file. Predictions are compared with the record's hashes.

    ``given``: where what all models are given is stored, once; without it each file holds it. ``stored`` keeps what was read for whoever
    computes the scores again. ``reduced``: of predictions only what the scores need is copied, where the record has the hash of that.

    Raises DataMissing where a score has no predictions, DataDamaged where they are not those that were recorded, for nobody could
    check such a run; and where the record in the folder is not ``record`` any more.
    """
    packed, stored = packed or Packed(), stored or StoredArrays(record, folder)
    files: dict[Path, File] = {}
    for score in stored.scores:
        path = stored.path(score)
        if path not in files:  # two protocols may score one file
            file = files[path] = _read_file(path, score.task)
            stored.keep(score, dict(file.arrays))
            kept = (reduced and file.reduced(score)) or file
            data, shared = (packed.whole(kept), None) if given is None else packed.apart(kept)
            place.write(path.relative_to(folder).as_posix(), data)
            if given is not None and shared is not None:
                _store_given(kept.arrays, shared, given)
        # a record of the first schema has no hash
        if score.sha256_of(files[path].arrays) not in (None, files[path].values_sha256):
            raise DataDamaged(
                f"predictions of {score.task} are not those that were recorded: another hash"
            )
    if (curve := _curve(folder)) is not None:
        place.write(CURVE, curve)
    return place.write(RECORD, _record(record, folder))


def _store_given(arrays: Mapping[str, np.ndarray], sha256: str, given: StagedFolder) -> None:
    """What the arrays of a file share with other runs, where it is not stored yet."""
    name = f"{sha256}.npz"
    path = f"{given.prefix}{name}"
    if path not in given.hashes and path not in given.older:
        data = pack({key: values for key, values in arrays.items() if key in GIVEN})
        if given.leave(name, data) is None:
            given.write(name, data)


def _read_file(path: Path, task: str) -> File:
    try:
        return File.read(path)
    except DataMissing:
        raise DataMissing(
            f"it has no predictions of {task}", "the run's command makes them again"
        ) from None
    except DataDamaged as error:
        raise DataDamaged(f"predictions of {task}: {error.message}") from None


class ScoredRuns:
    """Whether every score of a run follows from its predictions, computed again; and what was found before, in the cache.

    A record is known by the sha256 of its file, in which the hashes of its predictions stand, and as long as the code of ``bench.score``
    is the same. Where a score has no such hash, it is computed every time.
    """

    def __init__(self) -> None:
        from bench import score
        from bench.base.files import CacheEntry

        code = {
            name: sha256
            for name, sha256 in folder_sha256(Path(score.__file__).parent).items()
            if name.endswith(".py")
        }
        self.entry = CacheEntry("scored", "records", code)
        self.known: set[str] = set(self.entry.read() or ())

    def check(self, record: RunRecord, folder: Path, stored: StoredArrays | None = None) -> None:
        """Raises DataDamaged, naming the first score that does not follow from the predictions. ``stored``: what was read of the run, and
        found to have the recorded hashes."""
        from bench.verify.findings import DIFFERS
        from bench.verify.scores import check_scores

        sha256 = hashlib.sha256(_record(record, folder)).hexdigest()
        if sha256 in self.known:
            return
        for finding in check_scores(record, folder, stored, given=False):
            if finding.outcome == DIFFERS and finding.kind in ("score", "average"):
                raise DataDamaged(f"{finding.kind} of {finding.what}: {finding.why}")
        if all(
            score.predictions_sha256 is not None for score in record.scores if score.task != AVERAGE
        ):
            self.known.add(sha256)

    def keep(self) -> None:
        self.entry.write(sorted(self.known))


def _record(record: RunRecord, folder: Path) -> bytes:
    """The record as it lies there: whoever publishes the same run publishes the same bytes."""
    path = folder / RECORD
    try:
        data = path.read_bytes()
        if _record_in(data) == record:
            return data
    except (OSError, ValueError, RecursionError) as error:
        raise DataDamaged(f"{path}: {error}") from None
    raise DataDamaged(f"{path}: it changed while the version was made")


def _record_in(data: bytes) -> RunRecord:
    with contextlib.suppress(msgspec.DecodeError):  # an older schema, or damaged
        return RunRecord.decode(data)
    return RunRecord.from_json(loads(data))


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


# --- predictions in the smallest form that says exactly the same: narrower whole numbers, stronger compression, no dates ---
# The hash of a predictions file is over its values (``bench.base.files``), so a packed file is still the one that was recorded.

SMALL = 8192  # bytes of an array up to which deflate is as good as LZMA, and ten times as fast
SMALL_FILE = 4096  # bytes of a file in which there is nothing to save
EPOCH = (
    1980,
    1,
    1,
    0,
    0,
    0,
)  # the date of every member: the same arrays give the same bytes tomorrow
FORM = "bench.packed/1"  # of kept files; it changes with what ``pack`` writes
APART = "apart"  # how the names of kept files begin that are without the arrays that a version keeps once
_SIGNED = ("i1", "<i2", "<i4")  # unsigned numbers would wrap in a reader's subtraction


def pack(arrays: Mapping[str, np.ndarray]) -> bytes:
    """An .npz file of ``arrays``, which ``numpy.load`` reads: same names, shapes and values, in alphabetical order."""
    import numpy as np

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in sorted(arrays):
            content = io.BytesIO()
            np.lib.format.write_array(
                content, narrow(np.asarray(arrays[name])), version=(1, 0), allow_pickle=False
            )
            member = zipfile.ZipInfo(f"{name}.npy", EPOCH)
            member.compress_type = (
                zipfile.ZIP_DEFLATED if len(content.getvalue()) <= SMALL else zipfile.ZIP_LZMA
            )
            member.create_system = 3  # as on Unix, wherever this runs
            archive.writestr(member, content.getvalue())
    return file.getvalue()


def narrow(values: np.ndarray) -> np.ndarray:
    """The same values in the narrowest type that holds each of them exactly."""
    import numpy as np

    kind, narrower = values.dtype.kind, ""
    if kind in "iu":
        low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
        narrower = next(
            (
                dtype
                for dtype in _SIGNED
                if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max
            ),
            "",
        )
    elif kind == "U":
        narrower = f"<U{int(np.char.str_len(values).max(initial=1)) or 1}"
    elif kind == "f":
        narrower = "<f4"
    if narrower and np.dtype(narrower).itemsize < values.dtype.itemsize:
        with np.errstate(over="ignore"):
            made = values.astype(narrower)
        if values_sha256({"": made}) == values_sha256(
            {"": values}
        ):  # also of infinities, NaN and the sign of zero
            values = made
    return np.asarray(values, order="C")


@dataclass(frozen=True)
class File:
    """A predictions file that was read once: its bytes, all its arrays, and the hash of those that its version keeps for it."""

    path: Path
    source: bytes
    arrays: Mapping[str, np.ndarray]
    given: str | None

    @classmethod
    def read(cls, path: Path) -> File:
        """Raises DataMissing, DataDamaged."""
        source = _read(path)
        arrays, given = read_own(path, content=source)
        return cls(path, source, arrays if given is None else read_arrays(path), given)

    @cached_property
    def values_sha256(self) -> str:
        try:
            return values_sha256(self.arrays)
        except ValueError as error:
            raise DataDamaged(f"{self.path}: {error}") from None

    def reduced(self, score: Score) -> File | None:
        """With what the score needs, and nothing else; None where the record has no hash of that, or it is reduced already."""
        if score.reduced_sha256 is None or REDUCED in self.arrays:
            return None
        arrays = reduce_predictions(score.key, self.arrays)
        if arrays is None:
            return None
        file = File(self.path, self.source, arrays, None)
        return (
            file if file.values_sha256 == score.reduced_sha256 else None
        )  # else another bench wrote the record

    @property
    def key(self) -> str:
        """What its packed form is kept by: the hash of the file that it was read from, or of the values that are left of it."""
        return (
            self.values_sha256
            if REDUCED in self.arrays
            else hashlib.sha256(self.source).hexdigest()
        )

    @property
    def stays(self) -> bool:
        """Whether the file is copied as it is: there is nothing to save."""
        return len(self.source) <= SMALL_FILE and REDUCED not in self.arrays


class Packed:
    """Packs predictions files, and keeps what took long: ``$BENCH_CACHE/packed``, which may be deleted at any time.

    A kept file is found by the hash of the file that it was made from, and says the hash of the arrays and of the bytes that it holds.
    """

    def __init__(self, folder: Path | None = None) -> None:
        from bench.base.files import default_cache

        self.folder = folder or default_cache() / "packed"

    def whole(self, file: File) -> bytes:
        """The file in its smallest form. Raises DataDamaged where it holds neither numbers nor text."""
        return (
            file.source if file.stays else self._packed(file.key, file.values_sha256, file.arrays)
        )

    def apart(self, file: File) -> tuple[bytes, str | None]:
        """(the file without what every model is given, the hash of that). Raises as ``whole``.

        A small file stays whole, unless it is reduced, and its hash of what is given is None.
        """
        import numpy as np

        if file.given is not None:  # it was published in this form
            return file.source, file.given
        shared = {name: values for name, values in file.arrays.items() if name in GIVEN}
        if file.stays or not shared:
            return self.whole(file), None
        given = values_sha256(shared)
        own = {name: values for name, values in file.arrays.items() if name not in shared} | {
            GIVEN_SHA256: np.array(given)
        }
        return self._packed(f"{APART}-{file.key}", file.values_sha256, own), given

    def _packed(self, key: str, values: str, arrays: Mapping[str, np.ndarray]) -> bytes:
        """What is kept by that key, if it is what was written; else ``arrays`` packed, which is kept from now on."""
        with contextlib.suppress(OSError, ValueError):
            head, data = (self.folder / key).read_bytes().split(b"\n", 1)
            form, _, sha256 = head.decode("ascii").split(" ")
            if form == FORM and hashlib.sha256(data).hexdigest() == sha256:
                return data
        data = pack(arrays)
        aside = self.folder / f".{key}.{os.getpid()}"
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            aside.write_bytes(
                f"{FORM} {values} {hashlib.sha256(data).hexdigest()}\n".encode() + data
            )
            aside.replace(self.folder / key)
        return data


def _read(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():  # reading a pipe would wait for ever
            raise DataDamaged(f"{path} is no file")
        if path.stat().st_size > LARGEST:
            raise DataDamaged(f"{path}: {path.stat().st_size:,} bytes are too many for predictions")
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise DataMissing(f"there is no file {path}", "the run's command makes it again") from None
    except OSError as error:
        raise DataDamaged(f"{path} cannot be read: {error.strerror}") from None
