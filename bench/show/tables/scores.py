"""A score table as a :class:`bench.show.grid.Grid`: method, n, tasks, average with its interval, difference from the baseline,
cost, and what papers printed; what pages and this Grid both write of its rows; and the table in every form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console, Group
from rich.text import Text

from bench.base.text import duration
from bench.compare import statements
from bench.compare.formatting import headline, row_name, score, signed_number, spread, with_interval
from bench.compare.statistics.table import BETTER, WORSE, Cell, Cost, Row, Table
from bench.show.grid import SIGNS, TINT, Column, Grid, as_markdown, grid, latex_document, terminal
from bench.show.grid import Cell as GridCell
from bench.show.tables.data import as_csv, as_json

WHOLE = "a wider terminal, or --format csv"
SCALE = "for scale: nothing trained here, another backbone; not compared"
COSTS = ("params", "train", "tuning", "memory")
COST = "params: trained; train: time of training; memory: peak, bytes; means over seeds"
TUNING = "tuning: time of the search for the values / its trials, once for all seeds"
PAPER = "paper:table: what it printed"
OUTSIDE = "outside the 95 % prediction interval for as many runs of ours as the paper had"


def score_grid(
    table: Table, scale: Sequence[tuple[Table, Row]] = (), *, intervals: bool = False
) -> Grid:
    """The table as every form prints it. ``scale``: rows of other tables that stand last.

    Where a table has a column that ranks, its interval and the difference from the baseline stand beside it; elsewhere each
    number has its own ±, and with ``intervals`` everywhere.
    """
    ranked = [table.head, "±", difference_heading(table)] if table.head else []
    columns = [Column("method", wrap=16), Column("n", right=True, lead=True)]
    columns += [Column(name, right=True, drop=2) for name in table.columns if name != table.head]
    columns += [Column(name, right=True, lead=True) for name in ranked if name]
    columns += [Column(name, right=True, drop=1) for name in COSTS]
    rows: list[list[GridCell | str]] = []
    for row in table.rows:
        costs = [text for text, _ in cost_texts(row).values()]
        ranks = _ranked(row, table) if ranked else []
        with_spread = intervals or not table.head
        rows.append([*_scores(row, table, with_spread), *ranks, *costs])
        for label, cells in under(row):
            rows.append([GridCell(text=f"  {label}", emphasis="dim"), "", *cells])
    for other, row in scale:
        rows.append(list(_scale_cells(row, other)))
    return grid(
        columns,
        [[*cells, *[""] * (len(columns) - len(cells))] for cells in rows],
        title=headline(table) + (f"; baseline: {table.baseline}" if table.baseline else ""),
        below=_settings(table),
        notes=(*table.notes, *legend(table), *([SCALE] if scale else [])),
        whole=WHOLE,
        key="bold: highest; underlined: second" if len(table.rows) > 1 else "",
    )


def _scores(row: Row, table: Table, with_spread: bool) -> list[GridCell]:
    """Name, n and means."""
    marks = tuple(i + 1 for i in row.footnotes)
    return [
        GridCell(text=row_name(row, table), sign=TINT * row.may_be_best, marks=marks),
        GridCell(text=str(table.n(row)), emphasis="dim"),
        *(_mean(cell, with_spread=with_spread) for cell in row.cells),
    ]


def _mean(cell: Cell | None, *, with_spread: bool) -> GridCell:
    if cell is None:
        return GridCell()
    half = spread(cell) if with_spread else None
    return GridCell(number=cell.mean, decimals=cell.decimals, spread=half, emphasis=cell.mark)


def _scale_cells(row: Row, table: Table) -> list[GridCell]:
    """A row under the headings of another table."""
    name = " ".join(filter(None, (row_name(row, table), table.backbone, "(for scale)")))
    cells = [GridCell(text=name), *_scores(row, table, not table.head)[1:]]
    return [replace(cell, emphasis="dim") for cell in cells]


def _ranked(row: Row, table: Table) -> list[GridCell]:
    """± of the column that ranks, and the difference from the baseline, where the table has any."""
    cell, half = row.cells[-1], GridCell()
    if cell is not None:
        half = GridCell(number=spread(cell), decimals=cell.decimals, emphasis="dim")
    difference = GridCell(text=difference_text(row), sign=sign_name(row, table))
    return [half, difference] if difference_heading(table) else [half]


def cost_texts(row: Row) -> dict[str, tuple[str, float | None]]:
    """By the names of COSTS what a row took, short ("5.3M" parameters, "13m32s", a search of "2h36m/12" trials, "1.4G"; ""
    where it was not recorded), and the number itself."""
    cost = row.cost or Cost()
    seconds, tuning = cost.train_seconds, cost.tuning_seconds
    texts = (
        (short(cost.trainable_parameters), cost.trainable_parameters),
        ("" if seconds is None else duration(seconds), seconds),
        ("" if tuning is None else f"{duration(tuning)}/{cost.tuning_trials or '?'}", tuning),
        (short(cost.peak_memory_bytes), cost.peak_memory_bytes),
    )
    return dict(zip(COSTS, texts, strict=True))


def _settings(table: Table) -> Grid | None:
    """The settings in which rows differ."""
    rows = [
        (GridCell(marks=(i,)), note.setting, note.value, note.rows, note.most)
        for i, note in enumerate(table.footnotes, 1)
    ]
    wrapped = (Column(name, wrap=16) for name in ("value", "rows", "most rows"))
    return grid(["", "setting", *wrapped], rows) if rows else None


def legend(table: Table, tint: str = SIGNS[TINT]) -> list[str]:
    """What the signs and columns of the table mean, a sentence each. ``tint``: the sign of a row that may be the best."""
    printed = [cell.printed for row in table.rows for cell in row.cells if cell and cell.printed]
    costs = [row.cost for row in table.rows if row.cost]
    texts = {
        PAPER: bool(printed),
        f"{SIGNS['outside']} {OUTSIDE}": any(one.inside is not None for one in printed),
        COST: bool(costs),
        TUNING: any(one.tuning_seconds is not None for one in costs),
    }
    signs = statements.legend(table, SIGNS[BETTER], SIGNS[WORSE], tint)
    return [*signs, *(text for text, used in texts.items() if used)]


# --- of a row: intervals, the difference from the baseline ---


def spread_text(cell: Cell) -> str:
    """The number after a mean's ± sign; "" for none."""
    half = spread(cell)
    return "" if half is None else score(half, cell.decimals)


