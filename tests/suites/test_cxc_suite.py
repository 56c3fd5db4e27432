"""The CxC suite: two protocols over one set of predictions, against numpy's and scipy's own functions on the real data."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from click.testing import CliRunner

from bench.base.errors import RunFailed
from bench.cli.suites import suites
from bench.data.sets import DataFolder, RatedCaptions
from bench.score.suites import TaskResult, TaskScore, average, suite
from bench.score.suites import sts as module
from bench.score.suites.cxc import PROTOCOLS, drawn_scores, score_predictions
from bench.score.suites.sts import LoadedPairs

WORDS: dict[str, np.ndarray] = {}


def bag_of_words(sentences):
    """A stand-in for a model: the sum of a random vector per word."""
    for word in {word for sentence in sentences for word in sentence.lower().split()} - set(WORDS):
        seed = int.from_bytes(hashlib.md5(word.encode()).digest()[:4], "little")
        WORDS[word] = np.random.default_rng(seed).normal(size=16).astype(np.float32)
    return np.stack(
        [
            sum((WORDS[word] for word in sentence.lower().split()), np.zeros(16, np.float32))
            for sentence in sentences
        ]
    )


@pytest.fixture(scope="module")
def loaded(shared: Path) -> list[LoadedPairs]:
    return [task.load(DataFolder(shared / "data"), "tokenised") for task in suite("cxc").tasks]


@pytest.fixture(scope="module")
def results(loaded) -> list[TaskResult]:
    vectors = dict(zip(loaded[0].sentences, bag_of_words(loaded[0].sentences), strict=True))
    return [
        one.score(lambda sentences: np.stack([vectors[sentence] for sentence in sentences]))
        for one in loaded
    ]


@pytest.mark.slow
def test_both_protocols_keep_the_same_predictions_under_their_own_names(results):
    promcse, parekh = results
    assert [one.protocol for one in results] == ["cxc-promcse/1", "cxc-parekh/1"] == list(PROTOCOLS)
    assert {(one.task, one.metric, one.n, one.text) for one in results} == {
        ("CxC-STS", "spearman-bootstrap", 44045, "tokenised")
    }
    assert set(promcse.predictions) == set(parekh.predictions)
    for key, array in promcse.predictions.items():
        assert (array == parekh.predictions[key]).all() and len(array) == 44045
    # images with replacement spread wider than captions without
    assert promcse.value != parekh.value and 0.7 < promcse.std < 2 and 0.2 < parekh.std < 0.7
    assert abs(promcse.value - parekh.value) < 2
    assert average(results) is None


@pytest.mark.slow
def test_draws_are_those_of_plain_loops(results):
    arrays = results[0].predictions
    by_image = [np.flatnonzero(arrays["image"] == image) for image in range(5000)]
    generator = np.random.RandomState(123)
    values = drawn_scores(arrays, "cxc-promcse/1")
    for value in values[:4]:
        rows = [
            by_image[one][generator.choice(len(by_image[one]))]
            for one in generator.choice(5000, 2500)
        ]
        want = scipy.stats.spearmanr(arrays["prediction"][rows], arrays["gold"][rows]).statistic
        assert value == pytest.approx(100 * want, abs=1e-9)
    assert results[0].value == pytest.approx(values.mean()) and results[0].std == pytest.approx(
        values.std()
    )
    one_caption = [
        len(np.unique(arrays["caption1"][rows]))
        for rows in PROTOCOLS["cxc-parekh/1"].drawn(
            np.unique(arrays["caption1"], return_inverse=True)[1]
        )
    ][:3]
    assert one_caption == [12500] * 3


def test_detail_says_what_the_draws_were_and_what_all_pairs_give(results):
    for one in results:
        json.dumps(one.detail)
        draws, pooled = one.detail["draws"], one.detail["pooled"]
        assert (
            draws["count"] == 1000
            and draws["min"] < draws["low"] < draws["median"] < draws["high"] < draws["max"]
        )
        assert draws["median"] == pytest.approx(one.value, abs=0.2)
        want = scipy.stats.spearmanr(
            one.predictions["prediction"], one.predictions["gold"]
        ).statistic
        assert pooled["spearman"] == pytest.approx(100 * want, abs=1e-9) and pooled["n"] == 44045
        assert {name: part["n"] for name, part in one.detail["subsets"].items()} == {
            "c2c_isim": 19045,
            "c2c_cocaption": 25000,
        }


@pytest.mark.slow
def test_scoring_again_from_the_predictions_gives_the_same_number(results):
    for one in results:
        assert score_predictions(one.predictions, "CxC-STS", one.protocol) == TaskScore(
            one.value, one.n, one.std, one.detail
        )


def made_up(n: int = 200) -> LoadedPairs:
    sentences = [f"caption {i}" for i in range(n)]
    other = [f"other {i % 7}" for i in range(n)]
    pairs = RatedCaptions(
        "CxC-STS",
        sentences,
        other,
        np.arange(n) % 50 / 10,
        ["c2c_isim"] * n,
        "test",
        "raw",
        "0" * 64,
        np.arange(n),
        np.arange(n),
        np.arange(n) // 4,
    )
    return LoadedPairs(suite("cxc").tasks[0], pairs)


@pytest.mark.slow
def test_pairs_are_measured_in_parts(monkeypatch):
    whole = made_up().score(bag_of_words)
    monkeypatch.setattr(module, "AT_ONCE", 7)
    parts = made_up().score(bag_of_words)
    assert (
        parts.value == whole.value
        and (parts.predictions["prediction"] == whole.predictions["prediction"]).all()
    )


def test_vectors_that_cannot_be_scored_name_the_task_and_the_sentence():
    def nan_for_one(sentences):
        return np.array(
            [[np.nan if s == "other 3" else 1.0, len(s)] for s in sentences], dtype=np.float32
        )

    with pytest.raises(RunFailed, match="CxC-STS: .* vectors hold NaN.*'other 3'"):
        made_up().score(nan_for_one)
    with pytest.raises(RunFailed, match="CxC-STS: vectors of shape"):
        made_up().score(lambda sentences: np.ones((2, 4), np.float32))
    with pytest.raises(
        RunFailed,
        match="CxC-STS: all 200 vectors are constant, the same as for the sentence 'caption 0'",
    ):
        made_up().score(lambda sentences: np.ones((len(sentences), 4), np.float32))
    with pytest.raises(RunFailed, match="CxC-STS: .*constant"):  # they differ in length only
        made_up().score(
            lambda sentences: np.array([[1 + len(s), 0.0] for s in sentences], dtype=np.float32)
        )


def test_bench_suites_tells_of_both_protocols():
    result = CliRunner().invoke(suites, ["cxc"])
    assert result.exit_code == 0, result.output
    for needle in ("cxc-promcse/1", "cxc-parekh/1", "44,045", "docs/suites/cxc.md"):
        assert needle in result.output


def test_the_page_about_the_suite_states_what_is_scored():
    page = (Path(__file__).parents[2] / "docs" / suite("cxc").docs).read_text(encoding="utf-8")
    for needle in (
        *PROTOCOLS,
        "44,045",
        "captions_val2014.json",
        "sts_test.csv",
        "CC BY 4.0",
        "24,824",
    ):
        assert needle in page
