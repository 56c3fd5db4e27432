"""The calculation of a verdict, with every number that a reader needs to do it again by hand.

``bench compare --why ROW`` prints it. docs/statistics.md has the rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from bench.base.errors import BenchError, UnknownName
from bench.base.text import plural
from bench.compare.baseline import find_row
from bench.compare.formatting import interval_end, with_interval
from bench.compare.judge import head_column
from bench.compare.statistics.column import Column
from bench.compare.statistics.differences import EQUAL
from bench.compare.statistics.pairs import Pairs
from bench.compare.statistics.seed_variance import SeedVariances
from bench.compare.statistics.table import ALPHA, NOT_TRAINED, WORSE, Against, Cell, Row, Table
from bench.compare.words.finding import why_untested
from bench.compare.words.names import row_name
from bench.records.run import Run

HIGHEST_FREEDOM = 1000.0
"""A t table has no line beyond it: the normal distribution's numbers are the same to three
digits."""


Step = tuple[str, str, str]
"""What is computed, its value, and from which numbers."""


@dataclass(frozen=True)
class Seeds:
    """A row of a comparison, or the row minus the baseline seed by seed: the values, and the
    variance over seeds."""

    # as tables name the row; of a row minus another "PromCSE - SimCSE"
    name: str
    values: tuple[float, ...]
    variance: float
    """Squared points, of one seed, as the comparison takes it; 0 if nothing is random."""
    freedom: float
    steps: Sequence[Step]
    """From the values' variance to ``variance``."""

    @property
    def sd(self) -> float | None:
        """Return the standard deviation of the values; None with one seed."""
        return stdev(self.values) if len(self.values) > 1 else None

    @property
    def part(self) -> float:
        """The variance of the row's mean over seeds."""
        return self.variance / len(self.values)


@dataclass(frozen=True)
class Calculation:
    """A verdict's calculation: a row minus the baseline, in points and squared points."""

    table: Table
    # earlier tables with the row, and why it has no verdict there
    passed: Sequence[tuple[Table, str]]
    # the seeds that both have, if they are compared seed by seed; else empty
    seeds: Sequence[int | None]
    # the row and the baseline, of these seeds if there are some, and then their differences
    shown: Sequence[Seeds]
    steps: Sequence[Step]


def calculate(tables: Sequence[Table], runs: Mapping[str, Run], name: str) -> Calculation:
    """Return the calculation of the verdict on the row called ``name``, in the first of the tables
    in which it has one. ``runs``: by id.

    Raises UnknownName if no table has the row, and BenchError if it has no verdict.
    """
    passed: list[tuple[Table, str]] = []
    for table in tables:
        row = find_row(table, name, "--why")
        if row is None:
            continue
        cell = row.cells[-1]
        base = next((one for one in table.rows if one.is_baseline), None)
        if row is base:
            reason = "it is the baseline"
        elif base is None:
            reason = "its table has no baseline"
        elif cell is None or cell.against is None or cell.against.verdict is None:
            reason = _stands(row) or row.untested or _why_none(table, row, base)
        else:
            return _calculation(table, runs, row, base, passed)
        passed.append((table, reason))
    if passed:
        _, reason = passed[0]
        raise BenchError(f"--why: {name} has no verdict: {reason}", "bench compare --all")
    names = {row.name for table in tables for row in table.rows}
    raise UnknownName("row", name, names, "among these runs", "bench compare --all shows the rows")


def _stands(row: Row) -> str:
    """Say why a row is not judged, if it is not."""
    start = row.start
    if row.stands == NOT_TRAINED and start is not None:
        interval = with_interval(start.difference, start.ci_low, start.ci_high)
        return f"it is not above its untrained start, {start.row}: {interval}"
    return f"it stands {row.stands}" if row.stands else ""


