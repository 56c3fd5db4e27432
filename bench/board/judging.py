"""The tables of a version, judged against a baseline and against each other one that a reader may choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bench.base.errors import UnknownName
from bench.board.selection import chosen_on
from bench.compare import budget, footnotes
from bench.compare import tables as papers
from bench.compare.judge import StatisticsOptions, judge
from bench.compare.statistics.summary import against, summarise
from bench.compare.statistics.table import Table
from bench.compare.tables import AUTO, MANY_RUNS, NO
from bench.runs.predictions import Run

if TYPE_CHECKING:
    from bench.compare.judge import Report
    from bench.runs.record import RunRecord

BASELINE = "simcse"
"""What rows are tested against where nobody says otherwise, and there is such a row."""
MOST_BASELINES = 9
"""That a reader may choose beside the board's own: each is a family of tests, and data on the page. A table of ten rows offers all."""
SAMPLE = "check"
"""The built-in suite, a small sample: no result, so that it has no table where another suite has one."""
FEW_BASELINES = 2
"""Beyond ``MANY_RUNS`` runs, where a choice of baselines is megabytes of page. What is published must not depend on what happens to
be cached, so their number alone decides."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much of the statistics is computed."""

    predictions: bool  # are read, for intervals over items, verdicts and ranks
    baselines: int = MOST_BASELINES
    note: str = ""  # what a reader must know of it


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A table, the set on which its checkpoints were chosen if that is no development set, and the table against others."""

    table: Table
    chosen_on: str
    baselines: Mapping[str, Table]


def judged_tables(
    runs: Sequence[Run], *, baseline: str | None = None, statistics: str = AUTO, report: Report | None = None, extras: bool = True
) -> tuple[Judged, ...]:
    """The tables of these runs, with intervals, verdicts, printed values and costs; those against other baselines beside them.

    ``statistics``: "yes" reads predictions however many there are, "no" none, "auto" as ``plan`` says. Raises UnknownName for a baseline
    that no table has. ``extras``: with printed values,
    costs, and against each other baseline that a reader may choose.
    """
    by_id = {record.run_id: (record, folder) for record, folder in runs}
    records = {run: record for run, (record, _) in by_id.items()}
    summarised, selected_on = _evidence(*_summarised(list(records.values())))
    tables = footnotes.with_footnotes(summarised, records)
    how_much = plan(tables, by_id, statistics)
    how_much = how_much if extras else replace(how_much, baselines=0)
    if baseline is not None and not any(against(table, baseline).baseline for table in tables):
        raise UnknownName("baseline", baseline, {row.name for table in tables for row in table.rows}, "among these runs")
    chosen = baseline or _default(tables)
    return tuple(
        _judged(table, selected, chosen, by_id, how_much, report, extras)
        for table, selected in zip(tables, selected_on, strict=True)
    )


def _evidence(tables: Sequence[Table], selected_on: Sequence[str]) -> tuple[list[Table], list[str]]:
    """Without the tables of ``SAMPLE``, unless there are no others."""
    kept = [(table, on) for table, on in zip(tables, selected_on, strict=True) if table.suite != SAMPLE]
    kept = kept or list(zip(tables, selected_on, strict=True))
    return [table for table, _ in kept], [on for _, on in kept]


def _judged(
    table: Table, selected_on: str, baseline: str | None, runs: Mapping[str, Run], how_much: Plan, report: Report | None,
    extras: bool,
) -> Judged:  # fmt: skip
    """Each table is a family of tests by itself: what is told of it does not change when another suite or backbone is added."""
    own = against(table, baseline).baseline
    offered = [name for name in choices(table, how_much.baselines + 1) if name != own][: how_much.baselines]
    how = StatisticsOptions(predictions=how_much.predictions)
    first, *others = (judged for (judged,) in judge([table], runs, how, report, [baseline, *offered]))
    records = {run: runs[run][0] for row in table.rows for run in row.runs}
    first = _noted(first, how_much.note)
    if extras:
        (first,) = budget.with_costs(papers.with_papers([first], records), records)
    return Judged(table=first, chosen_on=selected_on,
                  baselines={name: _overlaid(first, other) for name, other in zip(offered, others, strict=True)})  # fmt: skip


def _default(tables: Sequence[Table]) -> str | None:
    """``BASELINE`` where there is such a row, else the first choice of the first table with one."""
    names = [name for table in tables for name in choices(table)]
    return BASELINE if BASELINE in names else next(iter(names), None)


def plan(tables: Sequence[Table], runs: Mapping[str, Run], statistics: str = AUTO) -> Plan:
    """Predictions are read of up to ``MANY_RUNS`` runs, and of more where that is asked for; else a note says that they were not."""
    shown = {run for table in tables for row in table.rows for run in row.runs}
    baselines = MOST_BASELINES if len(shown) <= MANY_RUNS else FEW_BASELINES
    if statistics == NO:
        return Plan(predictions=False, baselines=baselines, note="not tested")
    if not any((runs[run][1] / "predictions").is_dir() for run in shown):
        return Plan(predictions=False, baselines=baselines, note="not tested: none of these runs has predictions")
    if statistics == AUTO and len(shown) > MANY_RUNS:
        note = f"not tested: reading the predictions of {len(shown):,} runs takes minutes; --statistics yes does it"
        return Plan(predictions=False, baselines=baselines, note=note)
    return Plan(predictions=True, baselines=baselines)


def choices(table: Table, count: int = MOST_BASELINES) -> tuple[str, ...]:
    """Rows worth testing the others of a table against: the default baseline, the best row in which nothing was trained, then the
    best rows. None where a table has one row."""
    if len(table.rows) < 2:
        return ()
    default = [row.name for row in table.rows if row.name == BASELINE]
    untrained = [row.name for row in table.rows if row.setting == "none"][:1]
    return tuple(dict.fromkeys([*default, *untrained, *(row.name for row in table.rows)]))[:count]


def _summarised(records: Sequence[RunRecord]) -> tuple[tuple[Table, ...], tuple[str, ...]]:
    """Tables, and of each the set that its checkpoints were chosen on if that is no development set: such runs have tables of
    their own."""
    groups: dict[str, list[RunRecord]] = {}
    for record in records:
        groups.setdefault(chosen_on(record), []).append(record)
    made = [(table, name) for name in sorted(groups) for table in summarise(groups[name])]
    return tuple(table for table, _ in made), tuple(name for _, name in made)


def _noted(table: Table, note: str) -> Table:
    return replace(table, notes=(*table.notes, note)) if note else table


def _overlaid(table: Table, other: Table) -> Table:
    """``table`` with the differences of ``other``: the same rows against another baseline."""
    rows = tuple(
        replace(row, difference=one.difference, is_baseline=one.is_baseline, cells=tuple(
            cell if cell is None or mine is None else replace(cell, against=mine.against)
            for cell, mine in zip(row.cells, one.cells, strict=True)
        ))
        for row, one in zip(table.rows, other.rows, strict=True)
    )  # fmt: skip
    return replace(table, rows=rows, baseline=other.baseline, tested=other.tested)
