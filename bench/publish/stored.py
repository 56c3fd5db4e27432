"""The part of a run that is published: its record, its curve, its predictions. No checkpoint and no vectors."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bench.base.errors import BenchError, DataDamaged, DataMissing
from bench.base.files import CacheEntry, folder_sha256, values_sha256
from bench.base.package import PLACE
from bench.publish.versions import RUNS, StagedFolder
from bench.runs.intact import CURVE
from bench.runs.packed import Packed
from bench.runs.record import AVERAGE, REDUCED, RunRecord, Score
from bench.runs.store import RECORD, read_record
from bench.score.suites.from_predictions import reduce_predictions
from bench.verify.findings import DIFFERS
from bench.verify.scores import StoredArrays, check_scores

if TYPE_CHECKING:
    import numpy as np

LARGEST_CURVE = 1 << 24  # bytes; a real one has some tens of kilobytes


def store_run(
    record: RunRecord, folder: Path, place: StagedFolder, predictions: Packed, scored: ScoredRuns
) -> None:
    """Put the run in ``folder`` into ``place``, and its predictions into ``predictions``, after every score was computed again.

    Raises DataMissing where a score has no predictions; DataDamaged where they are not those that were recorded, where a score does
    not follow from them, and where the record in the folder is not ``record``.
    """
    stored, base = StoredArrays(record, folder), f"{RUNS}/{record.run_id}"
    try:
        data = (folder / RECORD).read_bytes()
        curve = _curve(folder)
    except OSError as error:
        raise DataDamaged(f"{folder}: {error.strerror or error}") from None
    if read_record(folder / RECORD) != record:
        raise DataDamaged(f"{folder / RECORD}: it changed while the version was made")
    checked: dict[str, Mapping[str, np.ndarray]] = {}
    for score in stored.scores:
        checked[stored.path(score).relative_to(stored.folder).as_posix()] = _recorded(score, stored)
    scored.check(record, folder, data, stored)
    for name, arrays in checked.items():
        predictions.add(f"{base}/{name}", arrays)
    if curve is not None:
        place.write(f"{base}/{CURVE}", curve)
    place.write(f"{base}/{RECORD}", data)


def _curve(folder: Path) -> bytes | None:
    path = folder / CURVE
    if not path.is_file():
        return None
    if path.stat().st_size > LARGEST_CURVE:
        raise DataDamaged(f"{CURVE} is larger than {LARGEST_CURVE:,} bytes")
    return path.read_bytes()


def _recorded(score: Score, stored: StoredArrays) -> Mapping[str, np.ndarray]:
    """The arrays as they are published: only what the score needs (ranks in 16 bits, for a rank correlation) where the record has the
    hash of that, else all."""
    arrays = stored.arrays(score)
    if isinstance(arrays, DataMissing):
        hint = "the run's command makes them again"
        raise DataMissing(f"it has no predictions of {score.task}", hint)
    if isinstance(arrays, BenchError):
        raise arrays
    try:
        if score.sha256_of(arrays) not in (None, values_sha256(arrays)):
            raise DataDamaged(
                f"predictions of {score.task} are not those that were recorded: another hash"
            )
        if score.reduced_sha256 is not None and REDUCED not in arrays:
            reduced = reduce_predictions(score.key, arrays)
            if reduced is not None and values_sha256(reduced) == score.reduced_sha256:
                return reduced
    except ValueError as error:
        raise DataDamaged(f"predictions of {score.task}: {error}") from None
    return arrays


class ScoredRuns:
    """Whether every score of a run follows from its predictions, computed again; and what was found before, in the cache.

    A record is known by the sha256 of its file, which has the hashes of its predictions, as long as the code of ``bench.score`` is the
    same. Where a score has no such hash, it is computed every time.
    """

    def __init__(self) -> None:
        code = {
            name: sha256
            for name, sha256 in folder_sha256(PLACE / "bench" / "score").items()
            if name.endswith(".py")
        }
        self.entry = CacheEntry("scored", "records", code)
        self.known: set[str] = set(self.entry.read() or ())

    def check(self, record: RunRecord, folder: Path, data: bytes, stored: StoredArrays) -> None:
        """Raises DataDamaged, naming the first score that does not follow from the predictions."""
        sha256 = hashlib.sha256(data).hexdigest()
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
