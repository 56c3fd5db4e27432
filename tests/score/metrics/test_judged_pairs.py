"""Measures of pairs judged 0 or 1, against scikit-learn and sentence-transformers; and how far each
pair moves them, against the measures with a little more of that pair.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sentence_transformers.sentence_transformer.evaluation import BinaryClassificationEvaluator
from sklearn.metrics import average_precision_score

from bench.records.predictions import Predicted
from bench.score.influence import Influence
from bench.score.metrics.judged import Cuts, average_precision, best_accuracy, best_f1, cut
from bench.score.metrics.judged_influence import (
    move_average_precision,
    move_best_accuracy,
    move_best_f1,
)

f1_of = BinaryClassificationEvaluator.find_best_f1_and_threshold
accuracy_of = BinaryClassificationEvaluator.find_best_acc_and_threshold


def made(seed: int, pairs: int = 80, decimals: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return values, of which some are equal, and judgements that go with them loosely."""
    drawn = np.random.default_rng(seed)
    judged_N = (drawn.random(pairs) < [0.05, 0.3, 0.6, 0.95][seed % 4]).astype(float)
    judged_N[:2] = 0, 1
    values_N = np.round(judged_N * drawn.random() + drawn.normal(0, 0.5, pairs), decimals)
    return values_N.astype(np.float32), judged_N


@pytest.mark.parametrize("seed", range(12))
def test_measures_are_those_of_the_libraries(seed: int) -> None:
    values_N, judged_N = made(seed, decimals=1 + seed % 3)
    cuts = cut(values_N, judged_N)
    wanted = 100 * average_precision_score(judged_N, values_N)
    assert average_precision(cuts) == pytest.approx(wanted, abs=1e-9)
    f1, _, _, threshold = f1_of(values_N, judged_N, True)
    value, place = best_f1(cuts)
    assert (value, cuts.threshold(place)) == pytest.approx((100 * f1, threshold), abs=1e-7)
    accuracy, threshold = accuracy_of(values_N, judged_N, True)
    value, place = best_accuracy(cuts)
    assert (value, cuts.threshold(place)) == pytest.approx((100 * accuracy, threshold), abs=1e-7)


def test_a_threshold_above_all_values_is_the_next_number() -> None:
    values_N, judged_N = np.array([0.9, 0.8, 0.7, 0.1], np.float32), np.array([0.0, 0, 0, 1])
    cuts = cut(values_N, judged_N)
    value, place = best_accuracy(cuts)
    assert (value, place) == (75.0, -1)
    assert cuts.threshold(place) == accuracy_of(values_N, judged_N, True)[1] > values_N[0]


def test_judgements_of_another_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="0 and 1"):
        cut(np.array([0.1, 0.2]), np.array([1, 2]))
    with pytest.raises(ValueError, match="0 and 1"):
        cut(np.array([0.1, 0.2]), np.array([1, 1]))


MOVES: dict[str, tuple[Callable[[Predicted], Influence], Callable[[Cuts], float]]] = {
    "AP": (move_average_precision, average_precision),
    "F1": (move_best_f1, lambda cuts: best_f1(cuts)[0]),
    "accuracy": (move_best_accuracy, lambda cuts: best_accuracy(cuts)[0]),
}


@pytest.mark.parametrize("name", MOVES)
def test_a_pair_moves_a_measure_as_more_of_it_does(name: str) -> None:
    move, measure = MOVES[name]
    values_N, judged_N = made(2, 300, decimals=1)
    p = Predicted("pairs", name, (None,), values_N[None].astype(float), judged_N)
    influence = move(p)
    value = measure(cut(values_N, judged_N))
    assert influence.value_SR == pytest.approx(np.array([[value]]))
    assert influence.moved_SN.sum() == pytest.approx(0, abs=1e-9)
    times = 200  # each pair counts so often; one counts once more
    for pair in range(0, 300, 17):
        rows_N = np.append(np.repeat(np.arange(300), times), pair)
        more = measure(cut(values_N[rows_N], judged_N[rows_N]))
        assert influence.moved_SN[0, pair] == pytest.approx(times * (more - value), abs=2e-3)
