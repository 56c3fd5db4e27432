"""The transfer suites: what becomes of vectors, on the real sets and on small made-up ones."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from probe_sequential import fit_sequential
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold

from bench.base.errors import RunFailed
from bench.data.sets import TRANSFER_TASKS, DataFolder, LabelledTexts
from bench.score.metrics.probe import inner_kfold, kfold, split
from bench.score.suites import average, suite, transfer, transfer_quick
from bench.score.suites.transfer import PROTOCOL, LoadedTransfer, features, score_predictions

SUITES = pytest.mark.parametrize("name", ["transfer", "transfer-quick"])


def bag_of_hashes(sentences, width: int = 16):
    """A stand-in for a model: words hashed into a few dimensions. Empty sentences become zero vectors."""
    vectors = np.zeros((len(sentences), width), dtype=np.float32)
    for row, sentence in enumerate(sentences):
        for word in sentence.lower().split():
            vectors[row, int(hashlib.md5(word.encode()).hexdigest(), 16) % width] += 1
    return vectors


def made_up(
    splits: dict[str, int], *, name: str = "CR", classes: int = 2, sides: int = 1, seed: int = 0
) -> LabelledTexts:
    """Sentences of one to six words; the class is told by a word that most of them hold."""
    rng = np.random.default_rng(seed)
    names = np.repeat(list(splits), list(splits.values()))
    labels = rng.integers(classes, size=len(names))
    texts = []
    for _ in range(sides):
        words = rng.integers(30, size=(len(names), 6))
        cut = rng.integers(1, 6, size=len(names))
        hints = [f"class{label}" if rng.random() < 0.7 else "" for label in labels]
        texts.append(
            [
                " ".join([*map(str, row[:n]), hint]).strip()
                for row, n, hint in zip(words, cut, hints, strict=True)
            ]
        )
    return LabelledTexts(name, tuple(texts), labels, names, None, "0" * 64)


def loaded(texts: LabelledTexts, module=transfer) -> LoadedTransfer:
    return LoadedTransfer(suite("transfer").task(texts.name), texts, module.classify)


def test_nested_cross_validation_is_made_in_senteval_order_and_told_in_the_datas_order():
    texts = made_up({"test": 240})
    result = loaded(texts).score(bag_of_hashes)
    order = sorted(range(240), key=lambda i: (len(texts.texts[0][i].split()), texts.labels[i]))
    x, y = bag_of_hashes([texts.texts[0][i] for i in order]), texts.labels[order]
    fold = np.empty(240, dtype=int)
    for number, (_, test) in enumerate(
        StratifiedKFold(10, shuffle=True, random_state=1111).split(x, y)
    ):
        fold[np.array(order)[test]] = number
    assert result.predictions["fold"].tolist() == fold.tolist()
    assert result.predictions["gold"].tolist() == texts.labels.tolist()
    again = inner_kfold(x, y, np.arange(240), 2, transfer_fitter())
    assert result.predictions["prediction"][order].tolist() == again.predicted.tolist()
    assert (result.value, result.detail["dev"]) == (again.test, again.dev)
    assert [one["test"] for one in result.detail["folds"]] == [one.test for one in again.folds]
    assert (result.n, result.metric, result.text, result.detail["fits"]) == (
        240,
        "accuracy",
        None,
        410,
    )
    assert result.value > 60
    json.dumps(result.detail)


def transfer_fitter():
    from bench.score.metrics.probe import fit_batched

    return fit_batched


def test_train_and_test_agree_with_the_plain_loop():
    texts = made_up({"train": 40, "test": 40}, name="TREC", classes=3)
    result = loaded(texts).score(bag_of_hashes)
    x = bag_of_hashes(texts.texts[0])
    want = kfold(x, texts.labels, texts.rows("train"), np.arange(40, 80), 6, fit_sequential)
    assert result.predictions["prediction"].tolist() == want.predicted.tolist()
    assert (result.value, result.detail["dev"], result.n) == (want.test, want.dev, 40)
    assert result.detail["folds"][0]["penalty"] == want.folds[0].penalty
    assert len(result.detail["classes"]) == 6


def test_a_dev_split_agrees_with_the_plain_loop():
    texts = made_up({"train": 90, "dev": 30, "test": 40}, name="SST-2")
    result = loaded(texts).score(bag_of_hashes)
    x = bag_of_hashes(texts.texts[0])
    want = split(
        x,
        texts.labels,
        texts.rows("train"),
        texts.rows("dev"),
        np.arange(120, 160),
        2,
        fit_sequential,
    )
    assert result.predictions["prediction"].tolist() == want.predicted.tolist()
    assert (result.value, result.detail["dev"], result.detail["fits"]) == (want.test, want.dev, 4)


def test_pairs_are_scored_by_difference_and_product():
    texts = made_up({"train": 60, "test": 20}, name="MRPC", sides=2)
    u, v = map(bag_of_hashes, texts.texts)
    found = features(texts, bag_of_hashes, "MRPC")
    assert found.shape == (80, 32) and found.dtype == np.float32
    assert found.tolist() == [[*abs(a - b), *(a * b)] for a, b in zip(u, v, strict=True)]
    result = loaded(texts).score(bag_of_hashes)
    predicted, gold = result.predictions["prediction"], result.predictions["gold"]
    assert result.detail["f1"] == round(100 * f1_score(gold, predicted), 2)
    assert gold.tolist() == texts.labels[60:].tolist()


def test_the_quick_protocol_is_scikit_learns_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    texts = made_up({"train": 90, "test": 60}, name="TREC", classes=4)
    result = loaded(texts, transfer_quick).score(bag_of_hashes)
    x = bag_of_hashes(texts.texts[0]).astype(float)
    center, scale = x[:90].mean(0), np.where(x[:90].std(0) == 0, 1, x[:90].std(0))
    model = LogisticRegression(C=transfer_quick.INVERSE_PENALTY, max_iter=1000, tol=1e-8)
    model.fit((x[:90] - center) / scale, texts.labels[:90])
    assert (
        result.predictions["prediction"] == model.predict((x[90:] - center) / scale)
    ).mean() > 0.98
    nested = loaded(made_up({"test": 200}), transfer_quick).score(bag_of_hashes)
    assert np.bincount(nested.predictions["fold"]).tolist() == [40] * 5 and nested.value > 70


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("module", [transfer, transfer_quick])
def test_vectors_that_cannot_be_scored_name_the_task_and_the_sentence(module):
    task = loaded(made_up({"test": 40}), module)
    fifth = task.sentences[4]

    def with_nan(sentences):
        return np.where(
            np.array([[s == fifth] for s in sentences]), np.nan, bag_of_hashes(sentences)
        ).astype(np.float32)

    with pytest.raises(RunFailed, match=f"CR: . of 40 vectors hold NaN.*'{fifth}'"):
        task.score(with_nan)
    with pytest.raises(RunFailed, match="CR: 40 of 40 vectors hold NaN or infinity"):
        task.score(
            lambda s: (bag_of_hashes(s).astype(np.float64) + 1) * 1e300
        )  # too large for float32
    with pytest.raises(RunFailed, match=f"CR: all 40 vectors are constant.*'{task.sentences[0]}'"):
        task.score(lambda s: np.ones((len(s), 4), np.float32))
    for bad in (
        lambda s: np.ones((2, 4), np.float32),
        lambda s: np.ones(40, np.float32),
        lambda s: np.ones((40, 4), int),
    ):
        with pytest.raises(RunFailed, match="CR: vectors of"):
            task.score(bad)


def test_vectors_whose_squares_overflow_fail_the_task():
    task = loaded(made_up({"test": 40}))
    third = task.sentences[2]

    def huge(sentences):
        return np.where(
            np.array([[s == third] for s in sentences]), np.float32(-1e20), bag_of_hashes(sentences)
        )

    with pytest.raises(RunFailed, match=f"CR: a number above 1e\\+15.*'{third}'"):
        task.score(huge)


def test_a_classifier_that_diverges_fails_the_task():
    def diverges(*_):
        raise ValueError("the classifier diverged: its weights are not finite")

    task = LoadedTransfer(suite("transfer").task("CR"), made_up({"test": 40}), diverges)
    with pytest.raises(RunFailed, match="CR: the classifier diverged"):
        task.score(bag_of_hashes)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["CR", "TREC", "MRPC"])
def test_a_real_task_is_scored_and_can_be_scored_again_from_its_predictions(shared, task):
    one = suite("transfer").task(task).load(DataFolder(shared / "data"))
    result = one.score(bag_of_hashes)
    assert len(result.predictions["prediction"]) == result.n == suite("transfer").task(task).n
    again = score_predictions(result.predictions, task)
    assert (again.value, again.n) == (
        result.value,
        result.n,
    ) and again.detail.items() <= result.detail.items()
    majority = 100 * np.bincount(result.predictions["gold"]).max() / result.n
    assert result.value > majority - 2


@pytest.mark.slow
@SUITES
def test_sentences_holds_all_that_scoring_asks_for(shared, name):
    for task in suite(name).tasks:
        one = task.load(DataFolder(shared / "data"), "raw")
        known = set(one.sentences)
        asked = [sentence for texts in one.data.texts for sentence in texts]
        assert known == set(asked) and one.n == task.n


@SUITES
def test_the_registry_and_the_average(name):
    found = suite(name)
    assert [task.data for task in found.tasks] == [(one,) for one in TRANSFER_TASKS]
    assert tuple(task.name for task in found.tasks) == found.average
    results = [loaded_result(name, task.name, 80 + i / 3) for i, task in enumerate(found.tasks)]
    averaged = average(results)
    assert averaged is not None and averaged.value == round(
        sum(round(80 + i / 3, 2) for i in range(7)) / 7, 2
    )
    assert average(results[1:]) is None


def loaded_result(name, task, value):
    from bench.score.suites import TaskResult

    return TaskResult(suite=name, task=task, protocol="p/1", metric="accuracy", value=value, n=10)


def test_the_two_protocols_share_no_name():
    full, quick = suite("transfer"), suite("transfer-quick")
    assert not {task.name for task in full.tasks} & {
        task.name for task in quick.tasks
    }  # predictions are files by task name
    assert {task.protocol for task in full.tasks} == {"senteval-probe/1"}
    assert {task.protocol for task in quick.tasks} == {"logreg-probe/1"}


def test_the_page_about_the_suite_states_the_same_counts():
    page = (Path(__file__).parents[2] / "docs" / suite("transfer").docs).read_text(encoding="utf-8")
    for task in suite("transfer").tasks:
        row = next(line for line in page.splitlines() if line.startswith(f"| {task.name} | "))
        assert f"| {task.n:,} |" in row
    assert PROTOCOL in page and transfer_quick.PROTOCOL in page
