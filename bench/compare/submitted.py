"""Tables of submitted runs. Whatever they contain, no number, sign, mark or sentence of another
table depends on them.

Each sender's runs have tables of their own. Their rows are compared with the baseline of the
publisher's table of the same suite, protocol, text form, setting and backbone, in one family of
tests for each table. They borrow their spread over seeds from the publisher's rows, and lend none
to them or to each other; and none is marked as one that may be the best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.base.text import list_names
from bench.compare.columns import Lenders, read_columns
from bench.compare.judge import add_verdicts, with_intervals
from bench.compare.statistics.table import Against, Cell, Row, Table
from bench.records.run import Run

NO_BASELINE = "the publisher's runs have no tested baseline"


def publishers_table(table: Table, own: Sequence[Table]) -> Table | None:
    """Return the publisher's table with which the rows of a submitted one are compared; None if
    there is none.
    """

    def kind(any_table: Table) -> tuple[str | None, ...]:
        return (
            any_table.suite,
            any_table.protocol,
            any_table.text,
            any_table.chosen_on,
            any_table.budget,
        )

    alike = [candidate for candidate in own if kind(candidate) == kind(table)]
    for candidate in alike:
        if (candidate.setting, candidate.backbone) == (table.setting, table.backbone):
            return candidate
    # tables of several backbones or settings have None there, or the one that all their rows have
    for candidate in alike:
        if candidate.setting == table.setting == "none" or candidate.together:
            return candidate
    return None


def beside_publishers(table: Table, own: Table | None) -> Table:
    """Return the submitted table with the columns of the publisher's, and each cell minus the cell
    of its baseline; itself if ``own`` is None.
    """
    if own is None:
        return table
    baseline = next((row for row in own.rows if row.is_baseline), None)
    rows = []
    for row in table.rows:
        cells = _in_columns(row, table, own.columns)
        if baseline is not None:
            cells = tuple(map(_minus, cells, baseline.cells))
        rows.append(replace(row, cells=cells))
    notes = table.notes
    others = [name for name in table.columns if name not in own.columns]
    if others:
        notes = (
            *notes,
            f"not shown, for the publisher's runs do not have it: {list_names(others)}",
        )
    return replace(
        table,
        columns=own.columns,
        rows=tuple(rows),
        baseline=None if baseline is None else own.baseline,
        notes=notes,
    )


def judge_submitted(table: Table, own: Table | None, runs: Mapping[str, Run]) -> Table:
    """Return the table, as ``beside_publishers`` made it, with intervals and with verdicts against
    the publisher's baseline.
    """
    lenders = () if own is None else own.rows
    baseline = next((row for row in lenders if row.is_baseline), None)
    if baseline is None or baseline.untested:
        judged = with_intervals(table, read_columns(table, runs, Lenders(frozenset(), lenders)))
        rows = [replace(row, untested=NO_BASELINE) for row in judged.rows]
        return replace(judged, rows=tuple(rows))
    others = [row for row in lenders if row is not baseline]
    together = replace(table, rows=(baseline, *table.rows))
    columns = read_columns(together, runs, Lenders(frozenset([0]), others))
    judged = with_intervals(together, columns)
    if table.head is not None and len(table.columns) - 1 in columns.of_place:
        judged = add_verdicts(judged, columns, runs)
    rows = [replace(row, may_be_best=False) for row in judged.rows[1:]]
    if judged.tested is None:
        rows = [replace(row, untested=row.untested or NO_BASELINE) for row in rows]
    return replace(judged, rows=tuple(rows))


def _in_columns(row: Row, table: Table, columns: Sequence[str]) -> tuple[Cell | None, ...]:
    by_task = dict(zip(table.columns, row.cells, strict=True))
    return tuple(by_task.get(name) for name in columns)


def _minus(cell: Cell | None, base: Cell | None) -> Cell | None:
    if cell is None or base is None:
        return cell
    difference = cell.rounded - round(base.mean, cell.decimals)
    return replace(cell, against=Against(difference=difference))
