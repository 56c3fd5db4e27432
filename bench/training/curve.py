"""``curve.jsonl``: lines are added one by one, and removed back to a step if a training resumes
from there.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from bench.base.errors import RunFailed
from bench.base.files import write_whole
from bench.records.curve import read_curve
from bench.records.names import CURVE
from bench.training.state_files import NO_SPACE


class TrainingCurve:
    """The curve of the run in ``folder``, written line by line.

    Its methods raise RunFailed if it cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / CURVE
        # kept open: a process that takes over replaces the file
        self._file: IO[str] | None = None

    def go_back_to(self, step: int) -> None:
        """Remove the lines after ``step``, and a line that a crash truncated; all or none."""
        self._file = None
        lines = [json.dumps(entry) for entry in read_curve(self.folder) if entry["step"] <= step]
        with self._writing():
            write_whole(self.path, "".join(line + "\n" for line in lines).encode())

    def add(self, entry: Mapping[str, Any]) -> None:
        """Add a line."""
        with self._writing():
            if self._file is None:
                self._file = self.path.open("a")
            self._file.write(json.dumps(dict(entry)) + "\n")
            self._file.flush()

    def sync(self) -> None:
        """Wait until the lines are on the disk: a state must not refer to a line that a power cut
        can delete.
        """
        with self._writing(), self.path.open("a") as file:
            os.fsync(file.fileno())

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn an OSError into a RunFailed while the context is open."""
        try:
            yield
        except OSError as error:
            raise RunFailed(
                f"{self.path} cannot be written: {error.strerror or error}", NO_SPACE
            ) from None
