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
"""What the messages of such errors contain, in lower case."""
MEMORY_ERRORS = (RuntimeError, MemoryError)
"""Their classes, which other errors have, too: torch's are RuntimeErrors."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return True if ``error`` means lack of memory."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    message = str(error).lower()
    return any(sign in message for sign in SIGNS)


def explain_out_of_memory(error: BaseException, where: str, device: str) -> None:
    """Raises RunFailed with the place and a hint if ``error`` means lack of memory; returns
    otherwise.
    """
    if not is_out_of_memory(error):
        return
    hint = "free memory on the device, or --device cpu"
    if device == "cpu":
        hint = "close other programs that use memory, or take a smaller backbone"
    raise RunFailed(f"out of memory: {where}", hint) from None
