"""Main memory for copies of a method's tensors, which are written while the training goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor


class HostMemory:
    """Memory for one copy of some tensors at a time.

    Copies of a GPU's tensors are page-locked, so that the host need not wait for them: the GPU
    makes them in the order of its work, before the next step changes the tensors. Such memory takes
    long to get, and the next copy uses it again. A copy of a CPU's tensors is freed after its use.

    Example:
        memory = HostMemory()
        finish = memory.copy(method.trained_state())
        tensors = finish()      # on any thread; before the next copy
    """

    def __init__(self) -> None:
        self._copies: dict[str, Tensor] = {}

    def copy(self, tensors: Mapping[str, Tensor]) -> Callable[[], dict[str, Tensor]]:
        """Begin to copy tensors. Returns a function that waits for the copy, and returns it.

        Copies are contiguous. An earlier copy may be overwritten.
        """
        copies = {}
        events = {}
        for name, tensor in tensors.items():
            on_gpu = tensor.device.type == "cuda"
            copy = self._copies.get(name)
            if copy is None or copy.shape != tensor.shape or copy.dtype != tensor.dtype:
                copy = new_memory(tensor)
            copy.copy_(tensor, non_blocking=on_gpu)
            copies[name] = copy
            if on_gpu:
                events[tensor.device] = torch.cuda.Event()
        for device, event in events.items():
            event.record(torch.cuda.current_stream(device))
        if events:
            self._copies = copies

        def finish() -> dict[str, Tensor]:
            for event in events.values():
                event.synchronize()
            return copies

        return finish


def new_memory(tensor: Tensor) -> Tensor:
    """Return memory for a copy of a tensor: page-locked for a GPU's, if there is enough of it."""
    if tensor.device.type == "cuda":
        try:
            return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        except RuntimeError:  # slower without it, and no reason to end a training
            pass
    return torch.empty(tensor.shape, dtype=tensor.dtype)
