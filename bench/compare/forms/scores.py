"""A score table as a :class:`bench.base.grid.Grid`, and the parts of its rows that pages write,
too.

Method, n, tasks, average with its interval, difference from the baseline, cost, and numbers that
papers printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bench.base.grid import (
    MAY_BE_BEST,
    SIGNS,
    Grid,
    GridCell,
    GridColumn,
    GridRow,
    grid,
    indented,
)
from bench.base.text import format_duration
from bench.compare.answer import comparison_of, verdict_of
from bench.compare.formatting import headline, row_name, score, signed_number, spread, with_interval
from bench.compare.forms.legend import sign_legend
from bench.compare.statistics.table import BETTER, WORSE, Cell, Row, RowCost, Table

COSTS = ("params", "train", "tuning", "memory")


def score_grid(
    table: Table, scale: Sequence[tuple[Table, Row]] = (), *, intervals: bool = False
) -> Grid:
    """Lay out the table as every form prints it. ``scale``: rows of other tables, which come last.

    If a table has a column that ranks, its interval and the difference from the baseline follow it;
    in others each number has its own ±, and with ``intervals`` in all.
    """
    ranked = [table.head, "±", difference_heading(table)] if table.head else []
    columns = [
        GridColumn("method", wrap=16),
        GridColumn("n", right=True),
        *(GridColumn(name, right=True, drop=2) for name in table.columns if name != table.head),
        *(GridColumn(name, right=True) for name in ranked if name),
        *(GridColumn(name, right=True, drop=1) for name in COSTS),
    ]
    rows: list[GridRow] = []
    for row in table.rows:
        cells: list[GridCell | str] = [*_scores(row, table, intervals or not table.head)]
        if ranked:
            cells += _ranked(row, table)
        cells += [text for text, _ in cost_texts(row).values()]
        rows.append(_filled(cells, len(columns)))
        for label, printed in lines_below(row):
            below = _filled([GridCell(text=label, emphasis="dim"), "", *printed], len(columns))
            rows.append(replace(below, indent=1))
    for other, row in scale:
        rows.append(_filled(_scale_cells(row, other), len(columns)))
    title = headline(table)
    if table.baseline:
        title += f"; baseline: {table.baseline}"
    notes = [*table.notes, *legend(table)]
    if scale:
        notes.append("for scale: other backbones, not trained here and not compared")
    scores = grid(
        columns, rows, title=title, notes=notes, whole="a wider terminal, or --format csv"
    )
    key = ""
    if len(table.rows) > 1:
        key = "bold: highest; underlined: second"
    return replace(scores, below=_settings(table), key=key)


def _filled(cells: Sequence[GridCell | str], columns: int) -> GridRow:
    """Make a row of so many columns, the last ones empty."""
    return indented([*cells, *[""] * (columns - len(cells))], levels=0)


def _scores(row: Row, table: Table, with_spread: bool) -> list[GridCell]:
    """Return the cells of name, n and means."""
    return [
        GridCell(
            text=row_name(row, table),
            sign=MAY_BE_BEST if row.may_be_best else "",
            marks=tuple(i + 1 for i in row.footnotes),
        ),
        GridCell(text=str(table.n(row)), emphasis="dim"),
        *(_mean(cell, with_spread=with_spread) for cell in row.cells),
    ]


def _mean(cell: Cell | None, *, with_spread: bool) -> GridCell:
    if cell is None:
        return GridCell()
    return GridCell(
        number=cell.mean,
        decimals=cell.decimals,
        spread=spread(cell) if with_spread else None,
        emphasis=cell.mark,
    )


def _scale_cells(row: Row, table: Table) -> list[GridCell]:
    """Return the cells of a row under the headings of another table."""
    name = " ".join(filter(None, (row_name(row, table), table.backbone, "(for scale)")))
    return [
        replace(cell, emphasis="dim")
        for cell in [GridCell(text=name), *_scores(row, table, not table.head)[1:]]
    ]


def _ranked(row: Row, table: Table) -> list[GridCell]:
    """Return ± of the column that ranks, and the difference from the baseline, if the table has
    any."""
    cell = row.cells[-1]
    half = GridCell()
    if cell is not None:
        half = GridCell(number=spread(cell), decimals=cell.decimals, emphasis="dim")
    difference = GridCell(text=difference_text(row), sign=sign_name(row, table))
    return [half, difference] if difference_heading(table) else [half]


def cost_texts(row: Row) -> dict[str, tuple[str, float | None]]:
    """Return the costs of a row by the names of COSTS, each as a short text and as a number.

    The text is "" if the cost was not recorded. Examples: "5.3M" parameters, "13m32s", a search
    of "2h36m/12" trials, "1.4G".
    """
    cost = row.cost or RowCost()
    seconds = cost.train_seconds
    trained = "" if seconds is None else format_duration(seconds)
    tuned = ""
    if cost.tuning_seconds is not None:
        tuned = f"{format_duration(cost.tuning_seconds)}/{cost.tuning_trials or '?'}"
    return {
        "params": (short_count(cost.trainable_parameters), cost.trainable_parameters),
        "train": (trained, seconds),
        "tuning": (tuned, cost.tuning_seconds),
        "memory": (short_count(cost.peak_memory_bytes), cost.peak_memory_bytes),
    }


def _settings(table: Table) -> Grid | None:
    """Make a table of the settings in which rows differ; None if there are none."""
    rows = []
    for i, note in enumerate(table.footnotes, 1):
        rows.append((GridCell(marks=(i,)), note.setting, note.value, note.rows, note.most))
    if not rows:
        return None
    wrapped = [GridColumn(name, wrap=16) for name in ("value", "rows", "most rows")]
    return grid(["", "setting", *wrapped], rows)


def legend(table: Table, candidate: str = SIGNS[MAY_BE_BEST]) -> list[str]:
    """Explain the signs and columns of the table, a sentence each.

    ``candidate``: how a form marks a row that may be the best.
    """
    printed = []
    for row in table.rows:
        printed += [cell.printed for cell in row.cells if cell and cell.printed]
    costs = [row.cost for row in table.rows if row.cost]
    lines = sign_legend(table, SIGNS[BETTER], SIGNS[WORSE], candidate)
    if printed:
        lines.append("paper:table: the number printed there")
    if any(paper.inside is not None for paper in printed):
        lines.append(
            f"{SIGNS['outside']} outside the 95 % prediction interval for the mean of as many runs "
            "as the paper had"
        )
    if costs:
        lines.append(
            "params: trained; train: training time; memory: peak, in bytes; means over seeds"
        )
    if any(cost.tuning_seconds is not None for cost in costs):
        lines.append("tuning: search time / number of trials, once for all seeds")
    return lines


def spread_text(cell: Cell) -> str:
    """Return the number after a mean's ± sign; "" for none."""
    half = spread(cell)
    return "" if half is None else score(half, cell.decimals)


