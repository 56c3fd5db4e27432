"""The transfer sets by SentEval's protocol, written down here once more, in numpy.

One linear layer, Adam, batches of 64, a look at the dev items every four epochs, the sixth look
without a better one ends the fit; the penalty by folds (SentEval's ``validation.py``).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import raw_sets
import torch
from scored import score_words_in
from sklearn.model_selection import StratifiedKFold
from test_score_suites import features

PENALTIES = [1e-5, 1e-4, 1e-3, 1e-2]
Items = tuple[np.ndarray, np.ndarray]


class Probe:
    """SentEval's classifier: logistic regression by Adam, stopped by dev items."""

    def __init__(self, width: int, classes: int, penalty: float) -> None:
        self.random = np.random.RandomState(1111)
        torch.manual_seed(1111)
        layer = torch.nn.Linear(width, classes)
        self.weight = np.hstack([layer.weight.detach(), layer.bias.detach()[:, None]])
        self.penalty, self.steps = penalty, 0
        self.first, self.second = np.zeros_like(self.weight), np.zeros_like(self.weight)

    def fit(self, items: Items, dev: Items | None = None) -> Probe:
        """Fit on items; without dev items a random twentieth of them is taken."""
        x, y = items
        if dev is None:
            order = self.random.permutation(len(x))
            held, kept = order[: int(0.05 * len(x))], order[int(0.05 * len(x)) :]
            dev, (x, y) = (x[held], y[held]), (x[kept], y[kept])
        best, kept_weight, bad = -1.0, self.weight, 0
        for _ in range(51):
            for _ in range(4):
                order = self.random.permutation(len(x))
                for start in range(0, len(x), 64):
                    self.step(x[order[start : start + 64]], y[order[start : start + 64]])
            accuracy = self.score(dev)
            if accuracy > best:
                best, kept_weight = accuracy, self.weight.copy()
            elif bad >= 5:
                break
            else:
                bad += 1
        self.weight = kept_weight
        return self

    def step(self, x: np.ndarray, y: np.ndarray) -> None:
        """Take a step of Adam along the mean cross-entropy and the penalty."""
        scores = x @ self.weight[:, :-1].T + self.weight[:, -1]
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        shares[np.arange(len(y)), y] -= 1
        shares /= len(y)
        slope = np.hstack([shares.T @ x, shares.sum(axis=0)[:, None]]) + self.penalty * self.weight
        self.steps += 1
        self.first = 0.9 * self.first + 0.1 * slope
        self.second = 0.999 * self.second + 0.001 * slope**2
        size = np.sqrt(self.second / (1 - 0.999**self.steps)) + 1e-8
        self.weight = self.weight - 0.001 * self.first / (1 - 0.9**self.steps) / size

    def score(self, items: Items) -> float:
        """Return the share of items that are right."""
        scores = items[0] @ self.weight[:, :-1].T + self.weight[:, -1]
        return float((scores.argmax(axis=1) == items[1]).mean())


def probe(items: Items, penalty: float, dev: Items | None = None) -> Probe:
    return Probe(items[0].shape[1], int(items[1].max()) + 1, penalty).fit(items, dev)


def folds(items: Items, of: int = 10) -> list[tuple[Items, Items]]:
    """Return train and test items of each fold, as SentEval's scikit-learn makes them."""
    x, y = items
    made = StratifiedKFold(of, shuffle=True, random_state=1111).split(x, y)
    return [((x[train], y[train]), (x[test], y[test])) for train, test in made]


def best_penalty(parts: list[tuple[Items, Items]]) -> float:
    means = []
    for penalty in PENALTIES:
        shares = [probe(train, penalty, dev=test).score(test) for train, test in parts]
        means.append(round(100 * float(np.mean(shares)), 2))
    return PENALTIES[int(np.argmax(means))]


def crossed(train: Items, test: Items) -> float:
    """Return the test accuracy; ten folds of train choose the penalty."""
    return round(100 * probe(train, best_penalty(folds(train))).score(test), 2)


def nested(items: Items) -> float:
    """Return the mean test accuracy of ten folds, in each of which ten choose the penalty."""
    values = []
    for train, test in folds(items):
        values.append(round(100 * probe(train, best_penalty(folds(train))).score(test), 2))
    return float(np.mean(values))


def split_items(data: Path, task: str) -> dict[str, Items]:
    """Return vectors and labels of each split, sorted by length and label, as SentEval sorts."""
    items = {}
    for split, (texts, labels) in raw_sets.labelled(data, task).items():
        keys = [
            ([len(text.split()) for text in row], label)
            for row, label in zip(texts, labels.tolist(), strict=True)
        ]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        items[split] = (features([texts[one] for one in order]).astype(float), labels[order])
    return items


@pytest.mark.promise(12)
@pytest.mark.nightly
def test_sets_with_a_test_split_are_sentevals_probe(shared: Path, tmp_path: Path) -> None:
    data = shared / "data"
    scores = score_words_in(tmp_path, ["transfer:SST-2,TREC,MRPC"], data=str(data))
    found = {
        task: scores[f"{task} senteval-probe/1"]["value"] for task in ("SST-2", "TREC", "MRPC")
    }
    for task in ("MRPC", "TREC"):
        items = split_items(data, task)
        assert found[task] == pytest.approx(crossed(items["train"], items["test"]), abs=0.01), task
    items = split_items(data, "SST-2")
    penalty = best_penalty([(items["train"], items["dev"])])
    fitted = probe(items["train"], penalty, dev=items["dev"])
    assert found["SST-2"] == pytest.approx(round(100 * fitted.score(items["test"]), 2), abs=0.01)


@pytest.mark.promise(12)
@pytest.mark.nightly
def test_sets_without_a_test_split_are_sentevals_nested_folds(shared: Path, tmp_path: Path) -> None:
    data = shared / "data"
    scores = score_words_in(tmp_path, ["transfer:CR"], data=str(data))
    wanted = nested(split_items(data, "CR")["all"])
    assert scores["CR senteval-probe/1"]["value"] == pytest.approx(wanted, abs=0.01)
