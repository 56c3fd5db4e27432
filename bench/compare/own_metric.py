"""How far each item moves a score that only a suite's own scorer computes: the jackknife (Tukey 1958; Efron 1982, chapter 2).

The score is computed again without each item, or without each of 500 blocks of neighbours where there are more items:
moved = (N - g) / N (score - score without the g items of the block), which for a mean is exactly what the items add to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from bench.base.errors import BenchError, DataDamaged
from bench.runs.arrays import read_arrays
from bench.runs.predicted import Floats, Predicted
from bench.runs.predictions import Key, Run, predictions_file, score_of
from bench.score.suites import suite, suite_names
from bench.score.suites.from_predictions import rescore

BLOCKS = 500
APART = 1e-6
"""Points by which the recorded value may differ from that of its predictions."""
Arrays = Mapping[str, np.ndarray]


def predicted_by_own_scorer(runs: Sequence[Run], key: Key) -> Predicted:
    """What the runs of one method, one per seed, said on a task whose suite says that its score can be had of some of its items.

    Raises BenchError where the suite is not here, does not say that, or its scorer fails on part of the items; DataDamaged where
    predictions are not what they should be.
    """
    metric = score_of(runs[0][0], key).metric
    if key[0] not in suite_names():
        raise BenchError(f"{metric} is computed by the suite {key[0]}, which is not here; --plugin FILE gives it")
    tasks = [task for task in suite(key[0]).tasks if (task.name, task.protocol) == (key[1], key[2])]
    if not tasks or not tasks[0].by_item:
        raise BenchError(f"{metric} has no interval over items")
    stored = [read_arrays(predictions_file(folder.resolve(), key)) for _, folder in runs]
    scores = [score_of(record, key) for record, _ in runs]
    moved = []
    for score, arrays in zip(scores, stored, strict=True):
        value, moved_N, block_N = jackknife(arrays, lambda part: _value(key, part))
        if abs(value - score.value) > APART:
            raise DataDamaged(f"{key[1]}: its predictions give another score, by {abs(value - score.value):.2f}; see bench verify")
        moved.append(moved_N)
    moved_SN = np.stack(moved)
    gold_N = np.unique(stored[0].get("gold", np.arange(len(block_N))), return_inverse=True)[1].reshape(-1)
    try:
        return Predicted(
            task=key[1],
            metric=metric,
            seeds=tuple(record.seed for record, _ in runs),
            prediction_SN=moved_SN,
            gold_N=gold_N,
            shared_NK=block_N[:, None] if block_N[-1] + 1 < len(block_N) else None,
            moved_SN=moved_SN,
            score_S=np.array([score.value for score in scores]),
        )
    except ValueError as error:
        raise DataDamaged(f"predictions of {runs[0][0].run_id}: {error}") from None


def _value(key: Key, arrays: Arrays) -> float:
    found = rescore(key, arrays)
    if found is None:
        raise BenchError(f"{key[0]} does not score {key[1]} again from its predictions")
    return found.value


def jackknife(arrays: Arrays, value_of: Callable[[Arrays], float]) -> tuple[float, Floats, np.ndarray]:
    """(the score; (N,) how far each item moves it, which sums to zero; (N,) the block of each item, from 0).

    Arrays with a row for each prediction are items' own, the others are handed on whole. Raises BenchError where the scorer does, or
    there are not two items.
    """
    n = len(arrays["prediction"]) if "prediction" in arrays else 0
    if n < 2:
        raise BenchError("there is no row for each item")
    block_N = np.arange(n) * min(n, BLOCKS) // n
    value = value_of(arrays)
    moved_N = np.empty(n)
    for block in range(block_N[-1] + 1):
        inside_N = block_N == block
        part = {name: array[~inside_N] if array.ndim and len(array) == n else array for name, array in arrays.items()}
        size = int(inside_N.sum())
        moved_N[inside_N] = (n - size) / n * (value - value_of(part)) / size
    return value, moved_N - moved_N.mean(), block_N
