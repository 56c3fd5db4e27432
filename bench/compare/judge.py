"""How sure a table's numbers are: intervals, differences from the baseline, and which rows may be the best.

Each table is judged by itself, so that its verdicts do not change when another one is shown. It has one family of tests, on its head
column (the average, or the only task), and one critical level for everything that it says. A row whose result depends on a seed is tested
from ``FEWEST_SEEDS`` seeds on.

Legend: M rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bench.base.errors import BenchError, DataDamaged, DataMissing
from bench.base.text import list_names
from bench.compare.statistics.column import (
    Answers,
    Borrowed,
    Column,
    Differences,
    Influence,
    column,
    influences,
)
from bench.compare.statistics.table import (
    ALPHA,
    AVERAGE,
    BETTER,
    COLUMNS,
    INCONCLUSIVE,
    WORSE,
    Against,
    Cell,
    Row,
    Spread,
    Table,
    Tested,
    by_protocol,
    prediction_hashes,
)
from bench.data.sets.sts import STS_TASKS
from bench.records.arrays import has_predictions
from bench.records.predictions import Floats, Predicted, has_statistics, read_predicted, same_items
from bench.records.record import RunRecord, Score, ScoreKey
from bench.records.store import Run
from bench.score.suites import Arrays, find_task, rescore, suite_names

EXACT = ("spearman", "accuracy")
"""Metrics whose recorded value follows from the predictions alone; the others sample or repeat by a protocol."""
APART = 0.02
"""Points by which a recorded value may differ from that of its predictions: classifiers' scores are rounded within folds."""


def judge(table: Table, runs: Mapping[str, Run]) -> Table:
    """The table with intervals, verdicts and the rows that may be the best, as far as the runs' predictions allow.

    A cell without usable predictions has an interval over its seeds, where it has several; a note says why.
    """
    columns = read_columns(table, runs)
    table = with_intervals(table, columns)
    if table.head is None or len(table.columns) - 1 not in columns.of_place:
        return table
    return add_verdicts(table, columns, runs)


def head_column(table: Table, runs: Mapping[str, Run]) -> tuple[Column, tuple[int, ...]] | None:
    """(the column that ranks, the places of its rows in the table); None if the table has none."""
    if table.head is None:
        return None
    return read_columns(table, runs).of_place.get(len(table.columns) - 1)


# --- the rule: docs/statistics.md ---


@dataclass(frozen=True)
class Judged:
    """Verdicts on the rows of one column, in its order."""

    verdicts: tuple[str | None, ...]
    """None: not compared with the baseline."""
    may_be_best: tuple[bool, ...]
    critical: float
    """p-values below it are verdicts."""
    comparisons: int


def judged(of: Column, tested_M: NDArray[np.bool_], base: int | None) -> Judged:
    """Which rows are better or worse than the one at ``base``, and which may be the best; more is better. Two rows at least are tested.

    Each of the m comparisons has the share c = 0.05 / m; a worse row hands its share on (Bonferroni-Holm). A row is no candidate for the
    best if it is worse, or lies below a better row, one-sided at c; nor is the baseline where a row is better. Without a baseline it is none if
    it lies below any row (Hsu's comparison with the best). The level of all this together is 0.05; docs/statistics.md says how often
    a table is wrong if rows of few seeds spread more than the others.
    """
    comparisons = int(tested_M.sum()) - 1
    critical, better_M, worse_M = ALPHA / comparisons, np.zeros_like(tested_M), ~tested_M
    if base is not None:
        less = of.less(base)
        p_M = np.where(tested_M, less.p_P, np.nan)
        while True:
            worse_M = (p_M < critical) & (less.value_P < 0)
            share = ALPHA / max(1, comparisons - int(worse_M.sum()))
            if share == critical:
                break
            critical = share
        better_M = (p_M < critical) & (less.value_P > 0)
    out_M = worse_M | ~tested_M
    for above in np.flatnonzero(tested_M if base is None else better_M):
        rest = np.flatnonzero(~out_M & (of.mean_M < of.mean_M[above]))
        if len(rest):  # of thousands of rows few are left after the best: p-values take the time
            out_M[rest] = of.less(int(above)).select(rest).below_p_P < critical
    if base is not None:
        out_M[base] |= better_M.any()
    said_M = np.select([better_M, worse_M, tested_M], [BETTER, WORSE, INCONCLUSIVE], "")
    return Judged(
        tuple(None if base in (None, i) else str(said) or None for i, said in enumerate(said_M)),
        tuple((~out_M).tolist()),
        critical,
        comparisons,
    )


