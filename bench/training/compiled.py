"""``--set compile=true``: torch compiles the encoder's forward while training.

On a GPU, whose batches have few lengths, each shape of the inputs is compiled by itself: kernels
that know their sizes are faster. On a CPU nearly every batch has another shape, and torch compiles
for any.

Scored vectors come from the uncompiled encoder.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

SHAPES = 64
"""Shapes that are compiled; passes of further ones are eager."""
VARIANTS = 4
"""Compilations that one shape may need, such as with and without a gradient."""


class CompiledForward:
    """The forward of one encoder, compiled, or eager after the compiler failed.

    ``note`` gets one line when it falls back, for all passes or for further shapes.
    """

    def __init__(
        self, eager: Callable[..., Any], note: Callable[[str], None], *, by_shape: bool
    ) -> None:
        self.eager = eager
        self.note = note
        self.by_shape = by_shape
        self.shapes: set[Any] = set()
        self.is_compiled = True
        if by_shape:
            raise_limits(VARIANTS * SHAPES)
        # dynamic=None: by shape at first, and for any shape once there are several
        self.compiled = torch.compile(eager, dynamic=False if by_shape else None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.is_compiled or not self._takes(args, kwargs):
            return self.eager(*args, **kwargs)
        try:
            return self.compiled(*args, **kwargs)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # a compiler can raise anything, and must not end a training
            self.is_compiled = False
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            self.note(f"compile: the encoder is not compiled ({first[:120]})")
            return self.eager(*args, **kwargs)

    def _takes(self, args: Any, kwargs: Any) -> bool:
        """Say if a pass of this shape is compiled."""
        if not self.by_shape:
            return True
        shape = shape_of_pass(args, kwargs)
        if shape in self.shapes:
            return True
        if len(self.shapes) < SHAPES:
            self.shapes.add(shape)
            return True
        if None not in self.shapes:
            self.shapes.add(None)
            self.note(f"compile: the encoder is compiled for {SHAPES} shapes; others are eager")
        return False


def shape_of_pass(args: Any, kwargs: Any) -> tuple[Any, ...]:
    """Return the shapes of the tensors that an encoder is called with."""
    shapes: list[Any] = []
    for key, value in [*enumerate(args), *kwargs.items()]:
        if isinstance(value, Tensor):
            shapes.append((key, tuple(value.shape)))
    return tuple(shapes)


def raise_limits(most: int) -> None:
    """Let torch compile one function at least ``most`` times: by default it stops after 8."""
    import torch._dynamo

    config: Any = torch._dynamo.config
    # torch 2.6 has the older names
    names = ("recompile_limit", "accumulated_recompile_limit")
    if not hasattr(config, names[0]):
        names = ("cache_size_limit", "accumulated_cache_size_limit")
    for name in names:
        setattr(config, name, max(getattr(config, name), most))


def compile_encoder(
    encoder: nn.Module, note: Callable[[str], None], *, by_shape: bool = False
) -> Callable[[], bool]:
    """Compile the encoder's forward. Returns a function that says if the forward is still compiled.

    If the compiler fails, ``note`` gets one line with its error, and the forward is eager from then
    on. ``by_shape``: compile each shape of the inputs by itself, up to ``SHAPES`` of them.
    """
    vars(encoder).pop("forward", None)
    forward = CompiledForward(encoder.forward, note, by_shape=by_shape)

    @functools.wraps(forward.eager)
    def call(*args: Any, **kwargs: Any) -> Any:
        return forward(*args, **kwargs)

    # an attribute of this one object: names of weights stay
    encoder.forward = call
    return lambda: forward.is_compiled
