"""The few-shot suite: what becomes of vectors, on the real sets and on small made-up ones."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from stand_in import fewshot, labelled, words_in

from bench.score.metrics.fewshot import draw
from bench.score.suites.fewshot import DRAWS, FEWSHOT_PROTOCOL


def predicted(x: np.ndarray, y: np.ndarray, test: np.ndarray) -> list[int]:
    return LogisticRegression(C=1.0, max_iter=1000).fit(x, y).predict(test).tolist()


def test_without_a_train_split_a_draw_is_tested_on_all_the_rest():
    texts = labelled({"test": 150})
    result = fewshot(texts).score(words_in)
    x = words_in(texts.texts[0]).astype(float)
    for seed in range(DRAWS):
        chosen = draw(texts.labels, 16, "CR", seed)
        rest = np.setdiff1d(np.arange(150), chosen)
        want = predicted(x[chosen], texts.labels[chosen], x[rest])
        assert result.predictions["drawn"][seed].tolist() == chosen.tolist()
        assert result.predictions["prediction"][rest, seed].tolist() == want
        assert (result.predictions["prediction"][chosen, seed] == -1).all()
        share = 100 * (np.array(want) == texts.labels[rest]).mean()
        assert result.detail["draws"][seed] == pytest.approx(share, abs=1e-10)
    draws = result.detail["draws"]
    found = result.value, result.std
    assert found == pytest.approx((np.mean(draws), np.std(draws, ddof=1)), abs=1e-10)
    about = result.n, result.metric, result.protocol
    assert about == (150 - 32, "accuracy", FEWSHOT_PROTOCOL)
    assert result.predictions["gold"].tolist() == texts.labels.tolist()
    assert 60 < result.value < 100
