"""The rule that says which rows are better or worse than the baseline, and which may be the best
(docs/statistics.md).

Legend: M rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.compare.statistics.column import Column
from bench.compare.statistics.table import (
    ALPHA,
    BETTER,
    INCONCLUSIVE,
    WORSE,
)

RULE = 2
"""Raised with each change that moves a number, a verdict, a mark or a finding of a judged table.
A published version says by which rule it was judged, and ``bench verify`` judges it again by the
same one alone."""
EARLIER = {1: "bd8b6851b"}
"""Rule -> the last commit of bench that judges by it."""


@dataclass(frozen=True)
class Verdicts:
    """Verdicts on the rows of one column, in its order."""

    verdicts: tuple[str | None, ...]
    """None: not compared with the baseline."""
    may_be_best: tuple[bool, ...]
    critical: float
    """p-values below it are verdicts."""
    comparisons: int


def apply_rule(column: Column, tested_M: NDArray[np.bool_], base: int | None) -> Verdicts:
    """Find the rows that are better or worse than the one at ``base``, and those that may be the
    best; more is better. At least two rows are tested.

    Each of the m comparisons is tested at level c = 0.05 / m. A row found worse is removed and the
    level of the others rises (Bonferroni-Holm). A row is no candidate for the best if it is worse,
    or below a better row, one-sided at c; and the baseline is not if a row is better. Without a
    baseline it is none if it is below any row (Hsu's comparison with the best). The level of all
    this together is 0.05; docs/statistics.md says how often a table is wrong if rows of few seeds
    spread more than the others.
    """
    comparisons = int(tested_M.sum()) - 1
    critical = ALPHA / comparisons
    better_M = np.zeros_like(tested_M)
    worse_M = ~tested_M
    if base is not None:
        minus = column.minus(base)
        p_M = np.where(tested_M, minus.p_P, np.nan)
        while True:
            worse_M = (p_M < critical) & (minus.value_P < 0)
            share = ALPHA / max(1, comparisons - int(worse_M.sum()))
            if share == critical:
                break
            critical = share
        better_M = (p_M < critical) & (minus.value_P > 0)
    out_M = worse_M | ~tested_M
    for above in np.flatnonzero(tested_M if base is None else better_M):
        # p-values take the time, and few of thousands of rows are left after the best one
        rest = np.flatnonzero(~out_M & (column.differences(int(above)) < 0))
        if len(rest):
            out_M[rest] = column.minus(int(above)).select(rest).below_p_P < critical
    if base is not None:
        out_M[base] |= better_M.any()
    verdict_M = np.select([better_M, worse_M, tested_M], [BETTER, WORSE, INCONCLUSIVE], "")
    verdicts: list[str | None] = [str(verdict) or None for verdict in verdict_M]
    if base is None:
        verdicts = [None] * len(verdicts)
    else:
        verdicts[base] = None
    return Verdicts(tuple(verdicts), tuple((~out_M).tolist()), critical, comparisons)
