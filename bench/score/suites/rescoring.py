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

GIVEN = ("gold", "subset", "all_splits_gold", "image", "caption1", "caption2", "fold", "drawn")
"""Arrays that come from the data or the protocol alone: the same for every model on one set."""


def rescore(key: ScoreKey, arrays: Arrays, metric: str = "") -> TaskScore | None:
    """The score of one task from its stored arrays; None if they do not determine it (other kinds of tasks of mteb), and for a
    protocol that this bench does not know.

    ``metric`` is used for mteb's tasks only. Raises DataDamaged if the arrays are not what the suite stores, or give no number.
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
    """The stored arrays of one task that its score needs (``Task.reduced``); None if its suite does not say, or is not here."""
    task = find_task(key) if key[0] in suite_names() else None
    return None if task is None else task.reduced(arrays)


def _rescore(key: ScoreKey, arrays: Arrays) -> TaskScore | None:
    name, task = key[:2]
    scorer = _scorer_of(key) if name in suite_names() else None
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
        raise DataDamaged(
            f"{task}: the scorer of the suite {name} returns {type(score).__name__}, not a TaskScore"
        )
    return score


def _scorer_of(key: ScoreKey) -> Callable[[Arrays, str], TaskScore] | None:
    """The function that scores the stored predictions of a task again: its own, whatever other tasks of its protocol have.

    A record may name a task that its suite no longer has, or an earlier protocol: then the one function that all tasks of the protocol, or
    of the suite, share; None if they have several.
    """
    if (task := find_task(key)) is not None:
        return task.rescore
    name, task_name, protocol = key[:3]
    here = suite(name)
    alike = [one for one in here.tasks if one.protocol == protocol]
    if not alike and protocol in here.earlier:
        alike = [one for one in here.tasks if one.name == task_name] or list(here.tasks)
    if not alike or any(one.rescore is not alike[0].rescore for one in alike):
        return None
    return alike[0].rescore


_CORRELATIONS = {"cosine_spearman": spearman, "cosine_pearson": pearson}


def _rescore_mteb(arrays: Arrays, metric: str) -> TaskScore | None:
    """mteb's main score x 100: the mean over subsets and splits, of similarity tasks and of accuracy."""
    if "prediction" not in arrays or metric not in (*_CORRELATIONS, "accuracy"):
        return None
    prediction, gold, subset = arrays["prediction"], arrays["gold"], arrays["subset"]
    values = [
        100 * float((prediction[rows] == gold[rows].reshape(-1, 1)).mean())
        if metric == "accuracy"
        else _CORRELATIONS[metric](prediction[rows], gold[rows])
        for rows in (subset == part for part in dict.fromkeys(subset.tolist()))
    ]
    return TaskScore(float(np.mean(values)), len(prediction))