def _why_none(table: Table, row: Row, base: Row) -> str:
    """Say why a row that could be tested has no verdict against the baseline of its table."""
    if table.head is None:
        return "its table ranks by no column"
    if row.cells[-1] is None:
        return f"no value of {table.head}"
    return f"{row_name(base, table)}, the baseline, was not tested: {why_untested(base, table)}"


def _calculation(
    table: Table,
    runs: Mapping[str, Run],
    row: Row,
    base: Row,
    passed: Sequence[tuple[Table, str]],
) -> Calculation:
    found = head_column(table, runs)
    cell, base_cell = row.cells[-1], base.cells[-1]
    assert found is not None and cell is not None and base_cell is not None
    assert cell.against is not None
    column, places = found
    i, other = places.index(table.rows.index(row)), places.index(table.rows.index(base))
    of_row = _seeds(row_name(row, table), column, i, cell)
    of_baseline = _seeds(row_name(base, table), column, other, base_cell)
    shown = [of_row, of_baseline]
    seeds: list[int | None] = []
    pairs = column.pairs_with(other)
    if cell.against.paired_seeds is not None and pairs is not None:
        seeds = [seed for seed in cell.seeds if seed in base_cell.seeds]
        of_row = _of_seeds(of_row, cell, seeds)
        of_baseline = _of_seeds(of_baseline, base_cell, seeds)
        shown = [of_row, of_baseline, _minus(of_row, of_baseline, pairs, i)]
    steps = _steps(table, column, i, other, cell.against, shown)
    return Calculation(table=table, passed=passed, seeds=seeds, shown=shown, steps=steps)


def _seeds(name: str, column: Column, i: int, cell: Cell) -> Seeds:
    """Return the seeds of one row."""
    if column.borrowed is not None and column.random_M[i]:
        return _moderated(name, cell.values, column, column.borrowed, i)
    variance, freedom = float(column.seed_M[i]), float(column.seed_freedom_M[i])
    return Seeds(name, cell.values, variance, freedom, ())


def _of_seeds(row: Seeds, cell: Cell, seeds: Sequence[int | None]) -> Seeds:
    """Return the row with the values of these seeds alone."""
    of_seed = dict(zip(cell.seeds, cell.values, strict=True))
    return replace(row, values=tuple(of_seed[seed] for seed in seeds))


def _minus(of_row: Seeds, of_baseline: Seeds, pairs: Pairs, i: int) -> Seeds:
    """Return the row minus the baseline, seed by seed."""
    values = tuple(one - base for one, base in zip(of_row.values, of_baseline.values, strict=True))
    name = f"{of_row.name} - {of_baseline.name}"
    return _moderated(name, values, pairs, pairs.moderated(), i)


def _moderated(
    name: str, values: tuple[float, ...], of: Column | Pairs, how: SeedVariances, i: int
) -> Seeds:
    """Return the seeds of the row at ``i``, or its differences, with their moderated variance."""
    return Seeds(
        name,
        values,
        variance=float(how.variance_M[i]),
        freedom=float(how.freedom_M[i]),
        steps=_moderation(float(of.spread_M[i]), float(of.own_freedom_M[i]), how, i),
    )


def _moderation(own: float, freedom: float, how: SeedVariances, i: int) -> list[Step]:
    """Write how the variance of one seed was moderated (Smyth 2004), and raised to the mean.

    ``own``: the sample variance of the row at ``i``, with its degrees of freedom.
    """
    if math.isnan(how.prior_variance):
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
    used = float(how.variance_M[i])
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


