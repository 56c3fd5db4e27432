"""What the papers printed, table by table, with what the audit says beside the cell that it concerns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from bench.base.text import slug
from bench.references import PAPERS, ReferenceResult, Row, results, rows, tables
from bench.references.audit import KINDS, Remark, remarks
from bench.references.ours import SUITES, meaning


@dataclass(frozen=True, kw_only=True)
class ReferenceRemark:
    """What the audit says of a printed cell or row."""

    kind: str  # a key of ``bench.references.audit.KINDS``
    title: str  # what that kind is, in words
    text: str  # the reason


@dataclass(frozen=True, kw_only=True)
class ReferenceCell:
    """One printed number."""

    task: str
    metric: str
    value: float
    std: float | None
    text: str  # as printed, with its zeros: "76.10"
    remarks: tuple[ReferenceRemark, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReferenceRow:
    """One printed row. ``cells`` belong to the table's tasks, None where the row has none."""

    label: str  # the row's own words
    method: str
    variant: str
    setting: str
    backbone: str
    metric: str
    protocol: str
    own: bool  # the paper ran it itself
    source: str  # the paper that it was copied from; "" for an own result
    runs: str  # "mean of 10 runs"; "" where nothing says so
    corpus: str
    note: str
    ours: str  # what a run of the harness that it means is called, method or method+variant; "" where there is none
    cells: tuple[ReferenceCell | None, ...]
    remarks: tuple[ReferenceRemark, ...] = ()  # those of the whole row


@dataclass(frozen=True, kw_only=True)
class ReferenceTable:
    """One table of a paper, as printed. Never ranked among runs."""

    anchor: str  # "printed-promcse-1"
    paper: str  # "promcse"
    title: str  # authors, title, venue
    table: str  # "1"
    suite: str  # of its metric: "sts"; several are joined by ", "
    tasks: tuple[str, ...]
    rows: tuple[ReferenceRow, ...]


@cache
def reference_tables() -> tuple[ReferenceTable, ...]:
    """Every printed table, in the papers' order; one line of print is one row, whatever its metrics."""
    return tuple(_table(paper, table) for paper, table in tables())


def _table(paper: str, table: str) -> ReferenceTable:
    printed = [result for result in results(paper=paper) if result.table == table]
    tasks = tuple(dict.fromkeys(result.task for result in printed))
    return ReferenceTable(
        anchor=f"printed-{slug(paper, table)}",
        paper=paper,
        title=PAPERS[paper],
        table=table,
        tasks=tasks,
        suite=", ".join(dict.fromkeys(SUITES[result.metric] for result in printed)),
        rows=tuple(_row(row, tasks) for row in rows(printed, by_metric=False)),
    )


def _row(row: Row, tasks: tuple[str, ...]) -> ReferenceRow:
    first = row.first
    cells = {cell.task: _cell(cell) for cell in row.cells}
    whole = dict.fromkeys(
        remark for cell in row.cells for remark in remarks(cell) if not remark.task
    )
    return ReferenceRow(
        label=first.label,
        method=first.method,
        variant=first.variant,
        setting=first.setting,
        backbone=first.backbone,
        metric=_joined(cell.metric for cell in row.cells),
        protocol=_joined(cell.protocol for cell in row.cells),
        own=all(cell.own_result for cell in row.cells),
        source=_joined(cell.source for cell in row.cells),
        runs=_joined(cell.runs for cell in row.cells),
        corpus=_joined(cell.corpus for cell in row.cells),
        note=_joined((cell.note for cell in row.cells), "; "),
        ours=_ours(first),
        cells=tuple(cells.get(task) for task in tasks),
        remarks=tuple(_remark(remark) for remark in whole),
    )


def _cell(cell: ReferenceResult) -> ReferenceCell:
    found = tuple(_remark(remark) for remark in remarks(cell) if remark.task)
    return ReferenceCell(
        task=cell.task,
        metric=cell.metric,
        value=cell.value,
        std=cell.std,
        text=cell.printed,
        remarks=found,
    )


def _remark(remark: Remark) -> ReferenceRemark:
    return ReferenceRemark(kind=remark.kind, title=KINDS[remark.kind], text=remark.why)


def _ours(result: ReferenceResult) -> str:
    """ "promcse+eh", "simcse temperature=0.1"; empty where no run of the harness is meant, or a run upon another."""
    means = meaning(result.method, result.variant, result.setting, result.backbone)
    if not means.method or means.on:
        return ""
    return " ".join([means.name, *(f"{key}={value}" for key, value in means.set.items())])


def _joined(values: Iterable[str], between: str = ", ") -> str:
    return between.join(dict.fromkeys(value for value in values if value))
