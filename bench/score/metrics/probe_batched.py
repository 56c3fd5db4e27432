"""All fits of the probe at once, on CPU or GPU.

The arithmetic equals ``tests/support/probe_sequential.py``, up to the order of sums. It is fast
because

- the fits of one job (its penalties) see the same rows in the same order, so that a minibatch is
  gathered once and is one matrix product for all of them;
- jobs run next to each other in one batched product;
- Adam is a few passes over all weights of a chunk, in place; gradients are written out by hand;
- two classes need one product instead of two, since the gradients of the two logits are each
  other's negative.

Jobs run in lockstep from one look at the dev rows to the next. Fits that have stopped drop out
there, and the rest is packed anew. The matrix itself is never copied.

Legend: N rows, D dimensions, P = D + 1 parameters of a class (the bias is the last), C classes, R
logits computed of a row (1 for two classes, else C), F fits, G jobs of a chunk, L live fits of
each, B rows of a minibatch, S steps of an epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor
from bench.score.metrics.probe import (
    SENTEVAL,
    Fit,
    FitJob,
    Floats,
    Orders,
    Rows,
    Settings,
    initial_weights,
)

BETA1, BETA2 = 0.9, 0.999  # Adam's usual values
EPSILON = 1e-8
# Size of the gathered rows of a chunk. On a CPU they should stay in a core's cache between the two
# products that read them.
CHUNK_BYTES = {"cpu": 1 << 20}
CHUNK_BYTES_ELSEWHERE = 1 << 29


def fit_batched(
    x_ND: Floats,
    y_N: Rows,
    classes: int,
    jobs: Sequence[FitJob],
    settings: Settings = SENTEVAL,
    *,
    device: str = "cpu",
) -> list[list[Fit]]:
    """Compute every fit of every job.

    It computes in the type of the matrix (float32 or float64), with torch's number of threads.
    """
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
        jobs: Sequence[FitJob],
        settings: Settings,
        device: str,
    ) -> None:
        import torch

        self.x_ND = torch.from_numpy(np.ascontiguousarray(x_ND)).to(device)
        self.y_N = torch.from_numpy(np.ascontiguousarray(y_N)).to(device)
        self.classes = classes
        self.jobs = jobs
        self.settings = settings
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
        self.most = [-1] * count  # right dev rows at the best look
        self.bad = [0] * count  # looks without improvement
        self.epochs = [0] * count

    def live(self, job: int) -> list[int]:
        return [fit for fit in self.of_job[job] if self.bad[fit] <= self.settings.tenacity]

    def chunks(self) -> Iterator[tuple[list[int], int]]:
        """Pack the live jobs so that the rows that a step gathers stay small.

        Yields jobs with equal numbers of steps in an epoch and of live fits, and that number of
        steps.
        """
        alike: dict[tuple[int, int], list[int]] = {}
        for number, job in enumerate(self.jobs):
            live = len(self.live(number))
            if live:
                steps = -(-len(job.train) // self.settings.batch_size)
                alike.setdefault((steps, live), []).append(number)
        room = CHUNK_BYTES.get(self.x_ND.device.type, CHUNK_BYTES_ELSEWHERE)
        row_bytes = self.x_ND.shape[1] * self.x_ND.element_size()
        most = max(1, room // (self.settings.batch_size * row_bytes))
        for (steps, _), jobs in alike.items():
            pieces = -(-len(jobs) // most)
            yield from ((jobs[piece::pieces], steps) for piece in range(pieces))

    def train(self, jobs: Sequence[int], steps: int, epoch: int) -> None:
        """Train one chunk from ``epoch`` to the next look."""
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

    def _epoch(
        self, jobs: Sequence[FitJob], steps: int, epoch: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the rows of every step (S, G*B), their targets (S, G, 1, R, B), and weights (G, 1,
        1, B).

        The weights belong to the rows of the last, short step.
        """
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
        """Test the live fits on their dev rows, store better weights, and stop fits that are done.

        Returns True if any fit goes on.
        """
        import torch

        every = [(job, self.live(job)) for job in range(len(self.jobs))]
        live = [(job, fits) for job, fits in every if fits]
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
    """One minibatch of every fit of a chunk: gather, forward, gradient, Adam.

    Owns the chunk's weights.
    """

    def __init__(self, pool: _Pool, fits_GL: Tensor) -> None:
        self.x_ND, self.settings = pool.x_ND, pool.settings
        self.weight, self.mean, self.square = (
            all_[fits_GL] for all_ in (pool.weight_FCP, pool.mean_FCP, pool.square_FCP)
        )
        self.penalty = pool.penalty_F[fits_GL][:, :, None, None]

    def __call__(self, rows: Tensor, target: Tensor, share: Tensor | None, done: int) -> None:
        """Do one step.

        ``share``: weight of each row, if the minibatch is short; ``done``: steps including this
        one.
        """
        import torch

        groups, live, classes, _ = self.weight.shape
        two, weight = classes == 2, self.weight
        if two:  # one logit: the second class's minus the first's
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
