"""What the numbers of one printed row must fulfil, whatever they measure."""

from __future__ import annotations

import math
import re

from bench.references import ReferenceResult
from bench.references.rows import Row

ITEMS = {"TREC": 500, "SST-2": 1821, "MRPC": 1725}
"""Test items of the accuracy tasks with one test set; the others are averages over folds."""
TINY = 1e-9


def decimals(row: Row) -> int:
    """How many decimals a row is printed with. The data keeps no zeros at the end, so the longest number counts."""
    return max(len(repr(cell.value).partition(".")[2]) for cell in row.cells)


def off_average(row: Row) -> float | None:
    """The mean of a row's cells, where the printed average cannot be it: where rounding of the cells and of the average,
    half a unit of the last decimal each, does not explain the difference. None where it can, and where there is no average.
    """
    if row.average is None or len(row.parts) < 2:
        return None
    mean = math.fsum(cell.value for cell in row.parts) / len(row.parts)
    return mean if abs(row.average.value - mean) > 10.0 ** -decimals(row) + TINY else None


def too_wide(row: Row) -> float | None:
    """The mean of the cells' standard deviations, where the average's is larger by more than rounding. None elsewhere.

    The standard deviation is a norm: of a mean it is at most the mean of theirs, however the cells vary together.
    """
    spreads = [cell.std for cell in row.parts if cell.std is not None]
    if row.average is None or row.average.std is None or len(spreads) != len(row.parts) or not spreads:
        return None
    most = math.fsum(spreads) / len(spreads)
    return most if row.average.std > most + 10.0 ** -decimals(row) + TINY else None


def unreachable(cell: ReferenceResult, row: Row) -> tuple[int, int, tuple[float, float]] | None:
    """(items, runs, nearest values below and above), where no number of right answers gives the printed accuracy.

    Of n items in k runs the mean is a multiple of 100 / (n k). The print rounds it once; of several runs each may have been
    rounded before. None where it can be reached, or where the task has no single test set.
    """
    items = ITEMS.get(cell.task)
    if cell.metric != "accuracy" or items is None:
        return None
    repeats = int(found.group()) if (found := re.search(r"\d+", cell.runs)) else 1
    unit = 0.5 * 10.0 ** -decimals(row)
    step = 100 / (items * repeats)
    below = math.floor(cell.value / step + TINY) * step
    near = (below, below + step)
    allowed = unit if repeats == 1 else 2 * unit
    return (items, repeats, near) if min(abs(cell.value - v) for v in near) > allowed + TINY else None
