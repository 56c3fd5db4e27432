"""The geometry suite on the real STS-B: against plain formulas, and what stands in the record."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from scipy.spatial.distance import pdist

from bench.base.errors import RunFailed
from bench.compare.statistics.table import LOWER_IS_BETTER
from bench.data.sets import DataFolder, SentencePairs, read_sts
from bench.score.suites import suite, suite_names
from bench.score.suites.geometry import (
    BLANK,
    ITEMS,
    PROTOCOL,
    REMOVED,
    LoadedGeometry,
    most_frequent,
    remove_words,
    score_predictions,
)


def bag_of_hashes(sentences):
    """A stand-in for a model: words hashed into 64 dimensions. A blank becomes a zero vector."""
    vectors = np.zeros((len(sentences), 64), dtype=np.float32)
    for row, sentence in enumerate(sentences):
        for word in sentence.lower().split():
            vectors[row, int(hashlib.md5(word.encode()).hexdigest(), 16) % 64] += 1
    return vectors


@pytest.fixture(scope="module", params=["tokenised", "raw"])
def pairs(shared, request):
    return read_sts(DataFolder(shared / "data"), "STS-B", text=request.param)


def units(sentences):
    x = bag_of_hashes(sentences).astype(float)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.slow
def test_alignment_is_over_pairs_above_four_and_uniformity_over_every_occurrence(pairs, shared):
    loaded = {
        task.name: task.load(DataFolder(shared / "data"), pairs.form)
        for task in suite("geometry").tasks
    }
    x, y = units(pairs.sentences1), units(pairs.sentences2)
    alignment, uniformity = (
        loaded["alignment"].score(bag_of_hashes),
        loaded["uniformity"].score(bag_of_hashes),
    )
    assert alignment.value == pytest.approx(((x - y)[pairs.gold > 4] ** 2).sum(1).mean(), abs=1e-12)
    assert uniformity.value == pytest.approx(
        math.log(np.exp(-2 * pdist(np.vstack([x, y])) ** 2).mean()), abs=1e-12
    )
    assert uniformity.detail["anisotropy"] == pytest.approx(
        (1 - pdist(np.vstack([x, y])) ** 2 / 2).mean(), abs=1e-12
    )
    assert (
        uniformity.detail["pairs"] == 2758 * 2757 // 2
        and 30 < uniformity.detail["effective_rank"] < 64
    )
    for result in (alignment, uniformity):
        assert (result.n, result.text, result.metric, result.protocol) == (
            ITEMS[result.task],
            pairs.form,
            result.task,
            PROTOCOL,
        )
        assert (
            result.metric in LOWER_IS_BETTER
            and result.detail["split"] == "test"
            and result.detail["zero_vectors"] == 0
        )
        assert score_predictions(result.predictions, result.task).value == result.value
        again = score_predictions(result.predictions, result.task).detail
        assert again == {key: result.detail[key] for key in again}
        json.dumps(result.detail)


def test_cosines_by_gold_level_are_all_the_pairs(pairs):
    result = LoadedGeometry(suite("geometry").task("alignment"), pairs).score(bag_of_hashes)
    cosine = (units(pairs.sentences1) * units(pairs.sentences2)).sum(1)
    levels = result.detail["cosine_by_gold"]
    assert [one["n"] for one in levels] == [243, 198, 265, 335, 338] and len(
        result.detail["cosine_edges"]
    ) == 41
    for i, one in enumerate(levels):
        inside = cosine[(pairs.gold >= i) & ((pairs.gold < i + 1) | (i == 4))]
        assert one["mean"] == pytest.approx(inside.mean(), abs=1e-7) and one[
            "max"
        ] == pytest.approx(inside.max(), abs=1e-7)
        assert sum(one["counts"]) == len(inside)


@pytest.mark.slow
def test_the_curve_without_frequent_words(pairs):
    result = LoadedGeometry(suite("geometry").task("alignment"), pairs).score(bag_of_hashes)
    counts = Counter(" ".join(pairs.sentences1 + pairs.sentences2).split())
    curve = result.detail["without_frequent_words"]
    assert [point["k"] for point in curve] == [0, *REMOVED]
    for point in curve[1:3]:
        gone = {
            word
            for word, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0]))[: point["k"]]
        }
        sides = [
            [" ".join(w for w in s.split() if w not in gone) for s in side]
            for side in (pairs.sentences1, pairs.sentences2)
        ]
        x, y = (bag_of_hashes(side).astype(float) for side in sides)
        cosine = (x * y).sum(1) / np.maximum(
            np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1), 1e-30
        )
        cosine = np.where([a == b for a, b in zip(*sides, strict=True)], 1.0, cosine)
        stored = result.predictions[f"without_{point['k']}_cosine"]
        assert stored.dtype == np.float32 and stored == pytest.approx(cosine, abs=1e-7)
        assert point["spearman"] == pytest.approx(
            100 * scipy.stats.spearmanr(stored, pairs.gold).statistic, abs=1e-9
        )


def test_the_most_frequent_words_and_the_sentences_without_them():
    assert most_frequent(["b a b", "c a"], 2) == ["a", "b"]  # equal counts: by the alphabet
    assert remove_words(["b a  b", "c a"], ["a", "b"]) == [BLANK, "c"]


@pytest.mark.slow
def test_sentences_holds_all_that_scoring_asks_for_and_uniformity_needs_no_more_than_sts(pairs):
    for name in ITEMS:
        loaded = LoadedGeometry(suite("geometry").task(name), pairs)
        known = set(loaded.sentences)

        def vectors(sentences, known=known):
            assert known.issuperset(sentences)
            return bag_of_hashes(sentences)

        assert loaded.score(vectors).n == loaded.n == suite("geometry").task(name).n
    assert known == set(pairs.sentences1 + pairs.sentences2)


def made_up(gold):
    n = len(gold)
    return SentencePairs(
        "STS-B",
        [f"a{i} x" for i in range(n)],
        [f"b{i} x" for i in range(n)],
        np.array(gold, float),
        ["STS-B"] * n,
        "test",
        "raw",
        "0" * 64,
    )


def random_vectors(sentences):
    return np.random.default_rng(0).normal(size=(len(sentences), 4)).astype(np.float32)


def test_four_is_not_above_four_and_no_such_pair_is_an_error():
    distances = LoadedGeometry(
        suite("geometry").task("alignment"), made_up([4.0, 4.01, 5, 0])
    ).score(random_vectors)
    assert distances.n == 2 and distances.value == distances.predictions["prediction"][1:3].mean()
    with pytest.raises(RunFailed, match="alignment: no pair with a gold score above 4"):
        LoadedGeometry(suite("geometry").task("alignment"), made_up([4, 3])).score(random_vectors)


@pytest.mark.parametrize("name", list(ITEMS))
def test_vectors_that_cannot_be_scored_name_the_task_and_a_sentence(name):
    loaded = LoadedGeometry(suite("geometry").task(name), made_up([5, 4, 3]))
    with pytest.raises(RunFailed, match=f"{name}: all 6 vectors are constant.*'a0 x'"):
        loaded.score(lambda s: np.ones((len(s), 4), np.float32))
    with pytest.raises(RunFailed, match=f"{name}: .*NaN.*'b1 x'"):
        loaded.score(
            lambda s: np.array(
                [[math.nan if one == "b1 x" else 1.0, len(one)] for one in s], dtype=np.float32
            )
        )
    with pytest.raises(RunFailed, match=f"{name}: vectors of shape"):
        loaded.score(lambda s: np.ones((2, 4), np.float32))


def test_a_zero_vector_is_counted_and_lies_at_one_from_all_others():
    loaded = LoadedGeometry(suite("geometry").task("uniformity"), made_up([5, 4]))
    result = loaded.score(lambda s: np.array([[0, 0], [1, 0], [1, 0], [1, 0]], dtype=np.float32))
    assert result.detail["zero_vectors"] == 1
    assert result.value == pytest.approx(math.log((3 * math.exp(-2) + 3) / 6), abs=1e-12)


def test_every_task_says_its_direction_by_its_metric():
    falling = {
        task.name
        for name in suite_names()
        for task in suite(name).tasks
        if task.metric in LOWER_IS_BETTER
    }
    assert falling == set(ITEMS)


def test_the_page_about_the_suite_states_the_protocol_and_the_counts():
    page = (Path(__file__).parents[2] / "docs" / suite("geometry").docs).read_text(encoding="utf-8")
    assert (
        PROTOCOL in page
        and "231" in page
        and "2,758" in page
        and ", ".join(map(str, REMOVED)) in page
    )
