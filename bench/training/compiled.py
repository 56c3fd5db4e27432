"""``--set compile=true``: torch compiles the encoder's forward while training.

Scored vectors come from the uncompiled encoder.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn


def compile_encoder(encoder: nn.Module, note: Callable[[str], None]) -> Callable[[], bool]:
    """Compile the encoder's forward. Returns a function that says if the forward is still compiled.

    If the compiler fails, ``note`` gets one line with its error, and the forward is eager from then
    on.
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
        except Exception as error:  # a compiler can raise anything, and must not end a training
            if compiled is eager:
                raise
            compiled = eager
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            note(f"compile: the encoder is not compiled ({first[:120]})")
            return eager(*args, **kwargs)

    def is_compiled() -> bool:
        return compiled is not eager

    # an attribute of this one object: names of weights stay
    encoder.forward = forward
    return is_compiled
