"""The influence of each item on a score that only a suite's own scorer computes, by the jackknife
(Tukey 1958; Efron 1982, chapter 2).

The score is computed again without each item, or without each of 500 blocks of neighbours if there
are more items: moved = (N - g) / N (score - score without the g items of the block), which for a
mean is exactly the items' contribution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bench.base.errors import BenchError, DataDamaged
from bench.records.predictions import Floats, Predicted
from bench.records.record import ScoreKey
from bench.records.run import Run
from bench.score.suites import Arrays, find_task, rescore, suite_names

BLOCKS = 500

TOLERANCE = 1e-6
"""Points that the recorded value may differ by from the value of its predictions."""


class NoInterval(BenchError):
    """A suite's own metric with an unknown influence of its items."""


def predicted_by_own_scorer(runs: Sequence[Run], key: ScoreKey) -> Predicted:
    """Return the predictions of one method's runs, one per seed, if the task's suite can score a
    part of its items.

    Raises NoInterval if the suite is not here or cannot; BenchError if its scorer fails on a part
    of the items; DataDamaged if predictions are not as expected.
    """
    metric = runs[0].score(key).metric
    if key.suite not in suite_names():
        raise NoInterval(
            f"{metric} is computed by the suite {key.suite}, which is not installed: add "
            "--plugin FILE"
        )
    task = find_task(key)
    if task is None or not task.by_item:
        raise NoInterval(f"{metric} has no interval over items")
    stored = [run.predictions(key) for run in runs]
    scores = [run.score(key) for run in runs]
    moved = []
    for score, arrays in zip(scores, stored, strict=True):
        value, moved_N, block_N = jackknife(arrays, lambda part: _value(key, part))
        if abs(value - score.value) > TOLERANCE:
            raise DataDamaged(
                f"{key.task}: its predictions give another score, by "
                f"{abs(value - score.value):.2f}; see bench verify"
            )
        moved.append(moved_N)

    try:
        moved_SN = np.stack(moved)
        return Predicted(
            task=key[1],
            metric=metric,
            seeds=tuple(run.record.seed for run in runs),
            prediction_SN=moved_SN,
            gold_N=np.unique(stored[0].get("gold", np.arange(len(block_N))), return_inverse=True)[
                1
            ].reshape(-1),
            shared_NK=block_N[:, None] if block_N[-1] + 1 < len(block_N) else None,
            moved_SN=moved_SN,
            score_S=np.array([score.value for score in scores]),
        )
    except ValueError as error:
        raise DataDamaged(f"predictions of {runs[0].record.run_id}: {error}") from None


def _value(key: ScoreKey, arrays: Arrays) -> float:
    score = rescore(key, arrays)
    if score is None:
        raise BenchError(f"{key[0]} does not score {key[1]} again from its predictions")
    return score.value


def jackknife(
    arrays: Arrays, value_of: Callable[[Arrays], float]
) -> tuple[float, Floats, np.ndarray]:
    """Compute the score; (N,) how far each item moves it, which sums to zero; and (N,) the block of
    each item, from 0.

    Arrays with one row per prediction are split by item; all others are passed unchanged. Raises
    BenchError if the scorer does, or if there are not two items.
    """
    n = len(arrays["prediction"]) if "prediction" in arrays else 0
    if n < 2:
        raise BenchError("the predictions do not have one row per item")
    block_N = np.arange(n) * min(n, BLOCKS) // n
    value = value_of(arrays)
    moved_N = np.empty(n)
    for block in range(block_N[-1] + 1):
        inside_N = block_N == block
        part = {
            name: array[~inside_N] if array.ndim and len(array) == n else array
            for name, array in arrays.items()
        }
        size = int(inside_N.sum())
        moved_N[inside_N] = (n - size) / n * (value - value_of(part)) / size
    return value, moved_N - moved_N.mean(), block_N
