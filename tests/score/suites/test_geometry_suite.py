"""The geometry suite on the real STS-B: against plain formulas, and the values in the record."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from stand_in import words_in

from bench.data.sets import DataFolder
from bench.data.sets.sts import read_sts
from bench.score.suites import suite
from bench.score.suites.geometry import ITEMS, PROTOCOL, score_geometry


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
        again = score_geometry(result.predictions, result.task)
        assert again.value == result.value
        assert again.detail == {key: result.detail[key] for key in again.detail}
