"""One training on several processes, its ranks: their numbers, and their messages to each other.

The rows of a batch are divided among the ranks (:meth:`Alone.part`), and every rank computes the
loss of all of them (:mod:`bench.training.gradient`). Rank 0 leads: only it scores, prints and
writes. If the clock, a signal or the disk decides something, one rank reads it, so that all ranks
do the same at the same step.

There are two groups of processes: one moves tensors (NCCL between GPUs, gloo between CPUs), one
makes decisions (always gloo, on the CPU). The second has no timeout, because the others wait while
rank 0 scores. When a rank ends, its connections close, and the others notice at once.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from bench.base.errors import BenchError, Interrupted, RunFailed
from bench.base.launched import launched

T = TypeVar("T")

HINT = (
    "for one process: unset RANK WORLD_SIZE; "
    "for several, start them with --on torchrun:N, or torchrun"
)
NO_TIMEOUT = timedelta(days=365)
GPU_TIMEOUT = timedelta(minutes=10)
"""Limit of an exchange between GPUs; it begins when the last rank has arrived."""
MEETING = timedelta(seconds=45)
"""How long after each other ranks of one launcher may start."""
PATIENCE = 5.0
"""Seconds that a rank waits for the others before it prints a line."""
BUFFER = 1 << 25
"""Numbers of gradients that are exchanged at once: 128 MiB of float32. BERT-base's gradients are
then four exchanges instead of 199."""
SETTLE = timedelta(seconds=10)
"""How long a rank that failed waits for the others to fail as well."""


class Alone:
    """The only rank of a training in one process."""

    rank = 0
    count = 1
    # rank 0 of several
    lead = True
    # the ranks no longer agree: the process has to end
    broken = False
    # ... because another one has ended
    lost = False

    def any(self, flag: bool) -> bool:
        """Say on all ranks if the flag is true on any."""
        return flag

    def share(self, value: T) -> T:
        """Return rank 0's value on every rank."""
        return value

    def first(self, work: Callable[[], T]) -> T:
        """Do ``work`` on rank 0 while the others wait, and return its value on every rank.

        If it raises a BenchError, every rank does.
        """
        return work()

    def gather(self, value: T) -> list[T]:
        """Return every rank's value, in the order of the ranks."""
        return [value]

    def mean_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace each rank's gradients by their mean over all ranks."""

    def start_alike(self, module: nn.Module) -> None:
        """Copy rank 0's parameters and buffers to every rank.

        With the same seed, different machines may differ in the last bit.
        """

    def sizes(self, rows: int) -> list[int]:
        """Return how many rows of a batch each rank has: as even as possible, the first ranks one
        more.
        """
        whole, rest = divmod(rows, self.count)
        return [whole + 1] * rest + [whole] * (self.count - rest)

    def part(self, rows: np.ndarray) -> np.ndarray:
        """Return this rank's part of a batch's row numbers; the parts in the order of the ranks are
        the batch.

        A rank without rows gets the first row, to have something to compute; it does not count.
        """
        sizes = self.sizes(len(rows))
        if not sizes[self.rank]:
            return rows[:1]
        start = sum(sizes[: self.rank])
        return rows[start : start + sizes[self.rank]]


ALONE = Alone()


