"""What to tell a user whose batch does not fit."""

from __future__ import annotations

import torch

from bench.errors import RunFailed

SIGNS = ("out of memory", "can't allocate memory", "not enough memory", "cublas_status_alloc_failed")


def explain_out_of_memory(error: BaseException, batch_size: int, step: int) -> None:
    """Raises RunFailed with the batch size to try, if that is what ``error`` means; returns otherwise."""
    short = isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(sign in str(error).lower() for sign in SIGNS)
    if short:
        smaller = max(1, batch_size // 2)
        raise RunFailed(
            f"out of memory at step {step + 1} with batch_size {batch_size}",
            f"--set batch_size={smaller} (a smaller batch has fewer negatives: it is another recipe), or a shorter max_seq_length",
        ) from None
