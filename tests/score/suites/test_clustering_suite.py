"""The clustering suite: against scikit-learn and scipy on a real set, and what is refused."""

from __future__ import annotations

import pytest
from stand_in import clustering, words_in

from bench.score.suites import clustering as module


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
