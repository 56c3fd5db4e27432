"""Pairs of a user: scored as in sts, with a query and a document in each pair if the file says so,
and with average precision, F1 and accuracy if pairs are judged 0 or 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.data.own.items import OwnPairs
from bench.records.record import BESIDE, REDUCED, THRESHOLDS
from bench.score.metrics.correlation import spearman
from bench.score.metrics.judged import average_precision, best_accuracy, best_f1, cut
from bench.score.suites.sts import SAME_COSINES, LoadedPairs, score_pairs
from bench.score.suites.task import Arrays, RunPlace, TaskResult, TaskScore, Vectors
from bench.score.suites.vectors import scoring


@dataclass(frozen=True)
class LoadedOwnPairs(LoadedPairs):
    """Pairs that are scored by the cosines of their vectors."""

    data: OwnPairs

    @property
    def sides(self) -> Mapping[str, Sequence[str]]:
        if self.data.sides is None:
            return {}
        columns = self.data.sentences1, self.data.sentences2
        return dict(zip(self.data.sides, columns, strict=True))

    def score_in(self, place: RunPlace, vectors: Vectors) -> TaskResult:
        if self.data.sides is None:
            return self.score(vectors)
        first, second = (place.sides.get(side, vectors) for side in self.data.sides)
        return self.score_sides(first, second)


SPEARMAN = "Spearman"
AVERAGE_PRECISION = "AP"
F1 = "F1"
ACCURACY = "accuracy"
"""What is measured of judged pairs, as tables name it."""


def score_own_pairs(predictions: Arrays, task: str) -> TaskScore:
    """Score stored predictions by Spearman's correlation, judged pairs also by other measures."""
    score = score_pairs(predictions, task)
    if not np.isin(predictions["gold"], (0, 1)).all():
        return score
    judged = _score_by(SPEARMAN, predictions, task)
    return TaskScore(score.value, score.n, detail={**score.detail, **judged.detail})


def _score_by(name: str, predictions: Arrays, task: str) -> TaskScore:
    """Score stored predictions by one measure of judged pairs, and give the others as details.

    Raises RunFailed if one is undefined.
    """
    value_N, judged_N = predictions["prediction"], predictions["gold"]
    with scoring(task, SAME_COSINES):
        correlation = spearman(value_N, judged_N)
        cuts = cut(value_N, judged_N)
    f1, f1_cut = best_f1(cuts)
    accuracy, accuracy_cut = best_accuracy(cuts)
    measures = {
        SPEARMAN: correlation,
        AVERAGE_PRECISION: average_precision(cuts),
        F1: f1,
        ACCURACY: accuracy,
    }
    value = measures.pop(name)
    detail = {BESIDE: measures}
    if REDUCED not in predictions:  # ranks have no thresholds
        detail[THRESHOLDS] = {
            f"{F1} threshold": cuts.threshold(f1_cut),
            f"{ACCURACY} threshold": cuts.threshold(accuracy_cut),
        }
    return TaskScore(value, len(value_N), detail=detail)


score_average_precision = partial(_score_by, AVERAGE_PRECISION)
score_best_f1 = partial(_score_by, F1)
score_best_accuracy = partial(_score_by, ACCURACY)
