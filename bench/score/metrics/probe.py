"""SentEval's transfer classifier on frozen vectors: protocol ``senteval-probe/1``. Rows and labels in, accuracies out.

A linear classifier with cross-entropy, Adam and a coupled L2 penalty on weight and bias; the penalty is chosen by
cross-validation or on a dev split. Which rows are fitted and judged is said here; how the fits are computed is a ``Fitter``:
``bench.score.metrics.probe_batched`` (all at once) or ``tests/probe_sequential.py`` (one after the other, as the protocol is
written down). Folds, initial weights and permutations depend on the seed and on sizes alone, so that both see the same.

Legend: N rows, D dimensions, C classes.  Source: Conneau and Kiela 2018, SentEval, and the code published with it.
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
    epoch_size: int = 4
    """Epochs between two looks at the dev rows."""
    tenacity: int = 5
    """Looks without improvement over the whole fit, not in a row, after which the next one ends it."""
    max_epochs: int = 200
    held_out: float = 0.05
    """Share of the train rows that stops a fit which has no dev rows of its own."""
    seed: int = 1111


SENTEVAL = Settings()


@dataclass(frozen=True)
class Job:
    """Fits on the same rows, one for each penalty. Rows are indices into one matrix, so that no fit needs a copy of it."""

    train: Rows
    dev: Rows
    penalties: tuple[float, ...]
    drawn: int | None = None
    """Length of a permutation that was drawn from the fit's generator before the first epoch's, where one was."""


@dataclass(frozen=True)
class Fit:
    """A fitted classifier: the weights with the best dev accuracy, the earliest of equals."""

    dev_accuracy: float
    """0 to 1."""
    epochs: int
    """Epochs until it stopped."""
    weight_CD: Floats
    bias_C: Floats

    def predict(self, x_ND: Floats) -> Rows:
        return np.asarray((x_ND @ self.weight_CD.T + self.bias_C).argmax(axis=1), dtype=np.int64)


Fitter = Callable[[Floats, Rows, int, Sequence[Job], Settings], list[list[Fit]]]
"""(matrix, labels, number of classes, jobs, settings) -> every fit of every job: one list for each job, in the order of its
penalties. Raises ValueError where a fit diverges."""


@dataclass(frozen=True)
class Fold:
    """One choice of a penalty, and the classifier that was then fitted with it. Accuracies x 100, two decimals."""

    dev: float
    test: float
    penalty: float
    epochs: int
    """Epochs of the last fit."""
    grid: dict[str, float]
    """Mean dev accuracy of every penalty."""


@dataclass(frozen=True)
class Probe:
    """Accuracies x 100 as SentEval prints them, and the class predicted of every test row."""

    dev: float
    test: float
    predicted: Rows
    fold: Rows
    """In which fold a row was tested; 0 where there is one test split."""
    folds: tuple[Fold, ...]
    fits: int
    """How many classifiers were fitted."""


def inner_kfold(x_ND: Floats, y_N: Rows, order_N: Rows, classes: int, fitter: Fitter, settings: Settings = SENTEVAL) -> Probe:
    """MR, CR, SUBJ, MPQA: nested cross-validation. ``order_N`` is the order of the rows in which the folds are made.

    In every outer fold the penalty is chosen by an inner cross-validation over the rest, in which a fit's test fold is also its
    dev split; the classifier is fitted again on all of the rest, with a share held out, and tested on the fold.
    Predictions come in the order of the matrix.
    """
    outer = stratified_folds(y_N[order_N], settings.folds, settings.seed)
    tests = [order_N[outer == fold] for fold in range(settings.folds)]
    trains = [order_N[outer != fold] for fold in range(settings.folds)]
    inner = [_fold_jobs(y_N, train, settings) for train in trains]
    fits = fitter(x_ND, y_N, classes, [job for jobs in inner for job in jobs], settings)
    grids = [_grid(fits[i : i + settings.folds]) for i in range(0, len(fits), settings.folds)]
    chosen = [_best(grid, settings) for grid in grids]
    again = fitter(x_ND, y_N, classes, [_held_out(t, p, settings) for t, p in zip(trains, chosen, strict=True)], settings)
    predicted, fold = np.zeros(len(y_N), dtype=np.int64), np.zeros(len(y_N), dtype=np.int64)
    folds = []
    for number, (test, grid, penalty, (fit,)) in enumerate(zip(tests, grids, chosen, again, strict=True)):
        predicted[test], fold[test] = fit.predict(x_ND[test]), number
        folds.append(_fold(grid, penalty, fit, accuracy(predicted[test], y_N[test]), settings))
    return Probe(
        dev=mean([one.dev for one in folds]),
        test=mean([one.test for one in folds]),
        predicted=predicted,
        fold=fold,
        folds=tuple(folds),
        fits=sum(map(len, fits)) + len(again),
    )


def kfold(x_ND: Floats, y_N: Rows, train: Rows, test: Rows, classes: int, fitter: Fitter, settings: Settings = SENTEVAL) -> Probe:
    """TREC, MRPC: one cross-validation over the train rows chooses the penalty; fitted again on all of them, then tested."""
    fits = fitter(x_ND, y_N, classes, _fold_jobs(y_N, train, settings), settings)
    grid = _grid(fits)
    penalty = _best(grid, settings)
    ((fit,),) = fitter(x_ND, y_N, classes, [_held_out(train, penalty, settings)], settings)
    return _tested(x_ND, y_N, test, grid, penalty, fit, settings, fits=sum(map(len, fits)) + 1)


def split(
    x_ND: Floats, y_N: Rows, train: Rows, dev: Rows, test: Rows, classes: int, fitter: Fitter, settings: Settings = SENTEVAL
) -> Probe:
    """SST-2: the dev rows choose the penalty. SentEval fits the chosen one again and gets the same weights: done once here."""
    (fits,) = fitter(x_ND, y_N, classes, [Job(train, dev, settings.penalties)], settings)
    grid = _grid([fits])
    penalty = _best(grid, settings)
    fit = fits[settings.penalties.index(penalty)]
    return _tested(x_ND, y_N, test, grid, penalty, fit, settings, fits=len(fits))


def stratified_folds(y_N: Rows, folds: int, seed: int) -> Rows:
    """The fold of every row, (N,): what scikit-learn's StratifiedKFold(folds, shuffle=True, random_state=seed) tests when.

    Written out so that the protocol does not hang on its version. Raises ValueError where every class has fewer rows than folds.
    """
    names, first_C, y_N = np.unique(y_N, return_index=True, return_inverse=True)
    rank_C = np.argsort(np.argsort(first_C))  # classes in order of appearance, which is the order of the random draws
    y_N = rank_C[y_N.reshape(-1)]
    counts_C = np.bincount(y_N, minlength=len(names))
    if counts_C.max() < folds:
        raise ValueError(f"the largest class has {counts_C.max()} rows, {folds} folds need at least {folds}")
    sorted_N = np.sort(y_N)
    quota_KC = np.stack([np.bincount(sorted_N[k::folds], minlength=len(names)) for k in range(folds)])
    draw = np.random.RandomState(seed)
    fold_N = np.empty(len(y_N), dtype=np.int64)
    for c in range(len(names)):
        places = np.repeat(np.arange(folds), quota_KC[:, c])
        draw.shuffle(places)
        fold_N[y_N == c] = places
    return fold_N


def initial_weights(dimensions: int, classes: int, seed: int) -> tuple[Floats, Floats]:
    """(weight (C, D), bias (C,)) of torch's linear layer right after its seed was set. No global generator moves."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = torch.nn.Linear(dimensions, classes, dtype=torch.float32)
    return layer.weight.detach().numpy(), layer.bias.detach().numpy()


