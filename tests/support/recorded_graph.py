"""A stand-in for CUDA graphs on a CPU: it records operations, and computes the same ones again.

As with a graph, a replay reads and writes the memory of the record: a number that Python held while
recording is the same in every replay, and Python itself does nothing. Random operations draw anew.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

ASKS = ("_local_scalar_dense", "nonzero", "masked_select", "equal")
"""Operations that a GPU refuses while it records."""


class Asked(TorchDispatchMode):
    """A mode that counts operations for which a host waits."""

    waits = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._schema.name.removeprefix("aten::") in ASKS:
            self.waits += 1
            if SYNC_MODE[0]:
                warnings.warn("called a synchronizing CUDA operation", stacklevel=1)
        return func(*args, **(kwargs or {}))


SYNC_MODE = [0]
"""The mode of ``graphs_present``: 0, or 1 to warn."""


class Tape(TorchDispatchMode):
    """A mode that computes operations and keeps them."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[tuple[Any, Any, Any, Any]] = []
        # storages that were made while recording
        self.own: set[int] = set()
        # other tensors that are written, and their numbers before
        self.before: list[tuple[Tensor, Tensor]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func._schema.name.removeprefix("aten::") in ASKS:
            raise RuntimeError("operation not permitted when stream is capturing")
        for argument, value in zip(func._schema.arguments, args, strict=False):
            if argument.alias_info is not None and argument.alias_info.is_write:
                self.remember(value)
        out = func(*args, **kwargs)
        for tensor in tensors_in(out):
            if storage_of(tensor) not in {storage_of(one) for one in tensors_in((args, kwargs))}:
                self.own.add(storage_of(tensor))
        self.operations.append((func, args, kwargs, out))
        return out

    def remember(self, value: Any) -> None:
        for tensor in tensors_in(value):
            if storage_of(tensor) not in self.own:
                self.before.append((tensor.detach(), tensor.detach().clone()))

    def undo(self) -> None:
        for tensor, numbers in reversed(self.before):
            tensor.copy_(numbers)

    @torch.no_grad()
    def replay(self) -> None:
        for func, args, kwargs, out in self.operations:
            again = func(*args, **kwargs)
            for tensor, new in zip(tensors_in(out), tensors_in(again), strict=True):
                if storage_of(tensor) != storage_of(new):
                    tensor.detach().copy_(new)


def tensors_in(value: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]


def storage_of(tensor: Tensor) -> int:
    data = getattr(tensor, "data_on_cpu", tensor)  # of the stand-in card
    return data.untyped_storage().data_ptr()


class Graph:
    """In the place of ``torch.cuda.CUDAGraph``."""

    tape: Tape

    def replay(self) -> None:
        self.tape.replay()


@contextmanager
def recording(graph: Graph, **_: Any) -> Iterator[None]:
    """In the place of ``torch.cuda.graph``: records what is computed while open, without effect."""
    drawn = torch.get_rng_state()
    graph.tape = Tape()
    try:
        with graph.tape:
            yield
    finally:
        torch.set_rng_state(drawn)
        with torch.no_grad():
            graph.tape.undo()


class Stream:
    """In the place of a CUDA stream: all that is queued is done at once."""

    def __init__(self, *_: Any) -> None:
        pass

    def wait_stream(self, other: Stream) -> None:
        pass


@contextmanager
def graphs_present() -> Iterator[None]:
    """While open, ``torch.cuda`` has graphs and streams of this kind."""
    stream = Stream()
    with mock.patch.multiple(
        torch.cuda,
        CUDAGraph=Graph,
        graph=recording,
        graph_pool_handle=lambda: (0, 0),
        Stream=Stream,
        stream=lambda _: nullcontext(),
        current_stream=lambda *_: stream,
        set_stream=lambda _: None,
        get_sync_debug_mode=lambda: SYNC_MODE[0],
        set_sync_debug_mode=lambda mode: SYNC_MODE.__setitem__(0, int(mode == "warn")),
        create=True,
    ):
        yield


class RecordedGraphs:
    """The face of ``CudaGraphs``."""

    def __init__(self, device: Any = None) -> None:
        self.records = 0

    def warm_up(self, work: Callable[[], None]) -> bool:
        with Asked() as asked:
            work()
        return asked.waits > 0

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        graph = Graph()
        with recording(graph):
            work()
        self.records += 1
        return graph.replay
