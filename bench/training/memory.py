"""What to tell a user whose batch does not fit."""

from __future__ import annotations

import torch

from bench.errors import RunFailed

SIGNS = ("out of memory", "can't allocate memory", "not enough memory", "cublas_status_alloc_failed")


def explain_out_of_memory(error: BaseException, where: str, hint: str) -> None:
    """Raises RunFailed that says where and what to set, if that is what ``error`` means; returns otherwise."""
    short = isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(sign in str(error).lower() for sign in SIGNS)
    if short:
        raise RunFailed(f"out of memory: {where}", hint) from None
