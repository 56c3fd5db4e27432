"""The seven transfer sets, on frozen vectors: suites transfer, transfer-quick and fewshot.

transfer, protocol ``senteval-probe/1``: SentEval's linear classifier. A task's value is test accuracy x 100, rounded to two decimals
as SentEval prints it. The sentences are scored as they are, also the blank lines of CR and MPQA (SimCSE does so too; SentEval's own
examples put a full stop there).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from bench.base.errors import RunFailed
from bench.data.sets import DataFolder, data_set
from bench.data.sets.transfer import CLASSES, TRANSFER_TASKS, LabelledTexts, read_transfer
from bench.score.metrics.metric import ACCURACY
from bench.score.metrics.probe import (
    accuracies,
    accuracy,
    draw,
    fit_batched,
    fit_predict,
    holdout,
    inner_kfold,
    mean,
    stratified_folds,
)
from bench.score.suites import (
    Arrays,
    LoadedTask,
    Suite,
    Task,
    TaskResult,
    TaskScore,
    Vectors,
    check_variety,
    float32_vectors,
    scoring,
)

PROTOCOL = "senteval-probe/1"
LARGEST = 1e15

Classified = tuple[np.ndarray, np.ndarray, dict[str, Any]]
"""Of the test items in the data's order: the class predicted, the fold it was tested in; and the detail for the record."""
Classify = Callable[[LabelledTexts, np.ndarray, str], Classified]


def classify(texts: LabelledTexts, x_ND: np.ndarray, device: str) -> Classified:
    """SentEval's own algorithm: nested cross-validation, cross-validation or a dev split, by what splits the set has."""
    fitter = partial(fit_batched, device=device)
    train, dev, test = (texts.rows(name) for name in ("train", "dev", "test"))
    classes = len(texts.classes)
    probe = (
        holdout(x_ND, texts.labels, train, test, classes, fitter, dev=dev if len(dev) else None)
        if len(train)
        else inner_kfold(x_ND, texts.labels, test, classes, fitter)
    )
    return (
        probe.predicted,
        probe.fold,
        {"dev": probe.dev, "folds": [asdict(fold) for fold in probe.folds], "fits": probe.fits},
    )


@dataclass(frozen=True)
class LoadedTransfer(LoadedTask):
    """A labelled set and the classifier that scores it. ``device``: where the classifiers are fitted."""

    task: Task
    data: LabelledTexts
    classify: Classify
    device: str = "cpu"

    @property
    def sentences(self) -> list[str]:
        return [sentence for texts in self.data.texts for sentence in texts]

    @property
    def n(self) -> int:
        return int((self.data.split == "test").sum())

    def on(self, device: str) -> LoadedTransfer:
        """Fitted on the CUDA device that the model ran on, else on the CPU: other devices may lack the double precision that the fits need."""
        return replace(self, device=device if device.startswith("cuda") else "cpu")

    def score(self, vectors: Vectors) -> TaskResult:
        """The task's result. Raises RunFailed if the vectors cannot be scored or a classifier diverges."""
        with scoring(self.task.name, "are the vectors of a reasonable size?"):
            x_ND = features(self.data, vectors, self.task.name)
            predicted, fold, detail = self.classify(self.data, x_ND, self.device)
        return self.result(
            {
                "prediction": predicted,
                "gold": self.data.labels[self.data.split == "test"],
                "subset": np.full(len(predicted), self.data.name),
                "fold": fold,
            },
            **detail,
            classes=list(self.data.classes),
        )


def features(texts: LabelledTexts, vectors: Vectors, task: str) -> np.ndarray:
    """(N, D) float32, the vectors as they are; of pairs (N, 2D): absolute difference, then product. Raises RunFailed."""
    sides = []
    for sentences in texts.texts:
        side_ND = float32_vectors(vectors(sentences), sentences, task)
        if max(side_ND.max(), -side_ND.min()) > LARGEST:
            first = sentences[int(np.argmax((np.abs(side_ND) > LARGEST).any(axis=1)))]
            raise RunFailed(
                f"{task}: a number above {LARGEST:g}, whose square overflows float32, first for the sentence '{first[:60]}'",
                "did the training diverge? curve.jsonl in the run's folder has its losses",
            )
        sides.append(check_variety(side_ND, sentences, task))
    if len(sides) == 1:
        return sides[0]
    u_ND, v_ND = sides
    if u_ND.shape != v_ND.shape:
        raise RunFailed(f"{task}: vectors of {u_ND.shape[1]} and {v_ND.shape[1]} dimensions")
    return np.concatenate([np.abs(u_ND - v_ND), u_ND * v_ND], axis=1)


def score_predictions(predictions: Arrays, task: str) -> TaskScore:
    """From stored predictions alone: mean over folds of the rounded accuracies, rounded; F1 for MRPC."""
    predicted, gold, fold = predictions["prediction"], predictions["gold"], predictions["fold"]
    value = mean([accuracy(predicted[fold == k], gold[fold == k]) for k in np.unique(fold)])
    detail = {}
    if task.startswith("MRPC"):
        # F1 x 100 of class 1; 0 if that class was neither predicted nor there
        both, either = int((predicted & gold).sum()), int(predicted.sum() + gold.sum())
        detail["f1"] = round(200 * both / max(either, 1), 2)
    return TaskScore(value, len(predicted), detail=detail)


