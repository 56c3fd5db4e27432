"""A score table as a :class:`bench.show.grid.Grid`: method, n, tasks, average with its interval, difference from the baseline,
cost, and what papers printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bench.base.text import duration
from bench.compare import statements
from bench.compare.formatting import headline, row_name, spread
from bench.compare.statistics.table import BETTER, WORSE, Cell, Cost, Row, Table
from bench.show.grid import SIGNS, TINT, Column, Grid, grid
from bench.show.grid import Cell as GridCell
from bench.show.tables import lines
from bench.show.tables.lines import encode_condition, parts_trained, short

WHOLE = "a wider terminal, or --format csv"
SCALE = "for scale: nothing trained here, another backbone; not compared"
COSTS = ("params", "train", "tuning", "memory", "encode")
COST = "params: trained; train: time of training; memory: peak, bytes; means over seeds"
TUNING = "tuning: time of the search for the values / its trials, once for all seeds"
ENCODE = "encode: sentences a second"
PAPER = "paper:table: what it printed"
OUTSIDE = "outside the 95 % prediction interval for as many runs of ours as the paper had"


def score_grid(table: Table, scale: Sequence[tuple[Table, int]] = ()) -> Grid:
    """The table as every form prints it. ``scale``: rows of other tables that stand last, by table and place.

    Where a table has a column that ranks, its interval and the difference from the baseline stand beside it; elsewhere each
    number has its own ±.
    """
    ranked = [table.head, "±"] if table.head else []
    ranked += [lines.difference_heading(table)] if lines.has_differences(table) else []
    columns = [Column("method", wrap=16), Column("n", right=True, lead=True)]
    columns += [Column(name, right=True, drop=2) for name in table.columns if name != table.head]
    columns += [Column(name, right=True, lead=True) for name in ranked]
    columns += [Column(name, right=True, drop=1) for name in COSTS]
    rows: list[list[GridCell | str]] = []
    for row in table.rows:
        rows.append([*_scores(row, table), *(_ranked(row, table) if ranked else []), *_costs(row)])
        rows += _paper_rows(row)
    for other, i in scale:
        rows.append(list(_scale_cells(other.rows[i], other)))
    return grid(
        columns,
        [[*cells, *[""] * (len(columns) - len(cells))] for cells in rows],
        title=headline(table) + (f"; baseline: {table.baseline}" if table.baseline else ""),
        below=_settings(table),
        notes=(*table.notes, *_legend(table), *([SCALE] if scale else [])),
        whole=WHOLE,
        key="bold: highest; underlined: second" if len(table.rows) > 1 else "",
    )


def _scores(row: Row, table: Table) -> list[GridCell]:
    """Name, n and means; with ± where no column of its own has it."""
    marks = tuple(i + 1 for i in row.footnotes)
    return [
        GridCell(text=row_name(row, table), tint=row.may_be_best, marks=marks),
        GridCell(text=str(table.n(row)), emphasis="dim"),
        *(_mean(cell, with_spread=not table.head) for cell in row.cells),
    ]


def _mean(cell: Cell | None, *, with_spread: bool) -> GridCell:
    if cell is None:
        return GridCell()
    half = spread(cell) if with_spread else None
    return GridCell(number=cell.mean, decimals=cell.decimals, spread=half, emphasis=cell.mark)


def _scale_cells(row: Row, table: Table) -> list[GridCell]:
    """A row under the headings of another table."""
    name = " ".join(filter(None, (row_name(row, table), table.backbone, "(for scale)")))
    cells = [GridCell(text=name), *_scores(row, table)[1:]]
    return [replace(cell, emphasis="dim") for cell in cells]


def _ranked(row: Row, table: Table) -> list[GridCell]:
    """± of the column that ranks, and the difference from the baseline."""
    cell, text = row.cells[-1], lines.difference_text(row)
    half = GridCell()
    if cell is not None:
        half = GridCell(number=spread(cell), decimals=cell.decimals, emphasis="dim")
    if not lines.has_differences(table):
        return [half]
    return [half, GridCell(text=text, sign=lines.sign_name(row, table))]


def _costs(row: Row) -> list[str]:
    """In the order of COSTS, short: "5.3M" parameters, "13m32s", a search of "2h36m/12" trials, "1.4G", "1.2k/s"; "" where it
    was not recorded."""
    cost = row.cost or Cost()
    seconds, tuning = cost.train_seconds, cost.tuning_seconds
    encode = short(cost.encode_sentences_per_second)
    return [
        short(cost.trainable_parameters),
        "" if seconds is None else duration(seconds),
        "" if tuning is None else f"{duration(tuning)}/{cost.tuning_trials or '?'}",
        short(cost.peak_memory_bytes),
        encode and f"{encode}/s",
    ]


def _paper_rows(row: Row) -> list[list[GridCell | str]]:
    """What papers printed of this row."""
    return [
        [GridCell(text=f"  {line.label}", emphasis="dim"), "", *line.entries]
        for line in lines.under(row)
    ]


def _settings(table: Table) -> Grid | None:
    """The settings in which rows differ."""
    rows = [
        (GridCell(marks=(i,)), note.setting, note.value, note.rows, note.most)
        for i, note in enumerate(table.footnotes, 1)
    ]
    wrapped = (Column(name, wrap=16) for name in ("value", "rows", "most rows"))
    return grid(["", "setting", *wrapped], rows) if rows else None


def _legend(table: Table) -> list[str]:
    """What the signs and columns of the table mean, a sentence each."""
    printed = [cell.printed for row in table.rows for cell in row.cells if cell and cell.printed]
    costs = [row.cost for row in table.rows if row.cost]
    legend = {
        PAPER: bool(printed),
        f"{SIGNS['outside']} {OUTSIDE}": any(one.inside is not None for one in printed),
        COST: bool(costs),
        TUNING: any(one.tuning_seconds is not None for one in costs),
        ENCODE: bool(encode_condition(table)),
    }
    signs = statements.legend(table, SIGNS[BETTER], SIGNS[WORSE], SIGNS[TINT])
    return [*signs, *(text for text, used in legend.items() if used), *parts_trained(table)]
