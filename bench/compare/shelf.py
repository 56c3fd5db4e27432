"""Resampled values kept on disk, by what they were computed from: the same runs are not resampled again tomorrow.

Everything here may be deleted at any time. What was not used for a month is removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np

from bench.corpora.cache import default_cache
from bench.statistics import accuracy_resampling, cells, correlation_resampling, draws, resampling
from bench.statistics.cells import Predicted
from bench.statistics.resampling import Resampled, remember

UNUSED = 30 * 86400  # seconds


class Shelf:
    """``$BENCH_CACHE/statistics``. A file that cannot be read or written is done without."""

    def __init__(self, number: int, seed: int, folder: Path | None = None) -> None:
        self.draws, self.seed = number, seed
        self.folder = folder or default_cache() / "statistics"

    def fetch(self, wanted: Iterable[Predicted]) -> list[Predicted]:
        """Hand what is kept to ``bench.statistics.resampling``; returns what is not kept."""
        missing = []
        for one in wanted:
            path = self._path(one)
            try:
                with np.load(path, allow_pickle=False) as stored:
                    found = Resampled(stored["value_SR"], stored["value_BS"])
                if found.value_BS.dtype != np.float64 or found.value_SR.dtype != np.float64:
                    raise ValueError("not what is written here")
                remember(one, found, draws=self.draws, seed=self.seed)
                os.utime(path)
            except Exception:  # noqa: BLE001 - whatever is wrong with a kept file: it is made anew
                missing.append(one)
        return missing

    def keep(self, one: Predicted, found: Resampled) -> None:
        path = self._path(one)
        aside = path.with_name(f".{path.stem}.{os.getpid()}.npz")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(aside, value_SR=found.value_SR, value_BS=found.value_BS)
            os.replace(aside, path)  # not synced: what a crash cuts short is made anew
        except OSError:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove what was not used for long."""
        until = time.time() - UNUSED
        with contextlib.suppress(OSError):
            for path in self.folder.glob("*.npz"):
                if path.stat().st_mtime < until:
                    path.unlink(missing_ok=True)

    def _path(self, one: Predicted) -> Path:
        digest = hashlib.sha256(f"{_code()} {np.__version__} {self.draws} {self.seed} {one.task} {one.metric}".encode())
        for array in (one.prediction_SN, one.gold_N, one.fold_N, one.query_N, one.unit_N):
            if array is not None:
                digest.update(f"{array.dtype.str} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes())
            digest.update(b"|")
        return self.folder / f"{digest.hexdigest()}.npz"


@cache
def _code() -> str:
    """Of the code that resamples: other code keeps its values elsewhere."""
    modules = (accuracy_resampling, cells, correlation_resampling, draws, resampling)
    return hashlib.sha256(b"".join(Path(str(module.__file__)).read_bytes() for module in modules)).hexdigest()