class Ranks(Alone):
    """One of several processes. They have met at ``store``; this one computes on ``device``.

    Every method raises RunFailed, with the last message of the other rank, if one has ended.
    """

    def __init__(self, store: Any, rank: int, count: int, device: str) -> None:
        self.rank = rank
        self.count = count
        self.lead = rank == 0
        self.store = dist.PrefixStore("bench", store)
        # trainings that have ended
        self.trainings = 0
        nccl = device.startswith("cuda")
        dist.init_process_group(
            "nccl" if nccl else "gloo",
            store=dist.PrefixStore("groups", self.store),
            rank=rank,
            world_size=count,
            timeout=GPU_TIMEOUT if nccl else NO_TIMEOUT,
            device_id=torch.device(device) if nccl else None,
        )
        self.control = dist.new_group(backend="gloo", timeout=NO_TIMEOUT)

    def in_turn(self, work: Callable[[], T]) -> T:
        """Do ``work`` on rank 0, which may fetch something, then on the others.

        If rank 0 raises a BenchError, every rank does.
        """
        done: list[T] = []

        def work_and_keep() -> None:
            # the result stays on rank 0: the others make their own
            done.append(work())

        self.first(work_and_keep)
        if self.lead:
            return done[0]
        try:
            return work()
        except BenchError as error:  # of this rank alone
            self.tell(error)
            self.broken = True
            raise

    def any(self, flag: bool) -> bool:
        return bool(self.largest([flag])[0])

    def share(self, value: T) -> T:
        box = [value if self.lead else None]
        with self._heard():
            dist.broadcast_object_list(box, src=0, group=self.control, device=torch.device("cpu"))
        return box[0]  # type: ignore[return-value]

    def first(self, work: Callable[[], T]) -> T:
        value = None
        error = None
        if self.lead:
            try:
                value = work()
            except BenchError as raised:
                error = raised
        kind = Interrupted if isinstance(error, Interrupted) else RunFailed
        shared: Any = self.share((value, error and (kind, error.message, error.hint)))
        if error is not None:
            raise error
        if shared[1] is not None:
            kind, message, hint = shared[1]
            raise kind(message, hint)
        return shared[0]  # type: ignore[no-any-return]

    def gather(self, value: T) -> list[T]:
        values: list[Any] = [None] * self.count
        with self._heard():
            dist.all_gather_object(values, value, group=self.control)
        return values

    def largest(self, numbers: Sequence[int]) -> list[int]:
        """Return the largest over the ranks, number by number.

        Objects would take four times as long, and a step calls this three times.
        """
        if not numbers:
            return []
        sent = torch.tensor(list(numbers), dtype=torch.int64)
        with self._heard():
            dist.all_reduce(sent, dist.ReduceOp.MAX, group=self.control)
        return [int(number) for number in sent]

    def rows_of_all(self, mine: Tensor, sizes: Sequence[int]) -> Tensor:
        """Return the rows of all ranks in their order, (N, ...); ``mine`` is (n, ...) with n =
        ``sizes[rank]``.

        Rows are sent as bytes, so that they may hold any kind of number.
        """
        padded = mine.new_zeros((max(sizes), *mine.shape[1:]))
        padded[: len(mine)] = mine
        sent = padded.flatten().view(torch.uint8)
        parts = [torch.empty_like(sent) for _ in sizes]
        with self._heard():
            dist.all_gather(parts, sent)
        rows = []
        for part, n in zip(parts, sizes, strict=True):
            rows.append(part.view(mine.dtype).view(padded.shape)[:n])
        return torch.cat(rows)

    def start_alike(self, module: nn.Module) -> None:
        with self._heard(), torch.no_grad():
            for tensor in module.state_dict().values():
                if not tensor.numel():
                    continue
                sent = tensor.contiguous().flatten()
                dist.broadcast(sent.view(torch.uint8), src=0)
                tensor.copy_(sent.view_as(tensor))

    def mean_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        used_by_any = self.largest([p.grad is not None for p in parameters])
        # a parameter that has no gradient on any rank gets none: else weight decay would change it
        for p, used in zip(parameters, used_by_any, strict=True):
            if used and p.grad is None:
                p.grad = torch.zeros_like(p)
        gradients = [p.grad for p in parameters if p.grad is not None]
        for together in in_buffers(gradients):
            flat = torch.cat([gradient.flatten() for gradient in together])
            with self._heard():
                dist.all_reduce(flat)
            flat /= self.count
            parts = flat.split([gradient.numel() for gradient in together])
            for gradient, part in zip(together, parts, strict=True):
                gradient.copy_(part.view_as(gradient))

    def settle(self, error: BaseException | None) -> bool:
        """End a training, failed or not on this rank, and say if every rank has ended it.

        It is called once for each training. If one rank fails alone, such as out of memory, the
        others wait for it in an exchange that it never reaches. Then this returns False after some
        seconds, ``broken`` is set, and the process has to end.
        """
        self.trainings += 1
        if self.broken:
            return False
        ends = [f"end/{self.trainings}/{rank}" for rank in range(self.count)]
        try:
            if error is not None:
                self.tell(error)
            self.store.set(ends[self.rank], "")
            self.store.wait(ends, SETTLE if error is not None else NO_TIMEOUT)
            self.store.delete_key(f"failed/{self.rank}")
        except RuntimeError:  # torch's DistError is one
            self.broken = True
        return not self.broken

    def tell(self, error: BaseException) -> None:
        """Store for the others why this rank ends."""
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, BenchError):
            text = error.message
        with contextlib.suppress(RuntimeError):
            self.store.set(f"failed/{self.rank}", " ".join(text.split())[:2000])

    @contextlib.contextmanager
    def _heard(self) -> Iterator[None]:
        """Raise a lost connection as the end of the other rank, and set ``broken``, while open."""
        try:
            yield
        except RuntimeError as error:
            text = str(error).lower()  # gloo's errors have no class
            if not isinstance(error, dist.DistError) and not re.search("gloo|connection", text):
                raise  # a mistake, or lack of memory here
            self.broken = self.lost = True
            raise RunFailed(
                self._who_ended(), "the same command goes on from the last state"
            ) from None

    def _who_ended(self) -> str:
        """Return one line about the ranks that ended, with their last messages if they left any."""
        others = [rank for rank in range(self.count) if rank != self.rank]
        messages = []
        with contextlib.suppress(RuntimeError):
            for rank in others:
                if self.store.check([f"failed/{rank}"]):
                    message = self.store.get(f"failed/{rank}").decode()
                    messages.append(f"rank {rank} of {self.count} failed: {message}")
            if messages:
                return "; ".join(messages)
        who = f"rank {others[0]}" if len(others) == 1 else "another rank"
        return f"{who} of {self.count} ended without a message (killed, or out of memory?)"


