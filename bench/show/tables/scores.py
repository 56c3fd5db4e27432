"""A score table as a :class:`bench.show.grid.Grid`: method, n, tasks, average with its interval,
difference from the baseline, cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bench.compare.formatting import headline, row_name, spread
from bench.compare.statistics.table import Cell, Row, Table
from bench.show.grid import SIGNS, Column, Grid, grid
from bench.show.grid import Cell as GridCell
from bench.show.tables import lines

WHOLE = "a wider terminal, or --format csv"
SCALE = "for scale: nothing trained here, another backbone; not compared"


def score_grid(table: Table, scale: Sequence[tuple[Table, int]] = ()) -> Grid:
    """The table as every form prints it. ``scale``: rows of other tables that stand last, by table
    and place.

    Where a table has a column that ranks, its interval and the difference from the baseline stand
    beside it; elsewhere each number has its own ±.
    """
    differences = bool(table.head) and lines.has_differences(table)
    columns = [Column("method", wrap=16), Column("n", right=True, lead=True)]
    columns += [Column(name, right=True, drop=2) for name in table.columns if name != table.head]
    if table.head:
        columns += [Column(name, right=True, lead=True) for name in (table.head, "±")]
    if differences:
        columns.append(Column(lines.difference_heading(table), right=True, lead=True))
    costs = lines.cost_columns(table)
    columns += [Column(name, right=True, drop=1) for name in costs]
    rows: list[Sequence[GridCell | str]] = []
    for row in table.rows:
        scores = _score_cells(row, table)
        if table.head:
            scores.append(_half(row.cells[-1]))
        if differences:
            text, sign = lines.difference_text(row), lines.sign_name(row, table)
            scores.append(GridCell(text=text, sign=sign))
        took = lines.costs(row.cost)
        rows += [[*scores, *(took[name] for name in costs)], *_paper_rows(row)]
    for other, i in scale:
        rows.append(
            [
                replace(cell, emphasis="dim")
                for cell in _score_cells(other.rows[i], other, scale=True)
            ]
        )
    return grid(
        columns,
        [[*cells, *[""] * (len(columns) - len(cells))] for cells in rows],
        title=headline(table) + (f"; baseline: {table.baseline}" if table.baseline else ""),
        below=_settings(table),
        notes=(*table.notes, *lines.legend(table, SIGNS), *([SCALE] if scale else [])),
        whole=WHOLE,
        key="bold: highest; underlined: second" if len(table.rows) > 1 else "",
    )


def _score_cells(row: Row, table: Table, *, scale: bool = False) -> list[GridCell]:
    """Name, n and means. ``scale``: of a row under the headings of another table."""
    name, marks = row_name(row, table), tuple(i + 1 for i in row.footnotes)
    first = GridCell(text=name, tint=row.may_be_best, marks=marks)
    if scale:
        first = GridCell(text=" ".join(filter(None, (name, table.backbone, "(for scale)"))))
    return [
        first,
        GridCell(text=str(table.n(row)), emphasis="dim"),
        *(_mean(cell, alone=not table.head) for cell in row.cells),
    ]


def _mean(cell: Cell | None, *, alone: bool) -> GridCell:
    if cell is None:
        return GridCell()
    half = spread(cell) if alone else None
    return GridCell(number=cell.mean, decimals=cell.decimals, spread=half, emphasis=cell.mark)


def _half(cell: Cell | None) -> GridCell:
    if cell is None:
        return GridCell()
    return GridCell(number=spread(cell), decimals=cell.decimals, emphasis="dim")


def _paper_rows(row: Row) -> list[list[GridCell]]:
    """What papers printed of this row."""
    every = lines.under(row)
    names = [GridCell(text=f"  {line.label}", emphasis="dim") for line in every]
    return [[name, GridCell(), *line.entries] for name, line in zip(names, every, strict=True)]


def _settings(table: Table) -> Grid | None:
    """The settings in which rows differ."""
    if not table.footnotes:
        return None
    rows = [
        (GridCell(marks=(i,)), note.setting, note.value, note.rows, note.most)
        for i, note in enumerate(table.footnotes, 1)
    ]
    wrapped = (Column(name, wrap=16) for name in ("value", "rows", "most rows"))
    return grid(["", "setting", *wrapped], rows)
