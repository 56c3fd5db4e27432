"""How sure a table's numbers are: intervals, differences from a baseline, ties with the best, rank groups.

Every comparison is paired on items, and on seeds where both sides share some. p-values are adjusted in two families over all
tables that are shown: differences from the baseline, and differences from the best of each column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from bench.compare.cells import Loaded, Place, load
from bench.compare.shelf import Shelf
from bench.runs.predictions import Run
from bench.statistics.adjust import adjusted
from bench.statistics.cells import Predicted
from bench.statistics.intervals import Interval, interval_average
from bench.statistics.paired import Comparison, compare_average, verdict
from bench.statistics.ranks import rank_groups
from bench.statistics.resampling import Resampled, resample_all
from bench.statistics.summary import against
from bench.statistics.table import Against, Cell, Family, Spread, Table, Tested

EXACT = ("spearman", "accuracy")
"""Metrics whose recorded value follows from the predictions alone; the others sample or repeat by a protocol."""
APART = 0.02
"""Points by which a recorded value may differ from that of its predictions: classifiers' scores are rounded within folds."""
Report = Callable[[str, int, int], None]
"""(task, done, of all): called before each task is resampled."""


T = TypeVar("T")
Verdicts = Mapping[Place, tuple[str, float]]
"""The verdict and the adjusted p-value of a cell's comparison."""


@dataclass(frozen=True)
class How:
    correction: str = "holm"
    draws: int = 10_000
    seed: int = 0
    alpha: float = 0.05


def judged(tables: Sequence[Table], runs: Mapping[str, Run], how: How, report: Report | None = None) -> tuple[Table, ...]:
    """The tables with intervals, verdicts against the baseline, ties and ranks, as far as the runs' predictions allow.

    A cell without usable predictions has none of them; a note of its table says why.
    """
    shared = _shared(tables, runs, how, report)
    return _judged(shared, shared.loaded, how)


def judged_each(
    tables: Sequence[Table], baselines: Sequence[str | None], runs: Mapping[str, Run], how: How, report: Report | None = None
) -> list[tuple[Table, ...]]:
    """``judged`` against one baseline after another; ``tables`` have none yet. What does not depend on it is done once."""
    shared = _shared(tables, runs, how, report)
    each = ([replace(one, table=against(one.table, baseline)) for one in shared.loaded] for baseline in baselines)
    return [_judged(shared, loaded, how) for loaded in each]


@dataclass(frozen=True)
class _Shared:
    """What is the same whatever the baseline is."""

    loaded: list[Loaded]
    tied: list[Verdicts]
    family: int  # comparisons with the best of a column
    ranks: list[Ranks]


def _shared(tables: Sequence[Table], runs: Mapping[str, Run], how: How, report: Report | None) -> _Shared:
    loaded = [load(table, runs) for table in tables]
    _resample(loaded, how, report)
    loaded = [replace(one, table=_with_intervals(one, how)) for one in loaded]
    nearest = _from_best(loaded, how)
    tied = _verdicts(nearest, how)
    family = [test.p for tests in nearest for test in tests.values()]
    return _Shared(loaded, tied, len(family), [_ranks(one, v, family, how) for one, v in zip(loaded, tied, strict=True)])


def _judged(shared: _Shared, loaded: Sequence[Loaded], how: How) -> tuple[Table, ...]:
    differences = _differences(loaded, how)
    judged_against = _verdicts(differences, how)
    families = []
    baseline = next((one.table.baseline for one in loaded if one.table.baseline), None)
    if tests := sum(map(len, differences)):
        families.append(Family(what=f"differences from {baseline}", how=how.correction, size=tests))
    if shared.family:
        asked = sum(one.asked for one in shared.ranks)
        families.append(Family(what="differences from the best", how=how.correction, size=shared.family + asked))
    tested = Tested(draws=how.draws, seed=how.seed, alpha=how.alpha, families=tuple(families))
    return tuple(
        _assembled(one, differences[i], judged_against[i], shared.tied[i], shared.ranks[i].by_row, tested)
        for i, one in enumerate(loaded)
    )