class Orders:
    """The order of the train rows in every epoch of a fit: one stream of permutations for each size, drawn once and kept."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._streams: dict[tuple[int, int | None], tuple[np.random.RandomState, list[Rows]]] = {}

    def __call__(self, job: Job, epoch: int) -> Rows:
        """Permutation of 0..len(job.train)-1 in epoch 0, 1, ..."""
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
    """Share of equal rows x 100, rounded to two decimals as SentEval does."""
    return round(100 * float(np.mean(predicted == gold)), 2)


def mean(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 2)


def _fold_jobs(y_N: Rows, train: Rows, settings: Settings) -> list[Job]:
    fold = stratified_folds(y_N[train], settings.folds, settings.seed)
    return [Job(train[fold != k], train[fold == k], settings.penalties) for k in range(settings.folds)]


def _held_out(train: Rows, penalty: float, settings: Settings) -> Job:
    n = int(settings.held_out * len(train))
    if n == 0:
        raise ValueError(f"{len(train)} train rows: a share of {settings.held_out} of them holds nothing out")
    shuffled = train[np.random.RandomState(settings.seed).permutation(len(train))]
    return Job(shuffled[n:], shuffled[:n], (penalty,), drawn=len(train))


def _grid(fits: Sequence[Sequence[Fit]]) -> list[float]:
    """Mean dev accuracy x 100 over jobs, of every penalty."""
    return [round(100 * float(np.mean([fit.dev_accuracy for fit in same])), 2) for same in zip(*fits, strict=True)]


def _best(grid: Sequence[float], settings: Settings) -> float:
    return settings.penalties[int(np.argmax(grid))]  # the first of equals: the smallest penalty


def _fold(grid: Sequence[float], penalty: float, fit: Fit, test: float, settings: Settings) -> Fold:
    named = {f"{one:g}": value for one, value in zip(settings.penalties, grid, strict=True)}
    return Fold(dev=max(grid), test=test, penalty=penalty, epochs=fit.epochs, grid=named)


def _tested(x_ND: Floats, y_N: Rows, test: Rows, grid: list[float], penalty: float, fit: Fit, settings: Settings, fits: int) -> Probe:
    predicted = fit.predict(x_ND[test])
    fold = _fold(grid, penalty, fit, accuracy(predicted, y_N[test]), settings)
    return Probe(fold.dev, fold.test, predicted, np.zeros(len(test), dtype=np.int64), (fold,), fits)
