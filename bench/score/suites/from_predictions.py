"""From stored predictions to a score again, one way for all suites: no model, no data set, no torch.

What the suites' own ``score_predictions`` compute, brought under one signature, with the number of items and every way in which
stored arrays can be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench.base.errors import DataDamaged, RunFailed, one_line
from bench.score.metrics.correlation import pearson, spearman
from bench.score.suites import TaskScore, suite_names, suite_plugin
from bench.score.suites import suite as find_suite

Arrays = Mapping[str, np.ndarray]
Key = tuple[str, str, str, str | None]
"""(suite, task, protocol, text), as ``Score.key``."""

GIVEN = ("gold", "subset", "all_splits_gold", "image", "caption1", "caption2", "fold", "drawn")
"""Arrays that come from the data or the protocol alone: the same for every model on one set."""


def rescore(key: Key, arrays: Arrays, metric: str = "") -> TaskScore | None:
    """The score of one task from its stored arrays; None where they do not determine it (other kinds of tasks of
    mteb), and for a protocol that this bench does not know.

    ``metric`` is asked of mteb's tasks only. Raises DataDamaged where the arrays are not what the suite keeps, or give no number.
    """
    suite, task, protocol, _ = key
    if "prediction" in arrays and not len(np.atleast_1d(arrays["prediction"])):
        raise DataDamaged(f"{task}: the predictions hold no item")
    try:
        with np.errstate(all="ignore"):
            found = _scored(suite, task, protocol, arrays, metric)
    except RunFailed as error:
        raise DataDamaged(error.message) from None
    except KeyError as error:
        raise DataDamaged(f"{task}: the predictions have no array {error}") from None
    except (ValueError, TypeError, IndexError, AttributeError, ArithmeticError) as error:
        raise DataDamaged(f"{task}: the predictions cannot be scored: {' '.join(str(error).split())[:200]}") from None
    if found is not None and not np.isfinite([found.value, found.std or 0.0]).all():
        raise DataDamaged(f"{task}: the predictions give no finite score")
    return found


def reduce_predictions(key: Key, arrays: Arrays) -> dict[str, np.ndarray] | None:
    """What the score needs of the stored arrays of one task (``Task.reduced``); None where its suite does not say, or is not here."""
    suite, task, protocol, _ = key
    found = find_suite(suite).tasks if suite in suite_names() and suite != "mteb" else ()
    return next(
        (scored_task.reduced(arrays) for scored_task in found if (scored_task.name, scored_task.protocol) == (task, protocol)),
        None,
    )


def _scored(suite: str, task: str, protocol: str, arrays: Arrays, metric: str) -> TaskScore | None:
    if suite == "mteb":
        return _mteb(arrays, metric)
    if suite not in suite_names():
        return None
    found = find_suite(suite)
    known = {protocol: found.tasks[0] for protocol in found.earlier} | {scored_task.protocol: scored_task for scored_task in found.tasks}
    scorer = known[protocol].rescore if protocol in known else None
    if scorer is None or suite_plugin(suite) is None:
        return scorer(arrays, task) if scorer else None
    try:
        again = scorer(arrays, task)
    except Exception as error:  # a third party's code may raise anything
        raise DataDamaged(f"{task}: the scorer of the suite {suite} fails: {one_line(error)}") from None
    if not isinstance(again, TaskScore):
        raise DataDamaged(f"{task}: the scorer of the suite {suite} returns {type(again).__name__}, not a TaskScore")
    return again


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
