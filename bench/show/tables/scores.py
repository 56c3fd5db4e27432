"""A score table as a :class:`bench.show.grid.Grid`: method, n, tasks, average with its interval, difference from the baseline, cost, and what
papers printed; what pages and this Grid both write of its rows; the table in every form; and items on which two runs disagree.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, is_dataclass, replace
from typing import Any

from rich.console import Console, Group
from rich.text import Text

from bench.base.text import duration
from bench.compare.answer import comparison_of, verdict_of
from bench.compare.formatting import headline, row_name, score, signed_number, spread, with_interval
from bench.compare.items import Disagreement, ItemValue
from bench.compare.statistics.table import BETTER, WORSE, Cell, Cost, Row, Table
from bench.show.grid import SIGNS, TINT, Column, Grid, as_markdown, grid, latex_document, terminal
from bench.show.grid import Cell as GridCell
from bench.show.grid import as_csv as lines_csv
from bench.show.tables.legend import sign_legend

COSTS = ("params", "train", "tuning", "memory")


def score_grid(
    table: Table, scale: Sequence[tuple[Table, Row]] = (), *, intervals: bool = False
) -> Grid:
    """The table as every form prints it. ``scale``: rows of other tables that stand last.

    Where a table has a column that ranks, its interval and the difference from the baseline stand beside it; elsewhere each
    number has its own ±, and with ``intervals`` everywhere.
    """
    ranked = [table.head, "±", difference_heading(table)] if table.head else []
    columns = [
        Column("method", wrap=16),
        Column("n", right=True, lead=True),
        *(Column(name, right=True, drop=2) for name in table.columns if name != table.head),
        *(Column(name, right=True, lead=True) for name in ranked if name),
        *(Column(name, right=True, drop=1) for name in COSTS),
    ]
    rows: list[list[GridCell | str]] = []
    for row in table.rows:
        rows.append(
            [
                *_scores(row, table, intervals or not table.head),
                *(_ranked(row, table) if ranked else []),
                *(text for text, _ in cost_texts(row).values()),
            ]
        )
        rows += [
            [GridCell(text=f"  {label}", emphasis="dim"), "", *cells] for label, cells in under(row)
        ]
    rows += [list(_scale_cells(row, other)) for other, row in scale]
    return grid(
        columns,
        [[*cells, *[""] * (len(columns) - len(cells))] for cells in rows],
        title=headline(table) + (f"; baseline: {table.baseline}" if table.baseline else ""),
        below=_settings(table),
        notes=(
            *table.notes,
            *legend(table),
            *(["for scale: other backbones, not trained here and not compared"] if scale else []),
        ),
        whole="a wider terminal, or --format csv",
        key="bold: highest; underlined: second" if len(table.rows) > 1 else "",
    )


def _scores(row: Row, table: Table, with_spread: bool) -> list[GridCell]:
    """Name, n and means."""
    return [
        GridCell(
            text=row_name(row, table),
            sign=TINT * row.may_be_best,
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
    """A row under the headings of another table."""
    name = " ".join(filter(None, (row_name(row, table), table.backbone, "(for scale)")))
    return [
        replace(cell, emphasis="dim")
        for cell in [GridCell(text=name), *_scores(row, table, not table.head)[1:]]
    ]


def _ranked(row: Row, table: Table) -> list[GridCell]:
    """± of the column that ranks, and the difference from the baseline, where the table has any."""
    cell = row.cells[-1]
    half = (
        GridCell()
        if cell is None
        else GridCell(number=spread(cell), decimals=cell.decimals, emphasis="dim")
    )
    difference = GridCell(text=difference_text(row), sign=sign_name(row, table))
    return [half, difference] if difference_heading(table) else [half]


def cost_texts(row: Row) -> dict[str, tuple[str, float | None]]:
    """By the names of COSTS what a row took, short ("5.3M" parameters, "13m32s", a search of "2h36m/12" trials, "1.4G"; ""
    where it was not recorded), and the number itself."""
    cost = row.cost or Cost()
    seconds, tuning = cost.train_seconds, cost.tuning_seconds
    return {
        "params": (short(cost.trainable_parameters), cost.trainable_parameters),
        "train": ("" if seconds is None else duration(seconds), seconds),
        "tuning": (
            "" if tuning is None else f"{duration(tuning)}/{cost.tuning_trials or '?'}",
            tuning,
        ),
        "memory": (short(cost.peak_memory_bytes), cost.peak_memory_bytes),
    }


def _settings(table: Table) -> Grid | None:
    """The settings in which rows differ."""
    rows = [
        (GridCell(marks=(i,)), note.setting, note.value, note.rows, note.most)
        for i, note in enumerate(table.footnotes, 1)
    ]
    return (
        grid(
            ["", "setting", *(Column(name, wrap=16) for name in ("value", "rows", "most rows"))],
            rows,
        )
        if rows
        else None
    )


def legend(table: Table, tint: str = SIGNS[TINT]) -> list[str]:
    """What the signs and columns of the table mean, a sentence each. ``tint``: the sign of a row that may be the best."""
    printed = [cell.printed for row in table.rows for cell in row.cells if cell and cell.printed]
    costs = [row.cost for row in table.rows if row.cost]
    texts = {
        "paper:table: the number printed there": bool(printed),
        f"{SIGNS['outside']} outside the 95 % prediction interval for the mean of as many runs "
        "as the paper had": any(one.inside is not None for one in printed),
        "params: trained; train: training time; memory: peak, in bytes; means over seeds": bool(
            costs
        ),
        "tuning: search time / number of trials, once for all seeds": any(
            one.tuning_seconds is not None for one in costs
        ),
    }
    return [
        *sign_legend(table, SIGNS[BETTER], SIGNS[WORSE], tint),
        *(text for text, used in texts.items() if used),
    ]


# --- of a row: intervals, the difference from the baseline ---


def spread_text(cell: Cell) -> str:
    """The number after a mean's ± sign; "" for none."""
    half = spread(cell)
    return "" if half is None else score(half, cell.decimals)


