"""One update on static buffers, which can be recorded once and replayed.

A batch is copied into tensors that keep their place, the learning rate is a tensor, and the losses
are copied to tensors that keep theirs. So a CUDA graph of the update, which reads and writes the
same memory whenever it is replayed, does what the eager update does. Batches of one shape share
their buffers and their graph: a bucket.

Run eagerly, this update gives the plain step's bytes on a CPU. On a GPU the learning rate is
rounded to float32, which moves an update by at most 6e-8 of itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from bench.method.batch import Batch
from bench.method.features import Features, map_rows
from bench.method.torch_method import TorchMethod
from bench.training.gradient import backward
from bench.training.host_watch import HostWatch, WatchedBatch

WARM_UP = 3
"""Steps of a bucket that are computed eagerly before its graph is recorded, as torch's own notes on
CUDA graphs do. They are steps of the training like all others.
"""
BUCKETS = 64
"""Shapes of batches with buffers and a graph; batches of further shapes take the plain step."""


class Recorder(Protocol):
    """An object that records work on static tensors, such as a CUDA graph."""

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """Record ``work`` without any effect on a tensor's numbers, and return its replay."""

    def warm_up(self, work: Callable[[], None]) -> bool:
        """Compute ``work`` eagerly, on the stream that will record it.

        Returns True if the host waited for the device meanwhile: that cannot be recorded.
        """


