"""``--set compile=true``: torch compiles the encoder's forward while training. Vectors that are scored come from the encoder as it is
(:func:`bench.method.features.exact`)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn


def compile_encoder(encoder: nn.Module, note: Callable[[str], None]) -> Callable[[], bool]:
    """Compile the encoder's forward. If the compiler fails, ``note`` gets one line with its error and the forward is eager from then on.

    Returns a function that says whether the forward is compiled still.
    """
    vars(encoder).pop("forward", None)
    eager = encoder.forward
    compiled = torch.compile(eager)

    @functools.wraps(eager)
    def forward(*args: Any, **kwargs: Any) -> Any:
        nonlocal compiled
        try:
            return compiled(*args, **kwargs)
        except torch.OutOfMemoryError:
            raise
        except (
            Exception
        ) as error:  # a compiler fails in many ways, and none of them ends a training
            if compiled is not eager:
                compiled = eager
                note(
                    f"compile: the encoder is not compiled ({(str(error).strip().splitlines() or [type(error).__name__])[0][:120]})"
                )
                return eager(*args, **kwargs)
            raise

    encoder.forward = forward  # an attribute of this one object: names of weights stay
    return lambda: compiled is not eager