def sign_name(row: Row, table: Table) -> str:
    """The key of SIGNS that stands at a row's number in the column that ranks; "" for none."""
    if table.tested is not None and row.untested and row.cells[-1] is not None:
        return "not tested"
    found = verdict_of(row)
    return found if found in (BETTER, WORSE) else ""


def difference_heading(table: Table) -> str:
    """ "minus simcse [98.3 % CI]"; "" where no row was compared."""
    level = f" [{100 * table.tested.ci_level:.3g} % CI]" if table.tested else ""
    return f"minus {table.baseline}{level}" if table.head is not None and table.has_verdicts else ""


def difference_text(row: Row) -> str:
    """ "-1.84 [-2.73, -0.95]"; "" of a row that was not compared."""
    against, cell = comparison_of(row), row.cells[-1]
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
        lines += zip(
            labels,
            zip(*(_paper_cells(cell, source) for cell in row.cells), strict=True),
            strict=True,
        )
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
    console.print(
        drawn(tables, console.width, console.encoding, styled=console.is_terminal), soft_wrap=True
    )


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


# --- as data: CSV with one line per cell, and JSON (schema/compare-3.schema.json) ---


SCHEMA = "bench.compare/3"
HEADING = (
    "suite",
    "protocol",
    "text",
    "setting",
    "backbone",
    "method",
    "variant",
    "differs",
    "task",
    "mean",
    "sd",
    "se",
    "ci_low",
    "ci_high",
    "covers",
    "seeds",
    "n",
    "mark",
    "difference",
    "difference_se",
    "difference_df",
    "difference_ci_low",
    "difference_ci_high",
    "difference_ci_level",
    "p",
    "verdict",
    "mde",
    "may_be_best",
    "untested",
    "paper",
    "paper_value",
    "paper_std",
    "paper_difference",
    "paper_inside",
    "paper_half",
    "trainable_parameters",
    "train_seconds",
    "peak_memory_bytes",
    "tuning_seconds",
    "tuning_trials",
    "values",
    "footnotes",
    "runs",
)


def as_csv(tables: Sequence[Table]) -> str:
    """One line per (row, task); numbers in full, empty where there is none."""
    return lines_csv(HEADING, ([line.get(name) for name in HEADING] for line in cell_rows(tables)))


def cell_rows(tables: Sequence[Table]) -> Iterator[dict[str, Any]]:
    """One mapping per (row, task), with those keys of ``HEADING`` of which something is known, and others."""
    return (
        {**_row_facts(row, table), **_cell_facts(cell), "task": task}
        for table in tables
        for row in table.rows
        for task, cell in zip(table.columns, row.cells, strict=True)
    )


def _row_facts(row: Row, table: Table) -> dict[str, Any]:
    return {
        "suite": table.suite,
        "protocol": table.protocol,
        "text": table.text,
        "setting": row.setting,
        "backbone": row.backbone,
        "budget": table.budget,
        "method": row.method,
        "variant": row.variant,
        "differs": " ".join(f"{key}={value}" for key, value in row.differs),
        "may_be_best": row.may_be_best if table.tested else None,
        "untested": row.untested,
        "footnotes": "; ".join(str(table.footnotes[i]) for i in row.footnotes),
        "runs": " ".join(row.runs),
        "values": row.values,
        **(_facts(row.cost) if row.cost else {}),
    }


def _cell_facts(cell: Cell | None) -> dict[str, Any]:
    if cell is None:
        return {}
    spread, against, paper = (
        vars(part) if part else {} for part in (cell.spread, cell.against, cell.printed)
    )
    return {
        "mean": cell.mean,
        "sd": cell.sd,
        "se": spread.get("se"),
        "ci_low": spread.get("low"),
        "ci_high": spread.get("high"),
        "covers": spread.get("covers"),
        "seeds": len(cell.values),
        "n": cell.n,
        "mark": cell.mark,
        "difference": _difference(cell),
        "difference_se": against.get("se"),
        "difference_df": against.get("df"),
        "difference_ci_low": against.get("ci_low"),
        "difference_ci_high": against.get("ci_high"),
        "difference_ci_level": against.get("ci_level"),
        "p": against.get("p"),
        "verdict": against.get("verdict"),
        "mde": against.get("mde"),
        "paper": paper["source"] + " (copied)" * (not paper["own"]) if paper else None,
        "paper_value": paper.get("value"),
        "paper_std": paper.get("std"),
        "paper_difference": paper.get("difference"),
        "paper_inside": paper.get("inside"),
        "paper_half": paper.get("half"),
    }


