"""Few-shot transfer: 16 labelled examples a class, ten draws, a logistic regression each. Protocol ``senteval-fewshot/1``.

ConPVP's Figure 7; what that paper leaves open is settled in docs/suites.md#fewshot. The value is mean accuracy x 100 over the
draws, ``std`` their standard deviation. The draws are the same for every model, so that two models can be compared draw by draw.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bench.base.errors import RunFailed
from bench.data.sets import DataFolder, data_set
from bench.data.sets.transfer import CLASSES, TRANSFER_TASKS, LabelledTexts, read_transfer
from bench.score.metrics.fewshot import accuracies, draw, fit_predict
from bench.score.suites import Arrays, LoadedTask, Suite, Task, TaskResult, TaskScore, Vectors
from bench.score.suites.transfer import features

PROTOCOL = "senteval-fewshot/1"
SHOTS, DRAWS = 16, 10


@dataclass(frozen=True)
class LoadedFewShot(LoadedTask):
    """A labelled set and the examples that are drawn from it."""

    task: Task
    data: LabelledTexts

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
            return [
                pool[draw(self.data.labels[pool], SHOTS, self.data.name, seed)]
                for seed in range(DRAWS)
            ]
        except ValueError as error:
            raise RunFailed(f"{self.task.name}: {error}") from None

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
        return _items(
            len(self.tested), len(self.data.classes), bool((self.data.split == "train").any())
        )

    def score(self, vectors: Vectors) -> TaskResult:
        """The task's result. Raises RunFailed where the vectors cannot be scored."""
        rows = self.needed
        drawn_task = replace(
            self.data,
            texts=tuple([texts[row] for row in rows] for texts in self.data.texts),
            labels=self.data.labels[rows],
            split=self.data.split[rows],
        )
        x_ND = features(drawn_task, vectors, self.task.name)
        place = np.full(len(self.data), -1)
        place[rows] = np.arange(len(rows))
        predicted_MK = np.full((len(self.tested), DRAWS), -1, dtype=np.int64)
        fits = []
        for k, examples in enumerate(self.drawn):
            tested_draw = ~np.isin(self.tested, examples)
            fit = fit_predict(
                x_ND[place[examples]],
                self.data.labels[examples],
                x_ND[place[self.tested[tested_draw]]],
            )
            predicted_MK[tested_draw, k] = fit.predicted
            fits.append({"seed": k, "iterations": fit.iterations, "converged": fit.converged})
        predictions = {
            "prediction": predicted_MK,
            "gold": self.data.labels[self.tested],
            "subset": np.full(len(self.tested), self.data.name),
            "drawn": np.stack([np.searchsorted(self.pool, examples) for examples in self.drawn]),
        }
        return self.result(predictions, shots=SHOTS, classes=list(self.data.classes), fits=fits)


def _items(tested: int, classes: int, split: bool) -> int:
    """Items that every draw is tested on."""
    return tested if split else tested - SHOTS * classes


def score_predictions(predictions: Arrays, task: str) -> TaskScore:
    """From stored predictions alone: mean and standard deviation (n - 1) over draws, and every draw."""
    try:
        each = accuracies(predictions["prediction"], predictions["gold"])
    except ValueError as error:
        raise RunFailed(f"{task}: {error}") from None
    tested = np.unique(
        (predictions["prediction"] >= 0).sum(axis=0)
    )  # a draw may leave out its own examples
    if len(tested) != 1:
        raise ValueError("the draws were tested on different numbers of items")
    return TaskScore(
        float(each.mean()), int(tested[0]), float(each.std(ddof=1)), {"draws": each.tolist()}
    )


def _read(task: Task, data: DataFolder, text: str) -> LoadedFewShot:
    """SentEval's text for both known forms: there is one."""
    return LoadedFewShot(task, read_transfer(data, task.data[0], text=text))


def _task(name: str) -> Task:
    """One transfer set from few examples. Called "MR-16", for a run may hold the set's full transfer score beside it."""
    items = data_set(name).items
    return Task(
        suite="fewshot",
        name=f"{name}-{SHOTS}",
        protocol=PROTOCOL,
        metric="accuracy",
        data=(name,),
        read=_read,
        n=_items(items["test"], len(CLASSES[name]), "train" in items),
        rescore=score_predictions,
    )


SUITE = Suite(
    name="fewshot",
    title="Few-shot transfer",
    description="What can be learned from 16 examples a class? The transfer sets, ten draws each, a logistic regression.",
    tasks=tuple(_task(name) for name in TRANSFER_TASKS),
    average=tuple(f"{name}-{SHOTS}" for name in TRANSFER_TASKS),
    docs="suites.md#fewshot",
)
