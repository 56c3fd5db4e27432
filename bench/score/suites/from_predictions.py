"""From stored predictions to a score again, one way for all suites: no model, no data set, no torch.

What the suites' own ``score_predictions`` compute, brought under one signature, with the number of items and every way in which
stored arrays can be wrong.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.base.errors import DataDamaged, RunFailed
from bench.score.metrics.correlation import pearson, spearman
from bench.score.suites import _MODULES
from bench.score.suites import suite as find_suite

Arrays = Mapping[str, np.ndarray]
Key = tuple[str, str, str, str | None]
"""(suite, task, protocol, text), as ``Score.key``."""

GIVEN = ("gold", "subset", "all_splits_gold", "image", "caption1", "caption2", "fold", "drawn")
"""Arrays that come from the data or the protocol alone: the same for every model on one set."""


@dataclass(frozen=True)
class Rescored:
    """What a record says of a task, from its predictions. ``detail`` holds the part that predictions determine."""

    value: float
    std: float | None
    n: int
    detail: Mapping[str, Any] = field(default_factory=dict)


def rescore(key: Key, arrays: Arrays, metric: str = "") -> Rescored | None:
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


def _scored(suite: str, task: str, protocol: str, arrays: Arrays, metric: str) -> Rescored | None:
    if suite == "mteb":
        return _mteb(arrays, metric)
    if suite not in _MODULES:
        return None
    found = find_suite(suite)
    if protocol not in (*(one.protocol for one in found.tasks), *found.earlier):
        return None
    if suite == "cxc":
        from bench.score.suites import cxc

        value, std, detail = cxc.score_predictions(arrays, task, protocol)
        return Rescored(value, std, len(arrays["prediction"]), detail)
    module = importlib.import_module(_MODULES["transfer" if suite == "transfer-quick" else suite])
    scorer: Callable[..., tuple[Any, ...]] | None = getattr(module, "score_predictions", None)
    if scorer is None:
        return None
    value, *between, detail = scorer(arrays, task)
    return Rescored(float(value), between[0] if between else None, _items(suite, task, arrays), detail)


def _items(suite: str, task: str, arrays: Arrays) -> int:
    """Items that were scored, as the suite counts them."""
    prediction = arrays["prediction"]
    if suite == "fewshot":  # every draw leaves out its own examples, where the set has no test split
        tested = np.unique((prediction >= 0).sum(axis=0))
        if len(tested) != 1:
            raise ValueError("the draws were tested on different numbers of items")
        return int(tested[0])
    if suite == "geometry" and task == "alignment":
        from bench.score.suites.geometry import ABOVE

        return int((arrays["gold"] > ABOVE).sum())
    return len(prediction)


_CORRELATIONS = {"cosine_spearman": spearman, "cosine_pearson": pearson}


def _mteb(arrays: Arrays, metric: str) -> Rescored | None:
    """mteb's main score x 100: the mean over subsets and splits, of similarity tasks and of accuracy."""
    if "prediction" not in arrays or metric not in (*_CORRELATIONS, "accuracy"):
        return None
    prediction, gold, subset = arrays["prediction"], arrays["gold"], arrays["subset"]
    values = []
    for one in dict.fromkeys(subset.tolist()):
        of_part = subset == one
        if metric == "accuracy":
            values.append(100 * float((prediction[of_part] == gold[of_part].reshape(-1, 1)).mean()))
        else:
            values.append(_CORRELATIONS[metric](prediction[of_part], gold[of_part]))
    return Rescored(float(np.mean(values)), None, len(prediction))
