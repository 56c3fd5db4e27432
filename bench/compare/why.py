"""The calculation of a verdict, with every number that a reader needs to do it again by hand.

``bench compare --why ROW`` prints it. docs/statistics.md has the rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.base.errors import BenchError, UnknownName
from bench.base.text import plural
from bench.compare.baseline import find_row
from bench.compare.judge import head_column
from bench.compare.statistics.column import Column
from bench.compare.statistics.differences import Differences
from bench.compare.statistics.table import ALPHA, WORSE, Against, Cell, Row, Table
from bench.compare.words.names import row_name
from bench.records.run import Run

HIGHEST_FREEDOM = 1000.0
"""A t table has no line beyond it: the normal distribution's numbers are the same to three
digits."""


Step = tuple[str, str, str]
"""What is computed, its value, and from which numbers."""


@dataclass(frozen=True)
class Seeds:
    """One of the two rows of a comparison: its values, and the variance over its seeds."""

    # as tables name the row
    name: str
    values: tuple[float, ...]
    sd: float | None
    """Of the values; None with one seed."""
    variance: float
    """Squared points, of one seed, as the comparison takes it; 0 if nothing is random."""
    freedom: float
    steps: tuple[Step, ...]
    """From the values' variance to ``variance``."""

    @property
    def part(self) -> float:
        """The variance of the row's mean over seeds."""
        return self.variance / len(self.values)


@dataclass(frozen=True)
class Calculation:
    """A verdict's calculation: a row minus the baseline, in points and squared points."""

    of_row: Seeds
    of_baseline: Seeds
    seeds_freedom: float
    """Of the two variances over seeds together."""
    items: float
    """Variance of the difference over items, with sentences that pairs share."""
    items_freedom: float
    repeated: float
    """Variance over repeated draws of few examples; 0 elsewhere."""
    repeated_freedom: float
    critical_t: float
    """The quantile of Student's t that the interval takes."""
    comparisons: int
    worse: int
    """Rows found worse before the last round, which are set aside."""
    against: Against


def calculate(tables: Sequence[Table], runs: Mapping[str, Run], name: str) -> Calculation:
    """Return the calculation of the verdict on the row called ``name``, in the first of the tables
    that has one. ``runs``: by id.

    Raises UnknownName if no table has the row, and BenchError if it has no verdict.
    """
    reason = ""
    for table in tables:
        row = find_row(table, name, "--why")
        if row is None:
            continue
        cell = row.cells[-1]
        base = next((one for one in table.rows if one.is_baseline), None)
        if row is base:
            reason = reason or "it is the baseline"
        elif base is None:
            reason = reason or "its table has no baseline"
        elif cell is None or cell.against is None or cell.against.verdict is None:
            reason = reason or row.untested or "its table ranks by no column"
        else:
            return _calculation(table, runs, row, base, cell)
    if reason:
        raise BenchError(f"--why: {name} has no verdict: {reason}", "bench compare --all")
    names = {row.name for table in tables for row in table.rows}
    raise UnknownName("row", name, names, "among these runs")


def _calculation(
    table: Table, runs: Mapping[str, Run], row: Row, base: Row, cell: Cell
) -> Calculation:
    found = head_column(table, runs)
    assert found is not None and cell.against is not None and table.tested is not None
    column, places = found
    i, other = places.index(table.rows.index(row)), places.index(table.rows.index(base))
    difference = column.minus(other)
    items, repeated = column.over_items(other)
    base_cell = base.cells[-1]
    assert base_cell is not None
    level = 1 - table.tested.ci_level
    return Calculation(
        of_row=_seeds(row_name(row, table), column, i, cell),
        of_baseline=_seeds(row_name(base, table), column, other, base_cell),
        seeds_freedom=float(column.seeds_freedom(other)[i]),
        items=float(items[i]),
        items_freedom=column.freedom,
        repeated=float(repeated[i]),
        repeated_freedom=column.repeated_freedom,
        critical_t=_quantile(difference, i, level),
        comparisons=table.tested.comparisons,
        worse=table.tested.comparisons - round(ALPHA / level),
        against=cell.against,
    )


def _quantile(difference: Differences, i: int, level: float) -> float:
    error = float(difference.error_P[i])
    return float(difference.half_P(level)[i]) / error if error else math.nan


def _seeds(name: str, column: Column, i: int, cell: Cell) -> Seeds:
    return Seeds(
        name=name,
        values=cell.values,
        sd=cell.sd,
        variance=float(column.seed_M[i]),
        freedom=float(column.seed_freedom_M[i]),
        steps=tuple(_moderation(column, i)),
    )


