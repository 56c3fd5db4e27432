"""The batches of a training, ready on the device when they are needed.

The corpus is a memory map of token ids (:mod:`bench.data.corpora`): a batch slices its rows, and
nothing is tokenised here. On a CPU a batch is made when the loop asks for it. For a GPU a thread
makes the next ones meanwhile, and pins them, so that the host need not wait for the copy. Neither
changes which rows a batch has, or their content.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from bench.data.corpora.token_cache import TokenisedCorpus
from bench.method import seed_for
from bench.method.batch import Batch
from bench.method.features import map_rows
from bench.method.torch_method import TorchMethod

T = TypeVar("T")
Rows = np.ndarray
"""(n,) row numbers of the corpus."""
AHEAD = 4
"""Batches that wait for a GPU."""


def row_order(
    seed: int, rows: int, batch_size: int, drop_last: bool = False, first: int = 0
) -> Iterator[tuple[int, Rows]]:
    """Yield (epoch, row numbers of a batch) from batch ``first`` on, without end.

    Each epoch has another order, which is the same for every method. ``rows``: of the corpus.
    """
    end = rows
    if drop_last and rows >= batch_size:
        end = rows - rows % batch_size
    starts = range(0, end, batch_size)
    first_epoch, skipped = divmod(first, len(starts))
    for epoch in itertools.count(first_epoch):
        order = np.random.default_rng(seed_for(seed, "data order", epoch)).permutation(rows)
        for start in starts[skipped:]:
            yield epoch, order[start : start + batch_size]
        skipped = 0


def batches(
    method: TorchMethod,
    corpus: TokenisedCorpus,
    order: Iterator[tuple[int, Rows]],
    first_step: int,
    *,
    device: torch.device,
    ahead: int | None = None,
    share: Callable[[Rows], Rows] | None = None,
) -> Generator[Batch]:
    """Yield the batch of every step from ``first_step`` on, on ``device``.

    Close it at the end of the training.

    ``share``: picks a rank's part of the positions in a batch, which is made whole, because a row's
    features may depend on the others, as CT's pairs do. ``ahead``: how many batches are made on a
    thread in advance (None: some for a GPU, none on a CPU, because they would slow down the current
    step). An error while making one, such as a deleted corpus, is raised when its turn comes.
    """
    for_gpu = device.type == "cuda"

    def ready() -> Generator[Batch]:
        if for_gpu and device.index is not None:
            # the device of this thread: else every process pins on the first GPU
            torch.cuda.set_device(device)
        for step, (epoch, rows) in enumerate(order, first_step):
            whole = batch_of(method, corpus, epoch, rows, step)
            batch = whole
            if share is not None:
                batch = part_of(whole, share(np.arange(len(rows))))
            batch.whole = len(rows)
            batch.tokens = whole.tokens
            if for_gpu:
                # in page-locked memory: a GPU copies from it while the host goes on
                batch = changed(batch, Tensor.pin_memory)
            yield batch

    if ahead is None:
        ahead = AHEAD if for_gpu else 0
    source = prefetch(ready(), ahead) if ahead else ready()
    try:
        for batch in source:
            yield changed(batch, lambda value: value.to(device, non_blocking=True))
    finally:
        source.close()


def batch_of(
    method: TorchMethod, corpus: TokenisedCorpus, epoch: int, rows: Rows, step: int
) -> Batch:
    """Return the rows as the method's features, in main memory, padded to the longest of them."""
    columns = {name: corpus.column(i).rows(rows) for i, name in enumerate(corpus.columns)}
    views = method.collate(columns, rows, epoch)
    tokens = 0
    for view in views:
        if "attention_mask" in view:
            tokens += int(view["attention_mask"].sum())
    return Batch(views, step, rows=rows, tokens=tokens)


def part_of(batch: Batch, positions: Rows) -> Batch:
    """Return the rows of a batch at these positions, padded as in the whole batch."""
    if batch.rows is None or len(positions) == len(batch.rows):
        return batch
    at = torch.from_numpy(positions)
    return Batch(
        tuple(map_rows(view, lambda value: value[at]) for view in batch.columns),
        batch.step,
        rows=batch.rows[positions],
        tokens=batch.tokens,
    )


def changed(batch: Batch, change: Callable[[Tensor], Tensor]) -> Batch:
    """Change every tensor with rows of the batch, which is returned."""
    batch.columns = tuple(map_rows(view, change) for view in batch.columns)
    return batch


def prefetch(source: Generator[T], ahead: int) -> Generator[T]:
    """Yield the same items in the same order, made on another thread; at most ``ahead`` of them
    wait.

    An error of ``source`` is raised here, after the items before it. Closing this ends the thread,
    and closes ``source``.
    """
    end: Any = object()
    with ThreadPoolExecutor(1, "batches") as thread:
        waiting = deque(thread.submit(next, source, end) for _ in range(ahead))
        try:
            while True:
                item = waiting.popleft().result()
                if item is end:
                    return
                waiting.append(thread.submit(next, source, end))
                yield item
        finally:
            thread.shutdown(cancel_futures=True)
            source.close()