Position = tuple[int, int]
"""Row and column of a table."""
Cells = Mapping[Position, tuple[Predicted, Influence]]
"""Of a table's cells: what statistics are made of."""


@dataclass(frozen=True)
class Columns:
    """The columns of one table."""

    of_place: Mapping[int, tuple[Column, tuple[int, ...]]]
    """Place of a column -> what its methods say together, and the places of the rows that take part."""
    notes: tuple[str, ...]
    """Why cells have no statistics, and what the statistics do not know."""
    no_interval: Mapping[int, str]
    """Row of the table -> why nobody can say how far other items would move its score, if its metric is the reason."""


@dataclass(frozen=True)
class Lenders:
    """Rows from which the rows of a table borrow their spread over seeds, while they lend nothing themselves."""

    inside: frozenset[int]
    """Places of those that are rows of the table."""
    outside: Sequence[Row]
    """The others; their cells belong to the table's columns."""


def read_columns(table: Table, runs: Mapping[str, Run], lenders: Lenders | None = None) -> Columns:
    """The columns of a table, from the predictions of its runs as far as there are any. ``lenders`` None: all rows lend and borrow."""
    missing: dict[Position, str] = {}
    stored = any(has_predictions(runs[run].folder) for row in table.rows for run in row.runs)
    no_interval: dict[int, str] = {}
    cells = _read(table, runs, missing, no_interval) if stored else {}
    average = _averaged(table, runs)
    last = len(table.columns) - 1
    of_place = {}
    for j in range(len(table.columns)):
        if any(row.cells[j] for row in table.rows):
            tasks = average if j == last and average else (j,)
            of_place[j] = _column(table, cells, j, tasks, missing, lenders)
    return Columns(of_place, (*_reasons(table, missing), *_limits(cells)), no_interval)


def _column(
    table: Table,
    cells: Cells,
    j: int,
    tasks: Sequence[int],
    missing: dict[Position, str],
    lenders: Lenders | None,
) -> tuple[Column, tuple[int, ...]]:
    """Column j of the rows that have it, whether or not their predictions are known. ``tasks``: the columns that it averages, or itself."""
    having = {i: cell for i, row in enumerate(table.rows) if (cell := row.cells[j])}
    answers: list[Answers | None] = []
    for i, cell in having.items():
        known = []
        for task in tasks:
            if (i, task) not in cells:
                continue
            predicted, moved = cells[i, task]
            if set(cell.seeds) <= set(predicted.seeds):
                known.append(
                    (predicted.of_seeds(cell.seeds), moved.of(predicted.seeds, cell.seeds))
                )
        answers.append(known if len(known) == len(tasks) else None)
    values = [cell.values for cell in having.values()]
    random = [cell.seeds != (None,) for cell in having.values()]
    seeds = None
    if lenders is not None:
        lends = [i in lenders.inside for i in having]
        others = [cell.values for row in lenders.outside if (cell := row.cells[j])]
        seeds = Borrowed(lends, [own for own in others if len(own) > 1])
    try:
        return column(answers, values, random, seeds), tuple(having)
    except ValueError as error:
        missing |= {(i, j): str(error) for i in having}
        return Column(values, random, borrowed=seeds), tuple(having)


