"""The suites of the papers: bench's numbers are those of scipy, scikit-learn and SentEval.

An encoder without a model is scored by bench, and here by other means from the raw files.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import raw_sets
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import pdist
from scored import arrays, cosines, score_words_in, spearman, words_in
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from started import bench

Scores = dict[str, dict[str, Any]]
STS = ["STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"]
TRANSFER = ["MR", "CR", "SUBJ", "MPQA", "SST-2", "TREC", "MRPC"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("suites")


@pytest.fixture(scope="module")
def scores(shared: Path, folder: Path) -> Scores:
    """What bench says of the suites that take seconds: task and protocol -> score."""
    tracks = ",".join([*raw_sets.TRACKS, "de"])
    suites = ["sts", f"sts-multi:{tracks}", "geometry", "fewshot:MRPC-16"]
    return score_words_in(folder, suites, data=str(shared / "data"))


def of_pairs(pairs: raw_sets.Pairs) -> float:
    first, second, gold = pairs
    return spearman(cosines(words_in(first), words_in(second)), gold)


def average(values: list[float]) -> float:
    """Return the mean as the papers' code prints it: of numbers with two decimals."""
    return float(np.mean([round(value, 2) for value in values]))


@pytest.mark.promise(12)
def test_the_seven_sts_sets_are_one_spearman_correlation_over_all_pairs(
    scores: Scores, shared: Path
) -> None:
    wanted = [of_pairs(raw_sets.sts(shared / "data", task)) for task in STS]
    found = [scores[f"{task} senteval-all/1"]["value"] for task in STS]
    assert found == pytest.approx(wanted, abs=0.01)
    assert scores["Avg. senteval-all/1"]["value"] == pytest.approx(average(wanted), abs=0.01)


def check_sts_multi(
    scores: Scores, data: Path, tasks: list[str], protocol: str
) -> dict[str, float]:
    """Compare each task with scipy's value, and return these."""
    wanted = {task: of_pairs(raw_sets.sts_multi(data, task)) for task in tasks}
    for task, value in wanted.items():
        assert scores[f"{task} {protocol}"]["value"] == pytest.approx(value, abs=0.01), task
    return wanted


@pytest.mark.promise(12)
def test_tracks_and_languages_are_scored_as_the_english_sets(scores: Scores, shared: Path) -> None:
    tracks = check_sts_multi(scores, shared / "data", [*raw_sets.TRACKS], "sts17-tracks/1")
    found = scores["Avg. sts17-tracks/1"]["value"]
    assert found == pytest.approx(average([*tracks.values()]), abs=0.01)
    check_sts_multi(scores, shared / "data", ["de"], "stsb-languages/1")


@pytest.mark.promise(12)
@pytest.mark.nightly
def test_the_average_of_languages_is_that_of_the_translations(shared: Path, tmp_path: Path) -> None:
    scores = score_words_in(tmp_path, ["sts-multi"], data=str(shared / "data"))
    values = check_sts_multi(scores, shared / "data", raw_sets.LANGUAGES, "stsb-languages/1")
    translated = [value for task, value in values.items() if task != "en"]
    found = scores["Avg. stsb-languages/1"]["value"]
    assert found == pytest.approx(average(translated), abs=0.01)


@pytest.mark.promise(12)
def test_geometry_is_wang_and_isolas_alignment_and_uniformity(scores: Scores, shared: Path) -> None:
    first, second, gold = raw_sets.sts(shared / "data", "STS-B")
    vectors = words_in([*first, *second]).astype(float)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    close = np.array(gold) > 4
    a, b = vectors[: len(first)][close], vectors[len(first) :][close]
    alignment = ((a - b) ** 2).sum(axis=1).mean()
    uniformity = np.log(np.exp(-2 * pdist(vectors, "sqeuclidean")).mean())
    found = [scores[f"{one} geometry-stsb/1"]["value"] for one in ("alignment", "uniformity")]
    assert found == pytest.approx([alignment, uniformity], abs=1e-4)


def matched(labels: np.ndarray, gold: np.ndarray) -> float:
    """Return the accuracy x 100 if each cluster stands for one topic."""
    together = np.zeros((labels.max() + 1, gold.max() + 1))
    np.add.at(together, (labels, gold), 1)
    return float(100 * together[linear_sum_assignment(-together)].sum() / len(gold))


