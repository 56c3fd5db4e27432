"""Runs with predictions: synthetic pairs of known gold, and methods that follow it more or less closely."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from factories import STS, record, sts_average, sts_score

from bench.records import RunRecord, RunsFolder
from bench.score.metrics.correlation import spearman

N = 150


def gold_of(task: str, n: int = N) -> np.ndarray:
    return np.round(np.random.default_rng(zlib.crc32(task.encode())).uniform(0, 5, n), 1)


def cosines(method: str, seed: int | None, task: str, noise: float, n: int = N) -> np.ndarray:
    """Gold with noise, half of which the seeds of a method share."""
    shared = np.random.default_rng(zlib.crc32(f"{method} {task}".encode())).normal(size=n)
    own = np.random.default_rng(zlib.crc32(f"{method} {task} {seed}".encode())).normal(size=n)
    return gold_of(task, n) / 5 + noise * (shared + own) / 2


def sts_run(
    runs: Path,
    method: str,
    seed: int | None,
    noise: float,
    *,
    tasks: Sequence[str] = tuple(STS),
    n: int = N,
    text: str = "tokenised",
    **changes: Any,
) -> RunRecord:
    """A run whose recorded scores follow from the predictions that are written beside it."""
    said = {task: cosines(method, seed, task, noise, n) for task in tasks}
    scores = [sts_score(task, spearman(said[task], gold_of(task, n)), n, text) for task in tasks]
    if set(STS) <= set(tasks):
        scores.append(sts_average(scores))
    made = record(method, seed, scores=tuple(scores), **changes)
    store = RunsFolder(runs)
    for task in tasks:
        arrays = {"prediction": said[task], "gold": gold_of(task, n), "subset": np.full(n, task)}
        store.write_predictions(made.run_id, task, text, arrays)
    store.write(made)
    return made


def family(
    runs: Path, noises: Mapping[str, float], seeds: Sequence[int] = (1, 2, 3), **changes: Any
) -> list[RunRecord]:
    return [
        sts_run(runs, method, seed, noise, **changes)
        for method, noise in noises.items()
        for seed in seeds
    ]
