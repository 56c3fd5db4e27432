"""The few-shot suite: what becomes of vectors, on the real sets and on small made-up ones."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bench.base.errors import RunFailed
from bench.data.sets import TRANSFER_TASKS, DataFolder, LabelledTexts, data_set, read_transfer
from bench.score.metrics.fewshot import draw
from bench.score.suites import average, suite
from bench.score.suites.fewshot import DRAWS, PROTOCOL, SHOTS, LoadedFewShot, score_predictions


def made_up(
    splits: dict[str, int], *, name: str = "CR", classes: int = 2, sides: int = 1
) -> LabelledTexts:
    """Every sentence is its own; the class of a row is told by ``vectors``."""
    names = np.repeat(list(splits), list(splits.values()))
    labels = np.random.default_rng(1).integers(classes, size=len(names))
    texts = tuple(
        [f"side{side} row{i} class{label}" for i, label in enumerate(labels)]
        for side in range(sides)
    )
    return LabelledTexts(name, texts, labels, names, None, "0" * 64)


def vectors(sentences, noise: float = 2.0):
    """The class, in a noise that the sentence itself decides."""
    rows = [
        np.random.default_rng(zlib.crc32(one.encode())).normal(scale=noise, size=6)
        for one in sentences
    ]
    return np.array(
        [row + int(one[-1]) * np.eye(6)[0] * 2 for row, one in zip(rows, sentences, strict=True)],
        dtype=np.float32,
    )


def test_without_a_train_split_a_draw_is_tested_on_all_the_rest():
    texts = made_up({"test": 150})
    result = LoadedFewShot(suite("fewshot").task("CR-16"), texts).score(vectors)
    x = vectors(texts.texts[0]).astype(float)
    for seed in range(DRAWS):
        chosen = draw(texts.labels, 16, "CR", seed)
        rest = np.setdiff1d(np.arange(150), chosen)
        want = (
            LogisticRegression(C=1.0, max_iter=1000)
            .fit(x[chosen], texts.labels[chosen])
            .predict(x[rest])
        )
        assert result.predictions["drawn"][seed].tolist() == chosen.tolist()
        assert result.predictions["prediction"][rest, seed].tolist() == want.tolist()
        assert (result.predictions["prediction"][chosen, seed] == -1).all()
        assert result.detail["draws"][seed] == pytest.approx(
            100 * (want == texts.labels[rest]).mean(), abs=1e-10
        )
    assert result.value == pytest.approx(np.mean(result.detail["draws"]), abs=1e-10)
    assert (
        result.std == pytest.approx(np.std(result.detail["draws"], ddof=1), abs=1e-10)
        and result.std > 0
    )
    assert (result.n, result.metric, result.protocol, result.text) == (
        150 - 32,
        "accuracy",
        PROTOCOL,
        None,
    )
    assert result.predictions["gold"].tolist() == texts.labels.tolist()
    assert 60 < result.value < 100
    json.dumps(result.detail)


def test_with_a_train_split_examples_come_from_it_and_the_test_split_is_tested():
    texts = made_up({"train": 200, "dev": 30, "test": 50}, name="TREC", classes=6)
    loaded = LoadedFewShot(suite("fewshot").task("TREC-16"), texts)
    asked = []

    def recorded(sentences):
        asked.extend(sentences)
        return vectors(sentences)

    result = loaded.score(recorded)
    assert set(asked) == set(loaded.sentences)
    rows = {int(one.split()[1][3:]) for one in asked}
    chosen = {
        int(row) for seed in range(DRAWS) for row in draw(texts.labels[:200], 16, "TREC", seed)
    }
    assert rows == chosen | set(
        range(230, 280)
    )  # no dev row, and of the train split only what was drawn
    assert result.n == 50 and (result.predictions["prediction"] >= 0).all()
    x = vectors(texts.texts[0]).astype(float)
    first = draw(texts.labels[:200], 16, "TREC", 0)
    want = (
        LogisticRegression(C=1.0, max_iter=1000).fit(x[first], texts.labels[first]).predict(x[230:])
    )
    assert result.predictions["prediction"][:, 0].tolist() == want.tolist()


def test_pairs_are_seen_as_difference_and_product():
    texts = made_up({"train": 100, "test": 40}, name="MRPC", sides=2)
    result = LoadedFewShot(suite("fewshot").task("MRPC-16"), texts).score(vectors)
    u, v = (vectors(side) for side in texts.texts)
    x = np.concatenate([np.abs(u - v), u * v], axis=1).astype(float)
    chosen = draw(texts.labels[:100], 16, "MRPC", 4)
    want = (
        LogisticRegression(C=1.0, max_iter=1000)
        .fit(x[chosen], texts.labels[chosen])
        .predict(x[100:])
    )
    assert result.predictions["prediction"][:, 4].tolist() == want.tolist()


def test_scoring_again_from_the_predictions_gives_the_same_numbers():
    result = LoadedFewShot(suite("fewshot").task("CR-16"), made_up({"test": 100})).score(vectors)
    again = score_predictions(result.predictions, "CR-16")
    assert (again.value, again.n, again.std, again.detail["draws"]) == (
        result.value,
        result.n,
        result.std,
        result.detail["draws"],
    )


def test_a_class_with_too_few_items_is_an_error_not_a_smaller_draw():
    with pytest.raises(RunFailed, match="CR-16: class [01] has .* items, 16 are drawn"):
        LoadedFewShot(suite("fewshot").task("CR-16"), made_up({"test": 24})).score(vectors)


def test_vectors_that_cannot_be_scored_name_the_task():
    loaded = LoadedFewShot(suite("fewshot").task("CR-16"), made_up({"test": 60}))
    with pytest.raises(RunFailed, match="CR-16: all .* constant"):
        loaded.score(lambda s: np.ones((len(s), 3), np.float32))
    with pytest.raises(RunFailed, match="CR-16: .*NaN"):
        loaded.score(lambda s: np.full((len(s), 3), np.nan, np.float32))
    with pytest.raises(RunFailed, match="CR-16: vectors of shape"):
        loaded.score(lambda s: np.ones((3, 3), np.float32))


@pytest.mark.slow
def test_the_real_sets_have_enough_of_every_class_and_no_test_item_is_trained_on(shared):
    data = DataFolder(shared / "data")
    results = []
    for task in suite("fewshot").tasks:
        texts = read_transfer(data, task.data[0])
        loaded = task.load(data)
        assert loaded.n == task.n and len(loaded.drawn) == DRAWS
        assert {len(one) for one in loaded.drawn} == {SHOTS * len(texts.classes)}
        train = texts.split == "train"
        assert all(train[one].all() for one in loaded.drawn) or not train.any()
        if task.data[0] in ("TREC", "MRPC"):
            result = loaded.score(
                lambda s: np.random.default_rng(0).normal(size=(len(s), 4)).astype(np.float32)
            )
            assert (
                result.n == data_set(task.data[0]).items["test"] == len(result.predictions["gold"])
            )
            results.append(result)
    assert average(results) is None  # five tasks are missing
    assert len(suite("fewshot").task("SST-2-16").load(data).sentences) < 1821 + 320 + 1


def test_the_page_about_the_suite_states_the_same_counts():
    page = (Path(__file__).parents[2] / "docs" / suite("fewshot").docs).read_text(encoding="utf-8")
    assert PROTOCOL in page and [task.data[0] for task in suite("fewshot").tasks] == list(
        TRANSFER_TASKS
    )
    for task in suite("fewshot").tasks:
        row = next(line for line in page.splitlines() if line.startswith(f"| {task.name} | "))
        assert f"| {task.n:,} |" in row
