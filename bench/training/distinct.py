"""The order of rows under ``duplicates=drop``: no two rows of a batch share a text.

A contrastive loss takes equal texts of a batch for negatives of each other. A row that would repeat
a text of its batch waits for the first later one without it, as in sentence-transformers'
NoDuplicatesBatchSampler; otherwise the seed gives the order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np

from bench.base.errors import BenchError
from bench.method import rng_for
from bench.training.batches import Rows


def distinct_row_order(
    seed: int, texts: np.ndarray, batch_size: int, drop_last: bool = False, first: int = 0
) -> Iterator[tuple[int, Rows]]:
    """Yield (epoch, row numbers of a batch) from batch ``first`` on, without end.

    An epoch has as many batches as if texts did not matter; its last ones are short if the rows
    that still wait share texts, and rows beyond them are left out of this epoch. ``drop_last``
    leaves all short batches out, and the next epoch begins earlier. The batches before ``first``
    are made again, because their number in an epoch is not known before.

    ``texts``: (rows, columns) numbers, equal for equal texts. Raises BenchError if an epoch has no
    batch.
    """
    return itertools.islice(_all_batches(seed, texts, batch_size, drop_last), first, None)


def _all_batches(
    seed: int, texts: np.ndarray, batch_size: int, drop_last: bool
) -> Iterator[tuple[int, Rows]]:
    rows = len(texts)
    most = math.ceil(rows / batch_size)
    least = min(batch_size, rows) if drop_last else 1
    for epoch in itertools.count():
        order = rng_for(seed, "data order", epoch).permutation(rows)
        batches = distinct_batches(order, texts, batch_size)
        kept = (batch for batch in batches if len(batch) >= least)
        is_empty = True
        for batch in itertools.islice(kept, most):
            is_empty = False
            yield epoch, batch
        if is_empty:
            raise BenchError(
                f"duplicates=drop: the corpus has no {least} rows without equal texts",
                "a smaller batch_size, --set drop_last=false, or --set duplicates=keep",
            )


def distinct_batches(order: Rows, texts: np.ndarray, batch_size: int) -> Iterator[Rows]:
    """Yield all rows in batches without equal texts: each batch takes the first rows of ``order``
    that fit.

    Of the rows that wait for one text, only the first is tried in a batch: a text that half of a
    corpus has costs no more than others.
    """
    # text -> heap of places in the order whose rows wait for a batch without it
    waiting: dict[int, list[int]] = {}
    # heap of places that waited and are tried next, before new ones
    ready: list[int] = []
    new = 0

    def let_next(text: int) -> None:
        """Make the first of the rows that wait for a text ready."""
        if text in waiting:
            heappush(ready, heappop(waiting[text]))
            if not waiting[text]:
                del waiting[text]

    while ready or new < len(order):
        batch: list[int] = []
        used: set[int] = set()
        while len(batch) < batch_size and (ready or new < len(order)):
            if ready:
                place = heappop(ready)
            else:
                place = new
                new += 1
            own = texts[order[place]].tolist()
            repeated = used.intersection(own)
            if not repeated:
                batch.append(place)
                used.update(own)
                continue
            heappush(waiting.setdefault(repeated.pop(), []), place)
            for text in own:
                # this row may have stood for others that wait for the same text, and they may fit
                if text not in used:
                    let_next(text)
        for text in used:
            let_next(text)
        yield order[batch]
