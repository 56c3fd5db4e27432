"""The seven transfer sets on frozen vectors, with SentEval's classifier.

Suite transfer, protocol ``senteval-probe/1``. A task's value is test accuracy x 100, rounded to two
decimals as SentEval prints it. The sentences are scored as they are, also the blank lines of CR and
MPQA (SimCSE does so too; SentEval's own examples put a full stop there).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from bench.base.errors import RunFailed
from bench.data.sets import DataFolder, data_set
from bench.data.sets.transfer import LabelledTexts, read_transfer
from bench.score.metrics.metric import ACCURACY
from bench.score.metrics.probe import Split, accuracy, holdout, inner_kfold, mean
from bench.score.metrics.probe_batched import fit_batched
from bench.score.suites.task import Arrays, LoadedTask, Suite, Task, TaskResult, TaskScore, Vectors
from bench.score.suites.vectors import check_variety, float32_vectors, scoring

PROTOCOL = "senteval-probe/1"
AVERAGED = ("MR", "CR", "SUBJ", "MPQA", "SST-2", "TREC", "MRPC")  # papers print the mean of these
SETS = (*AVERAGED,)  # a further set stands behind them, and is not in the average
LARGEST = 1e15
PARAPHRASES = "MRPC"  # papers also print F1 of this set

# For the test items in the data's order: predicted class, fold of the test; and the record's
# detail.
Classified = tuple[np.ndarray, np.ndarray, dict[str, Any]]


def classify(texts: LabelledTexts, x_ND: np.ndarray, device: str) -> Classified:
    """Classify by SentEval's own algorithm.

    It is nested cross-validation, cross-validation, or a dev split, depending on the set's splits.
    """
    fitter = partial(fit_batched, device=device)
    train = texts.rows("train")
    dev = texts.rows("dev")
    test = texts.rows("test")
    classes = len(texts.classes)
    if not len(train):
        probe = inner_kfold(x_ND, texts.labels, test, classes, fitter)
    else:
        split = Split(train, test, dev if len(dev) else None)
        probe = holdout(x_ND, texts.labels, split, classes, fitter)
    folds = [asdict(fold) for fold in probe.folds]
    return probe.predicted, probe.fold, {"dev": probe.dev, "folds": folds, "fits": probe.fits}


@dataclass(frozen=True)
class LoadedTransfer(LoadedTask):
    """A labelled set, which a classifier scores."""

    task: Task
    data: LabelledTexts
    # the device that classifiers are fitted on
    device: str = "cpu"

    @property
    def sentences(self) -> list[str]:
        return [sentence for texts in self.data.texts for sentence in texts]

    @property
    def n(self) -> int:
        return int((self.data.split == "test").sum())

    def on(self, device: str) -> LoadedTransfer:
        """Fit on the model's CUDA device, else on the CPU.

        Other devices may lack the double precision that the fits need.
        """
        return replace(self, device=device if device.startswith("cuda") else "cpu")

    def score(self, vectors: Vectors) -> TaskResult:
        """Score the task. Raises RunFailed if vectors cannot be scored or a classifier diverges."""
        with scoring(self.task.name, "are the vectors of a reasonable size?"):
            x_ND = features(self.data, vectors, self.task.name)
            predicted, fold, detail = classify(self.data, x_ND, self.device)
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
    """Features of a classifier, float32: (N, D) vectors, or (N, 2D) for pairs.

    The features of a pair are absolute difference and product. Raises RunFailed if the vectors
    cannot be scored.
    """
    sides = []
    for sentences in texts.texts:
        side_ND = float32_vectors(vectors(sentences), sentences, task)
        if max(side_ND.max(), -side_ND.min()) > LARGEST:
            first = sentences[int(np.argmax((np.abs(side_ND) > LARGEST).any(axis=1)))]
            raise RunFailed(
                f"{task}: a number above {LARGEST:g}, whose square overflows float32, "
                f"first for the sentence '{first[:60]}'",
                "did the training diverge? curve.jsonl in the run's folder has its losses",
            )
        sides.append(check_variety(side_ND, sentences, task))
    if len(sides) == 1:
        return sides[0]
    u_ND, v_ND = sides
    if u_ND.shape != v_ND.shape:
        raise RunFailed(f"{task}: vectors of {u_ND.shape[1]} and {v_ND.shape[1]} dimensions")
    return np.concatenate([np.abs(u_ND - v_ND), u_ND * v_ND], axis=1)


def score_folds(predictions: Arrays, task: str) -> TaskScore:
    """Score stored predictions: mean over folds of rounded accuracies, rounded again."""
    predicted = predictions["prediction"]
    gold = predictions["gold"]
    fold = predictions["fold"]
    value = mean([accuracy(predicted[fold == k], gold[fold == k]) for k in np.unique(fold)])
    return TaskScore(value, len(predicted))


def score_paraphrases(predictions: Arrays, task: str) -> TaskScore:
    """Score stored predictions as ``score_folds`` does, with F1 x 100 of class 1 in the
    detail.

    F1 is 0 if that class was neither predicted nor there.
    """
    score = score_folds(predictions, task)
    predicted, gold = predictions["prediction"], predictions["gold"]
    hits = int((predicted & gold).sum())
    # predicted ones and gold ones together: F1 is twice the hits over this
    ones = int(predicted.sum() + gold.sum())
    f1 = round(200 * hits / max(ones, 1), 2)
    return TaskScore(score.value, score.n, detail={"f1": f1})


def _read(task: Task, data: DataFolder) -> LoadedTransfer:
    return LoadedTransfer(task, read_transfer(data, task.name))


def _task(name: str) -> Task:
    return Task(
        suite="transfer",
        name=name,
        protocol=PROTOCOL,
        metric=ACCURACY,
        n=data_set(name).items["test"],
        data=(name,),
        read=_read,
        rescore=score_paraphrases if name == PARAPHRASES else score_folds,
    )


SUITE = Suite(
    name="transfer",
    title="Transfer to classification",
    description=(
        "Can a linear classifier read sentiment, topic or paraphrase from frozen vectors? "
        "SentEval's seven tasks."
    ),
    tasks=tuple(_task(name) for name in SETS),
    average=AVERAGED,
    docs="suites.md#transfer",
    extra_detail=("classes", "dev", "fits", "folds"),
)
