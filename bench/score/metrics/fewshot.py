"""Few labelled examples, many draws: which examples, and a logistic regression fitted on them.

Legend: N items, D dimensions, M test items, K draws.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

BLOCK = 4096  # test rows that are held in float64 at once


@dataclass(frozen=True)
class Fitted:
    """The answers of one fitted classifier."""

    # (M,) classes
    predicted: NDArray[np.int64]
    # iterations of the solver
    iterations: int
    # True if they sufficed
    converged: bool


def draw(labels_N: ArrayLike, k: int, task: str, seed: int) -> NDArray[np.int64]:
    """Draw k items of every class; returns their indices, ascending.

    They are the items with the least sha256 of "TASK:SEED:INDEX", by its hex digits. The draw
    depends on no library's generator, and is the same for every model. Raises ValueError for a
    class with fewer than k items.
    """
    labels_N = np.asarray(labels_N)
    chosen: list[int] = []
    for label in np.unique(labels_N).tolist():
        members = np.flatnonzero(labels_N == label).tolist()
        if len(members) < k:
            raise ValueError(f"class {label} has {len(members)} items, {k} are drawn")
        chosen += sorted(
            members, key=lambda i: hashlib.sha256(f"{task}:{seed}:{i}".encode("ascii")).hexdigest()
        )[:k]
    return np.array(sorted(chosen), dtype=np.int64)


def fit_predict(
    train_ND: NDArray[np.floating],
    labels_N: ArrayLike,
    test_MD: NDArray[np.floating],
    *,
    iterations: int = 1000,
) -> Fitted:
    """Fit scikit-learn's LogisticRegression (L2, C = 1, L-BFGS) in float64 and predict.

    Features are used unchanged.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1.0, solver="lbfgs", max_iter=iterations)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # reported as ``converged``
        model.fit(train_ND.astype(np.float64), labels_N)
    predicted = [
        model.predict(test_MD[i : i + BLOCK].astype(np.float64))
        for i in range(0, len(test_MD), BLOCK)
    ]
    used = int(np.max(model.n_iter_))
    return Fitted(np.concatenate(predicted).astype(np.int64), used, used < iterations)


def accuracies(predicted_MK: ArrayLike, gold_M: ArrayLike) -> NDArray[np.float64]:
    """Return the accuracy x 100 of every draw, (K,), over rows that it tested (-1: not tested)."""
    predicted_MK, gold_M = np.asarray(predicted_MK), np.asarray(gold_M)
    if predicted_MK.ndim != 2 or gold_M.shape != predicted_MK.shape[:1]:
        raise ValueError(f"predictions of shape {predicted_MK.shape} for {len(gold_M)} items")
    tested_MK = predicted_MK >= 0
    if not tested_MK.any(axis=0).all():
        raise ValueError("a draw was tested on nothing")
    return 100 * ((predicted_MK == gold_M[:, None]) & tested_MK).sum(axis=0) / tested_MK.sum(axis=0)
