"""Accuracy under resampling: plain loops over the items written out; the metrics that scored the runs."""

from __future__ import annotations

import numpy as np
import pytest

from bench.metrics import clustering, fewshot
from bench.statistics import draws
from bench.statistics.accuracy_resampling import fold_weights
from bench.statistics.cells import Predicted
from bench.statistics.resampling import resample_all


def drawn_items(p: Predicted, count: int) -> list[np.ndarray]:
    columns = np.concatenate(list(draws.counts(p.task, p.n_items, count, seed=0, bytes_per_draw=1)), axis=1)
    return [np.repeat(np.arange(p.n_items), column) for column in columns.T]


def classified(items: int = 37, seeds: int = 2, right: float = 0.7, **more: np.ndarray) -> Predicted:
    rng = np.random.default_rng(1)
    gold = rng.integers(0, 3, items)
    predicted = np.where(rng.random((seeds, items)) < right, gold, (gold + 1) % 3)
    return Predicted("TREC", "accuracy", tuple(range(seeds)), predicted, gold, **more)


def test_accuracy_is_the_share_of_right_answers_among_the_items_drawn() -> None:
    p = classified()
    (found,) = resample_all([p], draws=80, seed=0)
    for items, values in zip(drawn_items(p, 80), found.value_BS, strict=True):
        assert values == pytest.approx(100 * (p.prediction_SN[:, items] == p.gold_N[items]).mean(axis=1), abs=1e-8)


def test_folds_weigh_the_same() -> None:
    fold = np.array([0] * 5 + [1] * 12 + [2] * 20)
    p = classified(fold_N=fold)
    (found,) = resample_all([p], draws=1, seed=0)
    each = [[100 * (row[fold == k] == p.gold_N[fold == k]).mean() for k in range(3)] for row in p.prediction_SN]
    assert found.value_SR[:, 0] == pytest.approx(np.mean(each, axis=1), abs=1e-8)
    assert fold_weights(fold, 37).mean() == pytest.approx(1)


def test_few_shot_draws_leave_their_examples_out() -> None:
    rng = np.random.default_rng(2)
    gold = rng.integers(0, 2, 50)
    predicted = np.where(rng.random((2, 50, 10)) < 0.8, gold[:, None], 1 - gold[:, None])
    predicted[rng.random(predicted.shape) < 0.1] = -1
    p = Predicted("MR-16", "accuracy", (1, 2), predicted, gold)
    (found,) = resample_all([p], draws=30, seed=0)
    for s in range(2):
        assert found.value_SR[s] == pytest.approx(fewshot.accuracies(predicted[s], gold), abs=1e-8)
        for items, values in zip(drawn_items(p, 30), found.value_BS, strict=True):
            assert values[s] == pytest.approx(fewshot.accuracies(predicted[s][items], gold[items]).mean(), abs=1e-8)


def test_clusters_are_matched_once_and_matching_again_changes_next_to_nothing() -> None:
    rng = np.random.default_rng(3)
    gold = rng.integers(0, 5, 600)
    names = np.array([rng.permutation(7) for _ in range(4)])  # clusters have arbitrary numbers, and there are more than classes
    predicted = np.stack([names[r][np.where(rng.random(600) < 0.7, gold, rng.integers(0, 7, 600))] for r in range(4)], axis=1)
    p = Predicted("Tweet", "clustering-accuracy", (1,), predicted[None], gold)
    (found,) = resample_all([p], draws=40, seed=0)
    assert found.value_SR[0] == pytest.approx([clustering.accuracy(predicted[:, r], gold) for r in range(4)], abs=1e-8)
    again = [np.mean([clustering.accuracy(predicted[items, r], gold[items]) for r in range(4)]) for items in drawn_items(p, 40)]
    assert found.value_BS[:, 0] == pytest.approx(np.array(again), abs=0.2)
    assert found.value_BS.std() == pytest.approx(np.std(again), rel=0.05)


def test_a_draw_that_was_tested_on_nothing_is_refused() -> None:
    predicted = np.zeros((1, 6, 2), dtype=int)
    predicted[:, :, 1] = -1
    with pytest.raises(ValueError, match="MR-16: a draw was tested on nothing"):
        resample_all([Predicted("MR-16", "accuracy", (1,), predicted, np.zeros(6, dtype=int))], draws=5, seed=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "uniformity"}, "no statistics for the metric 'uniformity'"),
        ({"prediction_SN": np.zeros((2, 4))}, r"shape \(2, 4\) for 1 seeds and 5 items"),
        ({"prediction_SN": np.full((1, 5), np.nan)}, "NaN or infinity"),
        ({"seeds": (1, 1), "prediction_SN": np.zeros((2, 5))}, "not those of different runs"),
        ({"seeds": (1, None), "prediction_SN": np.zeros((2, 5))}, "not those of different runs"),
        ({"metric": "spearman-bootstrap"}, "needs the query"),
        ({"fold_N": np.zeros(4)}, "there are 5 items"),
        ({"score_S": np.zeros(2)}, "for 1 seeds"),
    ],
)
def test_what_does_not_fit_together_is_refused(change: dict, message: str) -> None:
    given = {"task": "T", "metric": "accuracy", "seeds": (1,), "prediction_SN": np.zeros((1, 5)), "gold_N": np.zeros(5)}
    with pytest.raises(ValueError, match=message):
        Predicted(**{**given, **change})
