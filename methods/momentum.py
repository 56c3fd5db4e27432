"""A copy of an encoder that gradients do not reach, and a queue of vectors from earlier batches.

Both are needed while training only: a method lists them in ``training_only``.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn


class FrozenCopy(nn.Module):
    """A copy of a module's current state: no gradient reaches it, and its dropout stays off while
    the method trains.

    With ``dropout`` it follows the method into training mode, as copies do in code that forgets to
    hold them back.
    """

    def __init__(self, module: nn.Module, *, dropout: bool = False) -> None:
        super().__init__()
        self.module = copy.deepcopy(module).requires_grad_(False).eval()
        self.dropout = dropout

    def train(self, mode: bool = True) -> FrozenCopy:
        return super().train(mode and self.dropout)

    @torch.no_grad()
    def forward(self, *args: Any, **named: Any) -> Any:
        return self.module(*args, **named)

    @torch.no_grad()
    def follow(self, online: nn.Module, momentum: float) -> None:
        """Move the copy: copy = momentum x copy + (1 - momentum) x online, for every parameter."""
        for mine, theirs in zip(self.module.parameters(), online.parameters(), strict=True):
            mine.lerp_(theirs, 1 - momentum)


class Queue(nn.Module):
    """The newest ``size`` vectors of D numbers, newest first.

    ``filled`` entries are valid. ``count`` mirrors it as a Python int, to avoid a GPU
    synchronisation.
    """

    rows: Tensor
    filled: Tensor

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(size, width))
        # a tensor, so that it is part of the state to resume from
        self.register_buffer("filled", torch.tensor(0))
        self.count = 0

    def _load_from_state_dict(self, *args: Any, **named: Any) -> None:
        super()._load_from_state_dict(*args, **named)
        self.count = int(self.filled)

    def vectors(self) -> Tensor:
        """Return the valid vectors, (filled, D)."""
        return self.rows[: self.count]

    @torch.no_grad()
    def push(self, new_nD: Tensor) -> None:
        """Put new vectors in; the oldest make room.

        The tensor is a new one each time, because the loss of this step may still need the old one
        for its gradient.
        """
        size = len(self.rows)
        self.rows = torch.cat([new_nD.detach().to(self.rows.dtype), self.rows])[:size]
        self.count = min(size, self.count + len(new_nD))
        self.filled.fill_(self.count)
