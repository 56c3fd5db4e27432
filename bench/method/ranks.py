"""One training on several processes, its ranks: who they are, and what they tell each other.

The batch is the whole batch: its rows are dealt out, see :meth:`Alone.part`, and every rank computes the loss of all of them, see
:mod:`bench.training.gradient`. Rank 0 leads: it alone scores, prints and writes, and the clock, the signals and the disk that
decide something are asked in one place, so that all ranks do the same at the same step.

Two groups of processes: one moves tensors (NCCL between GPUs, gloo between CPUs), one settles what to do (always gloo, on the
CPU). The second has no timeout, since the others wait while rank 0 scores; when a rank ends, its connections close, and the
others know at once.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from bench.base.errors import BenchError, Interrupted, RunFailed

T = TypeVar("T")

NO_TIMEOUT = timedelta(days=365)
GPU_TIMEOUT = timedelta(
    minutes=10
)  # of one exchange between GPUs, which begins when all ranks are there
SETTLE = timedelta(seconds=10)  # how long a rank that failed waits for the others to fail as it did


class Alone:
    """The one rank of a training in one process: everything is settled by saying it."""

    rank, count, lead = 0, 1, True
    broken = False  # do the ranks no longer agree? Then the process has to end
    lost = False  # and was that because another one had ended?

    def any(self, flag: bool) -> bool:
        """Does any rank say so? The same answer on all."""
        return flag

    def share(self, value: T) -> T:
        """Rank 0's value, on every rank."""
        return value

    def first(self, work: Callable[[], T]) -> T:
        """What ``work`` returns on rank 0, on every rank; the others wait. A BenchError of it is raised on every rank."""
        return work()

    def gather(self, value: T) -> list[T]:
        """Every rank's value, in the order of the ranks."""
        return [value]

    def total(self, number: int) -> int:
        """The sum over the ranks."""
        return number

    def mean_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Put the mean of all ranks' gradients in the place of each rank's own."""

    def start_alike(self, module: nn.Module) -> None:
        """Give every rank rank 0's parameters and buffers: equal seeds on unlike machines may differ in the last bit."""

    def sizes(self, rows: int) -> list[int]:
        """How many of the rows of a batch each rank has: as even as can be, the first ranks have one more."""
        whole, rest = divmod(rows, self.count)
        return [whole + (rank < rest) for rank in range(self.count)]

    def part(self, rows: np.ndarray) -> np.ndarray:
        """This rank's part of a batch's row numbers, in one piece: the parts in the order of the ranks are the batch.

        A rank for which none is left gets the first row, to have something to compute; nothing of it counts.
        """
        sizes = self.sizes(len(rows))
        start = sum(sizes[: self.rank])
        return rows[start : start + sizes[self.rank]] if sizes[self.rank] else rows[:1]


ALONE = Alone()


