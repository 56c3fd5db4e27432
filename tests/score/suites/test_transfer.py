"""The transfer suites: what becomes of vectors, on the real sets and on small made-up ones."""

from __future__ import annotations

import numpy as np
from probe_sequential import fit_sequential
from sklearn.model_selection import StratifiedKFold
from stand_in import labelled, probed, words_in

from bench.score.metrics.probe import Split, holdout, inner_kfold
from bench.score.metrics.probe_batched import fit_batched


def bag_of_hashes(sentences):
    return words_in(sentences, 16)


def test_nested_cross_validation_is_made_in_senteval_order_and_told_in_the_datas_order():
    texts = labelled({"test": 240})
    result = probed(texts).score(bag_of_hashes)
    order = sorted(range(240), key=lambda i: (len(texts.texts[0][i].split()), texts.labels[i]))
    x, y = bag_of_hashes([texts.texts[0][i] for i in order]), texts.labels[order]
    fold = np.empty(240, dtype=int)
    folds = StratifiedKFold(10, shuffle=True, random_state=1111).split(x, y)
    for number, (_, test) in enumerate(folds):
        fold[np.array(order)[test]] = number
    assert result.predictions["fold"].tolist() == fold.tolist()
    assert result.predictions["gold"].tolist() == texts.labels.tolist()
    again = inner_kfold(x, y, np.arange(240), 2, fit_batched)
    assert result.predictions["prediction"][order].tolist() == again.predicted.tolist()
    assert (result.value, result.detail["dev"]) == (again.test, again.dev)
    assert [one["test"] for one in result.detail["folds"]] == [one.test for one in again.folds]
    about = result.n, result.metric, result.detail["fits"]
    assert about == (240, "accuracy", 410) and result.value > 60


def test_a_dev_split_agrees_with_the_plain_loop():
    texts = labelled({"train": 90, "dev": 30, "test": 40}, name="SST-2")
    result = probed(texts).score(bag_of_hashes)
    x = bag_of_hashes(texts.texts[0])
    split = Split(texts.rows("train"), np.arange(120, 160), texts.rows("dev"))
    want = holdout(x, texts.labels, split, 2, fit_sequential)
    assert result.predictions["prediction"].tolist() == want.predicted.tolist()
    assert (result.value, result.detail["dev"], result.detail["fits"]) == (want.test, want.dev, 4)
