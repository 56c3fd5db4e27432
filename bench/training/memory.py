"""Errors that mean lack of memory."""

from __future__ import annotations

import torch

from bench.base.errors import RunFailed

SIGNS = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "cublas_status_alloc_failed",
)
MEMORY_ERRORS = (RuntimeError, MemoryError)  # among others, lack of memory; torch's is the first


def is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(
        sign in str(error).lower() for sign in SIGNS
    )


def explain_out_of_memory(error: BaseException, where: str, device: str) -> None:
    """Raises RunFailed with the place and a hint if ``error`` means lack of memory; returns otherwise."""
    if is_out_of_memory(error):
        raise RunFailed(
            f"out of memory: {where}",
            "close other programs that use memory, or take a smaller backbone"
            if device == "cpu"
            else "free memory on the device, or --device cpu",
        ) from None
