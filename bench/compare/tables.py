"""The tables that ``bench compare`` shows: means, and whatever was asked for beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bench.base.errors import BenchError
from bench.compare import budget, footnotes, papers
from bench.compare.statistics.summary import summarise
from bench.compare.statistics.table import Table
from bench.runs.predictions import Run

if TYPE_CHECKING:
    from bench.compare.judge import Report

CORRECTIONS = ("holm", "bh", "none")
AUTO, YES, NO = "auto", "yes", "no"
MANY_RUNS = 1_000
"""Runs with predictions up to which ``auto`` reads them without being asked: about a minute."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What stands in the tables beside the means."""

    baseline: str | None = None
    together: bool = False
    statistics: str = AUTO  # intervals, verdicts, ranks: auto (up to MANY_RUNS runs with predictions), yes, no
    correction: str = "holm"
    margin: float = 0.5  # points within which two values are as good as equal
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
    tables = footnotes.with_footnotes(tables, records)
    if wanted.strict:
        footnotes.refuse(tables)
    if wanted.equal_budget:
        budget.refuse_unequal(tables, records)
    tables = _judged(tables, {run[0].run_id: run for run in runs}, wanted, report)
    if wanted.with_paper:
        tables = papers.with_papers(tables, records)
    return budget.with_costs(tables, records) if wanted.cost else tables


def _judged(tables: tuple[Table, ...], runs: Mapping[str, Run], wanted: Wanted, report: Report | None) -> tuple[Table, ...]:
    shown = {run: runs[run] for table in tables for row in table.rows for run in row.runs}
    if wanted.statistics == NO:
        return tables
    kept = sum((folder / "predictions").is_dir() for _, folder in shown.values())
    if not kept and wanted.statistics == YES:
        raise BenchError("--statistics yes: none of these runs has predictions", "the command of each run makes them again")
    from bench.compare.judge import How, judged

    many = wanted.statistics == AUTO and kept > MANY_RUNS
    if many:
        note = f"not tested: reading the predictions of {kept:,} runs takes minutes; choose fewer runs, or --statistics yes"
        tables = tuple(replace(table, notes=(*table.notes, note)) for table in tables)
    return judged(tables, shown, How(correction=wanted.correction, margin=wanted.margin, predictions=not many), report)
