"""From stored predictions to a score again: no model, no data set, no torch.

The suites' own ``rescore`` functions under one signature, with every way in which stored arrays can
be wrong.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench.base.errors import DataDamaged, RunFailed
from bench.base.user_code import located
from bench.records.record import ScoreKey
from bench.score.metrics.correlation import pearson, spearman
from bench.score.suites.registry import find_task, suite, suite_names, suite_plugin
from bench.score.suites.task import Arrays, TaskScore

# Arrays that come from the data or the protocol alone: the same for every model on one set.
GIVEN = ("gold", "subset", "all_splits_gold", "image", "caption1", "caption2", "fold", "drawn")


def rescore(key: ScoreKey, arrays: Arrays, metric: str = "") -> TaskScore | None:
    """Score one task again from its stored arrays.

    Returns None if they do not determine the score (other kinds of tasks of mteb), or if this bench
    does not know the protocol. ``metric`` is used for mteb's tasks only. Raises DataDamaged if the
    arrays do not belong to the suite, or give no number.
    """
    task = key[1]
    if "prediction" in arrays and not len(np.atleast_1d(arrays["prediction"])):
        raise DataDamaged(f"{task}: the predictions hold no items")
    try:
        with np.errstate(all="ignore"):
            score = _rescore_mteb(arrays, metric) if key[0] == "mteb" else _rescore(key, arrays)
    except RunFailed as error:
        raise DataDamaged(error.message) from None
    except KeyError as error:
        raise DataDamaged(f"{task}: the predictions have no array {error}") from None
    except (ValueError, TypeError, IndexError, AttributeError, ArithmeticError) as error:
        raise DataDamaged(
            f"{task}: the predictions cannot be scored: {' '.join(str(error).split())[:200]}"
        ) from None
    if score is not None and not np.isfinite([score.value, score.std or 0.0]).all():
        raise DataDamaged(f"{task}: the predictions give no finite score")
    return score


def reduce_predictions(key: ScoreKey, arrays: Arrays) -> dict[str, np.ndarray] | None:
    """Keep the arrays that the score of a task needs (``Task.reduced``).

    Returns None if its suite does not name them, or is not known.
    """
    if key[0] not in suite_names():
        return None
    task = find_task(key)
    return None if task is None else task.reduced(arrays)


def _rescore(key: ScoreKey, arrays: Arrays) -> TaskScore | None:
    name, task = key[:2]
    if name not in suite_names():
        return None
    scorer = _find_scorer(key)
    if scorer is None:
        return None
    try:
        score = scorer(arrays, task)
    except Exception as error:  # a third party's code may raise anything
        if suite_plugin(name) is None:
            raise
        raise DataDamaged(
            f"{task}: the scorer of the suite {name} fails: {located(error)}"
        ) from None
    if not isinstance(score, TaskScore):
        returned = type(score).__name__
        raise DataDamaged(
            f"{task}: the scorer of the suite {name} returns {returned}, not a TaskScore"
        )
    return score


def _find_scorer(key: ScoreKey) -> Callable[[Arrays, str], TaskScore] | None:
    """Find the function that scores the stored predictions of a task again.

    It is the task's own; under an earlier protocol that of the suite's first task. None if the
    suite has neither.
    """
    task = find_task(key)
    if task is not None:
        return task.rescore
    here = suite(key[0])
    return here.tasks[0].rescore if key[2] in here.earlier else None


def _share_right(prediction: np.ndarray, gold: np.ndarray) -> float:
    """Return accuracy x 100 of the predictions of one or several experiments, (N,) or (N, K)."""
    return 100 * float((prediction == gold.reshape(-1, 1)).mean())


# mteb's main score -> the function that computes it, x 100, from predictions and gold values
_MTEB_SCORES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "cosine_spearman": spearman,
    "cosine_pearson": pearson,
    "accuracy": _share_right,
}


def _rescore_mteb(arrays: Arrays, metric: str) -> TaskScore | None:
    """Compute mteb's main score x 100, the mean over subsets and splits.

    Returns None for tasks other than similarity and classification.
    """
    if "prediction" not in arrays or metric not in _MTEB_SCORES:
        return None
    prediction = arrays["prediction"]
    gold = arrays["gold"]
    subset = arrays["subset"]
    values = []
    for part in dict.fromkeys(subset.tolist()):
        rows = subset == part
        values.append(_MTEB_SCORES[metric](prediction[rows], gold[rows]))
    return TaskScore(float(np.mean(values)), len(prediction))
