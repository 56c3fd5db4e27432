"""A score table as a :class:`bench.base.grid.Grid`, the same for every form and every option, and
the parts of its rows that pages write, too.

Method, seeds, average with its interval, difference from the baseline and verdict, cost, tasks.
Published numbers are lines below a row. Options add columns and lines, and move none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bench.base.grid import Grid, GridCell, GridColumn, GridRow, grid, indented
from bench.compare.costs import COSTS
from bench.compare.formatting import score, signed_number, spread, with_interval
from bench.compare.statistics.table import Cell, Row, Table
from bench.compare.trained_with import value_names
from bench.compare.words.finding import comparison_of, table_finding, verdict_word
from bench.compare.words.legend import EQUAL_WITHIN, legend
from bench.compare.words.names import level_words, row_name, table_name, versus
from bench.compare.words.notes import note_lines

BYTES = "bytes"
NUMBERS = (EQUAL_WITHIN, BYTES, *(column.name for column in COSTS))
"""Columns with a number of a row that is no score; one without any number is left out."""
NAME = 24
"""Characters of a name that stay on one line while there are tasks to leave out."""
FOR_SCALE = "for scale: other backbones, not trained here and not compared"
WHOLE = "a wider terminal, or --format csv"


def score_grid(
    table: Table, scale: Sequence[tuple[Table, Row]] = (), *, intervals: bool = False
) -> Grid:
    """Lay out the table as every form prints it. ``scale``: rows of other tables, which come last.

    Each number has its own ± if no column of the table ranks, or with ``intervals``.
    """
    with_spread = intervals or not table.head
    has_costs = any(row.cost for row in table.rows)
    columns = [GridColumn("method", wrap=16, whole=0 if has_costs else NAME)]
    columns.append(GridColumn("seeds", right=True))
    if table.head:
        heading = f"{versus(table)} {level_words(table)}".strip() if versus(table) else ""
        columns.append(GridColumn(table.head, right=True))
        columns += [GridColumn("±", right=True, drop=2), GridColumn(heading, right=True)]
        columns.append(GridColumn("verdict"))
    for name in NUMBERS:
        columns.append(GridColumn(name, right=True, drop=2 if name == EQUAL_WITHIN else 1))
    columns += [GridColumn(name, right=True, drop=3) for name in _tasks(table)]
    beside = beside_names(table)
    columns += [GridColumn(name, right=True, drop=2) for name in beside]
    rows = []
    for row in table.rows:
        numbers: list[GridCell | str] = [text for text, _ in number_texts(row).values()]
        made_row = _grid_row(row, table, numbers, with_spread=with_spread)
        texts = beside_texts(row)
        measures = [GridCell(text=texts[name][0] if name in texts else "") for name in beside]
        rows.append(replace(made_row, cells=(*made_row.cells, *measures)))
        for label, printed in lines_below(row):
            rows.append(_line_below(label, printed, table))
    for other, row in scale:
        rows.append(_row_for_scale(row, other, with_spread=not table.head))
    notes = [*legend(table), *note_lines(table)]
    if scale:
        notes.append(FOR_SCALE)
    rows = [_padded(row, len(columns)) for row in rows]
    made = grid(columns, rows, title=table_name(table), notes=notes, whole=WHOLE)
    key = "bold: best; underlined or italic: second" if len(table.rows) > 1 else ""
    finding = table_finding(table).text
    return replace(made, lead=finding, below=trained_with_grid(table), key=key)


def trained_with_grid(table: Table) -> Grid | None:
    """Lay out the training values of each row, one line per row; None if nothing was trained.

    On a narrow terminal, values that all rows share are left out first.
    """
    names = value_names(table)
    if not names:
        return None
    trained = [row for row in table.rows if row.trained_with]
    columns = [GridColumn("trained with", wrap=16, whole=NAME)]
    for place, name in enumerate(names):
        is_shared = len({row.trained_with.get(name, "") for row in trained}) == 1
        columns.append(GridColumn(name, drop=place + len(names) if is_shared else place))
    rows = []
    for row in trained:
        rows.append([row_name(row, table), *(row.trained_with.get(name, "") for name in names)])
    return grid(columns, rows, whole=WHOLE)


def _tasks(table: Table) -> list[str]:
    return [name for name in table.columns if name != table.head]


def _grid_row(
    row: Row, table: Table, numbers: Sequence[GridCell | str], *, with_spread: bool
) -> GridRow:
    cells: list[GridCell | str] = [
        GridCell(text=row_name(row, table), may_be_best=row.may_be_best),
        GridCell(text=str(table.n(row)), emphasis="dim"),
    ]
    tasks: Sequence[Cell | None] = row.cells
    if table.head:
        *tasks, head = row.cells
        half = GridCell()
        if head is not None and not with_spread:
            half = GridCell(number=spread(head), decimals=head.decimals, emphasis="dim")
        cells += [_mean(head, with_spread), half]
        cells += [difference_text(row), verdict_word(row, table)]
    return indented([*cells, *numbers, *(_mean(cell, with_spread) for cell in tasks)], levels=0)


def _padded(row: GridRow, length: int) -> GridRow:
    """Return a row with empty cells at its end, up to so many cells."""
    return replace(row, cells=(*row.cells, *[GridCell()] * (length - len(row.cells))))


def _mean(cell: Cell | None, with_spread: bool) -> GridCell:
    if cell is None:
        return GridCell()
    return GridCell(
        number=cell.mean,
        decimals=cell.decimals,
        spread=spread(cell) if with_spread else None,
        emphasis=cell.mark,
    )


def _line_below(label: str, printed: Sequence[GridCell], table: Table) -> GridRow:
    cells: list[GridCell | str] = [GridCell(text=label, emphasis="dim"), ""]
    tasks = printed
    if table.head:
        *tasks, head = printed
        cells += [head, "", "", ""]
    return indented([*cells, *[""] * len(NUMBERS), *tasks])


def _row_for_scale(row: Row, table: Table, *, with_spread: bool) -> GridRow:
    """Return the cells of a row of another table, without a place among the best and a verdict."""
    plain = _grid_row(row, table, [""] * len(NUMBERS), with_spread=with_spread)
    name = " ".join(filter(None, (row_name(row, table), table.backbone, "(for scale)")))
    cells = [replace(cell, emphasis="dim") for cell in plain]
    cells[0] = GridCell(text=name, emphasis="dim")
    if table.head:
        cells[4], cells[5] = GridCell(), GridCell()
    return indented(cells, levels=0)


def number_texts(row: Row) -> dict[str, tuple[str, float | None]]:
    """Return the numbers of a row by the names of NUMBERS, each as a short text and as a number.

    The text is "" if the number is not known. Examples: equal within "1.06", "5.3M" parameters,
    "98.6k (1.8 %)", "13m32s", a search of "2h36m/12" trials, "1.4G".
    """
    against, cell = comparison_of(row), row.cells[-1]
    margin = None if against is None else against.equal_within
    within = "" if margin is None or cell is None else score(margin, cell.decimals)
    texts: dict[str, tuple[str, float | None]] = {
        EQUAL_WITHIN: (within, margin),
        BYTES: ("" if row.vector_bytes is None else f"{row.vector_bytes:,}", row.vector_bytes),
    }
    cost = row.cost or {}
    for column in COSTS:
        texts[column.name] = column.text(cost), cost.get(column.numbers[0])
    return texts


def beside_names(table: Table) -> list[str]:
    """Name the further measures of a table's tasks."""
    return list(dict.fromkeys(name for row in table.rows for name in beside_texts(row)))


