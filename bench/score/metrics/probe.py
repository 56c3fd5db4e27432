"""SentEval's transfer classifier on frozen vectors: protocol ``senteval-probe/1``. Rows and labels in, accuracies out.

A linear classifier with cross-entropy, Adam and a coupled L2 penalty on weight and bias; the penalty is chosen by
cross-validation or on a dev split. Which rows are fitted and judged is said first; how the fits are computed is a ``Fitter``:
``fit_batched`` (all at once) or ``tests/probe_sequential.py`` (one after the other, as the protocol is written down). Folds, initial weights and permutations depend on the seed and on sizes alone, so that both see the same.

Legend: N rows, D dimensions, C classes.  Source: Conneau and Kiela 2018, SentEval, and the code published with it.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from torch import Tensor

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
    """Share of the train rows that is held out to stop a fit without dev rows."""
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
penalties. Raises ValueError if a fit diverges."""


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
    """Accuracies x 100 as SentEval prints them, and the class predicted of every test row, in the order of the matrix."""

    dev: float
    test: float
    predicted: Rows
    fold: Rows
    """The fold in which a row was tested; 0 if there is one test split."""
    folds: tuple[Fold, ...]
    fits: int
    """How many classifiers were fitted."""


def inner_kfold(
    x_ND: Floats,
    y_N: Rows,
    order_N: Rows,
    classes: int,
    fitter: Fitter,
    settings: Settings = SENTEVAL,
) -> Probe:
    """MR, CR, SUBJ, MPQA: nested cross-validation. ``order_N`` is the order of the rows in which the folds are made.

    In every outer fold the penalty is chosen by an inner cross-validation over the rest, in which a fit's test fold is also its
    dev split; the classifier is fitted again on all of the rest, with a share held out, and tested on the fold.
    """
    fold_N = stratified_folds(y_N[order_N], settings.folds, settings.seed)
    return _probe(
        x_ND,
        y_N,
        classes,
        fitter,
        settings,
        [(order_N[fold_N != k], order_N[fold_N == k]) for k in range(settings.folds)],
    )


def holdout(
    x_ND: Floats,
    y_N: Rows,
    train: Rows,
    test: Rows,
    classes: int,
    fitter: Fitter,
    settings: Settings = SENTEVAL,
    dev: Rows | None = None,
) -> Probe:
    """TREC, MRPC: one cross-validation over the train rows chooses the penalty; fitted again on all of them, then tested.

    SST-2: the ``dev`` rows choose the penalty. SentEval fits the chosen one again and gets the same weights: done once here.
    """
    return _probe(x_ND, y_N, classes, fitter, settings, [(train, test)], dev)


def _probe(
    x_ND: Floats,
    y_N: Rows,
    classes: int,
    fitter: Fitter,
    settings: Settings,
    outer: Sequence[tuple[Rows, Rows]],
    dev: Rows | None = None,
) -> Probe:
    """``outer``: train and test rows of each fold. Its penalty is chosen on the ``dev`` rows, or by cross-validation of its train rows."""
    inner = [
        _fold_jobs(y_N, train, settings) if dev is None else [Job(train, dev, settings.penalties)]
        for train, _ in outer
    ]
    fits = fitter(x_ND, y_N, classes, [job for jobs in inner for job in jobs], settings)
    each = len(inner[0])
    grids = [_grid(fits[i : i + each]) for i in range(0, len(fits), each)]
    # the first of equals: the smallest penalty
    chosen = [settings.penalties[int(np.argmax(grid))] for grid in grids]
    if dev is None:
        again = fitter(
            x_ND,
            y_N,
            classes,
            [_held_out(train, p, settings) for (train, _), p in zip(outer, chosen, strict=True)],
            settings,
        )
    else:
        again = [[fits[0][settings.penalties.index(chosen[0])]]]
    predicted_N, fold_N = np.zeros(len(y_N), dtype=np.int64), np.zeros(len(y_N), dtype=np.int64)
    folds: list[Fold] = []
    for (_, test), grid, penalty, (fit,) in zip(outer, grids, chosen, again, strict=True):
        predicted_N[test], fold_N[test] = fit.predict(x_ND[test]), len(folds)
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
        fits=sum(map(len, fits)) + (len(again) if dev is None else 0),
    )


def stratified_folds(y_N: Rows, folds: int, seed: int) -> Rows:
    """The fold of every row, (N,): what scikit-learn's StratifiedKFold(folds, shuffle=True, random_state=seed) tests when.

    Written out so that the protocol does not depend on its version. Raises ValueError if every class has fewer rows than folds.
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
    """(weight (C, D), bias (C,)) of torch's linear layer right after its seed was set. No global generator moves."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = torch.nn.Linear(dimensions, classes, dtype=torch.float32)
    return layer.weight.detach().numpy(), layer.bias.detach().numpy()


