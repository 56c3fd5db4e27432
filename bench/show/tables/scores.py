"""A score table as a :class:`bench.show.grid.Grid`: method, n, tasks, average with its interval, difference from the baseline, cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bench.compare.formatting import (
    headline,
    signed_number,
    spread,
    variant_words,
    with_interval,
)
from bench.compare.statistics.table import Cell, Row, Table
from bench.show.grid import TINT, Column, Grid, grid
from bench.show.grid import Cell as GridCell
from bench.show.tables.lines import cost_columns, cost_texts, parts_trained

WHOLE = "a wider terminal, or --format csv"
SCALE = "for scale: nothing trained here, another backbone; not compared"
OURS_LESS = "ours less that"


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
    if head and table.baseline:
        ranked.append(Column(f"less {table.baseline}", right=True, lead=True))
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
        rows.append([*_score_cells(row, table), *map(_text, cost_texts(row, table))])
        rows += [[*cells, *map(_text, [""] * len(cost))] for cells in _paper_rows(row, table)]
    for other, i in scale:
        cells = _scale_cells(other, other.rows[i])
        rows.append([*cells, *map(_text, [""] * (len(columns) - len(cells)))])
    return grid(
        columns,
        rows,
        title=f"{headline(table)}" + (f"; baseline: {table.baseline}" if table.baseline else ""),
        footnotes=table.footnotes,
        notes=(*table.notes, *legend(table), *([SCALE] if scale else [])),
        whole=WHOLE,
        key="bold: highest number; underlined: second" if len(table.rows) > 1 else "",
    )


def _text(text: str) -> GridCell:
    return GridCell(text=text)


def row_label(row: Row, table: Table) -> str:
    """ "promcse eh" """
    return " ".join(filter(None, (row.label, variant_words(row, table))))


def _score_cells(row: Row, table: Table) -> list[GridCell]:
    ranks = row.cells[-1] if table.head else None
    tint = getattr(row, "may_be_best", False)
    name = GridCell(
        text=row_label(row, table), tint=tint, marks=tuple(i + 1 for i in row.footnotes)
    )
    cells = [name, GridCell(text=str(len(row.runs)), emphasis="dim")]
    cells += [_number(cell, alone=not table.head) for cell in row.cells]
    if table.head:
        half = spread(ranks) if ranks else None
        cells.append(GridCell(number=half, decimals=ranks.decimals if ranks else 2, emphasis="dim"))
    if table.head and table.baseline:
        cells.append(_difference(row, ranks, tested=table.tested is not None))
    return cells


def _scale_cells(table: Table, row: Row) -> list[GridCell]:
    """A row of another backbone's table, under the headings of a table of the same suite."""
    name = " ".join(filter(None, (row_label(row, table), table.backbone, "(for scale)")))
    return [
        GridCell(text=name),
        GridCell(text=str(len(row.runs)), emphasis="dim"),
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


def _difference(row: Row, cell: Cell | None, *, tested: bool) -> GridCell:
    if row.is_baseline:
        return GridCell(text="baseline", emphasis="dim")
    if cell is None or (against := cell.against) is None:
        return GridCell()
    low = getattr(against, "ci_low", getattr(against, "low", None))
    high = getattr(against, "ci_high", getattr(against, "high", None))
    signs = {"better": "better", "worse": "worse", None: "not tested"}
    sign = signs.get(against.verdict, "") if tested else ""
    return GridCell(text=with_interval(against.difference, low, high, cell.decimals), sign=sign)


def _paper_rows(row: Row, table: Table) -> list[list[GridCell]]:
    """Two rows for each paper table that prints a number of this row: what it prints, and ours less that."""
    printed = [cell.printed if cell else None for cell in row.cells]
    rows = []
    for source in dict.fromkeys(p.source for p in printed if p):
        copied = any(p.source == source and not p.own for p in printed if p)
        theirs = [GridCell(text=f"  {source}{', copied' * copied}", emphasis="dim"), GridCell()]
        less = [GridCell(text=f"  {OURS_LESS}", emphasis="dim"), GridCell()]
        for cell, p in zip(row.cells, printed, strict=True):
            if cell is None or p is None or p.source != source:
                theirs.append(GridCell())
                less.append(GridCell())
                continue
            outside = "outside" if p.inside is False else ""
            theirs.append(GridCell(number=p.value, decimals=cell.decimals, emphasis="dim"))
            less.append(GridCell(text=signed_number(p.difference, cell.decimals), sign=outside))
        empty = [GridCell()] * (bool(table.head) + bool(table.head and table.baseline))
        rows += [[*theirs, *empty], [*less, *empty]]
    return rows


def legend(table: Table) -> list[str]:
    """What signs, marks and columns mean: static text, for what the table has."""
    lines = []
    cells = [cell for row in table.rows for cell in row.cells if cell is not None]
    if any(getattr(row, "may_be_best", False) for row in table.rows):
        lines.append(f"{TINT} or shaded: may be the best")
    if table.baseline and table.head:
        lines.append(
            f"differences from {table.baseline} were not tested"
            if table.tested is None
            else f'▲ better, ▼ worse than {table.baseline}; no sign: inconclusive, which is not "equal"; -: not tested'
        )
    if any(cell.spread for cell in cells):
        lines.append("±: half of the 95 % confidence interval of a row's own mean")
    if any(cell.printed for cell in cells):
        lines.append("paper:table: what it printed; * it lies outside our interval")
    if columns := cost_columns(table):
        speed = "; encode: sentences a second" if "encode" in columns else ""
        lines.append(
            f"params: trained; train: time of training; memory: peak{speed}; means over seeds"
        )
        lines += parts_trained(table)
    if any(row.cost is not None and row.cost.tuning_seconds is not None for row in table.rows):
        lines.append("train +time/trials: the search for the values, once for all seeds")
    return lines
