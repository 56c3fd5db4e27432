"""A run: its record, and the folder with its predictions and its checkpoint."""

from __future__ import annotations

import os
from collections.abc import Container
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.base.errors import DataMissing
from bench.records.arrays import read_arrays
from bench.records.names import CHECKPOINT, predictions_name
from bench.records.record import RunRecord, Score, ScoreKey


class Run(NamedTuple):
    record: RunRecord
    folder: Path

    @property
    def scores(self) -> tuple[Score, ...]:
        return self.record.scores

    @property
    def checkpoint(self) -> Path:
        return self.folder / CHECKPOINT

    def score(self, key: ScoreKey) -> Score:
        """Raise DataMissing if the record has no such score."""
        for score in self.record.scores:
            if score.task == key.task and score.key == key:
                return score
        raise DataMissing(f"{self.record.run_id} has no score of {key.task}")

    def predictions_file(self, key: ScoreKey) -> Path:
        """Return the file with the predictions of a score."""
        return self.folder / predictions_name(key.task, key.protocol, key.suite)

    def predictions(
        self, key: ScoreKey, names: Container[str] | None = None, *, shared: bool = False
    ) -> dict[str, np.ndarray]:
        """Return the stored arrays; with ``names`` only these, if they are there; ``shared`` as for
        ``read_arrays``.

        Raises DataMissing, DataDamaged.
        """
        name = predictions_name(key.task, key.protocol, key.suite)
        file = f"{self.folder}{os.sep}{name}"  # a third of the time of a path, for many runs
        try:
            return read_arrays(file, names, self.folder, shared=shared)
        except DataMissing as error:
            raise DataMissing(
                f"{self.record.run_id} has no predictions of {key.task}", error.hint
            ) from None