class Orders:
    """The order of the train rows in every epoch of a fit: one stream of permutations for each size, drawn once and stored."""

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
    return [
        Job(train[fold != k], train[fold == k], settings.penalties) for k in range(settings.folds)
    ]


def _held_out(train: Rows, penalty: float, settings: Settings) -> Job:
    if (n := int(settings.held_out * len(train))) == 0:
        raise ValueError(
            f"{len(train)} train rows are too few to hold out a share of {settings.held_out}"
        )
    shuffled = train[np.random.RandomState(settings.seed).permutation(len(train))]
    return Job(shuffled[n:], shuffled[:n], (penalty,), drawn=len(train))


def _grid(fits: Sequence[Sequence[Fit]]) -> list[float]:
    """Mean dev accuracy x 100 over jobs, of every penalty."""
    return [
        round(100 * float(np.mean([fit.dev_accuracy for fit in same])), 2)
        for same in zip(*fits, strict=True)
    ]


# --- all of the probe's fits at once, on CPU or GPU: same arithmetic as ``probe_sequential``, up to the order of the sums ---
# What makes it fast: the fits of one job (its penalties) see the same rows in the same order, so that a minibatch is gathered once
# and is one matrix product for all of them; jobs run side by side in one batched product; Adam is a few passes over all weights of
# a chunk, in place; gradients are written out by hand. Two classes need one product instead of two, because the two logits'
# gradients are each other's negative. Jobs run in lockstep from one look at the dev rows to the next; fits that have stopped drop
# out there, and the rest is packed anew. The matrix itself is never copied.
#
# Legend: N rows, D dimensions, P = D + 1 parameters of a class (the bias is the last), C classes, R logits computed of a row
# (1 for two classes, else C), F fits, G jobs of a chunk, L live fits of each, B rows of a minibatch, S steps of an epoch.


BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # Adam's usual values
CHUNK_BYTES = {"cpu": 1 << 20}
"""Gathered rows of a chunk: on a CPU they should stay in a core's cache between the two products that read them."""
CHUNK_BYTES_ELSEWHERE = 1 << 29


def fit_batched(
    x_ND: Floats,
    y_N: Rows,
    classes: int,
    jobs: Sequence[Job],
    settings: Settings = SENTEVAL,
    *,
    device: str = "cpu",
) -> list[list[Fit]]:
    """Every fit of every job. Computes in the type of the matrix (float32 or float64), with torch's number of threads."""
    import torch

    with torch.inference_mode():
        pool = _Pool(x_ND, y_N, classes, jobs, settings, device)
        for epoch in range(0, settings.max_epochs + 1, settings.epoch_size):
            for jobs_of_chunk, steps in pool.chunks():
                pool.train(jobs_of_chunk, steps, epoch)
            if not pool.look(epoch + settings.epoch_size):
                break
        return pool.fits()


