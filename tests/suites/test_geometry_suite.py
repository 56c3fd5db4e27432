"""The geometry suite on the real STS-B: against plain formulas, and what stands in the record."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import scipy.stats
from scipy.spatial.distance import pdist
from stand_in import words_in

from bench.data.sets import DataFolder, read_sts
from bench.score.suites import suite
from bench.score.suites.geometry import (
    ITEMS,
    PROTOCOL,
    REMOVED,
    LoadedGeometry,
    score_predictions,
)


@pytest.fixture(scope="module", params=["tokenised", "raw"])
def pairs(shared, request):
    return read_sts(DataFolder(shared / "data"), "STS-B", text=request.param)


def units(sentences):
    x = words_in(sentences).astype(float)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.slow
def test_alignment_is_over_pairs_above_four_and_uniformity_over_every_occurrence(pairs, shared):
    data = DataFolder(shared / "data")
    tasks = [suite("geometry").task(name) for name in ("alignment", "uniformity")]
    alignment, uniformity = (task.load(data, pairs.form).score(words_in) for task in tasks)
    x, y = units(pairs.sentences1), units(pairs.sentences2)
    apart = pdist(np.vstack([x, y])) ** 2
    assert alignment.value == pytest.approx(((x - y)[pairs.gold > 4] ** 2).sum(1).mean(), abs=1e-12)
    assert uniformity.value == pytest.approx(math.log(np.exp(-2 * apart).mean()), abs=1e-12)
    assert uniformity.detail["anisotropy"] == pytest.approx((1 - apart / 2).mean(), abs=1e-12)
    assert uniformity.detail["pairs"] == 2758 * 2757 // 2
    assert 30 < uniformity.detail["effective_rank"] < 64
    for result in (alignment, uniformity):
        about = result.n, result.text, result.metric, result.protocol
        assert about == (ITEMS[result.task], pairs.form, result.task, PROTOCOL)
        assert result.detail["split"] == "test" and result.detail["zero_vectors"] == 0
        again = score_predictions(result.predictions, result.task)
        assert again.value == result.value
        assert again.detail == {key: result.detail[key] for key in again.detail}


@pytest.mark.slow
def test_the_curve_without_frequent_words(pairs):
    result = LoadedGeometry(suite("geometry").task("alignment"), pairs).score(words_in)
    counts = Counter(" ".join(pairs.sentences1 + pairs.sentences2).split())
    curve = result.detail["without_frequent_words"]
    assert [point["k"] for point in curve] == [0, *REMOVED]
    for point in curve[1:3]:
        gone = set(sorted(counts, key=lambda word: (-counts[word], word))[: point["k"]])
        first, second = (
            [" ".join(w for w in s.split() if w not in gone) for s in side]
            for side in (pairs.sentences1, pairs.sentences2)
        )
        x, y = (words_in(side).astype(float) for side in (first, second))
        sizes = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
        cosine = (x * y).sum(1) / np.maximum(sizes, 1e-30)
        cosine[np.array(first) == np.array(second)] = 1.0
        stored = result.predictions[f"without_{point['k']}_cosine"]
        assert stored.dtype == np.float32 and stored == pytest.approx(cosine, abs=1e-7)
        wanted = 100 * scipy.stats.spearmanr(stored, pairs.gold).statistic
        assert point["spearman"] == pytest.approx(wanted, abs=1e-9)
