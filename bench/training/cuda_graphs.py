"""CUDA graphs of work on static tensors.

Not verified on a GPU: tests replace ``torch.cuda``'s parts of it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch


class CudaGraphs:
    """Records CUDA graphs on one device. All share one pool of memory.

    They may, because no replay needs anything that another one left in the pool: weights, moments,
    inputs and losses are outside of it.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream = torch.cuda.Stream(device)
        self.pool = torch.cuda.graph_pool_handle()

    def warm_up(self, work: Callable[[], None]) -> None:
        """Compute ``work`` on the stream that records, so that what is made once is made there."""
        current = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            work()
        current.wait_stream(self.stream)

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
            torch.cuda.set_rng_state(drawn, self.device)
            raise
        return graph.replay