def as_json(tables: Sequence[Table]) -> str:
    return (
        json.dumps(
            {"schema": SCHEMA, "tables": [table_data(table) for table in tables]},
            indent=1,
            allow_nan=False,
        )
        + "\n"
    )


def _facts(value: Any) -> dict[str, Any]:
    """The fields of a dataclass whose values are plain, or dataclasses of such; what they hold is
    not copied."""
    return {key: _facts(item) if is_dataclass(item) else item for key, item in vars(value).items()}


def table_data(table: Table) -> dict[str, Any]:
    """One table as plain JSON values: ``$defs/table`` of the schema."""
    sender = {"submitted_by": table.sender} if table.sender else {}
    return {
        "suite": table.suite,
        "protocol": table.protocol,
        "text": table.text,
        "metric": table.metric,
        "setting": table.setting,
        "backbone": table.backbone,
        "budget": table.budget,
        **sender,
        "columns": list(table.columns),
        "baseline": table.baseline,
        "tested": None if table.tested is None else _facts(table.tested),
        "rows": [_row(row, table) for row in table.rows],
        "notes": list(table.notes),
        "footnotes": [_facts(note) for note in table.footnotes],
    }


def _row(row: Row, table: Table) -> dict[str, Any]:
    return {
        "method": row.method,
        "variant": row.variant,
        "setting": row.setting,
        "backbone": row.backbone,
        "differs": dict(row.differs),
        "seeds": list(row.seeds),
        "runs": list(row.runs),
        **_head(row, table),
        "cells": {task: _cell(cell) for task, cell in zip(table.columns, row.cells, strict=True)},
        "cost": None if row.cost is None else _facts(row.cost),
        "footnotes": list(row.footnotes),
        "values": row.values,
    }


def _head(row: Row, table: Table) -> dict[str, Any]:
    """The statistics of a row on the column that ranks; all None where the table has none."""
    cell = row.cells[-1] if table.head is not None else None
    facts = _cell(cell) or {}
    spread = facts.get("spread") or {}
    return {
        "n": None if cell is None else len(cell.values),
        "mean": facts.get("mean"),
        "sd": facts.get("sd"),
        "se": spread.get("se"),
        "ci_low": spread.get("low"),
        "ci_high": spread.get("high"),
        "against": facts.get("against"),
        "may_be_best": row.may_be_best,
        "untested": row.untested,
    }


def _cell(cell: Cell | None) -> dict[str, Any] | None:
    if cell is None:
        return None
    facts = _facts(cell) | {"values": list(cell.values)}
    del facts["seeds"]  # the row has them
    if cell.against:
        facts["against"]["difference"] = _difference(cell)
    return facts


def _difference(cell: Cell) -> float | None:
    """As printed, where nothing was tested."""
    if (against := cell.against) is None:
        return None
    return (
        round(against.difference, cell.decimals) if against.verdict is None else against.difference
    )


# --- items on which two runs disagree ---


RANKS = "in brackets: rank among all items, from 0 to 100; the largest disagreements come first"


def items_grid(one: Disagreement) -> Grid:
    """A row for each item: its number in the data, gold, the values of both runs, and the texts
    where they are at hand."""
    _, task, protocol, form = one.key
    return grid(
        [
            *(Column(name, right=True) for name in ("item", "gold", "A", "B")),
            Column("texts", wrap=24),
        ],
        [
            (
                str(item.number),
                *map(_text, (item.gold, item.first, item.second)),
                " | ".join(item.texts or ()),
            )
            for item in one.items
        ],
        title=f"{task}, {protocol}{f' ({form})' if form else ''}: "
        f"{one.differ:,} of {one.n:,} items differ",
        notes=[
            *([f"texts are not available: {one.no_texts}"] if one.no_texts else []),
            *([RANKS] if any(item.gold.place is not None for item in one.items) else []),
        ],
    )


def _text(item: ItemValue) -> str:
    return item.text if item.place is None else f"{item.text} ({item.place:.0f})".lstrip()


def as_data(disagreements: Sequence[Disagreement], first: str, second: str) -> dict[str, Any]:
    """Schema ``bench.items/1``: numbers in full."""
    return {
        "schema": "bench.items/1",
        "runs": [first, second],
        "tasks": [
            {
                name: value
                for name, value in (one.key._asdict() | asdict(one)).items()
                if name not in ("key", "no_texts")
            }
            for one in disagreements
        ],
    }
