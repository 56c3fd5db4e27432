"""``curve.jsonl`` as it is written: a line added at a time, and taken back to a step when a training goes on from there."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.errors import RunFailed
from bench.files import write_whole
from bench.runs.curve import CURVE, read_curve
from bench.training.checkpoints import NO_SPACE


class TrainingCurve:
    """Of the run in ``folder``. Raises RunFailed where it cannot be written."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / CURVE

    def go_back_to(self, step: int) -> None:
        """Leave out what came after ``step``, and a line that a crash cut short. Whole or not at all."""
        lines = [json.dumps(entry) for entry in read_curve(self.folder) if entry["step"] <= step]
        try:
            write_whole(self.path, "".join(line + "\n" for line in lines).encode())
        except OSError as error:
            raise self._failed(error) from None

    def add(self, entry: Mapping[str, Any]) -> None:
        try:
            with self.path.open("a") as file:
                file.write(json.dumps(dict(entry)) + "\n")
        except OSError as error:
            raise self._failed(error) from None

    def sync(self) -> None:
        """Wait until it is on the disk: a state must not remember a line that a power cut takes away."""
        try:
            with self.path.open("a") as file:
                os.fsync(file.fileno())
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> RunFailed:
        return RunFailed(f"{self.path} cannot be written: {error.strerror or error}", NO_SPACE)
