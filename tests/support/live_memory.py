"""Count the bytes of tensors that are alive at once, by watching every operation."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveBytes(TorchDispatchMode):
    """``peak``: the most bytes of storages that were made while this was open and were alive
    together.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now, self.peak = 0, 0
        self.known: dict[int, Any] = {}

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        made = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor):
                self.see(tensor.untyped_storage())
        return made

    def see(self, storage: torch.UntypedStorage) -> None:
        place, size = storage._cdata, storage.nbytes()
        if place not in self.known:
            self.known[place] = weakref.finalize(storage, self.gone, place, size)
            self.now += size
            self.peak = max(self.peak, self.now)

    def gone(self, place: int, size: int) -> None:
        del self.known[place]
        self.now -= size