def _moderation(column: Column, i: int) -> list[Step]:
    """Write how the variance of one seed was moderated (Smyth 2004), and raised to the mean."""
    own, freedom = float(column.spread_M[i]), float(column.own_freedom_M[i])
    how = column.borrowed
    if how is None or not column.random_M[i] or math.isnan(how.prior_variance):
        return []
    steps = [("variance of one seed", _number(own), f"SD², {_freedom(freedom)}")]
    if how.keeps_own_M[i]:
        steps.append(
            ("kept as it is", _number(own), "it spreads more than the other rows (F test)")
        )
        return steps
    prior, prior_freedom = how.prior_variance, how.prior_freedom
    if prior_freedom == 0:
        return steps
    used = float(column.seed_M[i])
    total = freedom + prior_freedom
    drawn = (freedom * own + prior_freedom * prior) / total
    of_row = f"{_freedom_number(freedom)} x {_number(own)}"
    of_all = f"{_freedom_number(prior_freedom)} x {_number(prior)}"
    how_drawn = f"({of_row} + {of_all}) / {_freedom_number(total)}"
    steps.append(("drawn to the others'", _number(drawn), how_drawn))
    if used > drawn:
        share = prior_freedom / total
        steps.append(
            (
                "raised to the mean",
                _number(used),
                f"{_number(how.mean)}^{share:.4f} x {_number(drawn)}^{1 - share:.4f}",
            )
        )
    return steps


def steps_of(calculation: Calculation) -> list[Step]:
    """Write the calculation, from the rows' averages to the word."""
    c = calculation
    against = c.against
    mean, base_mean = (_mean(seeds.values) for seeds in (c.of_row, c.of_baseline))
    difference = against.difference
    parts = [c.of_row.part, c.of_baseline.part, c.items, c.repeated]
    steps = [
        ("difference", f"{difference:+.2f}", f"{mean:.4f} - {base_mean:.4f}"),
        *_seed_steps(c.of_row),
        *_seed_steps(c.of_baseline),
        (
            "variance over items",
            _number(c.items),
            f"of the difference, {_freedom(c.items_freedom)}",
        ),
    ]
    if c.repeated:
        steps.append(("draws of examples", _number(c.repeated), _freedom(c.repeated_freedom)))
    variances = " + ".join(_number(part) for part in parts if part)
    error = against.se or 0.0
    steps.append(("standard error", _number(error), f"root of {variances or '0'}"))
    freedom = math.inf if against.df is None else against.df
    steps.append(("degrees of freedom", _freedom_number(freedom), _satterthwaite(c)))
    if error:
        steps.append(
            ("t", f"{difference / error:.3f}", f"{difference:.4f} / {_number(error)}"),
        )
    p = against.p if against.p is not None else math.nan
    steps.append(("p", _probability(p), "two-sided, of t with these degrees of freedom"))
    critical = 1 - (against.ci_level or 0.0)
    steps.append(("threshold", f"{critical:.4f}", _threshold(c)))
    low, high = against.ci_low or 0.0, against.ci_high or 0.0
    steps.append(
        (
            f"interval, {100 * (1 - critical):.1f} %",
            f"{low:+.2f} to {high:+.2f}",
            f"{difference:.4f} ± {c.critical_t:.3f} x {_number(error)}; "
            f"t table at {1 - critical / 2:.4f}",
        )
    )
    steps.append(("verdict", against.verdict or "", _reason(p, critical, difference)))
    return steps


def _seed_steps(seeds: Seeds) -> list[Step]:
    """Write the variance of a row's average over seeds."""
    if not seeds.variance:
        return [(f"variance, {seeds.name}", "0", "nothing in it is random")]
    steps = list(seeds.steps)
    over = f"{_number(seeds.variance)} / {plural(len(seeds.values), 'seed')}"
    steps.append(
        (f"variance, {seeds.name}", _number(seeds.part), f"{over}; {_freedom(seeds.freedom)}")
    )
    return steps


def _satterthwaite(c: Calculation) -> str:
    """Write Satterthwaite's formula with its numbers."""
    of_seeds = c.of_row.part + c.of_baseline.part
    parts = [
        (of_seeds, c.seeds_freedom),
        (c.items, c.items_freedom),
        (c.repeated, c.repeated_freedom),
    ]
    total = sum(part for part, _ in parts)
    below = [
        f"{_number(part)}² / {_freedom_number(freedom)}"
        for part, freedom in parts
        if part and math.isfinite(freedom)
    ]
    if not below:
        return "nothing in it is estimated"
    return f"{_number(total)}² / ({' + '.join(below)})"


def _threshold(c: Calculation) -> str:
    compared = plural(c.comparisons, "comparison")
    if not c.worse:
        return f"{ALPHA} / {c.comparisons}: {compared}"
    left = c.comparisons - c.worse
    return f"{ALPHA} / {left}: {compared}, {c.worse} of them {WORSE} and set aside"


def _reason(p: float, critical: float, difference: float) -> str:
    if p < critical:
        side = "above" if difference > 0 else "below"
        return f"p is below the threshold, the difference {side} zero"
    return "p is not below the threshold"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _number(value: float) -> str:
    """Write a variance or an error with four digits that count."""
    return f"{value:.4g}" if value >= 1e-4 or value == 0 else f"{value:.3e}"


def _freedom(value: float) -> str:
    return f"{_freedom_number(value)} degrees of freedom"


def _freedom_number(value: float) -> str:
    if value > HIGHEST_FREEDOM:
        return f"{value:,.0f}" if math.isfinite(value) else "infinitely many"
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _probability(p: float) -> str:
    return f"{p:.4f}" if p >= 1e-4 else f"{p:.1e}"
