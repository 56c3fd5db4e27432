"""Few-shot transfer: 16 labelled examples a class, ten draws, a logistic regression each. Protocol ``senteval-fewshot/1``.

ConPVP's Figure 7; what that paper leaves open is settled in docs/suites/fewshot.md. The value is mean accuracy x 100 over the
draws, ``std`` their standard deviation. The draws are the same for every model, so that two models can be compared draw by draw.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bench.base.errors import RunFailed
from bench.data.sets import TRANSFER_TASKS, DataFolder, LabelledTexts, data_set, read_transfer
from bench.data.sets.transfer import CLASSES
from bench.score.metrics.fewshot import accuracies, draw, fit_predict
from bench.score.suites import Suite, TaskResult
from bench.score.suites.known import OfData
from bench.score.suites.transfer import features
from bench.score.suites.vectors import Vectors

PROTOCOL = "senteval-fewshot/1"
SHOTS, DRAWS = 16, 10


@dataclass(frozen=True)
class LoadedFewShot(OfData):
    """A labelled set and the examples that are drawn from it."""

    suite: str
    task: str
    data: LabelledTexts
    shots: int = SHOTS
    draws: int = DRAWS

    @property
    def pool(self) -> np.ndarray:
        """Rows that examples are drawn from, in the order of the files: the train split; all of a set without one."""
        train = np.flatnonzero(self.data.split == "train")
        return train if len(train) else np.arange(len(self.data))

    @property
    def tested(self) -> np.ndarray:
        """Rows that are tested, in the order of the files; of a set without a train split, each draw leaves its own ones out."""
        return np.flatnonzero(self.data.split == "test")

    @cached_property
    def drawn(self) -> list[np.ndarray]:
        """Rows of the examples of every draw. Raises RunFailed where a class has too few."""
        pool = self.pool
        try:
            return [pool[draw(self.data.labels[pool], self.shots, self.data.name, seed)] for seed in range(self.draws)]
        except ValueError as error:
            raise RunFailed(f"{self.task}: {error}") from None

    @property
    def needed(self) -> np.ndarray:
        """Rows that scoring asks for: of a large train split only what is drawn."""
        return np.unique(np.concatenate([self.tested, *self.drawn]))

    @property
    def sentences(self) -> list[str]:
        rows = self.needed
        return [texts[row] for texts in self.data.texts for row in rows]

    @property
    def n(self) -> int:
        return _items(len(self.tested), len(self.data.classes), bool((self.data.split == "train").any()), self.shots)

    def score(self, vectors: Vectors) -> TaskResult:
        """The task's result. Raises RunFailed where the vectors cannot be scored."""
        rows = self.needed
        asked = replace(
            self.data, texts=tuple([texts[row] for row in rows] for texts in self.data.texts),
            labels=self.data.labels[rows], split=self.data.split[rows],
        )  # fmt: skip
        x_ND = features(asked, vectors, self.task)
        place = np.full(len(self.data), -1)
        place[rows] = np.arange(len(rows))
        predicted_MK = np.full((len(self.tested), self.draws), -1, dtype=np.int64)
        fits = []
        for k, examples in enumerate(self.drawn):
            left = ~np.isin(self.tested, examples)
            fit = fit_predict(x_ND[place[examples]], self.data.labels[examples], x_ND[place[self.tested[left]]])
            predicted_MK[left, k] = fit.predicted
            fits.append({"seed": k, "iterations": fit.iterations, "converged": fit.converged})
        predictions = {
            "prediction": predicted_MK,
            "gold": self.data.labels[self.tested],
            "subset": np.full(len(self.tested), self.data.name),
            "drawn": np.stack([np.searchsorted(self.pool, examples) for examples in self.drawn]),
        }
        value, std, detail = score_predictions(predictions, self.task)
        return TaskResult(
            suite=self.suite, task=self.task, protocol=PROTOCOL, metric="accuracy", value=value, n=self.n, std=std, text=self.form,
            detail={**detail, "shots": self.shots, "classes": list(self.data.classes), "fits": fits}, predictions=predictions,
        )  # fmt: skip


@dataclass(frozen=True)
class FewShotTask:
    """One transfer set from few examples. Called "MR-16", for a run may hold the set's full transfer score beside it."""

    set_name: str
    suite: str = "fewshot"
    protocol: str = PROTOCOL
    metric: str = "accuracy"

    @property
    def name(self) -> str:
        return f"{self.set_name}-{SHOTS}"

    @property
    def data(self) -> tuple[str, ...]:
        return (self.set_name,)

    @property
    def n(self) -> int:
        items = data_set(self.set_name).items
        return _items(items["test"], len(CLASSES[self.set_name]), "train" in items, SHOTS)

    def load(self, data: DataFolder, text: str = "tokenised") -> LoadedFewShot:
        """SentEval's text for both known forms: there is one."""
        return LoadedFewShot(self.suite, self.name, read_transfer(data, self.set_name, text=text))


def _items(tested: int, classes: int, split: bool, shots: int) -> int:
    """Items that every draw is tested on."""
    return tested if split else tested - shots * classes


def score_predictions(predictions: Mapping[str, np.ndarray], task: str) -> tuple[float, float, dict[str, Any]]:
    """(value, std, detail) from stored predictions alone: mean and standard deviation (n - 1) over draws, and every draw."""
    try:
        each = accuracies(predictions["prediction"], predictions["gold"])
    except ValueError as error:
        raise RunFailed(f"{task}: {error}") from None
    return float(each.mean()), float(each.std(ddof=1)), {"draws": each.tolist()}


SUITE = Suite(
    name="fewshot",
    title="Few-shot transfer",
    description="What can be learned from 16 examples a class? The transfer sets, ten draws each, a logistic regression.",
    tasks=tuple(FewShotTask(name) for name in TRANSFER_TASKS),
    average=tuple(f"{name}-{SHOTS}" for name in TRANSFER_TASKS),
    docs="suites/fewshot.md",
)
