"""SentEval's transfer classifier on frozen vectors: protocol ``senteval-probe/1``.

It is a linear classifier with cross-entropy, Adam and a coupled L2 penalty on weight and bias; the
penalty is chosen by cross-validation or on a dev split. This file decides which rows are fitted and
tested; a ``Fitter`` computes the fits: ``fit_batched`` (all at once) or
``tests/support/probe_sequential.py`` (one after the other, as the protocol is written down). Folds,
initial weights and permutations depend only on the seed and on sizes, so that both see the same.

Legend: N rows, D dimensions, C classes.

Source: Conneau and Kiela 2018, SentEval, and the code published with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """SentEval's full configuration, which the papers' test tables use."""

    folds: int = 10
    penalties: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2)
    learning_rate: float = 1e-3
    batch_size: int = 64
    # epochs between two looks at the dev rows
    epoch_size: int = 4
    # Number of looks without improvement over the whole fit (not in a row); one more ends it.
    tenacity: int = 5
    max_epochs: int = 200
    # fraction of the train rows that is held out to stop a fit without dev rows
    held_out: float = 0.05
    seed: int = 1111


SENTEVAL = Settings()


@dataclass(frozen=True)
class FitJob:
    """Fits on the same rows, one for each penalty.

    Rows are indices into one matrix, so that no fit needs a copy of it.
    """

    train: Rows
    dev: Rows
    penalties: tuple[float, ...]
    # length of a permutation that the fit's generator draws before that of the first epoch, if any
    drawn: int | None = None


@dataclass(frozen=True)
class Fit:
    """A fitted classifier: the weights with the best dev accuracy, the earliest of equals."""

    # 0 to 1
    dev_accuracy: float
    # epochs until it stopped
    epochs: int
    weight_CD: Floats
    bias_C: Floats

    def predict(self, x_ND: Floats) -> Rows:
        return np.asarray((x_ND @ self.weight_CD.T + self.bias_C).argmax(axis=1), dtype=np.int64)


# (matrix, labels, number of classes, jobs, settings) -> one list of fits for each job, in the order
# of its penalties. Raises ValueError if a fit diverges.
Fitter = Callable[[Floats, Rows, int, Sequence[FitJob], Settings], list[list[Fit]]]


@dataclass(frozen=True)
class Fold:
    """One choice of a penalty, and the classifier fitted with it.

    Accuracies x 100, two decimals.
    """

    dev: float
    test: float
    penalty: float
    # epochs of the last fit
    epochs: int
    # penalty -> mean dev accuracy
    grid: dict[str, float]


@dataclass(frozen=True)
class Probe:
    """The result of the classifier. Accuracies x 100 as SentEval prints them."""

    dev: float
    test: float
    # predicted class of every test row, in the order of the matrix
    predicted: Rows
    # fold in which each test row was tested; 0 if there is one test split
    fold: Rows
    folds: tuple[Fold, ...]
    # number of classifiers that were fitted
    fits: int


def inner_kfold(
    x_ND: Floats,
    y_N: Rows,
    order_N: Rows,
    classes: int,
    fitter: Fitter,
    settings: Settings = SENTEVAL,
) -> Probe:
    """Score by nested cross-validation: for MR, CR, SUBJ and MPQA.

    ``order_N``: the order of the rows in which folds are made. In every outer fold the penalty is
    chosen by an inner cross-validation over the rest, in which a fit's test fold is also its dev
    split. The classifier is fitted again on all of the rest, with a part held out, and tested on
    the fold.
    """
    fold_N = stratified_folds(y_N[order_N], settings.folds, settings.seed)
    outer = [(order_N[fold_N != k], order_N[fold_N == k]) for k in range(settings.folds)]
    return _probe(x_ND, y_N, classes, fitter, settings, outer)


@dataclass(frozen=True)
class Split:
    """The rows that a classifier is fitted on and tested on; the penalty is chosen on dev rows."""

    train: Rows
    test: Rows
    # None: the penalty is chosen by cross-validation of the train rows
    dev: Rows | None = None


def holdout(
    x_ND: Floats,
    y_N: Rows,
    split: Split,
    classes: int,
    fitter: Fitter,
    settings: Settings = SENTEVAL,
) -> Probe:
    """Test on a split: for TREC and MRPC, and with dev rows for SST-2.

    One cross-validation over the train rows chooses the penalty; the classifier is fitted again on
    all of them, then tested. If there are dev rows, they choose the penalty. SentEval fits the
    chosen one again and gets the same weights; here it is fitted once.
    """
    outer = [(split.train, split.test)]
    return _probe(x_ND, y_N, classes, fitter, settings, outer, split.dev)


def _probe(
    x_ND: Floats,
    y_N: Rows,
    classes: int,
    fitter: Fitter,
    settings: Settings,
    outer: Sequence[tuple[Rows, Rows]],
    dev: Rows | None = None,
) -> Probe:
    """Choose a penalty for each fold, on the ``dev`` rows or by cross-validation of its train rows.

    ``outer``: train and test rows of each fold.
    """
    inner: list[list[FitJob]] = []
    for train, _ in outer:
        if dev is None:
            inner.append(_fold_jobs(y_N, train, settings))
        else:
            inner.append([FitJob(train, dev, settings.penalties)])
    fits = fitter(x_ND, y_N, classes, [job for jobs in inner for job in jobs], settings)
    jobs_per_fold = len(inner[0])
    grids = [_grid(fits[i : i + jobs_per_fold]) for i in range(0, len(fits), jobs_per_fold)]
    # the first of equals: the smallest penalty
    chosen = [settings.penalties[int(np.argmax(grid))] for grid in grids]
    number_of_fits = sum(map(len, fits))
    if dev is None:
        jobs = []
        for (train, _), penalty in zip(outer, chosen, strict=True):
            jobs.append(_held_out(train, penalty, settings))
        again = fitter(x_ND, y_N, classes, jobs, settings)
        number_of_fits += len(again)
    else:
        again = [[fits[0][settings.penalties.index(chosen[0])]]]
    predicted_N = np.zeros(len(y_N), dtype=np.int64)
    fold_N = np.zeros(len(y_N), dtype=np.int64)
    folds: list[Fold] = []
    for (_, test), grid, penalty, (fit,) in zip(outer, grids, chosen, again, strict=True):
        predicted_N[test] = fit.predict(x_ND[test])
        fold_N[test] = len(folds)
        folds.append(
            Fold(
                dev=max(grid),
                test=accuracy(predicted_N[test], y_N[test]),
                penalty=penalty,
                epochs=fit.epochs,
                grid={f"{p:g}": value for p, value in zip(settings.penalties, grid, strict=True)},
            )
        )
    tested = np.sort(np.concatenate([test for _, test in outer]))
    return Probe(
        dev=mean([fold.dev for fold in folds]),
        test=mean([fold.test for fold in folds]),
        predicted=predicted_N[tested],
        fold=fold_N[tested],
        folds=tuple(folds),
        fits=number_of_fits,
    )


def stratified_folds(y_N: Rows, folds: int, seed: int) -> Rows:
    """Return the test fold of every row, (N,), as scikit-learn's shuffled StratifiedKFold assigns
    it.

    It is written out so that the protocol does not depend on a version of scikit-learn. Raises
    ValueError if every class has fewer rows than folds.
    """
    names, first_C, y_N = np.unique(y_N, return_index=True, return_inverse=True)
    # classes in order of appearance, which is the order of the random draws
    y_N = np.argsort(np.argsort(first_C))[y_N.reshape(-1)]
    counts_C = np.bincount(y_N, minlength=len(names))
    if counts_C.max() < folds:
        raise ValueError(
            f"the largest class has {counts_C.max()} rows, {folds} folds need at least {folds}"
        )
    sorted_N = np.sort(y_N)
    quota_KC = np.stack(
        [np.bincount(sorted_N[k::folds], minlength=len(names)) for k in range(folds)]
    )
    draw = np.random.RandomState(seed)
    fold_N = np.empty(len(y_N), dtype=np.int64)
    for c in range(len(names)):
        places = np.repeat(np.arange(folds), quota_KC[:, c])
        draw.shuffle(places)
        fold_N[y_N == c] = places
    return fold_N


def initial_weights(dimensions: int, classes: int, seed: int) -> tuple[Floats, Floats]:
    """Weight (C, D) and bias (C,) of torch's linear layer right after its seed was set.

    No global generator moves.
    """
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = torch.nn.Linear(dimensions, classes, dtype=torch.float32)
    return layer.weight.detach().numpy(), layer.bias.detach().numpy()


class Orders:
    """The order of the train rows in every epoch of a fit.

    There is one stream of permutations for each number of rows, drawn once and stored.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._streams: dict[tuple[int, int | None], tuple[np.random.RandomState, list[Rows]]] = {}

    def __call__(self, job: FitJob, epoch: int) -> Rows:
        """Return a permutation of 0..len(job.train)-1 for epoch 0, 1, ..."""
        key = (len(job.train), job.drawn)
        if key not in self._streams:
            state = np.random.RandomState(self.seed)
            if job.drawn is not None:
                state.permutation(job.drawn)
            self._streams[key] = (state, [])
        state, drawn = self._streams[key]
        while len(drawn) <= epoch:
            drawn.append(state.permutation(len(job.train)))
        return drawn[epoch]


def accuracy(predicted: Rows, gold: Rows) -> float:
    """Return the share of equal rows x 100, rounded to two decimals as SentEval does."""
    return round(100 * float(np.mean(predicted == gold)), 2)


def mean(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 2)


def _fold_jobs(y_N: Rows, train: Rows, settings: Settings) -> list[FitJob]:
    fold = stratified_folds(y_N[train], settings.folds, settings.seed)
    return [
        FitJob(train[fold != k], train[fold == k], settings.penalties)
        for k in range(settings.folds)
    ]


def _held_out(train: Rows, penalty: float, settings: Settings) -> FitJob:
    n = int(settings.held_out * len(train))
    if n == 0:
        raise ValueError(
            f"{len(train)} train rows are too few to hold out a share of {settings.held_out}"
        )
    shuffled = train[np.random.RandomState(settings.seed).permutation(len(train))]
    return FitJob(shuffled[n:], shuffled[:n], (penalty,), drawn=len(train))


def _grid(fits: Sequence[Sequence[Fit]]) -> list[float]:
    """Return the mean dev accuracy x 100 over jobs, of every penalty."""
    return [
        round(100 * float(np.mean([fit.dev_accuracy for fit in same])), 2)
        for same in zip(*fits, strict=True)
    ]