def with_intervals(table: Table, columns: Columns) -> Table:
    """The table with the interval of every cell, and the notes of its columns."""
    rows = list(table.rows)
    for j, (of, places) in columns.of_place.items():
        for i, half, se, covers in zip(places, *of.half_widths(), strict=True):
            cell = rows[i].cells[j]
            if cell is None or not covers:
                continue
            low, high = cell.mean - float(half), cell.mean + float(half)
            if covers != "seeds":  # of predictions is known that no value lies outside
                low, high = max(-100.0, low), min(100.0, high)
            rows[i] = _with_cell(
                rows[i],
                j,
                replace(cell, spread=Spread(low=low, high=high, covers=covers, se=float(se))),
            )
    return replace(table, rows=tuple(rows), notes=(*table.notes, *columns.notes))


def _with_cell(row: Row, column: int, cell: Cell) -> Row:
    return replace(row, cells=(*row.cells[:column], cell, *row.cells[column + 1 :]))


def add_verdicts(table: Table, columns: Columns, runs: Mapping[str, Run]) -> Table:
    """The table with verdicts on its head column, which ``columns`` have, and the rows that may be the best."""
    of, places = columns.of_place[len(table.columns) - 1]
    same = _same_as_baseline(table, runs)
    base_row = next((i for i, row in enumerate(table.rows) if row.is_baseline), None)
    base = places.index(base_row) if base_row in places else None
    why = dict(zip(places, why_untested(of), strict=True))
    for i, reason in columns.no_interval.items():
        if why.get(i) == NO_PREDICTIONS:
            why[i] = reason
    for i in same:
        if not why.get(i, "-"):
            why[i] = f"same predictions as {table.baseline}"
    rows = [
        replace(row, untested=why.get(i, f"no value of {table.head}"))
        for i, row in enumerate(table.rows)
    ]
    tested_M = np.array([not why[i] for i in places])
    if tested_M.sum() < 2:
        return replace(table, rows=tuple(rows))
    if base is not None and not tested_M[base]:
        base = None
    said = judged(of, tested_M, base)
    less = of.less(base) if base is not None else None
    for place, i in enumerate(places):
        rows[i] = replace(rows[i], may_be_best=said.may_be_best[place])
        cell, verdict = rows[i].cells[-1], said.verdicts[place]
        if less is None or verdict is None or cell is None or cell.against is None:
            continue
        tested = _tested(less, place, said.critical, verdict)
        rows[i] = _with_cell(rows[i], len(rows[i].cells) - 1, replace(cell, against=tested))
    if base_row is not None and base is not None:
        for i in same:
            rows[i] = replace(rows[i], may_be_best=rows[base_row].may_be_best)
    return replace(
        table,
        rows=tuple(rows),
        tested=Tested(
            rows=int(tested_M.sum()), comparisons=said.comparisons, ci_level=1 - said.critical
        ),
    )


def _tested(less: Differences, place: int, critical: float, verdict: str) -> Against:
    """The comparison of one row with the baseline."""
    value, half = float(less.value_P[place]), float(less.half_P(critical)[place])
    freedom = float(less.freedom_P[place])
    return Against(
        difference=value,
        se=float(less.error_P[place]),
        df=freedom if math.isfinite(freedom) else None,
        ci_low=value - half,
        ci_high=value + half,
        ci_level=1 - critical,
        p=float(less.p_P[place]),
        verdict=verdict,
        mde=float(less.detectable_P(critical)[place]),
    )


FEWEST_SEEDS = 3
"""Of a row in which something is random, and of such a baseline: with fewer, a row that spreads more than the others is called better or
worse far too often (docs/statistics.md)."""
FEW_SEEDS = "fewer than three seeds"
NO_PREDICTIONS = "no predictions of every task"


def why_untested(of: Column) -> list[str]:
    """Say for each row of the column why it takes no part in the tests; "" if it does."""
    reasons = []
    for i, seeds in enumerate(of.runs_M):
        if not np.isfinite(of.items[0][i, i]):
            reasons.append(NO_PREDICTIONS)
        elif of.random_M[i] and seeds < FEWEST_SEEDS:
            reasons.append(FEW_SEEDS)
        else:
            reasons.append("")
    return reasons


def _limits(cells: Cells) -> list[str]:
    """A note if sentences shared by pairs are not taken into account."""
    unknown = list_names(
        p.task
        for p in {column: p for (_, column), (p, _) in cells.items()}.values()
        if p.metric == "spearman" and p.task in STS_TASKS and p.shared_NK is None
    )
    note = f"pairs of {unknown} are taken to share no sentence: the data is not the known one"
    return [note] if unknown else []


