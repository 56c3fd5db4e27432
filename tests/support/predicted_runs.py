"""Runs with predictions: synthetic pairs of known gold, and methods that follow it more or less
closely.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from factories import PROTOCOL, STS, record, sts_average, sts_score, write_run

from bench.records import RunRecord, RunsFolder
from bench.score.metrics.correlation import spearman

N = 150


def gold_of(task: str, n: int = N) -> np.ndarray:
    return np.round(np.random.default_rng(zlib.crc32(task.encode())).uniform(0, 5, n), 1)


def cosines(method: str, seed: int | None, task: str, noise: float, n: int = N) -> np.ndarray:
    """Add noise to the gold values; the seeds of a method share half of it."""
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
    protocol: str = PROTOCOL,
    **changes: Any,
) -> RunRecord:
    """Write a run with predictions, and with the scores that follow from them."""
    predictions = []
    for task in tasks:
        prediction, gold = cosines(method, seed, task, noise, n), gold_of(task, n)
        score = sts_score(task, spearman(prediction, gold), n, protocol)
        arrays = {"prediction": prediction, "gold": gold, "subset": np.full(n, task)}
        predictions.append((score, arrays))
    scores = [score for score, _ in predictions]
    if set(STS) <= set(tasks):
        scores.append(sts_average(scores))
    made = record(method, seed, scores=tuple(scores), **changes)
    write_run(RunsFolder(runs), made, predictions)
    return made


def family(
    runs: Path, noises: Mapping[str, float], seeds: Sequence[int] = (1, 2, 3), **changes: Any
) -> list[RunRecord]:
    return [
        sts_run(runs, method, seed, noise, **changes)
        for method, noise in noises.items()
        for seed in seeds
    ]
