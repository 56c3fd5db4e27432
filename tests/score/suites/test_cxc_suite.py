"""The CxC suite: two protocols over one set of predictions, against numpy's and scipy's own
functions on the real data.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from stand_in import words_in

from bench.data.sets import DataFolder
from bench.score.suites import TaskResult, suite
from bench.score.suites.cxc import CXC_PROTOCOLS, drawn_scores
from bench.score.suites.sts import LoadedPairs


def signed_words(sentences):
    """Vectors of words with cosines of both signs, as a model gives them."""
    return words_in(sentences) @ np.random.default_rng(0).normal(size=(64, 16)).astype(np.float32)


@pytest.fixture(scope="module")
def loaded(shared: Path) -> list[LoadedPairs]:
    return [task.load(DataFolder(shared / "data")) for task in suite("cxc").tasks]


@pytest.fixture(scope="module")
def results(loaded) -> list[TaskResult]:
    rows = {sentence: i for i, sentence in enumerate(loaded[0].sentences)}
    vectors = signed_words(loaded[0].sentences)
    return [one.score(lambda some: vectors[[rows[s] for s in some]]) for one in loaded]


@pytest.mark.nightly
def test_draws_are_those_of_plain_loops(results):
    arrays = results[0].predictions
    by_image = [np.flatnonzero(arrays["image"] == image) for image in range(5000)]
    generator = np.random.RandomState(123)
    values = drawn_scores(arrays, "cxc-promcse/1")
    for value in values[:4]:
        images = [by_image[one] for one in generator.choice(5000, 2500)]
        rows = [image[generator.choice(len(image))] for image in images]
        want = scipy.stats.spearmanr(arrays["prediction"][rows], arrays["gold"][rows]).statistic
        assert value == pytest.approx(100 * want, abs=1e-9)
    assert (results[0].value, results[0].std) == pytest.approx((values.mean(), values.std()))
    drawn = CXC_PROTOCOLS["cxc-parekh/1"].drawn(
        np.unique(arrays["caption1"], return_inverse=True)[1]
    )
    for rows in list(drawn)[:3]:
        assert len(np.unique(arrays["caption1"][rows])) == 12500
