"""What the papers printed, table by table, with what the audit says beside the cell that it concerns."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from bench.board.board import ReferenceCell, ReferenceRemark, ReferenceRow, ReferenceTable
from bench.board.names import slug
from bench.references import PAPERS, ReferenceResult, results
from bench.references.audit import KINDS, Remark, remarks
from bench.references.ours import SUITES, meaning
from bench.references.rows import Row, rows, tables


@cache
def reference_tables() -> tuple[ReferenceTable, ...]:
    """Every printed table, in the papers' order; one line of print is one row, whatever its metrics."""
    return tuple(_table(paper, table) for paper, table in tables())


def _table(paper: str, table: str) -> ReferenceTable:
    printed = [result for result in results(paper=paper) if result.table == table]
    tasks = tuple(dict.fromkeys(result.task for result in printed))
    return ReferenceTable(
        anchor=f"printed-{slug(paper, table)}", paper=paper, title=PAPERS[paper], table=table, tasks=tasks,
        suite=", ".join(dict.fromkeys(SUITES[result.metric] for result in printed)),
        rows=tuple(_row(row, tasks) for row in rows(printed, by_metric=False)),
    )  # fmt: skip


def _row(row: Row, tasks: tuple[str, ...]) -> ReferenceRow:
    first = row.first
    cells = {cell.task: _cell(cell) for cell in row.cells}
    whole = dict.fromkeys(remark for cell in row.cells for remark in remarks(cell) if not remark.task)
    return ReferenceRow(
        label=first.label, method=first.method, variant=first.variant, setting=first.setting, backbone=first.backbone,
        metric=_joined(cell.metric for cell in row.cells), protocol=_joined(cell.protocol for cell in row.cells),
        own=all(cell.own_result for cell in row.cells), source=_joined(cell.source for cell in row.cells),
        runs=_joined(cell.runs for cell in row.cells), corpus=_joined(cell.corpus for cell in row.cells),
        note=_joined((cell.note for cell in row.cells), "; "), ours=_ours(first), cells=tuple(cells.get(task) for task in tasks),
        remarks=tuple(_remark(remark) for remark in whole),
    )  # fmt: skip


def _cell(cell: ReferenceResult) -> ReferenceCell:
    found = tuple(_remark(remark) for remark in remarks(cell) if remark.task)
    return ReferenceCell(task=cell.task, metric=cell.metric, value=cell.value, std=cell.std, text=cell.printed, remarks=found)


def _remark(remark: Remark) -> ReferenceRemark:
    return ReferenceRemark(kind=remark.kind, title=KINDS[remark.kind], text=remark.text)


def _ours(result: ReferenceResult) -> str:
    """ "promcse+eh", "simcse temperature=0.1"; empty where no run of the harness is meant, or a run upon another."""
    means = meaning(result.method, result.variant, result.setting)
    if not means.method or means.on:
        return ""
    name = f"{means.method}+{means.variant}" if means.variant else means.method
    return " ".join([name, *(f"{key}={value}" for key, value in means.set.items())])


def _joined(values: Iterable[str], between: str = ", ") -> str:
    return between.join(dict.fromkeys(value for value in values if value))