def sign_name(row: Row, table: Table) -> str:
    """Return the key of SIGNS for a row's number in the column that ranks; "" for none."""
    if table.tested is not None and row.untested and row.cells[-1] is not None:
        return "not tested"
    found = verdict_of(row)
    return found if found in (BETTER, WORSE) else ""


def difference_heading(table: Table) -> str:
    """Return "minus simcse [98.3 % CI]"; "" if no row was compared."""
    if table.head is None or not table.has_verdicts:
        return ""
    level = f" [{100 * table.tested.ci_level:.3g} % CI]" if table.tested else ""
    return f"minus {table.baseline}{level}"


def difference_text(row: Row) -> str:
    """Return "-1.84 [-2.73, -0.95]"; "" for a row that was not compared."""
    against, cell = comparison_of(row), row.cells[-1]
    if against is None or cell is None:
        return "baseline" if row.is_baseline else ""
    return with_interval(against.difference, against.ci_low, against.ci_high, cell.decimals)


def lines_below(row: Row) -> list[tuple[str, tuple[GridCell, ...]]]:
    """Return the lines below a row: a label, and a cell for each column.

    For each paper table that prints a number of this row: the printed number, ours minus it, and
    half of the prediction interval.
    """
    every = [cell.printed for cell in row.cells if cell and cell.printed]
    lines: list[tuple[str, tuple[GridCell, ...]]] = []
    for source in dict.fromkeys(printed.source for printed in every):
        copied = any(paper.source == source and not paper.own for paper in every)
        name = f"{source}, copied" if copied else source
        columns = [_paper_cells(cell, source) for cell in row.cells]
        for number, label in enumerate((name, "ours minus it", "95 % prediction ±")):
            cells = tuple(column[number] for column in columns)
            if any(cell.text for cell in cells):
                lines.append((label, cells))
    return lines


def _paper_cells(cell: Cell | None, source: str) -> tuple[GridCell, GridCell, GridCell]:
    """Return one column of these lines; empty cells if this paper table has no number for it."""
    if cell is None or cell.printed is None or cell.printed.source != source:
        return GridCell(), GridCell(), GridCell()
    printed, places = cell.printed, cell.decimals
    half = "" if printed.half is None else score(printed.half, places)
    difference = signed_number(printed.difference, places)
    sign = "outside" if printed.inside is False else ""
    return (
        GridCell(text=score(printed.value, places), emphasis="dim"),
        GridCell(text=difference, sign=sign, emphasis="dim"),
        GridCell(text=half, emphasis="dim"),
    )


def short_count(count: float | None) -> str:
    """Return "0", "12", "1.2k", "340M"; "" for None."""
    if count is None:
        return ""
    for unit in ("", "k", "M", "G"):
        if count < 999.5:
            return f"{count:.0f}{unit}" if not unit or count >= 99.95 else f"{count:.1f}{unit}"
        count /= 1000
    return f"{count:.1f}T"
