"""The transfer sets with one plain logistic regression: a quick look, not the papers' numbers.

Suite transfer-quick, protocol ``logreg-probe/1``. No grid and no dev split: the penalty is fixed,
and dimensions are standardised on the train rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.data.sets.transfer import LabelledTexts
from bench.score.metrics.probe import stratified_folds
from bench.score.suites.task import Suite
from bench.score.suites.transfer import Classified, transfer_task

AVERAGED = ("MR", "CR", "SUBJ", "MPQA", "SST-2", "TREC", "MRPC")
SETS = (*AVERAGED,)  # a further set stands behind them, and is not in the average
FOLDS, SEED = 5, 1111
INVERSE_PENALTY, ITERATIONS = 0.01, 100


def classify_quickly(texts: LabelledTexts, x_ND: np.ndarray, device: str) -> Classified:
    """Fit one classifier for each test fold or split."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    train, test = texts.rows("train"), np.flatnonzero(texts.split == "test")
    fold = (
        np.zeros(len(test), dtype=np.int64)
        if len(train)
        else stratified_folds(texts.labels, FOLDS, SEED)
    )
    predicted = np.zeros_like(fold)
    for k in range(int(fold.max()) + 1):
        rows = train if len(train) else test[fold != k]
        model: Any = make_pipeline(
            StandardScaler(), LogisticRegression(C=INVERSE_PENALTY, max_iter=ITERATIONS)
        ).fit(x_ND[rows], texts.labels[rows])
        predicted[fold == k] = model.predict(x_ND[test[fold == k]])
    return predicted, fold, {}


SUITE = Suite(
    name="transfer-quick",
    title="Transfer to classification, quick",
    description=(
        "The transfer sets with one plain logistic regression each: a quick look, not comparable "
        "with papers."
    ),
    tasks=tuple(
        transfer_task(name, f"{name}-quick", "transfer-quick", "logreg-probe/1", classify_quickly)
        for name in SETS
    ),
    average=tuple(f"{name}-quick" for name in AVERAGED),
    docs="suites.md#transfer",
    extra_detail=("classes",),
)
