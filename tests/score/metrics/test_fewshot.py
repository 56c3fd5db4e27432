"""Few-shot draws and fits: the reference draw, and a solver of another kind."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from bench.score.metrics import fewshot
from bench.score.metrics.fewshot import accuracies, draw, fit_predict


def test_the_reference_draw(reference_b):
    case = reference_b["few_shot_sampling"]
    for seed, chosen in case["chosen"].items():
        assert draw(case["labels"], case["k"], case["task"], int(seed)).tolist() == chosen


def test_a_draw_has_k_of_every_class_and_they_are_the_ones_with_the_least_hash():
    labels = np.random.default_rng(0).integers(5, size=300)
    chosen = draw(labels, 16, "MR", 3)
    assert np.bincount(labels[chosen]).tolist() == [16] * 5 and (np.diff(chosen) > 0).all()
    key = [hashlib.sha256(f"MR:3:{i}".encode()).hexdigest() for i in range(300)]
    for label in range(5):
        inside = [i for i in range(300) if labels[i] == label]
        most = max(key[i] for i in inside if i in chosen)
        assert all(i in chosen or key[i] > most for i in inside)
    with pytest.raises(ValueError, match="class 1 has 3 items, 4 are drawn"):
        draw([0] * 9 + [1] * 3, 4, "MR", 0)


@pytest.mark.parametrize("classes", [2, 4])
def test_the_fit_is_the_regularised_maximum_likelihood(classes, monkeypatch):
    monkeypatch.setattr(fewshot, "BLOCK", 7)  # the test rows are split in blocks
    rng = np.random.default_rng(classes)
    y = np.repeat(np.arange(classes), 16)
    x, test = rng.normal(size=(len(y), 5)) + y[:, None] * 0.7, rng.normal(size=(40, 5)) + 0.7

    def loss(flat):
        w = flat.reshape(6, classes)
        return -log_softmax(x @ w[:5] + w[5], axis=1)[np.arange(len(y)), y].sum() + (
            w[:5] ** 2
        ).sum() / (1 if classes == 2 else 2)

    # for two classes scikit-learn fits one vector, the difference of a softmax's two: w and -w at
    # half its length. Their squares sum to half of its square, so the same penalty is twice as
    # strong on the two
    w = minimize(loss, np.zeros(6 * classes), method="BFGS", options={"gtol": 1e-9}).x.reshape(
        6, classes
    )
    found = fit_predict(x.astype(np.float32), y, test)
    assert found.predicted.tolist() == (test @ w[:5] + w[5]).argmax(axis=1).tolist()
    assert found.converged and found.iterations > 0
    assert not fit_predict(x, y, test, iterations=1).converged


def test_accuracies_leave_out_what_a_draw_has_seen():
    predicted = np.array([[0, -1], [1, 1], [-1, 0], [1, 0]])
    assert accuracies(predicted, [0, 1, 1, 0]) == pytest.approx([200 / 3, 200 / 3])
    with pytest.raises(ValueError, match="tested on nothing"):
        accuracies([[0, -1]], [0])
    with pytest.raises(ValueError, match="for 3 items"):
        accuracies([[0], [1]], [0, 1, 1])