def _resample(loaded: Sequence[Loaded], how: How, report: Report | None) -> None:
    """Task by task over all tables, so that the draws of a task are made once; takes out what does not fit its record."""
    by_task: dict[tuple[str, str], list[tuple[Loaded, Place]]] = {}
    for one in loaded:
        for place, cell in one.found.items():
            by_task.setdefault((cell.task, cell.metric), []).append((one, place))
    shelf = Shelf(how.draws, how.seed)
    for done, (name, places) in enumerate(by_task.items()):
        if report is not None:
            report(name[0], done, len(by_task))
        for (one, place), why in zip(places, _resampled([one.found[place] for one, place in places], how, shelf), strict=True):
            if why is not None:
                one.missing[place] = why
                del one.found[place]
    shelf.tidy()


def _resampled(cells: Sequence[Predicted], how: How, shelf: Shelf) -> list[str | None]:
    """Resample the cells of one task, but for those that are kept; of each, why it is of no use, None where it is."""
    missing = shelf.fetch(cells)
    try:
        for cell, found in zip(missing, resample_all(missing, draws=how.draws, seed=how.seed), strict=True):
            shelf.keep(cell, found)
        return [_off(cell, found) for cell, found in zip(cells, resample_all(cells, draws=how.draws, seed=how.seed), strict=True)]
    except ValueError as error:
        return [str(error)] if len(cells) == 1 else [_resampled([cell], how, shelf)[0] for cell in cells]


def _off(cell: Predicted, found: Resampled) -> str | None:
    """Whether the recorded value does not follow from the predictions."""
    if cell.metric not in EXACT or cell.score_S is None:
        return None
    off = float(abs(found.value_SR.mean(axis=1) - cell.score_S).max())
    return f"{cell.task}: its predictions give another score, by {off:.2f}; see bench verify" if off > APART else None


def _with_intervals(one: Loaded, how: How) -> Table:
    rows = []
    for i, row in enumerate(one.table.rows):
        cells = []
        for j, cell in enumerate(row.cells):
            parts = one.of(i, j) if cell is not None else None
            spread = None if parts is None else _maybe(partial(interval_average, parts, draws=how.draws, seed=how.seed))
            cells.append(cell if cell is None or spread is None else replace(cell, spread=_spread(spread, cell)))
        rows.append(replace(row, cells=tuple(cells)))
    return replace(one.table, rows=tuple(rows))


def _spread(found: Interval, cell: Cell) -> Spread:
    """Around the mean that is printed: an average is taken of rounded values, which moves it by less than a hundredth."""
    shift = cell.mean - found.mean
    return Spread(low=found.low + shift, high=found.high + shift, covers=found.covers, level=found.level)


def _maybe(ask: Callable[[], T]) -> T | None:
    """What ``ask`` gives; None where it is undefined (one side constant, no seed in common)."""
    try:
        return ask()
    except ValueError:
        return None


def _test(one: Loaded, row: int, other: int, column: int, how: How) -> Comparison | None:
    """Row against another row in one column; None where one of them has no predictions or they do not fit together."""
    a, b = one.of(row, column), one.of(other, column)
    if a is None or b is None:
        return None
    return _maybe(partial(compare_average, list(zip(a, b, strict=True)), draws=how.draws, seed=how.seed))


def _differences(parts: Sequence[Loaded], how: How) -> list[dict[Place, Comparison]]:
    """Every cell against the baseline's."""
    found: list[dict[Place, Comparison]] = []
    for one in parts:
        base = next((i for i, row in enumerate(one.table.rows) if row.is_baseline), None)
        found.append(_tests(one, ((i, base, j) for i, j in _places(one.table) if base not in (None, i)), how))
    return found


def _from_best(parts: Sequence[Loaded], how: How) -> list[dict[Place, Comparison]]:
    """Every cell against the best of its column that has predictions, where that is the best of all."""
    found: list[dict[Place, Comparison]] = []
    for one in parts:
        wanted = []
        for j in range(len(one.table.columns)):
            best = _best(one.table, j)
            wanted += [(i, best, j) for i, column in _places(one.table) if column == j and best not in (None, i)]
        found.append(_tests(one, wanted, how))
    return found


def _best(table: Table, column: int) -> int | None:
    means = [(cell.mean, -i) for i, row in enumerate(table.rows) if (cell := row.cells[column]) is not None]
    return -max(means)[1] if means else None


