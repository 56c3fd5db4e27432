"""A batch that does not fit: how that is recognised, which size would fit, and what a user is told."""

from __future__ import annotations

import gc
from collections.abc import Callable

import torch

from bench.base.errors import OutOfMemory, RunFailed
from bench.training.batches import batch_of, move
from bench.training.trainer import Trainer

SIGNS = ("out of memory", "can't allocate memory", "not enough memory", "cublas_status_alloc_failed")
ERRORS = (torch.OutOfMemoryError, RuntimeError, MemoryError)  # what a lack of memory is raised as, among other things


def is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(sign in str(error).lower() for sign in SIGNS)


def explain_out_of_memory(error: BaseException, where: str, device: str) -> None:
    """Raises RunFailed that says where and what helps, if that is what ``error`` means; returns otherwise."""
    if is_out_of_memory(error):
        hint = "free memory on the device, or --device cpu"
        if device == "cpu":
            hint = "end other programs that hold memory, or take a smaller backbone"
        raise RunFailed(f"out of memory: {where}", hint) from None


def release() -> None:
    """Give back what the step that failed had taken."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def largest_that_fits(size: int, attempt: Callable[[int], object]) -> int | None:
    """Half of ``size``, a quarter, ...: the first with which ``attempt`` does not run out of memory. None: not even 1."""
    while size > 1:
        size //= 2
        try:
            attempt(size)
            return size
        except Exception as error:
            if not is_out_of_memory(error):
                return None
        finally:
            release()
    return None


def batch_does_not_fit(step: int, batch_size: int, fits: int | None, can_chunk: bool, tried: bool = True) -> OutOfMemory:
    """The error with which a training ends; ``fits`` is what trying found, ``tried`` whether that was done."""
    what = f"out of memory: step {step} with batch_size {batch_size}"
    if tried and fits is None:
        hint = "a shorter max_seq_length, a smaller backbone, or a device with more memory"
        return OutOfMemory(f"{what}; not even one row at once fits", hint, fits)
    size = fits or max(1, batch_size // 2)
    chunk = f"--chunk {size} (the same batch, a part of it in memory at a time), " if can_chunk else ""
    hint = f"{chunk}--set batch_size={size} (fewer negatives: another recipe), or --auto-batch, which finds the size"
    return OutOfMemory(what + (f"; {fits} rows at once would fit" if fits else ""), hint, fits)


# --- after a step that did not fit into memory: fewer rows at a time, or how many would fit ---


def hold_fewer_rows(trainer: Trainer) -> None:
    """Halve the rows that are held at a time, where that was asked for and the method's batch can be cut.

    Raises OutOfMemory otherwise, with the number of rows that trying finds to fit. With several ranks nothing is tried: the
    others wait in the step that failed.
    """
    trainer.optimizer.zero_grad(set_to_none=True)
    p, size, alone = trainer.progress, trainer.recipe.batch_size, trainer.ranks.count == 1
    step, can_chunk, at_once = p.step + 1, trainer.method.is_split(), min(p.chunk or size, size)
    if trainer.context.auto_batch and can_chunk and at_once > 1 and alone:
        p.chunk = at_once // 2
        trainer.context.reporter.note(f"step {step} does not fit into memory: {p.chunk} of its {size} rows are held at a time")
        return
    fits = largest_that_fits(at_once, lambda rows: _try(trainer, step, rows)) if alone else None
    raise batch_does_not_fit(step, size, fits, can_chunk, tried=alone)


def _try(trainer: Trainer, step: int, rows: int) -> None:
    """Forward and backward of the first ``rows`` rows of a step, beside an optimiser as large as it will be."""
    epoch, numbers = trainer.rows_of(step)
    moments = [] if trainer.optimizer.state else [torch.empty_like(p) for p in trainer.trained for _ in range(2)]
    try:
        trainer.backward(move(batch_of(trainer.method, trainer.corpus, epoch, numbers[:rows], step - 1), trainer.device))
    finally:
        trainer.optimizer.zero_grad(set_to_none=True)
        moments.clear()
