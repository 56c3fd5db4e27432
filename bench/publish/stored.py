"""The part of a run that is published: its record, its curve, its predictions. No checkpoint and no vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bench.base.errors import DataDamaged, DataMissing
from bench.base.files import values_sha256
from bench.board.board import PublishedRun
from bench.publish.versions import RUNS
from bench.runs.intact import CURVE
from bench.runs.packed import Packed
from bench.runs.record import AVERAGE, REDUCED, Score
from bench.runs.run import Run
from bench.runs.store import RECORD, predictions_name, read_record
from bench.score.suites.from_predictions import reduce_predictions
from bench.verify.findings import DIFFERS, Finding
from bench.verify.scores import check_average, check_hash, check_score

if TYPE_CHECKING:
    import numpy as np


def read_verified(published: PublishedRun, predictions: Packed) -> dict[str, bytes]:
    """Path below the version -> content of the run's record and curve, after every score was computed again. What the scores need of its
    predictions is added to ``predictions``.

    Raises DataMissing where a score has no predictions; DataDamaged where they are not those that were recorded, where a score does
    not follow from them, and where the record in the folder is another one by now.
    """
    run, folder = Run(published.record, published.folder), f"{RUNS}/{published.record.run_id}"
    stored: dict[str, Mapping[str, np.ndarray]] = {}
    for score in run.scores:
        if score.task == AVERAGE:
            _refuse([check_average(score, run.record)])
            continue
        try:
            arrays = run.predictions(score.key)
        except DataMissing as error:
            why = f"it has no predictions of {score.task}"
            raise DataMissing(why, error.hint) from None
        _refuse([check_hash(score, arrays), *check_score(score, arrays)])
        path = f"{folder}/{predictions_name(score.task, score.text, score.suite)}"
        stored[path] = _reduced(score, arrays)
    try:
        files = [name for name in (RECORD, CURVE) if (run.folder / name).is_file()]
        content = {f"{folder}/{name}": (run.folder / name).read_bytes() for name in files}
    except OSError as error:
        raise DataDamaged(f"{run.folder}: {error.strerror or error}") from None
    if read_record(run.folder / RECORD) != run.record:
        raise DataDamaged(f"{run.folder / RECORD}: it changed while the version was made")
    for path, arrays in stored.items():
        predictions.add(path, arrays)
    return content


def _refuse(findings: list[Finding]) -> None:
    """Raises DataDamaged for the first that differs."""
    for finding in findings:
        if finding.outcome == DIFFERS:
            raise DataDamaged(f"{finding.kind} of {finding.what}: {finding.why}")


def _reduced(score: Score, arrays: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """Only what the score needs (ranks in 16 bits, for a rank correlation) where the record has the hash of that, else all."""
    if score.reduced_sha256 is not None and REDUCED not in arrays:
        reduced = reduce_predictions(score.key, arrays)
        if reduced is not None and values_sha256(reduced) == score.reduced_sha256:
            return reduced
    return arrays
