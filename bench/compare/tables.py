"""The tables that ``bench compare`` shows: means, and whatever was asked for beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.compare import budget, mixed, papers
from bench.errors import BenchError
from bench.runs.predictions import Run
from bench.statistics.summary import summarise
from bench.statistics.table import Table

if TYPE_CHECKING:
    from bench.compare.judge import Report

CORRECTIONS = ("holm", "bh", "none")
AUTO, YES, NO = "auto", "yes", "no"
MOST_ITEMS = 3_000_000
"""Predictions times runs up to which ``auto`` resamples without being asked: the seven STS sets of about 160 runs."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What stands in the tables beside the means."""

    baseline: str | None = None
    together: bool = False
    statistics: str = AUTO  # intervals, verdicts, ties, ranks: auto (where there are predictions, and not too many), yes, no
    correction: str = "holm"
    draws: int = 10_000
    with_paper: bool = False
    cost: bool = False
    equal_budget: bool = False
    strict: bool = False


def compared(runs: Sequence[Run], wanted: Wanted, report: Report | None = None) -> tuple[Table, ...]:
    """The tables of these runs. Raises BenchError where the runs have no score, or ``wanted`` refuses them."""
    records = {record.run_id: record for record, _ in runs}
    tables = summarise(records.values(), baseline=wanted.baseline, together=wanted.together)
    if not tables:
        raise BenchError("none of these runs has a score", "bench run ... --suite sts")
    tables = mixed.with_footnotes(tables, records)
    if wanted.strict:
        mixed.refuse(tables)
    if wanted.equal_budget:
        budget.refuse_unequal(tables, records)
    tables = _judged(tables, {run[0].run_id: run for run in runs}, wanted, report)
    if wanted.with_paper:
        tables = papers.with_papers(tables, records)
    return budget.with_costs(tables, records) if wanted.cost else tables


def _judged(tables: tuple[Table, ...], runs: Mapping[str, Run], wanted: Wanted, report: Report | None) -> tuple[Table, ...]:
    shown = {run: runs[run] for table in tables for row in table.rows for run in row.runs}
    kept = [run for run, (_, folder) in shown.items() if (folder / "predictions").is_dir()]
    if wanted.statistics == NO:
        return tables
    if not kept:
        if wanted.statistics == YES:
            raise BenchError("--statistics yes: none of these runs has predictions", "the command of each run makes them again")
        return tables
    if wanted.statistics == AUTO and (items := _items(tables)) > MOST_ITEMS:
        note = f"not tested: {items:,} predictions are many; choose fewer runs, or --statistics yes"
        return tuple(_noted(table, note) for table in tables)
    from bench.compare.judge import How, judged

    return judged(tables, shown, How(correction=wanted.correction, draws=wanted.draws), report)


def _items(tables: Sequence[Table]) -> int:
    cells = [
        cell
        for table in tables
        for row in table.rows
        for cell, task in zip(row.cells, table.columns, strict=True)
        if task != "Avg."
    ]
    return sum(cell.n * len(cell.values) for cell in cells if cell is not None)


def _noted(table: Table, note: str) -> Table:
    from dataclasses import replace

    return replace(table, notes=(*table.notes, note))
