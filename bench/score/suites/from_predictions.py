"""From stored predictions to a score again, one way for all suites: no model, no data set, no torch.

What the suites' own ``score_predictions`` compute, brought under one signature, with the number of items and every way in which
stored arrays can be wrong.
"""

from __future__ import annotations

import numpy as np

from bench.base.contract import located
from bench.base.errors import DataDamaged, RunFailed
from bench.runs.record import ScoreKey
from bench.score.metrics.correlation import pearson, spearman
from bench.score.suites import Arrays, Task, TaskScore, suite_names, suite_plugin
from bench.score.suites import suite as find_suite

GIVEN = ("gold", "subset", "all_splits_gold", "image", "caption1", "caption2", "fold", "drawn")
"""Arrays that come from the data or the protocol alone: the same for every model on one set."""


def rescore(key: ScoreKey, arrays: Arrays, metric: str = "") -> TaskScore | None:
    """The score of one task from its stored arrays; None where they do not determine it (other kinds of tasks of
    mteb), and for a protocol that this bench does not know.

    ``metric`` is asked of mteb's tasks only. Raises DataDamaged where the arrays are not what the suite keeps, or give no number.
    """
    suite, task, protocol, _ = key
    if "prediction" in arrays and not len(np.atleast_1d(arrays["prediction"])):
        raise DataDamaged(f"{task}: the predictions hold no item")
    try:
        with np.errstate(all="ignore"):
            score = _scored(suite, task, protocol, arrays, metric)
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
    """What the score needs of the stored arrays of one task (``Task.reduced``); None where its suite does not say, or is not here."""
    task = find_task(key) if key[0] in suite_names() else None
    return None if task is None else task.reduced(arrays)


def find_task(key: ScoreKey) -> Task | None:
    """The task by its suite, name and protocol; None where the suite has none. Raises UnknownName where the suite is not here."""
    suite, name, protocol, _ = key
    return next(
        (
            task
            for task in find_suite(suite).tasks
            if (task.name, task.protocol) == (name, protocol)
        ),
        None,
    )


def _scored(suite: str, task: str, protocol: str, arrays: Arrays, metric: str) -> TaskScore | None:
    if suite == "mteb":
        return _mteb(arrays, metric)
    if suite not in suite_names():
        return None
    suite_here = find_suite(suite)
    scorers = {earlier: suite_here.tasks[0].rescore for earlier in suite_here.earlier} | {
        scored.protocol: scored.rescore for scored in suite_here.tasks
    }
    scorer = scorers.get(protocol)
    if scorer is None:
        return None
    try:
        score = scorer(arrays, task)
    except Exception as error:  # a third party's code may raise anything
        if suite_plugin(suite) is None:
            raise
        raise DataDamaged(
            f"{task}: the scorer of the suite {suite} fails: {located(error)}"
        ) from None
    if not isinstance(score, TaskScore):
        raise DataDamaged(
            f"{task}: the scorer of the suite {suite} returns {type(score).__name__}, not a TaskScore"
        )
    return score


_CORRELATIONS = {"cosine_spearman": spearman, "cosine_pearson": pearson}


def _mteb(arrays: Arrays, metric: str) -> TaskScore | None:
    """mteb's main score x 100: the mean over subsets and splits, of similarity tasks and of accuracy."""
    if "prediction" not in arrays or metric not in (*_CORRELATIONS, "accuracy"):
        return None
    prediction, gold, subset = arrays["prediction"], arrays["gold"], arrays["subset"]
    values = []
    for part in dict.fromkeys(subset.tolist()):
        of_part = subset == part
        if metric == "accuracy":
            values.append(100 * float((prediction[of_part] == gold[of_part].reshape(-1, 1)).mean()))
        else:
            values.append(_CORRELATIONS[metric](prediction[of_part], gold[of_part]))
    return TaskScore(float(np.mean(values)), len(prediction))
