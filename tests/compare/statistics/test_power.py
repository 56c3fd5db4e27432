"""How many seeds find a difference: against tables drawn and judged by the other implementation of
the rule.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from made_tables import alike, judge

from bench.compare.statistics.power import MOST, Planned, power, seeds_needed

LENT = np.array([0.2, 0.35, 0.1, 0.6])
FREEDOM = np.array([5.0, 2.0, 9.0, 4.0])
"""Of four rows; the third, of ten seeds, is the baseline."""
ITEMS, BASE = 0.08, 2


def planned(size: float = 2.0, sd: float = 0.8, **more: object) -> Planned:
    fields = {
        "size": size,
        "sd": sd,
        "items": ITEMS,
        "items_freedom": 1000.0,
        "critical": 0.05 / 4,
        "variance_M": LENT,
        "freedom_M": FREEDOM,
        "base": BASE,
    }
    return Planned(**{**fields, **more})  # type: ignore[arg-type]


def drawn(sd: float, size: float, seeds: int, tables: int = 20_000) -> float:
    """The share of tables with a sign at a new row. The other rows equal the baseline, and have the
    spreads at hand in every table.
    """
    rng = np.random.default_rng(3)
    runs = np.array([6, 3, 10, 5, seeds])
    values = sd * rng.normal(size=(tables, seeds))
    variances = np.tile(LENT, (tables, 1))
    variances = np.column_stack([variances, values.var(axis=1, ddof=1)])
    noise = math.sqrt(ITEMS + LENT[BASE] / 10) * rng.normal(size=tables)
    means = np.zeros((tables, 5))
    means[:, 4] = size + noise + values.mean(axis=1)
    # the items of two rows; their difference has the variance ITEMS
    items = alike(5, math.sqrt(ITEMS), 0.5)
    said = judge(means, variances, runs, np.ones(5, dtype=bool), items, BASE)
    return float((said.sign_TK[:, 4] > 0).mean())


@pytest.mark.parametrize(("sd", "size", "seeds"), [(0.8, 2.0, 3), (0.8, 2.0, 6), (0.3, 1.0, 4)])
def test_the_power_is_that_of_drawn_tables(sd: float, size: float, seeds: int) -> None:
    assert power(planned(size, sd), seeds, 10) == pytest.approx(drawn(sd, size, seeds), abs=0.015)


def test_the_number_is_the_first_that_is_enough() -> None:
    needed = seeds_needed(planned(1.5), 10)
    assert needed is not None and needed > 3
    assert drawn(0.8, 1.5, needed) >= 0.78 and drawn(0.8, 1.5, needed - 1) <= 0.82
    assert power(planned(1.5), needed - 1, 10) < 0.8 <= power(planned(1.5), needed, 10)


def test_no_number_of_seeds_outweighs_the_items() -> None:
    assert seeds_needed(planned(0.5), 10) is None
    assert power(planned(0.5), MOST, 10) < 0.8


def test_more_seeds_of_the_baseline_help_where_it_is_the_one_that_varies() -> None:
    wide = np.array([0.2, 0.35, 4.0, 0.6])
    as_it_is = power(planned(variance_M=wide, freedom_M=np.array([5.0, 2.0, 2.0, 4.0])), 20, 3)
    both = power(
        planned(variance_M=wide, freedom_M=np.array([5.0, 2.0, 2.0, 4.0])), 20, 20, base_again=True
    )
    assert both > as_it_is + 0.3


def test_a_baseline_in_which_nothing_is_random() -> None:
    fixed = planned(base=None, variance_M=np.empty(0), freedom_M=np.empty(0))
    assert 0.5 < power(fixed, 5, 1) < 1.0
    assert seeds_needed(fixed, 1) is not None
