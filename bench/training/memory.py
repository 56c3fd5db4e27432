"""A batch that does not fit: how that is recognised, which size would fit, and what a user is told."""

from __future__ import annotations

import gc
from collections.abc import Callable

import torch

from bench.errors import OutOfMemory, RunFailed

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
    found = f"; {fits} rows at once would fit" if fits else "; not even one row at once fits" if tried else ""
    size = fits or max(1, batch_size // 2)
    chunk = f"--chunk {size} (the same batch, a part of it in memory at a time), " if can_chunk else ""
    hint = f"{chunk}--set batch_size={size} (fewer negatives: another recipe), or --auto-batch, which finds the size"
    if tried and fits is None:
        hint = "a shorter max_seq_length, a smaller backbone, or a device with more memory"
    return OutOfMemory(f"out of memory: step {step} with batch_size {batch_size}{found}", hint, fits)
