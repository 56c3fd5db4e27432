"""The smallest gain that so many seeds tell, for one planned comparison of two methods with equally
many seeds: two-sided level 5 %, power 80 %.

The difference of two means over n seeds has the variance items + v / n. For rows that are compared
seed by seed v is the variance of their differences, for others the sum of both variances over
seeds. The distribution is taken as a noncentral t with Satterthwaite's degrees of freedom of the
sample variances; the variance over items is taken as known. It grows with the distance of two rows,
and the question is about a small gain: a row far from the baseline gets the variance of the rows
near it. One seed says nothing about the spread: it is taken as known from elsewhere, with the
normal distribution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from bench.compare.judge import head_column
from bench.compare.statistics.differences import POWER
from bench.compare.statistics.table import ALPHA, Row, Table
from bench.compare.words.names import row_name
from bench.records.run import Run

COUNTS = (1, 3, 5, 10)
"""Seeds of both methods for which the table has a column."""
MOST_SEEDS = 200
"""Seeds that are tried."""
CLOSE = 1e-6
NEAR = 3
"""Rows nearest to the baseline, whose items say how far those of a row vary that is as near."""


@dataclass(frozen=True)
class SpreadOfRow:
    """The spreads of a method over seeds and over items, in points."""

    # "promcse"; "the median row"
    name: str
    # None for a row that represents several
    row: Row | None
    # over seeds, of the method and of the baseline; of their differences, and 0, if these are known
    sd: float
    base_sd: float
    # standard error over items of their difference, near the baseline
    items: float

    def smallest_gain(self, seeds: int) -> float:
        """Return the true difference that is found with a power of 80 %, with so many seeds of
        both. One seed: the spreads are known from elsewhere."""
        from scipy.special import ndtri

        of_seeds = (self.sd**2 + self.base_sd**2) / seeds
        error = math.sqrt(self.items**2 + of_seeds)
        if seeds == 1 or of_seeds == 0:
            return float(ndtri(1 - ALPHA / 2) + ndtri(POWER)) * error
        freedom = error**4 * (seeds - 1) * seeds**2 / (self.sd**4 + self.base_sd**4)
        return _noncentrality(freedom) * error

    def seeds_for(self, gain: float) -> int | None:
        """Return the fewest seeds of both, two at least, that find a gain; None if ``MOST_SEEDS``
        are not enough."""
        if gain <= 0:
            return None
        for seeds in range(2, MOST_SEEDS + 1):
            if self.smallest_gain(seeds) <= gain:
                return seeds
        return None


def _noncentrality(freedom: float) -> float:
    """Return the noncentrality at which a two-sided t test has its power."""
    from scipy.special import nctdtr, stdtrit

    critical = float(stdtrit(freedom, 1 - ALPHA / 2))

    # far out nctdtr gives no number, which a root finder of scipy does not take
    low, high = 0.0, 4 * critical + 8
    while high - low > CLOSE:
        middle = (low + high) / 2
        beyond = 1 - float(nctdtr(freedom, middle, critical))
        beyond += float(nctdtr(freedom, middle, -critical))
        if beyond < POWER:
            low = middle
        else:
            high = middle
    return high


def row_spreads(table: Table, runs: Mapping[str, Run]) -> list[SpreadOfRow]:
    """Return the spreads of the rows of a table that are compared with its baseline seed by seed,
    in the table's order; if there are none, of those that have two seeds or more. There are none
    if the baseline has one seed, or if predictions are missing."""
    found = head_column(table, runs)
    if found is None:
        return []
    head, places = found
    base = None
    for i, place in enumerate(places):
        if table.rows[place].is_baseline and head.own_freedom_M[i] > 0:
            base = i
    if base is None:
        return []
    items_M, repeated_M = head.over_items(base)
    pairs = head.pairs_with(base)
    if pairs is not None and pairs.paired_M.any():
        has_seeds_M, variance_M, base_variance = pairs.paired_M, pairs.spread_M, 0.0
    else:
        has_seeds_M, variance_M = head.own_freedom_M > 0, head.spread_M
        base_variance = float(head.spread_M[base])
    items_of = {}
    for i in range(len(places)):
        variance = float(items_M[i] + repeated_M[i])
        if i != base and math.isfinite(variance):
            items_of[i] = math.sqrt(variance)
    distance_M = abs(head.differences(base))
    near = sorted(items_of, key=lambda i: float(distance_M[i]))[:NEAR]
    spreads = []
    for i, own in items_of.items():
        if not has_seeds_M[i]:
            continue
        row = table.rows[places[i]]
        items = own
        if i not in near:
            items = min(own, median(items_of[j] for j in near))
        spreads.append(
            SpreadOfRow(
                name=row_name(row, table),
                row=row,
                sd=math.sqrt(float(variance_M[i])),
                base_sd=math.sqrt(base_variance),
                items=items,
            )
        )
    return spreads


def median_spread(spreads: list[SpreadOfRow], name: str) -> SpreadOfRow:
    """Return a row with the median spreads of these rows."""
    return SpreadOfRow(
        name=name,
        row=None,
        sd=median(spread.sd for spread in spreads),
        base_sd=spreads[0].base_sd,
        items=median(spread.items for spread in spreads),
    )