@dataclass(frozen=True)
class Update:
    """All that one update needs besides a batch."""

    method: TorchMethod
    optimizer: torch.optim.Optimizer
    # parameters that train
    trained: list[Tensor]
    # makes the context of the forward pass
    autocast: Callable[[], Any]
    # largest norm of the gradient; 0 or None: any
    max_norm: float | None

    def compute(self, batch: Batch) -> dict[str, Tensor]:
        """Do the update, and return the losses. Gradients are gone afterwards."""
        losses = backward(self.method, batch, autocast=self.autocast())
        if self.max_norm:
            torch.nn.utils.clip_grad_norm_(self.trained, self.max_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return losses


class Bucket:
    """The buffers of batches of one shape, and how often they were used."""

    def __init__(self, batch: Batch) -> None:
        """``batch``: one of this shape, on its device."""
        self.inputs: tuple[Features, ...] = tuple(
            map_rows(view, torch.empty_like) for view in batch.columns
        )
        self.step = 0
        # filled by the first step
        self.losses: dict[str, Tensor] = {}
        self.steps = 0
        self.replay: Callable[[], None] | None = None

    def fill(self, batch: Batch) -> None:
        """Copy a batch into the buffers."""
        self.step = batch.step
        for buffers, view in zip(self.inputs, batch.columns, strict=True):
            for key, value in view.items():
                if value.ndim:
                    buffers[key].copy_(value, non_blocking=True)

    def keep(self, losses: dict[str, Tensor]) -> None:
        """Copy losses to the tensors that are read."""
        if not self.losses:
            self.losses = {name: torch.empty_like(loss) for name, loss in losses.items()}
        for name, loss in losses.items():
            self.losses[name].copy_(loss)


class StaticStep:
    """The updates of one training on static buffers, recorded by ``recorder`` if there is one.

    As soon as it sees something that no record can follow, it says so in one line and goes on
    without records: eagerly, on the same buffers. No step is done twice or left out.
    """

    def __init__(
        self,
        update: Update,
        device: torch.device,
        note: Callable[[str], None],
        recorder: Recorder | None = None,
    ) -> None:
        self.update = update
        self.device = device
        self.note = note
        self.recorder = recorder
        self.replayed = 0
        # why nothing is recorded any more
        self.problem: str | None = None
        self.buckets: dict[Any, Bucket] = {}
        # a GPU's fused optimiser reads a rate in float32
        exact = torch.float64 if device.type == "cpu" else torch.float32
        self.rate = torch.zeros((), dtype=exact, device=device)
        self.places: tuple[int, ...] = ()

    def takes(self, batch: Batch) -> bool:
        """Say if this does the step of a batch, and the plain step does not."""
        return bucket_shape(batch) in self.buckets or len(self.buckets) < BUCKETS

    def do(self, batch: Batch, rate: float) -> dict[str, Tensor]:
        """Do the update with a batch at a learning rate. Returns copies of the losses."""
        shape = bucket_shape(batch)
        if shape not in self.buckets:
            self.buckets[shape] = Bucket(batch)
        bucket = self.buckets[shape]
        bucket.fill(batch)
        self.rate.fill_(rate)

        self._forget_if_moved()
        if self.recorder is not None and bucket.replay is None and bucket.steps >= WARM_UP:
            self._record(bucket, self.recorder)

        if bucket.replay is not None:
            bucket.replay()
            self.replayed += 1
        elif self.recorder is None:
            self._compute(bucket, self._batch_of(bucket))
        else:
            self._warm_up(bucket, self.recorder)
        bucket.steps += 1
        return {name: loss.clone() for name, loss in bucket.losses.items()}

    def forget(self) -> None:
        """Forget all records, because the optimiser's state is at another place now."""
        for bucket in self.buckets.values():
            bucket.replay = None
            bucket.steps = 0

    def describe(self) -> str | None:
        """Return the word of a run's record: "graph", "static", or None for plain steps alone."""
        if self.replayed:
            return "graph" if self.problem is None else "graph, then static"
        return "static" if self.buckets else None

    def _batch_of(self, bucket: Bucket) -> Batch:
        """Return a batch of the buffers. A method may add keys to its features: they are copies."""
        return Batch(tuple(dict(view) for view in bucket.inputs), bucket.step)

    def _compute(self, bucket: Bucket, batch: Batch) -> None:
        with option_of_groups(self.update.optimizer, "lr", self.rate):
            losses = self.update.compute(batch)
        bucket.keep(losses)

    def _warm_up(self, bucket: Bucket, recorder: Recorder) -> None:
        """Do the step eagerly, and watch the method's state outside of tensors."""
        batch = WatchedBatch.watching(self._batch_of(bucket))
        watch = HostWatch(self.update.method, self.device)
        has_waited = recorder.warm_up(partial(self._compute, bucket, batch))
        reason = watch.change() or batch.reason()
        if reason is None and has_waited:
            reason = "the step asks the device for a number"
        if reason is None and any(one.device != self.rate.device for one in bucket.losses.values()):
            reason = "a part of the loss is computed on the CPU"
        # what is made once, such as a cache, is made before the last step that is watched
        if reason is not None and bucket.steps == WARM_UP - 1:
            self._stop(reason)

    def _record(self, bucket: Bucket, recorder: Recorder) -> None:
        optimizer = self.update.optimizer
        try:
            # a fused optimiser keeps its counts on the device in any case: this changes no number
            with option_of_groups(optimizer, "capturable", True):
                bucket.replay = recorder.record(
                    partial(self._compute, bucket, self._batch_of(bucket))
                )
        except Exception as error:  # whatever it is, the plain step can go on
            optimizer.zero_grad(set_to_none=True)
            text = str(error).strip().splitlines() or [type(error).__name__]
            self._stop(f"recording failed: {text[0][:120]}")
        self.places = self._places()

    def _stop(self, problem: str) -> None:
        self.problem = problem
        self.recorder = None
        self.note(f"step=graph: the steps are eager, because {problem}")
        for bucket in self.buckets.values():
            bucket.replay = None

    def _places(self) -> tuple[int, ...]:
        return tuple(parameter.data_ptr() for parameter in self.update.trained)

    def _forget_if_moved(self) -> None:
        """Forget all records if a weight is at another place than when one was made."""
        if self.places and self.places != self._places():
            self.places = ()
            self.forget()


def bucket_shape(batch: Batch) -> tuple[Any, ...]:
    """Return all that batches of one bucket share: shapes, types, and sizes that are numbers."""
    shape: list[Any] = []
    for number, view in enumerate(batch.columns):
        for key, value in view.items():
            size = tuple(value.shape) if value.ndim else value.item()
            shape.append((number, key, value.dtype, size))
    return tuple(shape)


@contextmanager
def option_of_groups(optimizer: torch.optim.Optimizer, name: str, value: Any) -> Iterator[None]:
    """Let all groups of an optimiser have an option's value while open.

    They have their own values otherwise: states that are saved do not differ from the plain step's.
    """
    before = [group[name] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group[name] = value
    try:
        yield
    finally:
        for group, own in zip(optimizer.param_groups, before, strict=True):
            group[name] = own