def transfer_task(set_name: str, name: str, suite: str, protocol: str, classify: Classify) -> Task:
    """One transfer set under one protocol. Its text is SentEval's for both known forms: there is one."""

    def read(task: Task, data: DataFolder, text: str) -> LoadedTransfer:
        return LoadedTransfer(task, read_transfer(data, set_name, text=text), classify)

    return Task(
        suite=suite,
        name=name,
        protocol=protocol,
        metric=ACCURACY,
        n=data_set(set_name).items["test"],
        data=(set_name,),
        read=read,
        rescore=score_predictions,
    )


SUITE = Suite(
    name="transfer",
    title="Transfer to classification",
    description="Can a linear classifier read sentiment, topic or paraphrase from frozen vectors? SentEval's seven tasks.",
    tasks=tuple(
        transfer_task(name, name, "transfer", PROTOCOL, classify) for name in TRANSFER_TASKS
    ),
    average=TRANSFER_TASKS,
    docs="suites.md#transfer",
    extra_detail=("classes", "dev", "fits", "folds"),
)


# --- transfer-quick: a plain logistic regression. A quick look, not the papers' numbers ---

FOLDS, SEED, INVERSE_PENALTY, ITERATIONS = 5, 1111, 0.01, 100


def classify_quickly(texts: LabelledTexts, x_ND: np.ndarray, device: str) -> Classified:
    """One fit for each test fold or split. No grid, no dev split: fixed L2, dimensions standardised on the train rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    train, test = texts.rows("train"), np.flatnonzero(texts.split == "test")
    fold = (
        np.zeros(len(test), dtype=np.int64)
        if len(train)
        else stratified_folds(texts.labels, FOLDS, SEED)
    )
    predicted = np.zeros_like(fold)
    for k in range(int(fold.max()) + 1):
        rows = train if len(train) else test[fold != k]
        model: Any = make_pipeline(
            StandardScaler(), LogisticRegression(C=INVERSE_PENALTY, max_iter=ITERATIONS)
        ).fit(x_ND[rows], texts.labels[rows])
        predicted[fold == k] = model.predict(x_ND[test[fold == k]])
    return predicted, fold, {}


QUICK_SUITE = Suite(
    name="transfer-quick",
    title="Transfer to classification, quick",
    description="The transfer sets with one plain logistic regression each: a quick look, not comparable with papers.",
    tasks=tuple(
        transfer_task(name, f"{name}-quick", "transfer-quick", "logreg-probe/1", classify_quickly)
        for name in TRANSFER_TASKS
    ),
    average=tuple(f"{name}-quick" for name in TRANSFER_TASKS),
    docs="suites.md#transfer",
    extra_detail=("classes",),
)


# --- fewshot: 16 labelled examples a class, ten draws, a logistic regression each ---
# ConPVP's Figure 7; what that paper leaves open is settled in docs/suites.md#fewshot. The value is mean accuracy x 100 over the
# draws, ``std`` their standard deviation. The draws are the same for every model, so that two models can be compared draw by draw.


FEWSHOT_PROTOCOL = "senteval-fewshot/1"
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
        """Rows that are tested, in the order of the files; of a set without a train split, each draw leaves its examples out."""
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
        return len(self.tested) - (
            0 if (self.data.split == "train").any() else SHOTS * len(self.data.classes)
        )

    def score(self, vectors: Vectors) -> TaskResult:
        """The task's result. Raises RunFailed if the vectors cannot be scored."""
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
    """From stored predictions alone: mean and standard deviation (n - 1) over draws, and every draw."""
    with scoring(task):
        each = accuracies(predictions["prediction"], predictions["gold"])
    # a draw may leave out its own examples
    if len(tested := np.unique((predictions["prediction"] >= 0).sum(axis=0))) != 1:
        raise ValueError("the draws were tested on different numbers of items")
    return TaskScore(
        float(each.mean()), int(tested[0]), float(each.std(ddof=1)), {"draws": each.tolist()}
    )


def _read_fewshot(task: Task, data: DataFolder, text: str) -> LoadedFewShot:
    """SentEval's text for both known forms: there is one."""
    return LoadedFewShot(task, read_transfer(data, task.data[0], text=text))


FEWSHOT_SUITE = Suite(
    name="fewshot",
    title="Few-shot transfer",
    description="What can be learned from 16 examples a class? The transfer sets, ten draws each, a logistic regression.",
    tasks=tuple(
        Task(
            suite="fewshot",
            name=f"{name}-{SHOTS}",  # "MR-16": a run may also hold the set's full transfer score
            protocol=FEWSHOT_PROTOCOL,
            metric=ACCURACY,
            data=(name,),
            read=_read_fewshot,
            n=items["test"] - (0 if "train" in items else SHOTS * len(CLASSES[name])),
            rescore=score_fewshot,
        )
        for name, items in ((name, data_set(name).items) for name in TRANSFER_TASKS)
    ),
    average=tuple(f"{name}-{SHOTS}" for name in TRANSFER_TASKS),
    docs="suites.md#fewshot",
    extra_detail=("classes", "fits", "shots"),
)
