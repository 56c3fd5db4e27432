"""The tables that ``bench compare`` shows: means, and whatever was asked for beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bench.base.errors import BenchError
from bench.compare import budget, footnotes
from bench.compare.formatting import list_names
from bench.compare.statistics.summary import summarise
from bench.compare.statistics.table import MARGIN, Cell, Printed, Row, Table
from bench.references import ReferenceResult
from bench.references.ours import find_printed
from bench.runs.predictions import Run
from bench.runs.record import RunRecord

if TYPE_CHECKING:
    from bench.compare.judge import Report


AUTO, YES, NO = "auto", "yes", "no"
MANY_RUNS = 1_000
"""Runs with predictions up to which ``auto`` reads them without being asked: about a minute."""


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """What stands in the tables beside the means."""

    baseline: str | None = None
    together: bool = False
    statistics: str = AUTO  # intervals, verdicts, ranks: auto (up to MANY_RUNS runs with predictions), yes, no
    correction: str = "holm"
    margin: float = MARGIN
    with_paper: bool = False
    cost: bool = False
    equal_budget: bool = False
    strict: bool = False


def compare_runs(runs: Sequence[Run], options: TableOptions, report: Report | None = None) -> tuple[Table, ...]:
    """The tables of these runs. Raises BenchError where the runs have no score, or ``options`` refuse them."""
    records = {record.run_id: record for record, _ in runs}
    tables = summarise(records.values(), baseline=options.baseline, together=options.together)
    if not tables:
        raise BenchError("none of these runs has a score", "bench run ... --suite sts")
    tables = footnotes.with_footnotes(tables, records)
    if options.strict:
        footnotes.refuse(tables)
    if options.equal_budget:
        budget.refuse_unequal(tables, records)
    if options.statistics != NO:
        tables = _judged(tables, {run[0].run_id: run for run in runs}, options, report)
    if options.with_paper:
        tables = with_papers(tables, records)
    return budget.with_costs(tables, records) if options.cost else tables


def _judged(tables: tuple[Table, ...], runs: Mapping[str, Run], options: TableOptions, report: Report | None) -> tuple[Table, ...]:
    shown = {run: runs[run] for table in tables for row in table.rows for run in row.runs}
    kept = sum((folder / "predictions").is_dir() for _, folder in shown.values())
    if not kept and options.statistics == YES:
        raise BenchError("--statistics yes: none of these runs has predictions", "the command of each run makes them again")
    from bench.compare.judge import StatisticsOptions, judge

    many = options.statistics == AUTO and kept > MANY_RUNS
    if many:
        note = f"not tested: reading the predictions of {kept:,} runs takes minutes; choose fewer runs, or --statistics yes"
        tables = tuple(replace(table, notes=(*table.notes, note)) for table in tables)
    how = StatisticsOptions(correction=options.correction, margin=options.margin, predictions=not many)
    return judge(tables, shown, how, report)[0]


# --- what the papers printed of the rows of a table, beside our numbers ---


def with_papers(tables: Sequence[Table], records: Mapping[str, RunRecord]) -> tuple[Table, ...]:
    """The tables with the printed value in each cell that a paper has one for; where none has, a note says so.

    Only numbers of the table's own protocol are taken, and of its text form.
    """
    return tuple(_with_paper(table, records) for table in tables)


def _with_paper(table: Table, records: Mapping[str, RunRecord]) -> Table:
    rows = tuple(_row_with_paper(row, table, records[row.runs[0]]) for row in table.rows)
    missing = [row.name for row in rows if not any(cell is not None and cell.printed for cell in row.cells)]
    notes = list(table.notes)
    if len(missing) == len(rows):
        notes.append("no paper printed any of these rows")
    elif missing:
        notes.append(f"no paper printed: {list_names(dict.fromkeys(missing), most=10)}")
    return replace(table, rows=rows, notes=tuple(notes))


def _row_with_paper(row: Row, table: Table, record: RunRecord) -> Row:
    recipe = {key: value.value for key, value in record.recipe.items()}
    cells = list(row.cells)
    for i, (task, cell) in enumerate(zip(table.columns, row.cells, strict=True)):
        if cell is None:
            continue
        results = find_printed(row.method, task, suite=table.suite, setting=row.setting, backbone=record.backbone, variant=row.variant,
                               protocol=table.protocol, recipe=recipe)  # fmt: skip
        if fitting := [result for result in results if not result.text or table.text is None or result.text == table.text]:
            cells[i] = replace(cell, printed=_printed_beside(cell, fitting[0]))
    return replace(row, cells=tuple(cells))


def _printed_beside(cell: Cell, result: ReferenceResult) -> Printed:
    """Ours less the paper's, as printed; and whether the printed value lies in our interval."""
    spread = cell.spread
    return Printed(
        value=result.value,
        std=result.std,
        source=f"{result.paper}:{result.table}",
        own=result.own_result,
        difference=round(cell.rounded - result.value, cell.decimals),
        inside=None if spread is None else spread.low <= result.value <= spread.high,
        note=", ".join(filter(None, ("" if result.own_result else "copied by the paper", result.runs))),
    )
