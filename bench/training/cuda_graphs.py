"""CUDA graphs of work on static tensors.

Not verified on a GPU: tests replace ``torch.cuda``'s parts of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor

SYNCHRONISED = "synchronizing CUDA operation"
"""Part of the warning in torch's debug mode of synchronisation."""


class CudaGraphs:
    """Records CUDA graphs on one device. All share one pool of memory.

    They may, because no replay needs anything that another one left in the pool: weights, moments,
    inputs and losses are outside of it.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream = torch.cuda.Stream(device)
        self.pool = torch.cuda.graph_pool_handle()

    def warm_up(self, work: Callable[[], None]) -> bool:
        """Compute ``work`` on the stream that records, so that what is made once is made there.

        Returns True if the host waited for the device, as torch's debug mode reports it.
        """
        current = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(current)
        before = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings(record=True) as caught, torch.cuda.stream(self.stream):
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                work()
            finally:
                torch.cuda.set_sync_debug_mode(before)
        current.wait_stream(self.stream)
        has_waited = False
        for warning in caught:
            if SYNCHRONISED in str(warning.message):
                has_waited = True
            else:
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )
        return has_waited

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """Record ``work``, which computes nothing meanwhile, and return the replay of its kernels.

        Dropout draws other numbers in every replay: torch registers the default generator of the
        device with a graph. Raises what torch raises if ``work`` asks the device for a number.
        """
        current = torch.cuda.current_stream(self.device)
        drawn = torch.cuda.get_rng_state(self.device)
        graph = torch.cuda.CUDAGraph()
        try:
            # the thread that makes batches pins memory meanwhile: only this one is restricted
            with torch.cuda.graph(
                graph, pool=self.pool, stream=self.stream, capture_error_mode="thread_local"
            ):
                work()
        except BaseException:
            # torch leaves its stream in use if the end of a capture fails
            torch.cuda.set_stream(current)
            self._renew_generator(drawn)
            raise
        return graph.replay

    def _renew_generator(self, drawn: Tensor) -> None:
        """Give the device's generator a new state with these numbers.

        After a capture that failed, the old one believes that it is still recorded, and refuses all
        draws: "Offset increment outside graph capture encountered unexpectedly".
        """
        fresh = torch.Generator(self.device)
        fresh.set_state(drawn)
        index = self.device.index
        if index is None:
            index = torch.cuda.current_device()
        torch.cuda.default_generators[index].graphsafe_set_state(fresh.graphsafe_get_state())