def _reasons(table: Table, missing: Mapping[Position, str]) -> list[str]:
    """A line for each reason why cells have no statistics."""
    lines = []
    for why in dict.fromkeys(missing.values()):
        cells = [place for place, reason in missing.items() if reason == why]
        shown = list_names(dict.fromkeys(table.rows[i].name for i, _ in cells))
        tasks = ", ".join(dict.fromkeys(table.columns[j] for _, j in cells))
        lines.append(f"without statistics: {shown} on {tasks} ({why})")
    return lines


# --- the predictions behind the cells of tables, as far as there are any, and why there are none elsewhere ---


def _read(
    table: Table,
    runs: Mapping[str, Run],
    missing: dict[Position, str],
    no_interval: dict[int, str],
) -> Cells:
    """What the table's cells are made of. Nothing that is missing or damaged is fatal: ``missing`` gets the reason, and ``no_interval`` for
    each row the first one that is its metric."""
    cells: dict[Position, tuple[Predicted, Influence]] = {}
    scores = {run: _scores(runs[run].record, table) for row in table.rows for run in row.runs}
    for j, task in enumerate(table.columns):
        if task == AVERAGE:
            continue
        read: dict[int, Predicted] = {}
        reasons: dict[int, str] = {}
        first: Predicted | None = None
        for i, row in enumerate(table.rows):
            having = [
                (runs[run], score)
                for run in row.runs
                if (score := scores[run].get(task)) is not None
            ]
            if not having:
                continue
            try:
                p = _predicted(having)
                first = first or p
                same_items(first, p)
                read[i] = p
            except DataMissing:
                reasons[i] = "no predictions"
            except NoInterval as error:
                reasons[i] = error.message
                no_interval.setdefault(i, error.message)
            except BenchError as error:
                reasons[i] = error.message
            except ValueError as error:
                reasons[i] = str(error)
        moved_of = influences(list(read.values()))
        for (i, p), moved in zip(read.items(), moved_of, strict=True):
            if isinstance(moved, ValueError):
                reasons[i] = str(moved)
            elif problem := _other_score(p, moved):
                reasons[i] = problem
            else:
                cells[i, j] = p, moved
        for i in sorted(reasons):
            missing[i, j] = reasons[i]
    return cells


def _other_score(p: Predicted, moved: Influence) -> str:
    """By how much the recorded value differs from that of the predictions, in words; "" if it follows from them."""
    if p.metric not in EXACT or p.score_S is None:
        return ""
    off = float(abs(moved.value_SR.mean(axis=1) - p.score_S).max())
    if off <= APART:
        return ""
    return f"{p.task}: its predictions give another score, by {off:.2f}; see bench verify"


def _same_as_baseline(table: Table, runs: Mapping[str, Run]) -> frozenset[int]:
    hashes = [
        Counter(prediction_hashes(_scores(runs[run].record, table)) for run in row.runs)
        for row in table.rows
    ]
    base = next((i for i, row in enumerate(table.rows) if row.is_baseline), None)
    if base is None or None in hashes[base]:
        return frozenset()
    return frozenset(i for i, row in enumerate(hashes) if i != base and row == hashes[base])


def _predicted(having: Sequence[tuple[Run, Score]]) -> Predicted:
    first = having[0][1]
    if any(score.key != first.key for _, score in having):
        raise BenchError(f"{first.task}: its seeds were scored on texts of different forms")
    read = read_predicted if has_statistics(first.metric) else predicted_by_own_scorer
    return read([run for run, _ in having], first.key)


def _scores(record: RunRecord, table: Table) -> Mapping[str, Score]:
    return by_protocol(record).get((table.suite, table.protocol, table.text or ""), {})


