"""The probe's fits one after the other, step by step as the protocol is written down: the oracle of
``probe_batched``.

For one fit of SentEval's size it takes as long as SentEval itself. Use it to check, not to score.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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


def fit_sequential(
    x_ND: Floats, y_N: Rows, classes: int, jobs: Sequence[FitJob], settings: Settings = SENTEVAL
) -> list[list[Fit]]:
    """Fit every job, in the type of the matrix: float32 as SentEval does, or float64."""
    orders = Orders(settings.seed)
    return [
        [_fit(x_ND, y_N, classes, job, penalty, orders, settings) for penalty in job.penalties]
        for job in jobs
    ]


def _fit(
    x_ND: Floats,
    y_N: Rows,
    classes: int,
    job: FitJob,
    penalty: float,
    orders: Orders,
    settings: Settings,
) -> Fit:
    import torch

    x, y = torch.from_numpy(x_ND[job.train]), torch.from_numpy(y_N[job.train])
    dev_x, dev_y = torch.from_numpy(x_ND[job.dev]), torch.from_numpy(y_N[job.dev])
    weight, bias = (
        torch.from_numpy(part).to(x.dtype)
        for part in initial_weights(x.shape[1], classes, settings.seed)
    )
    parameters = [torch.nn.Parameter(weight), torch.nn.Parameter(bias)]
    # Adam's own weight_decay adds penalty * parameter to the gradient; AdamW's would not be the
    # same.
    adam = torch.optim.Adam(parameters, lr=settings.learning_rate, weight_decay=penalty)
    epochs = 0
    most = -1
    best = parameters
    bad = 0
    while epochs <= settings.max_epochs:
        for _ in range(settings.epoch_size):
            for batch in torch.from_numpy(orders(job, epochs)).split(settings.batch_size):
                adam.zero_grad()
                logits = torch.nn.functional.linear(x[batch], *parameters)
                torch.nn.functional.cross_entropy(logits, y[batch]).backward()
                adam.step()
            epochs += 1
        with torch.no_grad():
            correct = int((torch.nn.functional.linear(dev_x, *parameters).argmax(1) == dev_y).sum())
        if correct > most:
            most, best = correct, [torch.nn.Parameter(one.detach().clone()) for one in parameters]
        elif bad >= settings.tenacity:
            break
        else:
            bad += 1
    weight_CD, bias_C = (one.detach().numpy() for one in best)
    if not (np.isfinite(weight_CD).all() and np.isfinite(bias_C).all()):
        raise ValueError("the classifier diverged: its weights are not finite")
    return Fit(most / len(dev_y), epochs, weight_CD, bias_C)