def _steps(
    table: Table, column: Column, i: int, other: int, against: Against, shown: Sequence[Seeds]
) -> list[Step]:
    """Write the calculation, from the rows' averages to the word."""
    mean, base_mean = (fmean(seeds.values) for seeds in shown[:2])
    # the variance over seeds is that of the differences, if the row is compared seed by seed
    over_seeds = shown[2:] or shown
    items, repeated = (float(variance[i]) for variance in column.over_items(other))
    difference, error = against.difference, against.se or 0.0
    steps = [("difference", f"{difference:+.2f}", f"{mean:.4f} - {base_mean:.4f}")]
    for seeds in over_seeds:
        steps += _seed_steps(seeds)
    of_items = f"of the difference, {_freedom(column.freedom)}"
    steps.append(("variance over items", _number(items), of_items))
    if repeated:
        steps.append(("draws of examples", _number(repeated), _freedom(column.repeated_freedom)))
    parts = [*(seeds.part for seeds in over_seeds), items, repeated]
    variances = " + ".join(_number(part) for part in parts if part)
    steps.append(("standard error", _number(error), f"root of {variances or '0'}"))
    freedom = math.inf if against.df is None else against.df
    _, seeds_freedom = column.over_seeds(other)
    how = _satterthwaite(
        (sum(seeds.part for seeds in over_seeds), float(seeds_freedom[i])),
        (items, column.freedom),
        (repeated, column.repeated_freedom),
    )
    steps.append(("degrees of freedom", _freedom_number(freedom), how))
    if error:
        steps.append(
            ("t", f"{difference / error:.3f}", f"{difference:.4f} / {_number(error)}"),
        )
    p = against.p if against.p is not None else math.nan
    steps.append(("p", _probability(p), "two-sided, of t with these degrees of freedom"))
    critical = 1 - (against.ci_level or 0.0)
    steps.append(("threshold", f"{critical:.4f}", _threshold(table, critical)))
    low, high = against.ci_low or 0.0, against.ci_high or 0.0
    how = "the difference alone, without an error"
    minus = column.minus(other)
    if error:
        quantile = float(minus.half_P(critical)[i]) / error
        half = f"{quantile:.3f} x {_number(error)}; t table at {1 - critical / 2:.4f}"
        how = f"{difference:.4f} ± {half}"
    level = f"{100 * (1 - critical):.1f} %"
    steps.append((f"interval, {level}", f"{interval_end(low)} to {interval_end(high)}", how))
    if against.equal_within is not None:
        margin = f"{abs(difference):.4f} + {minus.equal_t_P()[i]:.3f} x {_number(error)}"
        how = f"{margin}; t table at {1 - EQUAL}, one comparison"
        steps.append(("equal within", f"{against.equal_within:.2f}", how))
    steps.append(("verdict", against.verdict or "", _reason(p, critical, difference)))
    return steps


def _seed_steps(seeds: Seeds) -> list[Step]:
    """Write the variance of a row's average over seeds."""
    if not seeds.variance:
        why = "the seeds are equal" if len(seeds.values) > 1 else "nothing in it is random"
        return [(f"variance, {seeds.name}", "0", why)]
    over = f"{_number(seeds.variance)} / {plural(len(seeds.values), 'seed')}"
    of_mean = f"{over}; {_freedom(seeds.freedom)}"
    return [*seeds.steps, (f"variance, {seeds.name}", _number(seeds.part), of_mean)]


def _satterthwaite(*parts: tuple[float, float]) -> str:
    """Write Satterthwaite's formula with its numbers: variances and their degrees of freedom."""
    total = sum(part for part, _ in parts)
    below = [
        f"{_number(part)}² / {_freedom_number(freedom)}"
        for part, freedom in parts
        if part and math.isfinite(freedom)
    ]
    if not below:
        return "nothing in it is estimated"
    return f"{_number(total)}² / ({' + '.join(below)})"


def _threshold(table: Table, critical: float) -> str:
    assert table.tested is not None
    comparisons = table.tested.comparisons
    compared = plural(comparisons, "comparison")
    left = round(ALPHA / critical)
    if left == comparisons:
        return f"{ALPHA} / {left}: {compared}"
    return f"{ALPHA} / {left}: {compared}, {comparisons - left} of them {WORSE} and set aside"


def _reason(p: float, critical: float, difference: float) -> str:
    if p < critical:
        side = "above" if difference > 0 else "below"
        return f"p is below the threshold, the difference {side} zero"
    return "p is not below the threshold"


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
