"""A run: its record, and the folder with its predictions and its checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.base.errors import DataMissing
from bench.runs.record import RunRecord, Score, ScoreKey
from bench.runs.store import predictions_name

if TYPE_CHECKING:
    from collections.abc import Container

    import numpy as np


class Run(NamedTuple):
    record: RunRecord
    folder: Path

    @property
    def scores(self) -> tuple[Score, ...]:
        return self.record.scores

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def score(self, key: ScoreKey) -> Score:
        """Raises DataMissing where the record has no such score."""
        for score in self.record.scores:
            if score.key == key:
                return score
        raise DataMissing(f"{self.record.run_id} has no score of {key.task}")

    def predictions_file(self, key: ScoreKey) -> Path:
        """Where the predictions of a score lie."""
        return self.folder / predictions_name(key.task, key.text, key.suite)

    def predictions(
        self, key: ScoreKey, names: Container[str] | None = None
    ) -> dict[str, np.ndarray]:
        """The stored arrays, of these names those that are there. Raises DataMissing, DataDamaged."""
        from bench.runs.arrays import read_arrays

        return read_arrays(self.predictions_file(key), names)
