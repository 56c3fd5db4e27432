"""The power of the rule that judges tables: how often a difference from the baseline is found with
a given number of seeds.

A new row of n seeds is planned next to the rows of a column. Its mean is normal around the true
difference, and independent of its sample variance over seeds, which is the true one times
chi-square with n - 1 degrees of freedom over n - 1 (Student 1908). Given the sample variance, the
rule says how long its interval is, and the normal distribution how often the interval is then above
zero. The mean of that over quantiles of chi-square is the power; nothing is drawn at random. The
variance over items and the sample variances of the existing rows are used unchanged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bench.compare.statistics.differences import POWER, satterthwaite, student_quantile
from bench.compare.statistics.seed_variance import seed_variances
from bench.records.predictions import Floats

DRAWS = 32
"""Sample variances over which the power is averaged: the middles of equal parts of their
distribution.
"""
GOLDEN = (math.sqrt(5) - 1) / 2
"""Steps of this share of 1 spread as evenly as possible: they pair the variances of two rows."""
FEWEST, MOST = 3, 100
"""Seeds that are looked at. With fewer than three, nothing is tested."""


@dataclass(frozen=True)
class Planned:
    """A new row that is compared with the baseline of a column."""

    size: float
    """The true difference from the baseline, in points; above 0."""
    sd: float
    """Of the new row over seeds, in points."""
    items: float
    """Variance of the difference over items, in squared points."""
    items_freedom: float
    critical: float
    """Two-sided level below which a difference has a sign."""
    variance_M: Floats
    """Sample variances over seeds of the rows that lend their spread, the baseline among them."""
    freedom_M: Floats
    base: int | None
    """The baseline's place among these; None: nothing in it is random."""


def power(planned: Planned, seeds: int, base_seeds: int, *, base_again: bool = False) -> float:
    """Return the share of tables in which the difference gets the right sign, with so many seeds of
    the new row and of the baseline.

    ``base_again``: the baseline is trained again too, so that its sample variance is another one;
    else it is the given one.
    """
    from scipy.special import chdtri, ndtr

    new_share_D = (np.arange(DRAWS) + 0.5) / DRAWS
    base_share_D = (np.arange(DRAWS) * GOLDEN + 0.5) % 1.0
    base_variance = 0.0 if planned.base is None else float(planned.variance_M[planned.base])
    spread = planned.sd**2 / seeds + base_variance / base_seeds
    error = math.sqrt(planned.items + spread)
    found_D = np.empty(DRAWS)
    freedom_M = np.append(planned.freedom_M, seeds - 1.0)
    for d in range(DRAWS):
        own = planned.sd**2 * float(chdtri(seeds - 1, 1 - new_share_D[d])) / (seeds - 1)
        variance_M = np.append(planned.variance_M, own)
        if planned.base is not None and base_again:
            freedom_M[planned.base] = base_seeds - 1.0
            drawn = float(chdtri(base_seeds - 1, 1 - base_share_D[d])) / (base_seeds - 1)
            variance_M[planned.base] = base_variance * drawn
        moderated_M, moderated_freedom_M = seed_variances(variance_M, freedom_M)
        parts = [(moderated_M[-1:] / seeds, float(moderated_freedom_M[-1]))]
        if planned.base is not None:
            of_base = moderated_M[[planned.base]] / base_seeds
            parts.append((of_base, float(moderated_freedom_M[planned.base])))
        of_seeds = sum((part for part, _ in parts), np.zeros(1))
        seeds_freedom = min(float(satterthwaite(parts)[0]), float(freedom_M.sum()))
        freedom = satterthwaite(
            [(np.array([planned.items]), planned.items_freedom), (of_seeds, seeds_freedom)]
        )
        half = float(student_quantile(1 - planned.critical / 2, freedom)[0])
        half *= math.sqrt(planned.items + float(of_seeds[0]))
        if error > 0:
            found_D[d] = ndtr((planned.size - half) / error)
        else:
            found_D[d] = planned.size > half
    return float(found_D.mean())


def seeds_needed(planned: Planned, base_seeds: int | None) -> int | None:
    """Return the fewest seeds of the new row with a power of 0.8; None if ``MOST`` are not enough.
    ``base_seeds``: of the unchanged baseline; None: as many as of the new row, all trained anew.
    """

    def enough(seeds: int) -> bool:
        if base_seeds is None:
            return power(planned, seeds, seeds, base_again=True) >= POWER
        return power(planned, seeds, base_seeds) >= POWER

    if not enough(MOST):
        return None
    few, many = FEWEST - 1, MOST
    while many - few > 1:
        # small numbers are the usual answer: double what is known to be too few before halving the
        # rest
        middle = min(2 * few, (few + many) // 2)
        middle = max(middle, few + 1)
        if enough(middle):
            many = middle
        else:
            few = middle
    return many
