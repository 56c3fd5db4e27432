"""After a step that did not fit into memory: fewer rows at a time, or how many would fit."""

from __future__ import annotations

import torch

from bench.training.batches import batch_of, moved
from bench.training.memory import batch_does_not_fit, largest_that_fits
from bench.training.sitting import Sitting


def hold_fewer_rows(sitting: Sitting) -> None:
    """Halve the rows that are held at a time, where that was asked for and the method's batch can be cut.

    Raises OutOfMemory otherwise, with the number of rows that trying finds to fit. With several ranks nothing is tried: the
    others wait in the step that failed.
    """
    sitting.optimizer.zero_grad(set_to_none=True)
    p, size, alone = sitting.progress, sitting.recipe.batch_size, sitting.ranks.count == 1
    step, can_chunk, at_once = p.step + 1, sitting.method.is_split(), min(p.chunk or size, size)
    if sitting.context.auto_batch and can_chunk and at_once > 1 and alone:
        p.chunk = at_once // 2
        sitting.context.reporter.note(f"step {step} does not fit into memory: {p.chunk} of its {size} rows are held at a time")
        return
    fits = largest_that_fits(at_once, lambda rows: _try(sitting, step, rows)) if alone else None
    raise batch_does_not_fit(step, size, fits, can_chunk, tried=alone)


def _try(sitting: Sitting, step: int, rows: int) -> None:
    """Forward and backward of the first ``rows`` rows of a step, beside an optimiser as large as it will be."""
    epoch, numbers = sitting.rows_of(step)
    moments = [] if sitting.optimizer.state else [torch.empty_like(p) for p in sitting.trained for _ in range(2)]
    try:
        sitting.backward(moved(batch_of(sitting.method, sitting.corpus, epoch, numbers[:rows], step - 1), sitting.device))
    finally:
        sitting.optimizer.zero_grad(set_to_none=True)
        moments.clear()
