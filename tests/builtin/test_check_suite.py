"""The suite 'check': an oracle scores 100, cosines are what is scored, the data is refused when damaged."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from bench.errors import DataDamaged, RunFailed
from bench.suites import check, suite
from bench.suites.check import check_dev_task


def hashed_words(sentences):
    """Vectors of word counts in 64 buckets."""
    vectors = np.zeros((len(sentences), 64), dtype=np.float32)
    for i, sentence in enumerate(sentences):
        for word in sentence.lower().strip(".").replace(",", "").split():
            vectors[i, sum(map(ord, word)) % 64] += 1
    return vectors


def test_scores_are_spearman_of_cosine_over_all_pairs():
    (task,) = suite("check").tasks
    loaded = task.load(None, "tokenised")
    assert (task.name, task.protocol, loaded.n, loaded.form) == ("CHECK", "check/1", 1000, None)
    result = loaded.score(hashed_words)
    a, b = hashed_words(loaded.sentences1), hashed_words(loaded.sentences2)
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    assert result.value == pytest.approx(100 * spearmanr(cosine.round(6), loaded.gold)[0], abs=0.05)
    np.testing.assert_allclose(result.predictions["prediction"], cosine, atol=1e-6)
    assert (result.suite, result.task, result.metric, result.n, result.text) == ("check", "CHECK", "spearman", 1000, None)
    for kind in ("reworded", "close", "swapped"):
        rows = result.predictions["subset"] == kind
        expected = 100 * spearmanr(cosine[rows].round(6), loaded.gold[rows])[0]
        assert result.detail["subsets"][kind]["spearman"] == pytest.approx(expected, abs=0.2)
        assert result.detail["subsets"][kind]["n"] == rows.sum()


def test_dev_has_other_pairs():
    dev, test = check_dev_task(None), suite("check").tasks[0].load(None, "")
    assert dev.n == 300 and not set(dev.sentences) & set(test.sentences) and dev.sha256 != test.sha256
    assert dev.score(hashed_words).task == "CHECK dev"


def test_vectors_that_cannot_be_scored():
    dev = check_dev_task(None)
    with pytest.raises(RunFailed, match="CHECK dev"):
        dev.score(lambda sentences: np.full((len(sentences), 4), np.nan, dtype=np.float32))
    with pytest.raises(RunFailed, match="CHECK dev"):
        dev.score(lambda sentences: np.ones((len(sentences), 4), dtype=np.float32))


@pytest.mark.parametrize(
    "content", [None, b"", b"sentence1\tsentence2\tgold\tkind\nA.\tB.\t1\tclose\n", b"h\nA.\tB.\n", b"h\n\xff\tB.\tx\tclose\n"]
)
def test_damaged_data_is_refused(tmp_path, monkeypatch, content):
    monkeypatch.setattr(check, "DATA", tmp_path)
    if content is not None:
        (tmp_path / "check-dev.tsv").write_bytes(content)
    with pytest.raises(DataDamaged, match="CHECK dev"):
        check_dev_task(None)