def sign_name(row: Row, table: Table) -> str:
    """The key of SIGNS that stands at a row's number in the column that ranks; "" for none."""
    if table.tested is not None and row.untested and row.cells[-1] is not None:
        return "not tested"
    verdict = statements.verdict(row)
    return verdict if verdict in (BETTER, WORSE) else ""


def difference_heading(table: Table) -> str:
    """ "minus simcse [98.3 % CI]"; "" where no row was compared."""
    level = f" [{100 * table.tested.ci_level:.3g} % CI]" if table.tested else ""
    compared = table.head is not None and any(map(statements.verdict, table.rows))
    return f"minus {table.baseline}{level}" if compared else ""


def difference_text(row: Row) -> str:
    """ "-1.84 [-2.73, -0.95]"; "" of a row that was not compared."""
    against, cell = statements.compared(row), row.cells[-1]
    if against is None or cell is None:
        return "baseline" if row.is_baseline else ""
    return with_interval(against.difference, against.ci_low, against.ci_high, cell.decimals)


# --- what papers printed ---


def under(row: Row) -> list[tuple[str, tuple[GridCell, ...]]]:
    """Lines under a row, a label and a cell for each column: for each paper table that prints a number of this row what it prints, ours
    minus it, and half of the prediction interval."""
    every = [cell.printed for cell in row.cells if cell and cell.printed]
    lines: list[tuple[str, tuple[GridCell, ...]]] = []
    for source in dict.fromkeys(printed.source for printed in every):
        copied = any(one.source == source and not one.own for one in every)
        labels = f"{source}, copied" if copied else source, "ours minus it", "95 % prediction ±"
        columns = zip(*(_paper_cells(cell, source) for cell in row.cells), strict=True)
        lines += zip(labels, columns, strict=True)
    return [(label, cells) for label, cells in lines if any(cell.text for cell in cells)]


def _paper_cells(cell: Cell | None, source: str) -> tuple[GridCell, GridCell, GridCell]:
    """One column of these lines; empty where this paper table prints nothing of it."""
    if cell is None or cell.printed is None or cell.printed.source != source:
        return GridCell(), GridCell(), GridCell()
    printed, places = cell.printed, cell.decimals
    half = "" if printed.half is None else score(printed.half, places)
    less, sign = signed_number(printed.difference, places), "outside" * (printed.inside is False)
    return (
        GridCell(text=score(printed.value, places), emphasis="dim"),
        GridCell(text=less, sign=sign, emphasis="dim"),
        GridCell(text=half, emphasis="dim"),
    )


# --- cost ---


def short(count: float | None) -> str:
    """ "0", "12", "1.2k", "340M"; "" for None."""
    if count is None:
        return ""
    for unit in ("", "k", "M", "G"):
        if count < 999.5:
            return f"{count:.0f}{unit}" if not unit or count >= 99.95 else f"{count:.1f}{unit}"
        count /= 1000
    return f"{count:.1f}T"


# --- in every form ---


def print_tables(tables: Sequence[Table], console: Console | None = None) -> None:
    console = console or Console(highlight=False, markup=False, emoji=False)
    shown = drawn(tables, console.width, console.encoding, styled=console.is_terminal)
    console.print(shown, soft_wrap=True)


def drawn(
    tables: Sequence[Table], width: int, encoding: str = "utf-8", *, styled: bool = True
) -> Group:
    """The tables below one another, for a terminal of ``width`` characters."""
    lines = list[Text]()
    for table in tables:
        lines += [Text("")] if lines else []
        lines += terminal(score_grid(table), width, encoding, styled=styled)
    return Group(*lines)


def render(tables: Sequence[Table], form: str) -> str:
    """The tables as text: md, latex, csv or json; ends with a newline."""
    if form == "csv":
        return as_csv(tables)
    if form == "json":
        return as_json(tables)
    grids = [score_grid(table) for table in tables]
    return latex_document(grids) if form == "latex" else "\n".join(map(as_markdown, grids))
