"""Runs for ``compare``, and the text of its tables."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from bench.base.printing import draw_grids, drawn_text
from bench.compare.forms.scores import score_grid
from bench.compare.statistics.table import Row, Table
from bench.compare.words.finding import verdict_of
from bench.compare.words.names import row_name
from bench.records import Run, RunRecord


def runs_in(runs: Path, records: list[RunRecord]) -> list[Run]:
    return [Run(one, runs / one.run_id) for one in records]


def unwritten_runs(*records: RunRecord) -> list[Run]:
    return runs_in(Path("nowhere"), list(records))


def only(tables: tuple[Table, ...]) -> Table:
    (table,) = tables
    return table


def shown(table: Table) -> dict[str, str | None]:
    return {row_name(row, table): row.stands or verdict_of(row) for row in table.rows}


def row_named(table: Table, name: str) -> Row:
    return next(one for one in table.rows if one.name == name)


def printed_text(tables: tuple[Table, ...], width: int, encoding: str = "utf-8") -> str:
    console = Console(file=io.TextIOWrapper(io.BytesIO(), encoding=encoding), width=width)
    return drawn_text(draw_grids(map(score_grid, tables), console, width), console) + "\n"
