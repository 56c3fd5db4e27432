"""The transfer sets with 16 labelled examples of each class: ten draws, a logistic regression each.

Suite fewshot, protocol ``senteval-fewshot/1``: Figure 7 of ConPVP; docs/suites.md#fewshot decides
what that paper leaves open. The value is the mean accuracy x 100 over the draws, ``std`` their
standard deviation. The draws are the same for every model, so that two models can be compared draw
by draw.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bench.data.sets import DataFolder, data_set
from bench.data.sets.transfer import LabelledTexts, read_transfer
from bench.score.metrics.fewshot import accuracies, draw, fit_predict
from bench.score.metrics.metric import ACCURACY
from bench.score.suites.task import Arrays, LoadedTask, Suite, Task, TaskResult, TaskScore, Vectors
from bench.score.suites.transfer import features
from bench.score.suites.vectors import scoring

FEWSHOT_PROTOCOL = "senteval-fewshot/1"
SHOTS, DRAWS = 16, 10
AVERAGED = ("MR", "CR", "SUBJ", "MPQA", "SST-2", "TREC", "MRPC")
SETS = (*AVERAGED,)  # a further set stands behind them, and is not in the average


@dataclass(frozen=True)
class LoadedFewShot(LoadedTask):
    """A labelled set and the examples that are drawn from it."""

    task: Task
    data: LabelledTexts

    @property
    def pool(self) -> np.ndarray:
        """Rows to draw examples from, in the order of the files: the train split, or all rows."""
        train = np.flatnonzero(self.data.split == "train")
        return train if len(train) else np.arange(len(self.data))

    @property
    def tested(self) -> np.ndarray:
        """Rows that are tested, in the order of the files.

        If the set has no train split, each draw leaves its own examples out.
        """
        return np.flatnonzero(self.data.split == "test")

    @cached_property
    def drawn(self) -> list[np.ndarray]:
        """Rows of the examples of every draw. Raises RunFailed if a class has too few."""
        pool = self.pool
        with scoring(self.task.name):
            return [
                pool[draw(self.data.labels[pool], SHOTS, self.data.name, seed)]
                for seed in range(DRAWS)
            ]

    @property
    def needed(self) -> np.ndarray:
        """Rows that scoring needs: of a large train split only the drawn ones."""
        return np.unique(np.concatenate([self.tested, *self.drawn]))

    @property
    def sentences(self) -> list[str]:
        return [texts[row] for texts in self.data.texts for row in self.needed]

    @property
    def n(self) -> int:
        """Items that every draw is tested on."""
        if (self.data.split == "train").any():
            return len(self.tested)
        return len(self.tested) - SHOTS * len(self.data.classes)

    def score(self, vectors: Vectors) -> TaskResult:
        """Score the task. Raises RunFailed if the vectors cannot be scored."""
        rows = self.needed
        x_ND = features(
            replace(
                self.data, texts=tuple([texts[row] for row in rows] for texts in self.data.texts)
            ),
            vectors,
            self.task.name,
        )
        predicted_MK = np.full((len(self.tested), DRAWS), -1, dtype=np.int64)
        fits = []
        for k, examples in enumerate(self.drawn):
            tested_draw = ~np.isin(self.tested, examples)
            fit = fit_predict(
                x_ND[np.searchsorted(rows, examples)],
                self.data.labels[examples],
                x_ND[np.searchsorted(rows, self.tested[tested_draw])],
            )
            predicted_MK[tested_draw, k] = fit.predicted
            fits.append({"seed": k, "iterations": fit.iterations, "converged": fit.converged})
        return self.result(
            {
                "prediction": predicted_MK,
                "gold": self.data.labels[self.tested],
                "subset": np.full(len(self.tested), self.data.name),
                "drawn": np.stack(
                    [np.searchsorted(self.pool, examples) for examples in self.drawn]
                ),
            },
            shots=SHOTS,
            classes=list(self.data.classes),
            fits=fits,
        )


def score_fewshot(predictions: Arrays, task: str) -> TaskScore:
    """Score stored predictions: mean and standard deviation (n - 1) over draws, and every draw."""
    with scoring(task):
        each = accuracies(predictions["prediction"], predictions["gold"])
    # a draw may leave out its own examples
    tested = np.unique((predictions["prediction"] >= 0).sum(axis=0))
    if len(tested) != 1:
        raise ValueError("the draws were tested on different numbers of items")
    return TaskScore(
        float(each.mean()), int(tested[0]), float(each.std(ddof=1)), {"draws": each.tolist()}
    )


def _read_fewshot(task: Task, data: DataFolder) -> LoadedFewShot:
    return LoadedFewShot(task, read_transfer(data, task.data[0]))


def fewshot_task(set_name: str) -> Task:
    """Make the task of one labelled set."""
    wanted = data_set(set_name)
    tested = wanted.items["test"]
    if "train" not in wanted.items:  # each draw leaves its own examples out
        tested -= SHOTS * len(wanted.classes)
    return Task(
        suite="fewshot",
        name=f"{set_name}-{SHOTS}",  # "MR-16": a run may also hold the set's full transfer score
        protocol=FEWSHOT_PROTOCOL,
        metric=ACCURACY,
        data=(set_name,),
        read=_read_fewshot,
        n=tested,
        rescore=score_fewshot,
    )


SUITE = Suite(
    name="fewshot",
    title="Few-shot transfer",
    description=(
        "What can be learned from 16 examples per class? The transfer sets, ten draws each, a "
        "logistic regression."
    ),
    tasks=tuple(fewshot_task(name) for name in SETS),
    average=tuple(f"{name}-{SHOTS}" for name in AVERAGED),
    docs="suites.md#fewshot",
    extra_detail=("classes", "fits", "shots"),
)