def in_buffers(tensors: Sequence[Tensor]) -> list[list[Tensor]]:
    """Group tensors of one type, in their order, so that a group holds at most ``BUFFER`` numbers.

    A larger tensor is a group by itself.
    """
    groups: list[list[Tensor]] = []
    held = 0
    for tensor in tensors:
        fits = bool(groups) and groups[-1][0].dtype == tensor.dtype
        if not fits or held + tensor.numel() > BUFFER:
            groups.append([])
            held = 0
        groups[-1].append(tensor)
        held += tensor.numel()
    return groups


def rank_device(device: str) -> str:
    """Return this rank's device; "cuda" becomes the GPU with its local rank's number.

    Raises BenchError if there is none.
    """
    kind, _, number = device.partition(":")
    if kind == "mps" or (kind == "cuda" and number):
        raise BenchError(
            f"--device {device} is a single device, and there are several processes",
            "--device cuda or --device cpu",
        )
    if kind != "cuda":
        return device
    local = int(os.environ["LOCAL_RANK"])
    here = torch.cuda.device_count()
    if local >= here:
        raise BenchError(
            f"this machine has {here} GPUs, and this process needs GPU {local}",
            f"--on torchrun:{here}, or --device cpu",
        )
    return f"cuda:{local}"


def meet_ranks(device: str) -> Ranks:
    """Meet the other ranks as torchrun's environment says, within 45 seconds.

    ``device``: this rank's. After some seconds a line names the ranks that are missing. Raises
    BenchError if they do not come.
    """
    if device.startswith("cuda"):
        torch.cuda.set_device(device)
    process = launched()
    assert process is not None
    others = "1 other process" if process.count == 2 else f"{process.count - 1} other processes"
    line = (
        f"process {process.rank} of {process.count} (RANK, WORLD_SIZE) waits for {others} "
        f"at {process.place}, at most {MEETING.total_seconds():.0f} s"
    )
    notice = threading.Timer(PATIENCE, lambda: print(line, file=sys.stderr, flush=True))
    notice.daemon = True
    notice.start()
    try:
        store, rank, count = next(iter(dist.rendezvous("env://", timeout=MEETING)))
        store.set(f"bench/here/{rank}", "")
        store.wait([f"bench/here/{other}" for other in range(count)], MEETING)
    except (RuntimeError, ValueError, OSError) as error:  # torch's DistError is a RuntimeError
        why = " ".join(str(error).split())[:120]
        raise BenchError(
            f"process {process.rank} of {process.count} waited in vain for {others} "
            f"at {process.place}: {why}",
            HINT,
        ) from None
    finally:
        notice.cancel()
    return Ranks(store, rank, count, device)