def _places(table: Table) -> list[Place]:
    return [(i, j) for i, row in enumerate(table.rows) for j, cell in enumerate(row.cells) if cell is not None]


def _tests(one: Loaded, wanted: Iterable[tuple[int, int | None, int]], how: How) -> dict[Place, Comparison]:
    found = {}
    for row, other, column in wanted:
        if other is not None and (test := _test(one, row, other, column, how)) is not None:
            found[row, column] = test
    return found


def _verdicts(tests: Sequence[Mapping[Place, Comparison]], how: How) -> list[Verdicts]:
    """All in one family."""
    p_values = iter(adjusted([test.p for one in tests for test in one.values()], how.correction).tolist())
    return [
        {place: (verdict(test.difference, p := next(p_values), how.alpha), p) for place, test in one.items()} for one in tests
    ]


@dataclass(frozen=True)
class Ranks:
    """Row -> rank group."""

    by_row: Mapping[int, int]
    asked: int  # comparisons beyond those with the best


def _ranks(one: Loaded, tied: Verdicts, family: Sequence[float], how: How) -> Ranks:
    """Rank groups on the column that ranks; none where a row of it has no predictions.

    The first group is the best with those that are tied with it. A comparison with the best of a lower group is adjusted as one
    more of the family.
    """
    last = len(one.table.columns) - 1
    rows = [i for i, row in enumerate(one.table.rows) if row.cells[last] is not None]
    if one.table.head is None or len(rows) < 2 or any(one.of(i, last) is None for i in rows):
        return Ranks({}, 0)
    best = _best(one.table, last)
    asked: list[float] = []

    def separable(i: int, j: int) -> bool:
        if rows[i] == best:
            return (rows[j], last) in tied and tied[rows[j], last][0] != "unknown"
        test = _test(one, rows[i], rows[j], last, how)
        asked.append(1.0 if test is None else test.p)
        return bool(adjusted([*family, asked[-1]], how.correction)[-1] < how.alpha)

    means = [cell.mean for i in rows if (cell := one.table.rows[i].cells[last]) is not None]
    return Ranks(dict(zip(rows, rank_groups(means, separable), strict=True)), len(asked))


def _assembled(
    one: Loaded, differences: Mapping[Place, Comparison], verdicts: Verdicts, tied: Verdicts, ranks: Mapping[int, int], tested: Tested
) -> Table:  # fmt: skip
    rows = []
    for i, row in enumerate(one.table.rows):
        cells = []
        for j, cell in enumerate(row.cells):
            if cell is not None and (i, j) in differences and cell.against is not None:
                cell = replace(cell, against=_against(cell.against, differences[i, j], verdicts[i, j]))
            if cell is not None and (i, j) in tied:
                cell = replace(cell, tied=tied[i, j][0] == "unknown")
            cells.append(cell)
        rows.append(replace(row, cells=tuple(cells), rank=ranks.get(i)))
    notes = (*one.table.notes, *_reasons(one))
    some = any(cell is not None and cell.spread is not None for row in rows for cell in row.cells)
    return replace(one.table, rows=tuple(rows), notes=notes, tested=tested if some else None)


def _against(printed: Against, test: Comparison, judged: tuple[str, float]) -> Against:
    return replace(
        printed, low=test.low, high=test.high, p=test.p, p_adjusted=judged[1], verdict=judged[0], detectable=test.detectable,
        test=test.test, seeds=test.seeds, n=test.n_items,
    )  # fmt: skip


def _reasons(one: Loaded) -> list[str]:
    """A line for each reason why cells have no statistics."""
    places: dict[str, list[Place]] = {}
    for place, why in one.missing.items():
        places.setdefault("" if why.endswith("has no predictions of " + one.table.columns[place[1]]) else why, []).append(place)
    lines = []
    for why, found in places.items():
        names = list(dict.fromkeys(one.table.rows[i].name for i, _ in found))
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        tasks = ", ".join(dict.fromkeys(one.table.columns[j] for _, j in found))
        lines.append(f"without statistics: {shown} on {tasks} ({why or 'no predictions'})")
    return lines
