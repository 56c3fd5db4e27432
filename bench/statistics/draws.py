"""Which items a resampled data set holds: how often each one was drawn.

As many units as there are, with replacement, each equally likely (Efron 1979). Draws depend on the task's name, the number of
units and the seed alone, never on a method or on how much memory there is.

Legend: U units, B draws of a block.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

GROUP = 64  # draws that share one generator: blocks of any size are made of whole groups
WIDEST = 32 * GROUP  # draws of a block; more would leave the processor's cache
BYTES = 64 << 20


def counts(task: str, units: int, draws: int, *, seed: int, bytes_per_draw: int) -> Iterator[NDArray[np.uint8]]:
    """(U, B) blocks of counts, together ``draws`` columns. Of fewer draws one gets the first of more.

    ``bytes_per_draw``: what the caller needs for a column; a block stays below ``BYTES``, if it may have one group at least.
    """
    groups = max(1, min(WIDEST, BYTES // max(1, bytes_per_draw)) // GROUP)
    for first in range(0, draws, groups * GROUP):
        last = min(draws, first + groups * GROUP)
        block_UB = np.empty((units, last - first), dtype=np.uint8)
        for start in range(first, last, GROUP):
            width = min(GROUP, last - start)
            block_UB[:, start - first : start - first + width] = _group(task, units, seed, start // GROUP)[:width].T
        yield block_UB


def _group(task: str, units: int, seed: int, number: int) -> NDArray[np.uint8]:
    """(GROUP, U): the counts of ``GROUP`` draws."""
    rng = np.random.default_rng([seed, zlib.crc32(task.encode()), units, number])
    drawn = rng.integers(0, units, size=(GROUP, units), dtype=np.uint16 if units <= 1 << 16 else np.int64)
    place = drawn + np.arange(GROUP, dtype=np.int64)[:, None] * units
    # one unit is drawn more than 255 times with a probability below 1e-500, where there are so many units at all
    return np.bincount(place.reshape(-1), minlength=GROUP * units).reshape(GROUP, units).astype(np.uint8)