def inertia(vectors: np.ndarray, labels: np.ndarray) -> float:
    """Return the sum of squared distances to the centres."""
    parts = [vectors[labels == one] for one in np.unique(labels)]
    return float(sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts))


def check_clusters(folder: Path, data: Path, task: str, found: float) -> float:
    """Compare stored clusters with scikit-learn's of ten seeds; return their mean accuracy."""
    texts, names = raw_sets.topics(data, task)
    gold = np.unique(names, return_inverse=True)[1]
    vectors = words_in(texts)
    kmeans = [KMeans(gold.max() + 1, n_init=10, random_state=seed) for seed in range(10)]
    labels = [one.fit_predict(vectors) for one in kmeans]
    stored = arrays(folder, task)["prediction"]
    assert stored.shape == (len(texts), 10)
    assert found == pytest.approx(np.mean([matched(one, gold) for one in stored.T]), abs=0.01)
    ours, theirs = ([inertia(vectors, one) for one in each] for each in (stored.T, labels))
    assert ours == pytest.approx(theirs, rel=0.01)
    assert np.mean(ours) == pytest.approx(np.mean(theirs), rel=0.003)
    return float(np.mean([matched(one, gold) for one in labels]))


@pytest.mark.promise(12)
@pytest.mark.nightly
def test_clusters_are_as_good_as_those_of_scikit_learn(shared: Path, tmp_path: Path) -> None:
    """In float32 rounding chooses among neighbouring optima: labels may differ, not their worth.

    Where one optimum stands out, all are equal: ``test_labels_are_found_again_by_clustering``.
    """
    tasks = ["AgNews", "Tweet", "GoogleNews-T"]
    suite = f"clustering:{','.join(tasks)}"
    scores = score_words_in(tmp_path, [suite], data=str(shared / "data"))
    for task in tasks:
        found = scores[f"{task} sccl-kmeans/1"]["value"]
        wanted = check_clusters(tmp_path, shared / "data", task, found)
        assert found == pytest.approx(wanted, abs=0.3 if task == "AgNews" else 3), task


def features(texts: list[list[str]]) -> np.ndarray:
    """Return the vector of each text; of a pair the differences and products, as SentEval does."""
    sides = [words_in([row[side] for row in texts]) for side in range(len(texts[0]))]
    if len(sides) == 1:
        return sides[0]
    return np.hstack([np.abs(sides[0] - sides[1]), sides[0] * sides[1]])


def drawn(task: str, labels: np.ndarray, seed: int) -> np.ndarray:
    """Return in each class the 16 rows of the smallest hashes, in the order of the files."""
    keys = [sha256(f"{task}:{seed}:{row}".encode()).hexdigest() for row in range(len(labels))]
    order = np.argsort(keys)
    chosen = [order[labels[order] == one][:16] for one in np.unique(labels)]
    return np.sort(np.concatenate(chosen))


def from_sixteen(data: Path, task: str) -> float:
    """Return the mean accuracy x 100 of ten logistic regressions on 16 examples per class."""
    splits = raw_sets.labelled(data, task)
    texts, labels = splits.get("train") or splits["all"]
    vectors = features(texts).astype(float)
    tested = splits.get("test")
    accuracies = []
    for seed in range(10):
        rows = drawn(task, labels, seed)
        model = LogisticRegression(C=1.0, max_iter=1000).fit(vectors[rows], labels[rows])
        if tested is not None:
            others, gold = features(tested[0]).astype(float), tested[1]
        else:
            others, gold = np.delete(vectors, rows, axis=0), np.delete(labels, rows)
        accuracies.append(100 * (model.predict(others) == gold).mean())
    return float(np.mean(accuracies))


@pytest.mark.promise(12)
def test_sixteen_examples_a_class_are_scikit_learns_regressions(
    scores: Scores, shared: Path
) -> None:
    found = scores["MRPC-16 senteval-fewshot/1"]["value"]
    assert found == pytest.approx(from_sixteen(shared / "data", "MRPC"), abs=0.01)


@pytest.mark.promise(12)
@pytest.mark.nightly
def test_all_few_shot_tasks_are_scikit_learns_regressions(shared: Path, tmp_path: Path) -> None:
    scores = score_words_in(tmp_path, ["fewshot"], data=str(shared / "data"))
    wanted = [from_sixteen(shared / "data", task) for task in TRANSFER]
    found = [scores[f"{task}-16 senteval-fewshot/1"]["value"] for task in TRANSFER]
    assert found == pytest.approx(wanted, abs=0.01)
    assert scores["Avg. senteval-fewshot/1"]["value"] == pytest.approx(average(wanted), abs=0.01)


