"""Conditions that the numbers of any printed row must fulfil."""

from __future__ import annotations

import math

from bench.papers import PrintedRow, ReferenceResult, half_unit

LEAST_CELLS = 3
"""Cells that must agree before two rows count as the same numbers."""
ITEMS = {"TREC": 500, "SST-2": 1821, "MRPC": 1725}
"""Test items of the accuracy tasks with one test set; the others are averages over folds."""
TINY = 1e-9


def coarse(row: PrintedRow) -> bool:
    """Return whether all cells of a row have two decimals and end in 0.

    Then they were rounded to one decimal before.
    """
    return len(row.parts) >= LEAST_CELLS and all(
        half_unit(cell.printed) < 0.05 and cell.printed.endswith("0") for cell in row.parts
    )


def off_average(row: PrintedRow) -> float | None:
    """Return the mean of a row's cells if the printed average cannot be it, else None.

    It cannot if rounding of the printed cells and average does not explain the difference. None
    also if there is no average.
    """
    if row.average is None or len(row.parts) < 2:
        return None
    mean = math.fsum(cell.value for cell in row.parts) / len(row.parts)
    rounding = half_unit(row.average.printed) + math.fsum(
        half_unit(cell.printed) for cell in row.parts
    ) / len(row.parts)
    return mean if abs(row.average.value - mean) > rounding + TINY else None


def impossible_accuracy(
    cell: ReferenceResult, row: PrintedRow
) -> tuple[int, int, tuple[float, float]] | None:
    """Return (items, runs, nearest values below and above) if no number of right answers gives the
    printed accuracy, else None.

    For n items in k runs the mean is a multiple of 100 / (n k). The print rounds it once; each of
    several runs may have been rounded before. None also if the task has no single test set.
    """
    items = ITEMS.get(cell.task)
    if cell.metric != "accuracy" or items is None:
        return None
    unit = 0.05 if coarse(row) else half_unit(cell.printed)
    step = 100 / (items * cell.repeats)
    below = math.floor(cell.value / step + TINY) * step
    near = (below, below + step)
    explained = unit if cell.repeats == 1 else 2 * unit
    if min(abs(cell.value - value) for value in near) <= explained + TINY:
        return None
    return items, cell.repeats, near
