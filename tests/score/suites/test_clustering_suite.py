"""The clustering suite: against scikit-learn and scipy on a real set, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    normalized_mutual_info_score,
)
from stand_in import clustering, words_in

from bench.data.sets import DataFolder
from bench.score.suites import clustering as module
from bench.score.suites import suite


@pytest.mark.nightly
def test_a_set_agrees_with_scikit_learn_and_scipy(shared, monkeypatch):
    monkeypatch.setattr(module, "SEEDS", (0, 1, 2))
    loaded = suite("clustering").task("Tweet").load(DataFolder(shared / "data"))
    result = loaded.score(words_in)
    about = result.n, result.protocol, result.metric
    assert about == (2472, "sccl-kmeans/1", "clustering-accuracy")
    assert result.predictions["prediction"].shape == (2472, 3)
    x, gold = words_in(loaded.sentences), loaded.data.labels
    theirs, inertia = [], []
    for seed in range(3):
        fitted = KMeans(89, n_init=10, random_state=seed).fit(x)
        labels = fitted.labels_
        inertia.append(fitted.inertia_)
        classes = np.unique(gold)
        table = np.array(
            [[((labels == p) & (gold == g)).sum() for g in classes] for p in range(89)]
        )
        theirs.append(100 * table[linear_sum_assignment(-table)].sum() / len(gold))
    each = result.detail["accuracy"]["each"]
    assert (result.value, result.std) == pytest.approx((np.mean(each), np.std(each)))
    # in float32 a processor's rounding chooses among equally good optima, and their accuracies are
    # points apart
    assert np.mean(result.detail["inertia"]) == pytest.approx(np.mean(inertia), rel=0.005)
    assert abs(result.value - np.mean(theirs)) < 5
    for seed in range(3):
        labels = result.predictions["prediction"][:, seed]
        for name, metric in (
            ("nmi", normalized_mutual_info_score),
            ("ami", adjusted_mutual_info_score),
            ("ari", adjusted_rand_score),
        ):
            assert result.detail[name]["each"][seed] == pytest.approx(100 * metric(gold, labels))
        centres = np.stack([x[labels == k].mean(axis=0) for k in range(89)])
        assert result.detail["inertia"][seed] == pytest.approx(
            ((x - centres[labels]) ** 2).sum(), rel=1e-4
        )
    assert result.detail["classes"] == 89 and result.detail["seeds"] == [0, 1, 2]


def test_the_protocol_is_ten_seeds_of_ten_starts(monkeypatch):
    asked = {}

    def kmeans(x, clusters, seeds, **given):
        asked.update(given, clusters=clusters, seeds=tuple(seeds), x=x)
        from bench.score.metrics.kmeans import kmeans

        return kmeans(x, clusters, seeds, **given)

    monkeypatch.setattr(module, "kmeans", kmeans)
    texts = [f"{topic} {i}" for i in range(8) for topic in ("cats purr", "dogs bark", "rain falls")]
    result = clustering(texts, [7, 40, 1] * 8).score(lambda sentences: 100 * words_in(sentences))
    assert (asked["x"] == 100 * words_in(texts)).all()  # as they are: not normalised
    wanted = {"clusters": 3, "seeds": tuple(range(10)), "starts": 10, "max_iterations": 300}
    wanted |= {"tolerance": 1e-4}
    assert {key: asked[key] for key in wanted} == wanted
    assert result.predictions["prediction"].shape == (24, 10)
    assert (result.value, result.std) == (100, 0)  # labels are neither from 0 nor contiguous
    assert result.detail["nmi"]["mean"] == pytest.approx(100)
