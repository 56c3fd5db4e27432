"""The transfer sets with a plain logistic regression: protocol ``logreg-probe/1``. A quick look, not the papers' numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.data.sets.transfer import TRANSFER_TASKS, LabelledTexts
from bench.score.metrics.probe import stratified_folds
from bench.score.suites import Suite
from bench.score.suites.transfer import Classified, transfer_task

PROTOCOL = "logreg-probe/1"
FOLDS, SEED, INVERSE_PENALTY, ITERATIONS = 5, 1111, 0.01, 100


def classify(texts: LabelledTexts, x_ND: np.ndarray, device: str) -> Classified:
    """One fit for each test fold or split. No grid, no dev split: fixed L2, dimensions standardised on the train rows."""
    train, test = texts.rows("train"), np.flatnonzero(texts.split == "test")
    if len(train):
        return _predict(x_ND, texts.labels, train, test), np.zeros(len(test), dtype=np.int64), {}
    fold = stratified_folds(texts.labels, FOLDS, SEED)
    predicted = np.zeros(len(fold), dtype=np.int64)
    for k in range(FOLDS):
        predicted[fold == k] = _predict(
            x_ND, texts.labels, np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        )
    return predicted, fold, {}


def _predict(x_ND: np.ndarray, y_N: np.ndarray, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model: Any = make_pipeline(
        StandardScaler(), LogisticRegression(C=INVERSE_PENALTY, max_iter=ITERATIONS)
    )
    return np.asarray(model.fit(x_ND[train], y_N[train]).predict(x_ND[test]), dtype=np.int64)


SUITE = Suite(
    name="transfer-quick",
    title="Transfer to classification, quick",
    description="The transfer sets with one plain logistic regression each: a quick look, not comparable with papers.",
    tasks=tuple(
        transfer_task(name, f"{name}-quick", "transfer-quick", PROTOCOL, classify)
        for name in TRANSFER_TASKS
    ),
    average=tuple(f"{name}-quick" for name in TRANSFER_TASKS),
    docs="suites.md#transfer",
)
