"""The uncertainty of a table's numbers: intervals, differences from the baseline, and the rows that
may be the best.

Each table is judged separately, so that its verdicts do not depend on the tables shown with it. It
has one family of tests, on its head column (the average, or the only task), and one critical level
for everything that it says. A row that depends on a seed needs ``FEWEST_SEEDS`` seeds to be tested.

Legend: M rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bench.compare.columns import Columns, read_columns, scores_in_table
from bench.compare.rule import Verdicts, apply_rule
from bench.compare.starts import with_starts
from bench.compare.statistics.column import Column
from bench.compare.statistics.differences import Differences
from bench.compare.statistics.table import (
    ALPHA,
    AVERAGE,
    FEW_SEEDS,
    FEWEST_SEEDS,
    Against,
    Spread,
    Table,
    Tested,
    by_standing,
)
from bench.compare.words.names import baseline_name
from bench.records.record import Score
from bench.records.run import Run


def judge(table: Table, runs: Mapping[str, Run]) -> Table:
    """Return the table with intervals, verdicts and the rows that may be the best, as far as the
    runs' predictions allow.

    A cell without usable predictions has an interval over its seeds, if it has several; a note
    says why.
    """
    columns = read_columns(table, runs)
    table = _with_intervals(table, columns)
    if table.head is None or len(table.columns) - 1 not in columns.of_place:
        return table
    return _add_verdicts(table, columns, runs)


def head_column(table: Table, runs: Mapping[str, Run]) -> tuple[Column, tuple[int, ...]] | None:
    """Return (the column that ranks, the places of its rows in the table); None if the table has
    none.
    """
    if table.head is None:
        return None
    return read_columns(table, runs).of_place.get(len(table.columns) - 1)


def _with_intervals(table: Table, columns: Columns) -> Table:
    """Return the table with the interval of every cell, and the notes of its columns."""
    cells = [list(row.cells) for row in table.rows]
    for j, (column, places) in columns.of_place.items():
        for i, half, se, covers in zip(places, *column.half_widths(), strict=True):
            cell = cells[i][j]
            if cell is None or not covers:
                continue
            low, high = cell.mean - float(half), cell.mean + float(half)
            if covers != "seeds":  # a score that predictions give is within these bounds
                low, high = max(-100.0, low), min(100.0, high)
            spread = Spread(low=low, high=high, covers=covers, se=float(se))
            cells[i][j] = replace(cell, spread=spread)
    rows = []
    for row, row_cells in zip(table.rows, cells, strict=True):
        rows.append(replace(row, cells=tuple(row_cells)))
    return replace(table, rows=tuple(rows), notes=(*table.notes, *columns.notes))


def _add_verdicts(table: Table, columns: Columns, runs: Mapping[str, Run]) -> Table:
    """Return the table with verdicts on its head column, which ``columns`` have, and the rows that
    may be the best.
    """
    head, places = columns.of_place[len(table.columns) - 1]
    same = _same_as_baseline(table, runs)
    base_row = next((i for i, row in enumerate(table.rows) if row.is_baseline), None)
    base = places.index(base_row) if base_row in places else None
    why = dict(zip(places, reasons_untested(head), strict=True))
    for i, reason in columns.no_interval.items():
        if why.get(i) == NO_PREDICTIONS:
            why[i] = reason
    for i in same:
        if not why.get(i, "-"):
            why[i] = f"same predictions as {baseline_name(table)}"
    known_M = np.array([not why[i] for i in places])
    table = with_starts(table, head, places, known_M.tolist(), runs)
    rows = []
    for i, row in enumerate(table.rows):
        reason = "" if row.stands else why.get(i, f"no value of {table.head}")
        rows.append(replace(row, untested=reason))
    tested_M = known_M & np.array([not table.rows[i].stands for i in places])
    if base is not None and not tested_M[base]:
        base = None
    verdicts = Verdicts((None,) * len(places), (False,) * len(places), ALPHA, 0)
    if tested_M.sum() >= 2:
        verdicts = apply_rule(head, tested_M, base)
    difference = head.minus(base) if base is not None else None
    for place, i in enumerate(places):
        rows[i] = replace(rows[i], may_be_best=verdicts.may_be_best[place])
        cell = rows[i].cells[-1]
        if base is None or difference is None or place == base or not known_M[place]:
            continue
        if cell is None or cell.against is None:
            continue
        verdict = verdicts.verdicts[place]
        compared = _compared(head, base, difference, place, verdicts.critical, verdict)
        rows[i] = replace(rows[i], cells=(*rows[i].cells[:-1], replace(cell, against=compared)))
    if not verdicts.comparisons:
        return replace(table, rows=by_standing(rows))
    if base_row is not None and base is not None:
        for i in same:
            if not rows[i].stands:
                rows[i] = replace(rows[i], may_be_best=rows[base_row].may_be_best)
    return replace(
        table,
        rows=by_standing(rows),
        tested=Tested(
            rows=int(tested_M.sum()),
            comparisons=verdicts.comparisons,
            ci_level=1 - verdicts.critical,
        ),
    )


def _compared(
    column: Column,
    base: int,
    difference: Differences,
    place: int,
    critical: float,
    verdict: str | None,
) -> Against:
    """Return the comparison of one row with the baseline; of a row that is not judged the
    difference with its interval."""
    pairs = column.pairs_with(base)
    paired_seeds = None
    base_mean = float(column.mean_M[base])
    if pairs is not None and pairs.paired_M[place]:
        paired_seeds = int(pairs.seeds_M[place])
        base_mean = float(pairs.other_mean_M[place])
    value = float(difference.value_P[place])
    half = float(difference.half_P(critical)[place])
    freedom = float(difference.freedom_P[place])
    of_interval = Against(
        difference=value,
        paired_seeds=paired_seeds,
        mean=base_mean + value,
        baseline_mean=base_mean,
        se=float(difference.error_P[place]),
        df=freedom if math.isfinite(freedom) else None,
        ci_low=value - half,
        ci_high=value + half,
        ci_level=1 - critical,
    )
    if verdict is None:
        return of_interval
    return replace(
        of_interval,
        p=float(difference.p_P[place]),
        verdict=verdict,
        mde=float(difference.detectable_P(critical)[place]),
        equal_within=float(difference.equal_within_P()[place]),
    )


NO_PREDICTIONS = "no predictions of every task"


def reasons_untested(column: Column) -> list[str]:
    """Say for each row of the column why it takes no part in the tests; "" if it does."""
    reasons = []
    for i, seeds in enumerate(column.runs_M):
        if not np.isfinite(column.items[0][i, i]):
            reasons.append(NO_PREDICTIONS)
        elif column.random_M[i] and seeds < FEWEST_SEEDS:
            reasons.append(FEW_SEEDS)
        else:
            reasons.append("")
    return reasons


def _same_as_baseline(table: Table, runs: Mapping[str, Run]) -> frozenset[int]:
    hashes = [
        Counter(_prediction_hashes(scores_in_table(runs[run].record, table)) for run in row.runs)
        for row in table.rows
    ]
    base = next((i for i, row in enumerate(table.rows) if row.is_baseline), None)
    if base is None or None in hashes[base]:
        return frozenset()
    return frozenset(i for i, row in enumerate(hashes) if i != base and row == hashes[base])


def _prediction_hashes(scores: Mapping[str, Score]) -> tuple[tuple[str, str], ...] | None:
    """Return (task, hash of the predictions) of every task; None if one was not recorded."""
    hashes = [
        (task, score.predictions_sha256)
        for task, score in sorted(scores.items())
        if task != AVERAGE
    ]
    known = tuple((task, sha256) for task, sha256 in hashes if sha256 is not None)
    return known if known and len(known) == len(hashes) else None
