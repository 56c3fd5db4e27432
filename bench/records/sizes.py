"""Measures the disk space of the runs of a folder, and the part that can be made again."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from bench.base.errors import BenchError, RunLocked
from bench.records.names import CHECKPOINT
from bench.records.store import RunsFolder

VECTORS, STATE = "vectors", "state"


@dataclass(frozen=True)
class RunSize:
    """Bytes that one run takes."""

    run_id: str
    checkpoint: int
    vectors: int
    """Of stored sentence vectors, which are made again from the checkpoint when they are needed."""
    state: int
    """Of the state that an interrupted training resumes from."""
    rest: int

    @property
    def total(self) -> int:
        return self.checkpoint + self.vectors + self.state + self.rest


def measure_runs(store: RunsFolder) -> list[RunSize]:
    """Return the size of every run that has a record, the largest first."""
    sizes = []
    for run_id in store.ids():
        folder = store.folder(run_id)
        parts = {name: bytes_below(folder / name) for name in (CHECKPOINT, VECTORS, STATE)}
        rest = bytes_below(folder) - sum(parts.values())
        sizes.append(RunSize(run_id, parts[CHECKPOINT], parts[VECTORS], parts[STATE], rest))
    return sorted(sizes, key=lambda size: (-size.total, size.run_id))


def bytes_below(folder: Path) -> int:
    """Return the bytes of all files below a folder; links are not followed. 0 if there is no such
    folder.
    """
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            total += os.lstat(os.path.join(place, name)).st_size
    return total


def remove_vectors(store: RunsFolder) -> tuple[int, list[str]]:
    """Remove the stored vectors of all runs; returns the bytes that are free now, and a line for
    each run that is left unchanged.
    """
    freed, left = 0, []
    for size in measure_runs(store):
        if not size.vectors:
            continue
        try:
            with store.lock(size.run_id):
                shutil.rmtree(store.folder(size.run_id) / VECTORS)
        except RunLocked:
            left.append(f"{size.run_id}: a process works on it")
        except BenchError as error:
            left.append(f"{size.run_id}: {error.message}")
        else:
            freed += size.vectors
    return freed, left
