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
from bench.score.suites.geometry import ITEMS, PROTOCOL, RAW_PROTOCOL, score_geometry

TEXTS = {PROTOCOL: "tokenised", RAW_PROTOCOL: "raw"}


@pytest.fixture(
    scope="module", params=[PROTOCOL, pytest.param(RAW_PROTOCOL, marks=pytest.mark.nightly)]
)
def protocol(request):
    return request.param


@pytest.fixture(scope="module")
def pairs(shared, protocol):
    return read_sts(DataFolder(shared / "data"), "STS-B", text=TEXTS[protocol])


def units(sentences):
    x = words_in(sentences).astype(float)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.slow
def test_alignment_is_over_pairs_above_four_and_uniformity_over_every_occurrence(
    pairs, protocol, shared
):
    data = DataFolder(shared / "data")
    tasks = [suite(f"geometry:{protocol}").task(name) for name in ("alignment", "uniformity")]
    alignment, uniformity = (task.load(data).score(words_in) for task in tasks)
    x, y = units(pairs.sentences1), units(pairs.sentences2)
    apart = pdist(np.vstack([x, y])) ** 2
    assert alignment.value == pytest.approx(((x - y)[pairs.gold > 4] ** 2).sum(1).mean(), abs=1e-12)
    assert uniformity.value == pytest.approx(math.log(np.exp(-2 * apart).mean()), abs=1e-12)
    assert uniformity.detail["anisotropy"] == pytest.approx((1 - apart / 2).mean(), abs=1e-12)
    assert uniformity.detail["pairs"] == 2758 * 2757 // 2
    assert 30 < uniformity.detail["effective_rank"] < 64
    for result in (alignment, uniformity):
        about = result.n, result.metric, result.protocol
        assert about == (ITEMS[result.task], result.task, protocol)
        assert result.detail["split"] == "test" and result.detail["zero_vectors"] == 0
        again = score_geometry(result.predictions, result.task)
        assert again.value == result.value
        assert again.detail == {key: result.detail[key] for key in again.detail}
