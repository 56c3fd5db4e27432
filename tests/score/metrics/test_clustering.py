"""Clustering accuracy and its companions: reference vectors, all matchings tried, and laws."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    normalized_mutual_info_score,
)
from sklearn.metrics.cluster import contingency_matrix

from bench.score.metrics.clustering import (
    agreement,
    confusion,
    matched_accuracy,
    summarise_clusterings,
)


def test_the_papers_own_code_gives_the_same(reference_b):
    for case in reference_b["clustering_accuracy"]:
        assert matched_accuracy(confusion(case["y_pred"], case["y_true"])) == pytest.approx(
            100 * case["accuracy"], abs=1e-10
        )
        wrong = [case[key] for key in ("purity_wrong", "no_matching_wrong") if key in case]
        assert all(
            abs(matched_accuracy(confusion(case["y_pred"], case["y_true"])) / 100 - one) > 0.1
            for one in wrong
        )
    table = reference_b["clustering_accuracy"][0]
    assert confusion(table["y_pred"], table["y_true"]).T.tolist() == table["confusion_true_by_pred"]


items = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30)


@given(items, st.permutations([-3, 7, 90, 2**40, 12]))
def test_every_matching_tried(pairs, names):
    predicted, gold = (np.array(side) for side in zip(*pairs, strict=True))
    best = max(sum(m[p] == g for p, g in pairs) for m in itertools.permutations(range(5)))
    assert matched_accuracy(confusion(predicted, gold)) == pytest.approx(
        100 * best / len(pairs), abs=1e-9
    )
    renamed = np.array(names)[predicted]  # names are arbitrary, and need not be near each other
    assert matched_accuracy(confusion(renamed, gold)) == matched_accuracy(
        confusion(predicted, gold)
    )
    assert agreement(confusion(renamed, gold)) == pytest.approx(
        agreement(confusion(predicted, gold)), abs=1e-9
    )
    assert (contingency_matrix(gold, predicted) == confusion(predicted, gold).T).all()


def as_scikit_learn(predicted, gold):
    functions = {
        "nmi": normalized_mutual_info_score,
        "ami": adjusted_mutual_info_score,
        "ari": adjusted_rand_score,
    }
    return {name: 100 * function(gold, predicted) for name, function in functions.items()}


@given(items)
def test_agreement_is_scikit_learns(pairs):
    predicted, gold = (np.array(side) for side in zip(*pairs, strict=True))
    assert agreement(confusion(predicted, gold)) == pytest.approx(
        as_scikit_learn(predicted, gold), abs=1e-8
    )


def test_agreement_of_many_unequal_clusters_is_scikit_learns():
    rng = np.random.default_rng(0)
    gold = rng.geometric(0.1, 3000)
    predicted = np.where(rng.random(3000) < 0.5, gold % 40, rng.integers(0, 40, 3000))
    assert agreement(confusion(predicted, gold)) == pytest.approx(
        as_scikit_learn(predicted, gold), abs=1e-8
    )


def test_summary_is_over_columns():
    gold = [0, 0, 1, 1]
    found = summarise_clusterings(np.array([[0, 1], [0, 1], [0, 0], [1, 0]]), gold)
    assert found["accuracy"] == {"mean": 87.5, "std": 12.5, "each": [75.0, 100.0]}
    assert set(found) == {"accuracy", "nmi", "ami", "ari"} and found["ari"]["each"][
        1
    ] == pytest.approx(100)


def test_undefined_is_an_error():
    for predicted, gold in (([], []), ([1, 2], [1]), ([[1], [2]], [[1], [2]])):
        with pytest.raises(ValueError, match="expected"):
            confusion(predicted, gold)
    with pytest.raises(ValueError, match="one column"):
        summarise_clusterings([1, 2], [1, 2])