class _Pool:
    """Weights, Adam's moments and the best weights so far of all fits, (F, C, P) each."""

    def __init__(
        self,
        x_ND: Floats,
        y_N: Rows,
        classes: int,
        jobs: Sequence[Job],
        settings: Settings,
        device: str,
    ) -> None:
        import torch

        self.x_ND = torch.from_numpy(np.ascontiguousarray(x_ND)).to(device)
        self.y_N = torch.from_numpy(np.ascontiguousarray(y_N)).to(device)
        self.classes, self.jobs, self.settings = classes, jobs, settings
        self.orders = Orders(settings.seed)
        self.penalty_F = torch.tensor(
            [penalty for job in jobs for penalty in job.penalties],
            dtype=self.x_ND.dtype,
            device=device,
        )
        weight_CD, bias_C = initial_weights(x_ND.shape[1], classes, settings.seed)
        first_CP = torch.from_numpy(np.column_stack([weight_CD, bias_C])).to(self.x_ND)
        self.weight_FCP = first_CP.repeat(len(self.penalty_F), 1, 1)
        self.best_FCP = self.weight_FCP.clone()
        self.mean_FCP = torch.zeros_like(self.weight_FCP)
        self.square_FCP = torch.zeros_like(self.weight_FCP)
        starts = np.cumsum([0, *(len(job.penalties) for job in jobs)])
        self.of_job = [list(range(a, b)) for a, b in zip(starts[:-1], starts[1:], strict=True)]
        count = len(self.penalty_F)
        self.most, self.bad, self.epochs = [-1] * count, [0] * count, [0] * count

    def live(self, job: int) -> list[int]:
        return [fit for fit in self.of_job[job] if self.bad[fit] <= self.settings.tenacity]

    def chunks(self) -> Iterator[tuple[list[int], int]]:
        """The live jobs, packed so that the rows which a step gathers stay small: jobs with equally many steps in an epoch and
        equally many live fits, and that number of steps."""
        alike: dict[tuple[int, int], list[int]] = {}
        for number, job in enumerate(self.jobs):
            if live := len(self.live(number)):
                steps = -(-len(job.train) // self.settings.batch_size)
                alike.setdefault((steps, live), []).append(number)
        room = CHUNK_BYTES.get(self.x_ND.device.type, CHUNK_BYTES_ELSEWHERE)
        row_bytes = self.x_ND.shape[1] * self.x_ND.element_size()
        most = max(1, room // (self.settings.batch_size * row_bytes))
        for (steps, _), jobs in alike.items():
            pieces = -(-len(jobs) // most)
            yield from ((jobs[piece::pieces], steps) for piece in range(pieces))

    def train(self, jobs: Sequence[int], steps: int, epoch: int) -> None:
        """The epochs of one chunk from ``epoch`` to the next look."""
        import torch

        fits_GL = torch.tensor([self.live(job) for job in jobs], device=self.x_ND.device)
        step, done = _Step(self, fits_GL), epoch * steps
        for e in range(epoch, epoch + self.settings.epoch_size):
            rows_SK, target_SGRB, last_GB = self._epoch([self.jobs[job] for job in jobs], steps, e)
            for s in range(steps):
                done += 1
                step(rows_SK[s], target_SGRB[s], last_GB if s == steps - 1 else None, done)
        self.weight_FCP[fits_GL] = step.weight
        self.mean_FCP[fits_GL] = step.mean
        self.square_FCP[fits_GL] = step.square

    def _epoch(self, jobs: Sequence[Job], steps: int, epoch: int) -> tuple[Tensor, Tensor, Tensor]:
        """(rows of every step (S, G*B), their targets (S, G, 1, R, B), weight of each row in the last, short step (G, 1, 1, B))."""
        import torch

        batch, device = self.settings.batch_size, self.x_ND.device
        rows = np.zeros((len(jobs), steps * batch), dtype=np.int64)
        weight = np.zeros((len(jobs), 1, 1, batch))
        for row, share, job in zip(rows, weight, jobs, strict=True):
            row[: len(job.train)] = job.train[self.orders(job, epoch)]
            rest = len(job.train) - (steps - 1) * batch
            share[..., :rest] = 1 / rest
        rows = rows.reshape(len(jobs), steps, batch).transpose(1, 0, 2).reshape(steps, -1)
        rows_SK = torch.from_numpy(np.ascontiguousarray(rows)).to(device)
        target = self.y_N[rows_SK].view(steps, len(jobs), 1, 1, batch)
        if self.classes > 2:
            target = target == torch.arange(self.classes, device=device).view(-1, 1)
        return rows_SK, target.to(self.x_ND.dtype), torch.from_numpy(weight).to(self.x_ND)

    def look(self, epochs: int) -> bool:
        """Judge the live fits on their dev rows, store the better weights, stop fits that are done. Returns whether any goes on."""
        import torch

        live = [(job, fits) for job in range(len(self.jobs)) if (fits := self.live(job))]
        counts, better = [], []
        for job, fits in live:
            dev = torch.from_numpy(self.jobs[job].dev).to(self.x_ND.device)
            flat = self.weight_FCP[fits].flatten(0, 1)
            logits = torch.addmm(flat[:, -1], self.x_ND[dev], flat[:, :-1].T)
            predicted = logits.view(len(dev), len(fits), -1).argmax(2)
            counts.append((predicted == self.y_N[dev].unsqueeze(1)).sum(0))
        numbers = [fit for _, fits in live for fit in fits]
        for fit, correct in zip(numbers, torch.cat(counts).tolist(), strict=True):
            self.epochs[fit] = epochs
            if correct > self.most[fit]:
                self.most[fit] = correct
                better.append(fit)
            else:
                self.bad[fit] += 1
        self.best_FCP[better] = self.weight_FCP[better]
        return min(self.bad) <= self.settings.tenacity

    def fits(self) -> list[list[Fit]]:
        best = self.best_FCP.cpu().numpy()
        if not np.isfinite(best).all():
            raise ValueError("the classifier diverged: its weights are not finite")
        return [
            [
                Fit(self.most[f] / len(job.dev), self.epochs[f], best[f, :, :-1], best[f, :, -1])
                for f in fits
            ]
            for job, fits in zip(self.jobs, self.of_job, strict=True)
        ]


class _Step:
    """One minibatch of every fit of a chunk: gather, forward, gradient, Adam. Owns the chunk's weights."""

    def __init__(self, pool: _Pool, fits_GL: Tensor) -> None:
        self.x_ND, self.settings = pool.x_ND, pool.settings
        self.weight, self.mean, self.square = (
            all_[fits_GL] for all_ in (pool.weight_FCP, pool.mean_FCP, pool.square_FCP)
        )
        self.penalty = pool.penalty_F[fits_GL][:, :, None, None]

    def __call__(self, rows: Tensor, target: Tensor, share: Tensor | None, done: int) -> None:
        """``share``: weight of each row, if the minibatch is short; ``done``: steps including this one."""
        import torch

        groups, live, classes, _ = self.weight.shape
        two, weight = classes == 2, self.weight
        if two:  # one logit: that of the second class minus that of the first
            weight = weight[:, :, 1:] - weight[:, :, :1]
        flat = weight.flatten(1, 2)
        x_GBD = self.x_ND[rows].view(groups, self.settings.batch_size, -1)
        logits = torch.baddbmm(flat[:, :, -1:], flat[:, :, :-1], x_GBD.transpose(1, 2))
        logits = logits.view(groups, live, -1, x_GBD.shape[1])
        residual = logits.sigmoid_() if two else logits.softmax(2)
        # of the mean cross-entropy
        residual.sub_(target).mul_(1 / self.settings.batch_size if share is None else share)
        pull = torch.bmm(residual.flatten(1, 2), x_GBD).view(groups, live, -1, x_GBD.shape[2])
        pull = torch.cat([pull, residual.sum(3, keepdim=True)], 3)
        if two:
            pull = torch.cat([-pull, pull], 2)
        gradient = pull.add_(self.weight * self.penalty)  # coupled: part of the gradient
        # Adam
        correction1, correction2 = 1 - BETA1**done, (1 - BETA2**done) ** 0.5
        self.mean.lerp_(gradient, 1 - BETA1)
        self.square.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        # sqrt(v / c2^2) + e, both sides times c2: one pass less
        root = self.square.sqrt().add_(EPSILON * correction2)
        rate = self.settings.learning_rate * correction2 / correction1
        self.weight.addcdiv_(self.mean, root, value=-rate)


# --- few labelled examples, many draws: which examples, and a logistic regression fitted on them ---
# Legend: M test items, K draws.


BLOCK = 4096  # test rows that are held in float64 at once


@dataclass(frozen=True)
class Fitted:
    """``predicted``: (M,) classes. ``iterations``: of the solver; ``converged``: whether they sufficed."""

    predicted: NDArray[np.int64]
    iterations: int
    converged: bool


def draw(labels_N: ArrayLike, k: int, task: str, seed: int) -> NDArray[np.int64]:
    """Indices of k items of every class, ascending: those with the least sha256 of "TASK:SEED:INDEX", by its hex digits.

    The draw depends on no library's generator, and is the same for every model. Raises ValueError for a class with fewer than k.
    """
    labels_N = np.asarray(labels_N)
    chosen: list[int] = []
    for label in np.unique(labels_N).tolist():
        if len(members := np.flatnonzero(labels_N == label).tolist()) < k:
            raise ValueError(f"class {label} has {len(members)} items, {k} are drawn")
        chosen += sorted(
            members, key=lambda i: hashlib.sha256(f"{task}:{seed}:{i}".encode("ascii")).hexdigest()
        )[:k]
    return np.array(sorted(chosen), dtype=np.int64)


def fit_predict(
    train_ND: NDArray[np.floating],
    labels_N: ArrayLike,
    test_MD: NDArray[np.floating],
    *,
    iterations: int = 1000,
) -> Fitted:
    """scikit-learn's LogisticRegression (L2, C = 1, L-BFGS) in float64, features as they are."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1.0, solver="lbfgs", max_iter=iterations)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # reported as ``converged``
        model.fit(train_ND.astype(np.float64), labels_N)
    predicted = [
        model.predict(test_MD[i : i + BLOCK].astype(np.float64))
        for i in range(0, len(test_MD), BLOCK)
    ]
    used = int(np.max(model.n_iter_))
    return Fitted(np.concatenate(predicted).astype(np.int64), used, used < iterations)


def accuracies(predicted_MK: ArrayLike, gold_M: ArrayLike) -> NDArray[np.float64]:
    """Accuracy x 100 of every draw, (K,), over the rows that it was tested on: those whose prediction is not -1."""
    predicted_MK, gold_M = np.asarray(predicted_MK), np.asarray(gold_M)
    if predicted_MK.ndim != 2 or gold_M.shape != predicted_MK.shape[:1]:
        raise ValueError(f"predictions of shape {predicted_MK.shape} for {len(gold_M)} items")
    tested_MK = predicted_MK >= 0
    if not tested_MK.any(axis=0).all():
        raise ValueError("a draw was tested on nothing")
    return 100 * ((predicted_MK == gold_M[:, None]) & tested_MK).sum(axis=0) / tested_MK.sum(axis=0)