def beside_texts(row: Row) -> dict[str, tuple[str, float]]:
    """Return the further measures of a row's tasks, each as a text and a number."""
    texts: dict[str, tuple[str, float]] = {}
    for cell in row.cells:
        if cell is None:
            continue
        for name, number in cell.beside.items():
            texts[name] = (score(number, cell.decimals), number)
    return texts


def spread_text(cell: Cell) -> str:
    """Return the number after a mean's ± sign; "" for none."""
    half = spread(cell)
    return "" if half is None else score(half, cell.decimals)


def difference_text(row: Row) -> str:
    """Return "-1.84 [-2.73, -0.95]"; "" for a row that was not compared."""
    against, cell = comparison_of(row), row.cells[-1]
    if against is None or cell is None:
        return ""
    return with_interval(against.difference, against.ci_low, against.ci_high, cell.decimals)


def lines_below(row: Row) -> list[tuple[str, tuple[GridCell, ...]]]:
    """Return the lines below a row: a label, and a cell for each column.

    For each paper table that prints a number of this row: the printed number, ours minus it, half
    of the prediction interval, and the verdict.
    """
    every = [cell.printed for cell in row.cells if cell and cell.printed]
    lines: list[tuple[str, tuple[GridCell, ...]]] = []
    for source in dict.fromkeys(printed.source for printed in every):
        copied = any(paper.source == source and not paper.own for paper in every)
        name = f"{source}, copied" if copied else source
        columns = [_paper_cells(cell, source) for cell in row.cells]
        for number, label in enumerate((name, "ours minus it", "95 % prediction ±", "ours is")):
            cells = tuple(GridCell(text=column[number], emphasis="dim") for column in columns)
            if any(cell.text for cell in cells):
                lines.append((label, cells))
    return lines


def _paper_cells(cell: Cell | None, source: str) -> tuple[str, str, str, str]:
    """Return one column of these lines; empty texts if this paper table has no number for it."""
    if cell is None or cell.printed is None or cell.printed.source != source:
        return "", "", "", ""
    printed, places = cell.printed, cell.decimals
    half = "" if printed.half is None else score(printed.half, places)
    difference = signed_number(printed.difference, places)
    return score(printed.value, places), difference, half, printed.verdict