def _averaged(table: Table, runs: Mapping[str, Run]) -> tuple[int, ...]:
    """The columns that the papers' average covers: the suite's own, else those that a record names."""
    if table.columns[-1:] != (AVERAGE,):
        return ()
    stored = (
        _scores(runs[run].record, table).get(AVERAGE) for row in table.rows for run in row.runs
    )
    recorded = (
        tasks
        for tasks in (score.detail.get("tasks") for score in stored if score is not None)
        if isinstance(tasks, list) and tasks and all(task in table.columns for task in tasks)
    )
    return tuple(
        table.columns.index(name)
        for name in COLUMNS.get(table.suite) or next(recorded, table.columns[:-1])
    )


# --- how far each item moves a score that only a suite's own scorer computes: the jackknife (Tukey 1958; Efron 1982, chapter 2) ---
# The score is computed again without each item, or without each of 500 blocks of neighbours where there are more items:
# moved = (N - g) / N (score - score without the g items of the block), which for a mean is exactly what the items add to it.


BLOCKS = 500
TOLERANCE = 1e-6
"""Points by which the recorded value may differ from that of its predictions."""


class NoInterval(BenchError):
    """A metric of a suite's own, of which it cannot be said how far other items would move it."""


def predicted_by_own_scorer(runs: Sequence[Run], key: ScoreKey) -> Predicted:
    """The predictions of one method's runs, one per seed, on a task whose suite can score a part of its items.

    Raises NoInterval where the suite is not here or does not say that; BenchError where its scorer fails on part of the items;
    DataDamaged where predictions are not what they should be.
    """
    metric = runs[0].score(key).metric
    if key.suite not in suite_names():
        raise NoInterval(
            f"{metric} is computed by the suite {key.suite}, which is not installed: add --plugin FILE"
        )
    task = find_task(key)
    if task is None or not task.by_item:
        raise NoInterval(f"{metric} has no interval over items")
    stored = [run.predictions(key) for run in runs]
    scores = [run.score(key) for run in runs]
    moved = []
    for score, arrays in zip(scores, stored, strict=True):
        value, moved_N, block_N = jackknife(arrays, lambda part: _value(key, part))
        if abs(value - score.value) > TOLERANCE:
            raise DataDamaged(
                f"{key.task}: its predictions give another score, by {abs(value - score.value):.2f}; see bench verify"
            )
        moved.append(moved_N)

    try:
        moved_SN = np.stack(moved)
        return Predicted(
            task=key[1],
            metric=metric,
            seeds=tuple(run.record.seed for run in runs),
            prediction_SN=moved_SN,
            gold_N=np.unique(stored[0].get("gold", np.arange(len(block_N))), return_inverse=True)[
                1
            ].reshape(-1),
            shared_NK=block_N[:, None] if block_N[-1] + 1 < len(block_N) else None,
            moved_SN=moved_SN,
            score_S=np.array([score.value for score in scores]),
        )
    except ValueError as error:
        raise DataDamaged(f"predictions of {runs[0].record.run_id}: {error}") from None


def _value(key: ScoreKey, arrays: Arrays) -> float:
    score = rescore(key, arrays)
    if score is None:
        raise BenchError(f"{key[0]} does not score {key[1]} again from its predictions")
    return score.value


def jackknife(
    arrays: Arrays, value_of: Callable[[Arrays], float]
) -> tuple[float, Floats, np.ndarray]:
    """(the score; (N,) how far each item moves it, which sums to zero; (N,) the block of each item, from 0).

    Arrays with a row for each prediction are items' own, the others are handed on whole. Raises BenchError where the scorer does, or
    there are not two items.
    """
    n = len(arrays["prediction"]) if "prediction" in arrays else 0
    if n < 2:
        raise BenchError("the predictions do not have one row per item")
    block_N = np.arange(n) * min(n, BLOCKS) // n
    value = value_of(arrays)
    moved_N = np.empty(n)
    for block in range(block_N[-1] + 1):
        inside_N = block_N == block
        part = {
            name: array[~inside_N] if array.ndim and len(array) == n else array
            for name, array in arrays.items()
        }
        size = int(inside_N.sum())
        moved_N[inside_N] = (n - size) / n * (value - value_of(part)) / size
    return value, moved_N - moved_N.mean(), block_N
