"""The batches of a training, ready on the device when they are needed.

The corpus is a memory map of token ids (:mod:`bench.data.corpora`): a batch slices its rows, and nothing is tokenised here. On a
CPU a batch is made when the loop asks for it. For a GPU a thread makes the next ones meanwhile, pads them to lengths that
repeat (kernels are chosen, and graphs compiled, once for each shape) and pins them, so that the host need not wait for the copy.
Neither changes which rows a batch has, or their content.
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
from bench.method.torch_method import Batch, Features, TorchMethod, of_rows, widened

# The corpus is a memory map of token ids (:mod:`bench.data.corpora`): a batch slices its rows, and nothing is tokenised here. On a
# CPU a batch is made when the loop asks for it. For a GPU a thread makes the next ones meanwhile, pads them to lengths that
# repeat (kernels are chosen, and graphs compiled, once for each shape) and pins them, so that the host need not wait for the copy.
# Neither changes which rows a batch has, or their content.

T = TypeVar("T")
Rows = np.ndarray  # (n,) row numbers of the corpus
MULTIPLE = 8  # a padded length for a GPU; also what its matrix units want
AHEAD = 4  # batches that wait for a GPU


def row_order(
    seed: int, rows: int, batch_size: int, drop_last: bool = False, first: int = 0
) -> Iterator[tuple[int, Rows]]:
    """Endless (epoch, row numbers of a batch) from batch ``first`` on; each epoch has another order, the same for every method."""
    end = rows - rows % batch_size if drop_last and rows >= batch_size else rows
    starts = range(0, end, batch_size)
    begun, within = divmod(first, len(starts))
    for epoch in itertools.count(begun):
        order = np.random.default_rng(seed_for(seed, "data order", epoch)).permutation(rows)
        yield from (
            (epoch, order[i : i + batch_size]) for i in starts[within if epoch == begun else 0 :]
        )


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
    """The batch of every step from ``first_step`` on, on ``device``. Close it when there is nothing more to train.

    ``share`` picks a rank's part of the positions in a batch, which is made whole: a row's features may depend on the
    others, as CT's pairs do. ``ahead`` batches are made on a thread in advance (None: some for a GPU, none on a CPU, where
    they would slow down the current step). An error while making one, such as a deleted corpus, is raised when its turn comes.
    """
    for_gpu = device.type == "cuda"
    longest = longest_input(method) if for_gpu and not method.padding_counts else 0

    def ready() -> Generator[Batch]:
        if for_gpu and device.index is not None:
            torch.cuda.set_device(
                device
            )  # of this thread: else every process pins on the first GPU
        for step, (epoch, rows) in enumerate(order, first_step):
            whole = batch_of(method, corpus, epoch, rows, step)
            batch = part_of(whole, share(np.arange(len(rows)))) if share else whole
            batch.whole, batch.tokens = len(rows), whole.tokens
            if for_gpu:  # in page-locked memory, from which a GPU copies while the host goes on
                batch = changed(lengthen(batch, method.pad_id, longest), Tensor.pin_memory)
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
    """The rows as the method's features, in main memory, padded to the longest of them."""
    views = method.collate(
        {name: corpus.column(i).rows(rows) for i, name in enumerate(corpus.columns)}, rows, epoch
    )
    tokens = sum(int(view["attention_mask"].sum()) for view in views if "attention_mask" in view)
    return Batch(views, step, rows=rows, tokens=tokens)


def part_of(batch: Batch, positions: Rows) -> Batch:
    """Some rows of a batch, padded as in the whole one."""
    if batch.rows is None or len(positions) == len(batch.rows):
        return batch
    at = torch.from_numpy(positions)
    return Batch(
        tuple(of_rows(view, lambda value: value[at]) for view in batch.columns),
        batch.step,
        rows=batch.rows[positions],
        tokens=batch.tokens,
    )


def longest_input(method: TorchMethod) -> int:
    """How many tokens an input of the method may have: those of a sentence that is far too long."""
    too_long = [method.pad_id] * (method.backbone.max_tokens + 1)
    return int(method.assemble([too_long])["input_ids"].shape[1])


def lengthen(batch: Batch, pad_id: int, longest: int, multiple: int = MULTIPLE) -> Batch:
    """The batch with every view as long as the next ``multiple``, where ``longest`` allows that. Masks are 0 there."""

    def longer(view: Features) -> Features:
        if "input_ids" not in view:
            return view
        length = view["input_ids"].shape[1]
        length = max(length, min(-(-length // multiple) * multiple, longest))
        return {
            key: value
            if value.ndim < 2
            else widened(value, length, pad_id if key == "input_ids" else 0)
            for key, value in view.items()
        }

    batch.columns = tuple(longer(view) for view in batch.columns)
    return batch


def changed(batch: Batch, change: Callable[[Tensor], Tensor]) -> Batch:
    """The batch, every tensor with rows changed."""
    batch.columns = tuple(of_rows(view, change) for view in batch.columns)
    return batch


def prefetch(source: Generator[T], ahead: int) -> Generator[T]:
    """The same items in the same order, made on another thread; at most ``ahead`` of them wait.

    An error of ``source`` is raised here, after the items before it. Closing this ends the thread, and closes ``source``.
    """
    end: Any = object()
    with ThreadPoolExecutor(1, "batches") as thread:
        waiting = deque(thread.submit(next, source, end) for _ in range(ahead))
        try:
            while (item := waiting.popleft().result()) is not end:
                waiting.append(thread.submit(next, source, end))
                yield item
        finally:
            thread.shutdown(cancel_futures=True)
            source.close()