def images_of(table: dict[str, list[str]]) -> list[int]:
    """Return the image of each first caption: captions are of one image if a pair says so."""
    pairs = np.array([table["caption1_id"], table["caption2_id"]])
    names, places = np.unique(pairs, return_inverse=True)
    places = places.reshape(2, -1)
    one, other = places[:, np.array(table["sampling_method"]) == "c2c_cocaption"]
    linked = coo_array((np.ones(len(one)), (one, other)), shape=(len(names), len(names)))
    return list(connected_components(linked, directed=False)[1][places[0]].tolist())


def by_query(queries: list[int]) -> list[np.ndarray]:
    """Return the rows of each query; queries are numbered in the order in which they come."""
    rows = dict[int, list[int]]()
    for row, query in enumerate(queries):
        rows.setdefault(query, []).append(row)
    return [np.array(one) for one in rows.values()]


@pytest.mark.promise(12)
@pytest.mark.nightly
def test_captions_are_drawn_as_the_protocols_say(shared: Path, tmp_path: Path) -> None:
    """PromCSE's code draws images with replacement; here they are numbered as they come.

    Parekh et al. publish no code: captions are drawn without replacement, numbered as COCO's are.
    """
    scores = score_words_in(tmp_path, ["cxc"], data=str(shared / "data"))
    table = raw_sets.captions(shared / "data")
    gold = np.array(table["score"], dtype=float)
    first, second = (
        words_in([raw_sets.joined(text) for text in table[name]])
        for name in ("sentence1", "sentence2")
    )
    predicted = np.float32(cosines(first, second))

    def found(protocol: str) -> float:
        return float(scores[f"CxC-STS {protocol}"]["value"])

    images = by_query(images_of(table))
    assert len(images) == 5000 and all(5 <= len(one) <= 15 for one in images)
    random, values = np.random.RandomState(123), []
    for _ in range(1000):
        chosen = random.choice(5000, 2500)
        rows = [images[one][random.choice(len(images[one]))] for one in chosen]
        values.append(spearman(predicted[rows], gold[rows]))
    assert found("cxc-promcse/1") == pytest.approx(np.mean(values), abs=0.01)

    coco = np.array([int(one.rpartition(":")[2]) for one in table["caption1_id"]])
    queries, values = [np.flatnonzero(coco == one) for one in np.unique(coco)], []
    random = np.random.RandomState(123)
    for _ in range(1000):
        chosen = random.permutation(len(queries))[: len(queries) // 2]
        places = random.random_sample(len(chosen))
        rows = [
            queries[one][int(place * len(queries[one]))]
            for one, place in zip(chosen, places, strict=True)
        ]
        values.append(spearman(predicted[rows], gold[rows]))
    assert found("cxc-parekh/1") == pytest.approx(np.mean(values), abs=0.01)


@pytest.mark.promise(12)
def test_raw_texts_are_a_protocol_of_their_own(tmp_path: Path) -> None:
    said = bench("suites", "sts", "--json", cwd=tmp_path).out
    assert "senteval-all-raw/1" in said, "bench suites sts does not list senteval-all-raw/1"


@pytest.mark.promise(16)
def test_predictions_are_in_the_order_of_the_items(
    scores: Scores, shared: Path, folder: Path
) -> None:
    """Pairs keep their cosine, labelled texts their label."""
    first, second, gold = raw_sets.sts(shared / "data", "STS16")
    kept = arrays(folder, "STS16")
    wanted = cosines(words_in(first), words_in(second))
    np.testing.assert_allclose(kept["prediction"], wanted, atol=1e-6)
    assert kept["gold"].tolist() == pytest.approx(gold)
    labels = raw_sets.labelled(shared / "data", "MRPC")["test"][1]
    kept = arrays(folder, "MRPC-16")
    assert kept["prediction"].shape == (len(labels), 10)
    assert kept["gold"].tolist() == labels.tolist()
    shares = 100 * (kept["prediction"] == labels[:, None]).mean(axis=0)
    found = scores["MRPC-16 senteval-fewshot/1"]["value"]
    assert found == pytest.approx(shares.mean(), abs=1e-6)
