"""Finds how many seeds show a difference of a given size, from a table's spreads over seeds and
over items.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from bench.base.errors import BenchError
from bench.compare.answer import verdict_of
from bench.compare.formatting import headline, row_name
from bench.compare.judge import FEWEST_SEEDS, head_column
from bench.compare.statistics.column import Column
from bench.compare.statistics.power import Planned, seeds_needed
from bench.compare.statistics.table import ALPHA, WORSE, Table
from bench.records.run import Run

LARGEST = 100.0
"""Points of a difference."""
MEDIAN = "the median row"


@dataclass(frozen=True)
class SeedsOfRow:
    """A new row that spreads like one of the table."""

    name: str
    """Of the row that it spreads like; ``MEDIAN``."""
    n: int | None
    """Number of seeds that its spread was computed from; None for the median."""
    sd: float
    """Over seeds, in points."""
    items_sd: float
    """Standard error over items of its difference from the baseline, in points."""
    seeds: int | None
    """Seeds of the new row, with the baseline's unchanged; None: ``power.MOST`` are not enough, or
    the baseline has fewer than three.
    """
    of_both: int | None
    """Seeds of the new row and of the baseline, equally many; None: ``power.MOST`` are not
    enough.
    """


@dataclass(frozen=True)
class SeedsNeeded:
    """The answer for one table and a difference of one size."""

    table: str
    """ "unsupervised, builtin, 2 to 10 seeds, senteval-all/1 (tokenised)" """
    column: str
    """The one that ranks: "Avg."."""
    size: float
    """In points."""
    baseline: str
    baseline_seeds: int | None
    """None: nothing in the baseline is random."""
    comparisons: int
    """With the baseline, the new row's among them."""
    level: float
    """Of the interval that must exclude zero."""
    rows: tuple[SeedsOfRow, ...]


def check_size(size: float) -> None:
    """Raise BenchError for anything but a number of points above 0, at most ``LARGEST``."""
    if not 0 < size <= LARGEST:  # NaN is neither
        raise BenchError(
            f"--seeds-for {size:g}: expected a difference in points, above 0 and at most "
            f"{LARGEST:.0f}",
            "bench compare --seeds-for 2.0",
        )


def seeds_for(table: Table, runs: Mapping[str, Run], size: float) -> SeedsNeeded | None:
    """Return how many seeds of a new row of the table find a true difference of ``size`` points
    from the baseline in 80 of 100 tables.

    ``table``: as ``compare_runs`` judged it. The new row is tested as one more comparison. None if
    the table has no column that ranks, no baseline with a value and predictions, or no row with two
    seeds.
    """
    check_size(size)
    found = None if table.sender else head_column(table, runs)
    if found is None:
        return None
    head, places = found
    base = next((i for i, place in enumerate(places) if table.rows[place].is_baseline), None)
    if base is None:
        return None
    items, repeated = head.over_items(base)
    over_items = [float(value) for value in items + repeated]
    known = [v for i, v in enumerate(over_items) if i != base and math.isfinite(v)]
    several = [i for i in range(len(places)) if head.own_freedom_M[i] > 0]
    if not known or not several:
        return None
    spreads = [math.sqrt(head.spread_M[i]) for i in several]
    comparisons, critical = _next_comparison(table)
    plan = _Plan(head, base, size, critical)
    rows = [plan.row(MEDIAN, None, median(spreads), median(known))]
    for i, sd in zip(several, spreads, strict=True):
        name = row_name(table.rows[places[i]], table)
        usual = i == base or not math.isfinite(over_items[i])
        rows.append(
            plan.row(name, int(head.runs_M[i]), sd, median(known) if usual else over_items[i])
        )
    return SeedsNeeded(
        table=headline(table),
        column=str(table.head),
        size=size,
        baseline=str(table.baseline),
        baseline_seeds=int(head.runs_M[base]) if head.random_M[base] else None,
        comparisons=comparisons,
        level=1 - critical,
        rows=tuple(rows),
    )


def _next_comparison(table: Table) -> tuple[int, float]:
    """Return (comparisons of the table with one more row, the level of each): the rule's share,
    worse rows having passed theirs on.
    """
    compared = [verdict_of(row) for row in table.rows if verdict_of(row)]
    comparisons = len(compared) + 1
    return comparisons, ALPHA / (comparisons - compared.count(WORSE))


@dataclass(frozen=True)
class _Plan:
    """The facts that new rows of one table have in common."""

    head: Column
    base: int
    size: float
    critical: float

    def row(self, name: str, n: int | None, sd: float, items: float) -> SeedsOfRow:
        """Return the difference of a planned row from the baseline.

        ``sd``: of the new row over seeds. ``items``: the variance of the difference over items.
        """
        head = self.head
        base = self.base
        random = bool(head.random_M[base])
        lends = head.own_freedom_M > 0
        planned = Planned(
            size=self.size,
            sd=sd,
            items=items,
            items_freedom=head.freedom,
            critical=self.critical,
            variance_M=head.spread_M[lends],
            freedom_M=head.own_freedom_M[lends],
            base=int(lends[:base].sum()) if lends[base] else None,
        )
        seeds = of_both = None
        if not random or head.runs_M[base] >= FEWEST_SEEDS:
            seeds = seeds_needed(planned, int(head.runs_M[base]))
        if not random:
            of_both = seeds
        elif lends[base]:
            of_both = seeds_needed(planned, None)
        return SeedsOfRow(name, n, sd, math.sqrt(items), seeds, of_both)
