"""The clustering suite: against scikit-learn and scipy on a real set, and what is refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    normalized_mutual_info_score,
)

from bench.base.errors import RunFailed
from bench.cli.suites import suites
from bench.data.sets import CLUSTERING_TASKS, ClassedTexts, DataFolder
from bench.score.suites import TaskResult, TaskScore, average, suite
from bench.score.suites import clustering as module
from bench.score.suites.clustering import PROTOCOL, LoadedTexts, score_predictions


def bag_of_words(sentences):
    """A stand-in for a model: words hashed into 48 dimensions."""
    vectors = np.zeros((len(sentences), 48), dtype=np.float32)
    for row, sentence in enumerate(sentences):
        for word in sentence.lower().split():
            vectors[row, hashlib.md5(word.encode()).digest()[0] % 48] += 1
    return vectors


def made_up(texts, labels) -> LoadedTexts:
    return LoadedTexts(
        suite("clustering").task("Tweet"),
        ClassedTexts("Tweet", texts, np.array(labels), "sccl", "0" * 64),
    )


@pytest.mark.slow
def test_a_set_agrees_with_scikit_learn_and_scipy(shared, monkeypatch):
    monkeypatch.setattr(module, "SEEDS", (0, 1, 2))
    loaded = suite("clustering").task("Tweet").load(DataFolder(shared / "data"), "tokenised")
    result = loaded.score(bag_of_words)
    assert (result.n, result.text, result.protocol, result.metric) == (
        2472,
        "sccl",
        "sccl-kmeans/1",
        "clustering-accuracy",
    )
    assert (
        result.predictions["prediction"].shape == (2472, 3)
        and result.predictions["gold"].max() == 110
    )
    x, gold = bag_of_words(loaded.sentences), loaded.data.labels
    theirs, inertia = [], []
    for seed in range(3):
        fitted = KMeans(89, n_init=10, random_state=seed).fit(x)
        labels = fitted.labels_
        inertia.append(fitted.inertia_)
        table = np.array(
            [[((labels == p) & (gold == g)).sum() for g in np.unique(gold)] for p in range(89)]
        )
        theirs.append(100 * table[linear_sum_assignment(-table)].sum() / len(gold))
    each = result.detail["accuracy"]["each"]
    assert result.value == pytest.approx(np.mean(each)) and result.std == pytest.approx(
        np.std(each)
    )
    # in float32 a processor's rounding chooses among optima that are level; their accuracies lie points apart
    assert np.mean(result.detail["inertia"]) == pytest.approx(np.mean(inertia), rel=0.005)
    assert abs(result.value - np.mean(theirs)) < 5
    for seed in range(3):
        labels = result.predictions["prediction"][:, seed]
        for name, metric in (
            ("nmi", normalized_mutual_info_score),
            ("ami", adjusted_mutual_info_score),
            ("ari", adjusted_rand_score),
        ):
            assert result.detail[name]["each"][seed] == pytest.approx(100 * metric(gold, labels))
        centres = np.stack([x[labels == k].mean(axis=0) for k in range(89)])
        assert result.detail["inertia"][seed] == pytest.approx(
            ((x - centres[labels]) ** 2).sum(), rel=1e-4
        )
    assert result.detail["classes"] == 89 and result.detail["seeds"] == [0, 1, 2]
    json.dumps(result.detail)
    assert score_predictions(result.predictions, "Tweet") == TaskScore(
        result.value, result.n, result.std, result.detail
    )


def test_the_protocol_is_ten_seeds_of_ten_starts(monkeypatch):
    asked = {}

    def kmeans(x, clusters, seeds, **given):
        asked.update(given, clusters=clusters, seeds=tuple(seeds), x=x)
        from bench.score.metrics.clustering import kmeans

        return kmeans(x, clusters, seeds, **given)

    monkeypatch.setattr(module, "kmeans", kmeans)
    texts = [f"{topic} {i}" for i in range(8) for topic in ("cats purr", "dogs bark", "rain falls")]
    result = made_up(texts, [7, 40, 1] * 8).score(lambda sentences: 100 * bag_of_words(sentences))
    assert (asked["x"] == 100 * bag_of_words(texts)).all()  # as they are: not normalised
    assert {
        key: asked[key] for key in ("clusters", "seeds", "starts", "max_iterations", "tolerance")
    } == {
        "clusters": 3,
        "seeds": tuple(range(10)),
        "starts": 10,
        "max_iterations": 300,
        "tolerance": 1e-4,
    }
    assert result.predictions["prediction"].shape == (24, 10)
    assert (result.value, result.std) == (100, 0)  # labels are neither from 0 nor contiguous
    assert result.detail["nmi"]["mean"] == pytest.approx(100)


def test_vectors_that_cannot_be_clustered_name_the_task_and_the_sentence():
    loaded = made_up(["a", "b", "c", "d"], [1, 1, 5, 5])
    for value in (np.nan, np.inf):
        with pytest.raises(RunFailed, match="Tweet: 1 of 4 vectors hold NaN.*'c'"):
            loaded.score(
                lambda sentences, v=value: np.array(
                    [[v if s == "c" else ord(s), 1] for s in sentences], np.float32
                )
            )
    with pytest.raises(
        RunFailed, match="Tweet: 1 of 4 vectors hold NaN.*'d'"
    ):  # float64 that does not fit into float32
        loaded.score(
            lambda sentences: np.array([[1e200 if s == "d" else ord(s)] for s in sentences])
        )
    with pytest.raises(
        RunFailed, match="Tweet: all 4 vectors are constant, the same as for the sentence 'a'"
    ):
        loaded.score(lambda sentences: np.ones((4, 3), np.float32))
    for bad in (np.ones((3, 3), np.float32), np.ones(4, np.float32), np.ones((4, 3), int)):
        with pytest.raises(RunFailed, match="Tweet: vectors of"):
            loaded.score(lambda sentences, bad=bad: bad)


def test_the_average_is_of_eight_sets_in_one_form():
    one = TaskResult(
        suite="clustering",
        task="",
        protocol=PROTOCOL,
        metric="clustering-accuracy",
        value=0,
        n=10,
        text="sccl",
    )
    whole = [
        replace(one, task=task, value=60.004 + i, std=1.0)
        for i, task in enumerate(CLUSTERING_TASKS)
    ]
    averaged = average(whole)
    assert averaged is not None and (averaged.value, averaged.text, averaged.std, averaged.n) == (
        63.5,
        "sccl",
        None,
        80,
    )
    assert average(whole[:-1]) is None
    assert average([*whole[:-1], replace(whole[-1], text="original")]) is None


def test_bench_suites_and_the_page_state_the_same_counts(shared):
    told = json.loads(CliRunner().invoke(suites, ["clustering", "--json"]).output)
    assert (
        told["average"] == list(CLUSTERING_TASKS)
        and sum(task["n"] for task in told["tasks"]) == 96137
    )
    page = (Path(__file__).parents[2] / "docs" / suite("clustering").docs).read_text(
        encoding="utf-8"
    )
    for task in suite("clustering").tasks:
        texts = task.load(DataFolder(shared / "data"), "tokenised").data
        sizes = np.unique(texts.labels, return_counts=True)[1]
        row = next(
            line
            for line in page.splitlines()
            if line.startswith(f"| {task.name} | ") and f"| {task.n:,} |" in line
        )
        assert row.endswith(f"| {task.n:,} | {len(sizes)} | {sizes.min():,}, {sizes.max():,} |")
        labels = {}
        for text, label in zip(texts.texts, texts.labels.tolist(), strict=True):
            labels.setdefault(text, []).append(label)
        torn = [one for one in labels.values() if len(set(one)) > 1]
        lost = sum(len(one) - max(map(one.count, one)) for one in torn)
        assert f"| {task.name} | {len(labels):,} | {len(torn)} | {lost} |" in page
    assert PROTOCOL in page
