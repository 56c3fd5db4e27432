"""What the papers printed of the rows of a table, beside our numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.compare.statistics.table import Cell, Printed, Row, Table
from bench.references import ReferenceResult
from bench.references.ours import printed
from bench.runs.record import RunRecord

NAMED = 10  # rows that a note lists


def with_papers(tables: Sequence[Table], records: Mapping[str, RunRecord]) -> tuple[Table, ...]:
    """The tables with the printed value in each cell that a paper has one for; where none has, a note says so.

    Only numbers of the table's own protocol are taken, and of its text form.
    """
    return tuple(_table(table, records) for table in tables)


def _table(table: Table, records: Mapping[str, RunRecord]) -> Table:
    rows = tuple(_row(row, table, records[row.runs[0]]) for row in table.rows)
    missing = [row.name for row in rows if not any(cell is not None and cell.printed for cell in row.cells)]
    notes = list(table.notes)
    if len(missing) == len(rows):
        notes.append("no paper printed any of these rows")
    elif missing:
        names = list(dict.fromkeys(missing))
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        notes.append(f"no paper printed: {', '.join(names[:NAMED])}{more}")
    return replace(table, rows=rows, notes=tuple(notes))


def _row(row: Row, table: Table, record: RunRecord) -> Row:
    recipe = {key: one.value for key, one in record.recipe.items()}
    cells = []
    for task, cell in zip(table.columns, row.cells, strict=True):
        found = printed(row.method, task, suite=table.suite, setting=row.setting, backbone=row.backbone, variant=row.variant,
                        protocol=table.protocol, recipe=recipe) if cell is not None else ()  # fmt: skip
        fitting = [one for one in found if not one.text or table.text is None or one.text == table.text]
        cells.append(replace(cell, printed=beside(cell, fitting[0])) if cell is not None and fitting else cell)
    return replace(row, cells=tuple(cells))


def beside(cell: Cell, result: ReferenceResult) -> Printed:
    """Ours less the paper's, as printed; and whether the printed value lies in our interval."""
    spread = cell.spread
    note = ", ".join(filter(None, ("" if result.own_result else "copied by the paper", result.runs)))
    return Printed(
        value=result.value, std=result.std, source=f"{result.paper}:{result.table}", own=result.own_result,
        difference=round(round(cell.mean, cell.decimals) - result.value, cell.decimals),
        inside=None if spread is None else spread.low <= result.value <= spread.high, note=note,
    )  # fmt: skip