class Ranks(Alone):
    """One of several processes. ``store`` is where they have met; ``device`` where this one computes.

    Raises RunFailed, from every method, where another rank has ended; what that one said last is told.
    """

    def __init__(self, store: Any, rank: int, count: int, device: str) -> None:
        self.rank, self.count, self.lead = rank, count, rank == 0
        self.store = dist.PrefixStore("bench", store)
        self.trainings = 0  # how many have ended
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

    # what to do

    def in_turn(self, work: Callable[[], T]) -> T:
        """``work`` on rank 0, which may fetch something, then on the others. A BenchError of rank 0 is raised on every rank."""
        done: list[T] = []
        self.first(lambda: done.append(work()) if self.lead else None)
        if self.lead:
            return done[0]
        try:
            return work()
        except BenchError as error:  # of this rank alone
            self.tell(error)
            self.broken = True
            raise

    def any(self, flag: bool) -> bool:
        return bool(self._reduced([int(flag)], dist.ReduceOp.MAX)[0])

    def total(self, number: int) -> int:
        return self._reduced([number], dist.ReduceOp.SUM)[0]

    def share(self, value: T) -> T:
        box = [value if self.lead else None]
        with self._heard():
            dist.broadcast_object_list(box, src=0, group=self.control, device=torch.device("cpu"))
        return box[0]  # type: ignore[return-value]

    def first(self, work: Callable[[], T]) -> T:
        value, error = None, None
        if self.lead:
            try:
                value = work()
            except BenchError as raised:
                error = raised
        outcomes: Any = self.share(
            (value, error and (isinstance(error, Interrupted), error.message, error.hint))
        )
        if error is not None:
            raise error
        if outcomes[1] is not None:
            interrupted, message, hint = outcomes[1]
            raise Interrupted(message, hint) if interrupted else RunFailed(message, hint)
        return outcomes[0]  # type: ignore[no-any-return]

    def gather(self, value: T) -> list[T]:
        values: list[Any] = [None] * self.count
        with self._heard():
            dist.all_gather_object(values, value, group=self.control)
        return values

    def largest(self, numbers: Sequence[int]) -> list[int]:
        """The largest over the ranks, number by number."""
        return self._reduced(numbers, dist.ReduceOp.MAX)

    def _reduced(self, numbers: Sequence[int], how: Any) -> list[int]:
        if not numbers:
            return []
        sent = torch.tensor(list(numbers), dtype=torch.int64)
        with self._heard():
            dist.all_reduce(sent, how, group=self.control)
        return [int(number) for number in sent]

    # tensors

    def rows_of_all(self, mine: Tensor, sizes: Sequence[int]) -> Tensor:
        """(N, ...): the rows of all ranks in their order; ``mine`` is (n, ...), the same but for n, which is ``sizes[rank]``.

        Rows travel as bytes, so that any kind of number can.
        """
        padded = mine.new_zeros((max(sizes), *mine.shape[1:]))
        padded[: len(mine)] = mine
        sent = padded.flatten().view(torch.uint8)
        parts = [torch.empty_like(sent) for _ in sizes]
        with self._heard():
            dist.all_gather(parts, sent)
        return torch.cat(
            [
                part.view(mine.dtype).view(padded.shape)[:n]
                for part, n in zip(parts, sizes, strict=True)
            ]
        )

    def start_alike(self, module: nn.Module) -> None:
        with self._heard(), torch.no_grad():
            for tensor in module.state_dict().values():
                if not tensor.numel():
                    continue
                sent = tensor.contiguous().flatten()
                dist.broadcast(sent.view(torch.uint8), src=0)
                tensor.copy_(sent.view_as(tensor))

    def mean_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        there = self.largest(
            [p.grad is not None for p in parameters]
        )  # else a decay would move what no rank has used
        for p, used in zip(parameters, there, strict=True):
            if used and p.grad is None:
                p.grad = torch.zeros_like(p)
        gradients = [p.grad for p in parameters if p.grad is not None]
        with self._heard():
            sums = [dist.all_reduce(gradient, async_op=True) for gradient in gradients]
            for exchange in sums:
                exchange.wait()
        for gradient in gradients:
            gradient /= self.count

    # how it ends

    def settle(self, error: BaseException | None) -> bool:
        """Called once at the end of a training, however it ended on this rank: has it ended on every other rank, too?

        Where one fails alone, as out of memory, the others wait for it in an exchange that it never comes to. Then this is
        False after some seconds, ``broken`` is set, and the process has to end.
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
        """Leave for the others why this rank ends."""
        text = (
            error.message if isinstance(error, BenchError) else f"{type(error).__name__}: {error}"
        )
        with contextlib.suppress(RuntimeError):
            self.store.set(f"failed/{self.rank}", " ".join(text.split())[:2000])

    @contextlib.contextmanager
    def _heard(self) -> Iterator[None]:
        """While open, a connection that breaks is told as the end of the rank behind it, and ``broken`` is set."""
        try:
            yield
        except RuntimeError as error:
            if not _is_lost_connection(error):
                raise
            self.broken = self.lost = True
            raise RunFailed(
                self._who_ended(), "the same command goes on from the last state"
            ) from None

    def _who_ended(self) -> str:
        others = [rank for rank in range(self.count) if rank != self.rank]
        with contextlib.suppress(RuntimeError):
            told = {
                rank: self.store.get(f"failed/{rank}").decode()
                for rank in others
                if self.store.check([f"failed/{rank}"])
            }
            if told:
                return "; ".join(
                    f"rank {rank} of {self.count} failed: {text}" for rank, text in told.items()
                )
        who = f"rank {others[0]}" if len(others) == 1 else "another rank"
        return f"{who} of {self.count} ended without a word (killed, or out of memory?)"


def _is_lost_connection(error: RuntimeError) -> bool:
    """And not a mistake, or memory that was short here. What gloo raises has no class of its own."""
    text = str(error).lower()
    return isinstance(error, dist.DistError) or "gloo" in text or "connection" in text


def rank_device(device: str) -> str:
    """The device of this rank: "cuda" is the GPU that its local rank says. Raises BenchError where that is not here."""
    kind, _, number = device.partition(":")
    if kind == "mps" or (kind == "cuda" and number):
        raise BenchError(
            f"--device {device} is one device, and there are several processes",
            "--device cuda or --device cpu",
        )
    if kind != "cuda":
        return device
    local, here = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if local >= here:
        raise BenchError(
            f"{here} GPUs are here, and this process is to have GPU {local}",
            f"--on torchrun:{here}, or --device cpu",
        )
    return f"cuda:{local}"


def join(device: str) -> Ranks:
    """Meet the other ranks where torchrun's environment says. ``device`` is this rank's. Waits for all of them."""
    if device.startswith("cuda"):
        torch.cuda.set_device(device)
    store, rank, count = next(iter(dist.rendezvous("env://")))
    return Ranks(store, rank, count, device)
