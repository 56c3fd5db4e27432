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


def test_with_a_train_split_examples_come_from_it_and_the_test_split_is_tested():
    texts = labelled({"train": 200, "dev": 30, "test": 50}, name="TREC", classes=6)
    loaded = fewshot(texts)
    asked = []

    def recorded(sentences):
        asked.extend(sentences)
        return words_in(sentences)

    result = loaded.score(recorded)
    assert set(asked) == set(loaded.sentences)
    draws = [draw(texts.labels[:200], 16, "TREC", seed) for seed in range(DRAWS)]
    rows = sorted({*np.concatenate(draws).tolist(), *range(230, 280)})  # the drawn rows, and test
    assert set(asked) == {texts.texts[0][row] for row in rows}
    assert result.n == 50 and (result.predictions["prediction"] >= 0).all()
    x = words_in(texts.texts[0]).astype(float)
    want = predicted(x[draws[0]], texts.labels[draws[0]], x[230:])
    assert result.predictions["prediction"][:, 0].tolist() == want
