"""The batches of a training and their gradient: which rows in which order, as which features, and the gradient of one batch, in one
pass or with the activations of a few rows at a time.
"""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from bench.base.errors import BenchError
from bench.data.corpora.token_cache import TokenisedCorpus
from bench.method import Method, seed_for
from bench.method.batch import Batch, checked_loss
from bench.method.features import Features, map_rows, widened
from bench.method.ranks import Alone, Ranks
from bench.method.torch_method import TorchMethod

# --- batches, ready on the device when they are needed ---
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
        tuple(map_rows(view, lambda value: value[at]) for view in batch.columns),
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
    batch.columns = tuple(map_rows(view, change) for view in batch.columns)
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


# --- the gradient of one batch ---
# A contrastive loss needs the vectors of the whole batch, but not all their activations at once. Gradient caching (Gao, Zhang,
# Han and Callan 2021, "Scaling deep contrastive learning batch size under memory limited setup") computes the vectors slice by
# slice and keeps nothing else, takes the loss over all of them, and computes each slice again for its gradient. The second pass
# of a slice draws the same dropout masks as the first: torch's checkpointing keeps the state of the generators.
#
# The gradient is that of one pass over the same masks. Which masks are drawn depends on the size of the slices and on the device.
# Memory: the activations of one slice, and those of the loss, which has no layers.


def backward(
    method: TorchMethod,
    batch: Batch,
    *,
    chunk: int | None = None,
    autocast: AbstractContextManager[Any] | None = None,
    scaler: torch.amp.GradScaler | None = None,
) -> dict[str, Tensor]:
    """Adds the gradient of a batch's loss to what trains; returns the loss, under "loss", and its parts, all detached.

    ``chunk``: hold the activations of this many rows at once, None for all. Raises BenchError where that is not possible.
    """
    views: tuple[Tensor, ...] = ()
    leaves: tuple[Tensor, ...] = ()
    with in_chunks(method, chunk), autocast or nullcontext():
        if method.is_split():
            method.prepare(batch)
            views = method.views_of(batch)
            leaves = leaves_of(views, batch, method.ranks)
            with same_draws(method, batch.step):
                loss = checked_loss(method, method.loss(leaves, batch))
        else:
            loss = checked_loss(method, method(batch))
    (loss.total if scaler is None else scaler.scale(loss.total)).backward()
    gradients = zip(views, own_gradients(leaves, views, method.ranks), strict=True)
    if reached := [(view, gradient) for view, gradient in gradients if gradient is not None]:
        torch.autograd.backward(
            [view for view, _ in reached], [gradient for _, gradient in reached]
        )
    return {
        "loss": loss.total.detach(),
        **{name: part.detach() for name, part in loss.parts.items()},
    }


@contextmanager
def in_chunks(method: TorchMethod, chunk: int | None) -> Iterator[None]:
    """While open, the method computes its views in slices of ``chunk`` rows."""
    if chunk is not None:
        check_chunk(method, chunk)
    before, method.chunk = method.chunk, chunk
    try:
        yield
    finally:
        method.chunk = before


def check_chunk(method: Method | type[Method], chunk: int) -> None:
    """Raises BenchError for a size below 1, and for a method whose batch cannot be cut."""
    if chunk < 1:
        raise BenchError(f"a chunk of {chunk} rows", "--chunk 1 or more")
    if not method.is_split():
        raise BenchError(
            f"{method.name} defines its loss as a whole, in forward(batch), so its batches cannot be cut into chunks",
            "omit --chunk, or define views(batch) and loss(views, batch) instead: docs/add-a-method.md",
        )


# --- A batch whose rows are spread over ranks, with the gradient of one process ---
# W ranks, n rows on each, N rows in all. Each rank computes the views of its rows; all are gathered, and every rank computes the
# whole loss over them. A rank keeps the gradient of the views of its rows, times W; what the loss itself uses, such as a head with
# batch normalisation, has its whole gradient on every rank. The mean over the ranks is then, for both, the gradient of one process
# with the whole batch: exactly, for any loss and any numbers of rows. No loss has to be written for this.


