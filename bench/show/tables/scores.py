"""A score table as a :class:`bench.show.grid.Grid`: method, n, tasks, average with its interval, difference from the baseline, cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bench.compare.formatting import headline, row_name, spread
from bench.compare.statistics.table import Cell, Row, Table
from bench.show.grid import SIGNS, Column, Grid, grid
from bench.show.grid import Cell as GridCell
from bench.show.tables.lines import (
    cost_columns,
    cost_texts,
    difference_heading,
    difference_text,
    has_differences,
    legend,
    sign_name,
    under,
)

WHOLE = "a wider terminal, or --format csv"
SCALE = "for scale: nothing trained here, another backbone; not compared"


def score_grid(table: Table, scale: Sequence[tuple[Table, int]] = ()) -> Grid:
    """The table as every form prints it. ``scale``: rows of other tables that stand last, by table and place.

    Where a table has a column that ranks, its interval and the difference from the baseline stand beside it; elsewhere each
    number has its own ±.
    """
    head = table.head
    tasks = [Column(name, right=True, drop=1) for name in table.columns if name != head]
    ranked = [Column(name, right=True, lead=True) for name in table.columns if name == head]
    if head:
        ranked.append(Column("±", right=True, lead=True))
    if head and has_differences(table):
        ranked.append(Column(difference_heading(table), right=True, lead=True))
    cost = [Column(name, right=True, drop=2) for name in cost_columns(table)]
    columns = [
        Column("method", wrap=16),
        Column("n", right=True, lead=True),
        *tasks,
        *ranked,
        *cost,
    ]
    rows = []
    for row in table.rows:
        costs = map(_text, cost_texts(row, table))
        rows += [[*_score_cells(row, table), *costs], *_paper_rows(row)]
    rows += [_scale_cells(other, other.rows[i]) for other, i in scale]
    return grid(
        columns,
        [[*cells, *map(_text, [""] * (len(columns) - len(cells)))] for cells in rows],
        title=headline(table) + (f"; baseline: {table.baseline}" if table.baseline else ""),
        below=_settings(table),
        notes=(*table.notes, *legend(table, SIGNS), *([SCALE] if scale else [])),
        whole=WHOLE,
        key="bold: highest; underlined: second" if len(table.rows) > 1 else "",
    )


def _settings(table: Table) -> Grid | None:
    """The settings in which rows differ."""
    if not table.footnotes:
        return None
    rows = [
        (GridCell(marks=(i,)), note.setting, note.value, note.rows, note.most)
        for i, note in enumerate(table.footnotes, 1)
    ]
    columns = ("", "setting", Column("value", wrap=16), Column("rows", wrap=16))
    return grid([*columns, Column("most rows", wrap=16)], rows)


def _text(text: str) -> GridCell:
    return GridCell(text=text)


def _score_cells(row: Row, table: Table) -> list[GridCell]:
    ranks = row.cells[-1] if table.head else None
    marks = tuple(i + 1 for i in row.footnotes)
    cells = [
        GridCell(text=row_name(row, table), tint=row.may_be_best, marks=marks),
        GridCell(text=str(table.n(row)), emphasis="dim"),
        *(_number(cell, alone=not table.head) for cell in row.cells),
    ]
    if table.head:
        half = spread(ranks) if ranks else None
        cells.append(GridCell(number=half, decimals=ranks.decimals if ranks else 2, emphasis="dim"))
    if table.head and has_differences(table):
        text = "baseline" if row.is_baseline else difference_text(row)
        cells.append(GridCell(text=text, sign=sign_name(row, table)))
    return cells


def _scale_cells(table: Table, row: Row) -> list[GridCell]:
    """A row of another backbone's table, under the headings of a table of the same suite."""
    name = " ".join(filter(None, (row_name(row, table), table.backbone, "(for scale)")))
    return [
        GridCell(text=name),
        GridCell(text=str(table.n(row)), emphasis="dim"),
        *(replace(_number(cell, alone=not table.head), emphasis="dim") for cell in row.cells),
    ]


def _number(cell: Cell | None, *, alone: bool) -> GridCell:
    if cell is None:
        return GridCell()
    return GridCell(
        number=cell.mean,
        decimals=cell.decimals,
        spread=spread(cell) if alone else None,
        emphasis=cell.mark,
    )


def _paper_rows(row: Row) -> list[list[GridCell]]:
    """Two rows for each paper table that prints a number of this row: what it prints, and ours less that."""
    return [
        [
            GridCell(text=f"  {line.label}", emphasis="dim"),
            GridCell(),
            *(GridCell(text=entry.text, sign=entry.sign, emphasis="dim") for entry in line.entries),
        ]
        for line in under(row)
    ]