def leaves_of(views: Sequence[Tensor], batch: Batch, ranks: Alone) -> tuple[Tensor, ...]:
    """The views of the whole batch, as leaves that collect a gradient where the views have one.

    ``views`` are those of this rank's rows. Views padded to its longest row are padded to the longest of all ranks.
    """
    whole: Sequence[Tensor] = [view.detach() for view in views]
    if isinstance(ranks, Ranks):
        sizes = ranks.sizes(batch.whole or sum(ranks.gather(batch.size)))
        lengths = iter(ranks.largest([length for view in views for length in view.shape[1:]]))
        for_all = [[next(lengths) for _ in view.shape[1:]] for view in views]
        same = [
            widened(view, to[0]) if to and view.shape[1] < to[0] else view
            for view, to in zip(whole, for_all, strict=True)
        ]
        # the slice: a rank without a part has a row that does not count
        whole = [ranks.rows_of_all(view[: sizes[ranks.rank]], sizes) for view in same]
    return tuple(
        leaf.requires_grad_(view.requires_grad) for leaf, view in zip(whole, views, strict=True)
    )


def own_gradients(
    leaves: Sequence[Tensor], views: Sequence[Tensor], ranks: Alone
) -> list[Tensor | None]:
    """The gradients of the views of this rank's rows, times W, from those of the whole batch."""
    if not isinstance(ranks, Ranks):
        return [leaf.grad for leaf in leaves]
    return [
        None if leaf.grad is None else _own(leaf.grad, view, ranks)
        for leaf, view in zip(leaves, views, strict=True)
    ]


def _own(whole: Tensor, view: Tensor, ranks: Ranks) -> Tensor:
    sizes = ranks.sizes(len(whole))
    start, size = sum(sizes[: ranks.rank]), sizes[ranks.rank]
    mine = whole.new_zeros((len(view), *whole.shape[1:]))
    mine[:size] = whole[start : start + size] * ranks.count
    return mine[(slice(None), *(slice(length) for length in view.shape[1:]))]


@contextmanager
def same_draws(method: TorchMethod, step: int) -> Iterator[None]:
    """While open, random draws in a loss, such as DCLR's noise, are the same on all ranks: else each would have another loss."""
    several, device = method.ranks.count > 1, torch.device(method.context.device)
    with torch.random.fork_rng([device] if device.type == "cuda" else [], enabled=several):
        if several:
            torch.manual_seed(seed_for(method.context.seed, "loss", step))
        yield


def check_spread(method: TorchMethod, ranks: Alone, rows: int) -> str | None:
    """A note about a method whose batches are spread over ranks, None for nothing. ``rows`` are those of the corpus.

    Raises BenchError where the mean over the ranks would not be the mean over the batch: the loss is not split into ``views`` and
    ``loss``, and the ranks would have different numbers of rows.
    """
    if ranks.count == 1 or method.is_split():
        return None
    size, last = method.recipe.batch_size, rows % method.recipe.batch_size
    if size % ranks.count or (
        last % ranks.count and not (method.recipe.drop_last and rows >= size)
    ):
        raise BenchError(
            f"{method.name} defines forward(batch) as a whole, and {ranks.count} ranks cannot share its batches evenly "
            f"(batch_size {size}, the last one {last or size})",
            f"--set drop_last=true and a batch_size that {ranks.count} divides, or one process",
        )
    return f"{method.name} defines forward(batch) as a whole: a row meets only the {size // ranks.count} rows of its rank, not all {size}"


# --- ``--set compile=true``: torch compiles the encoder's forward while training. Scored vectors come from the uncompiled encoder ---


def compile_encoder(encoder: nn.Module, note: Callable[[str], None]) -> Callable[[], bool]:
    """Compile the encoder's forward. If the compiler fails, ``note`` gets one line with its error and the forward is eager from then on.

    Returns a function that says whether the forward is still compiled.
    """
    vars(encoder).pop("forward", None)
    eager = encoder.forward
    compiled = torch.compile(eager)

    @functools.wraps(eager)
    def forward(*args: Any, **kwargs: Any) -> Any:
        nonlocal compiled
        try:
            return compiled(*args, **kwargs)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # a compiler can raise anything, and must not end a training
            if compiled is eager:
                raise
            compiled = eager
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            note(f"compile: the encoder is not compiled ({first[:120]})")
            return eager(*args, **kwargs)

    encoder.forward = forward  # an attribute of this one object: names of weights stay
    return lambda: compiled is not eager
