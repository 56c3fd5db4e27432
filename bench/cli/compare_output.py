"""The forms of ``bench compare``'s output: first table, all tables, seeds, items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from bench.base.collector import no_collection
from bench.base.errors import BenchError
from bench.base.text import list_names, plural
from bench.board.board import board_headline
from bench.board.tables import board_tables, judged_tables
from bench.cli.options import json_text, print_columns, print_grid, say
from bench.compare.answer import table_answer
from bench.compare.footnotes import refuse_footnotes
from bench.compare.formatting import SEVERAL, row_name, score
from bench.compare.items import disagreements, read_texts
from bench.compare.seeds import seeds_for
from bench.compare.statistics.table import Table
from bench.compare.tables import TableOptions, make_tables
from bench.records.run import Run
from bench.show.tables.forms import print_score_tables
from bench.show.tables.items import items_data, items_grid
from bench.show.tables.seeds import seeds_data, seeds_grid


def published_tables(runs: Sequence[Run], *, strict: bool) -> list[Table]:
    """Return the tables of the published page of these runs, in its order, without costs.

    ``strict``: refuse tables with footnotes.
    """
    records = {run.record.run_id: run.record for run in runs}
    tables = []
    for shown in board_tables(judged_tables(runs, extras=False), records):
        rows = tuple(replace(row, cost=None) for row in shown.table.rows)
        tables.append(replace(shown.table, rows=rows))
    if strict:
        refuse_footnotes([table for table in tables if not table.sender])
    return tables


def print_first_table(tables: Sequence[Table]) -> None:
    """Print the headline and the first table of the published page, and a line for each other."""
    ranking = [table for table in tables if table.head and len(table.rows) > 1 and not table.sender]
    first = ranking[0] if ranking else tables[0]
    say(board_headline(tables))
    click.echo()
    print_score_tables([first])
    others = [_table_line(table, first) for table in tables if table is not first]
    if others:
        print_columns(others, headings=("other tables", "rows that may be the best"), blank=True)
        say(
            "all tables: bench compare --all; one table: --suite, --backbone, --setting", blank=True
        )


def print_all_tables(tables: Sequence[Table]) -> None:
    """Print every table in full, each with the sentence that answers it."""
    for number, table in enumerate(tables):
        if number > 0:
            click.echo()
        sentence = table_answer(table)
        if sentence:
            say(sentence)
            click.echo()
        print_score_tables([table])


def _table_line(table: Table, first: Table) -> tuple[str, str]:
    """Return the name of a table that is not printed, and which of its rows may be the best."""
    name = _table_name(table, first)
    rows = []
    for row in table.rows:
        cell = row.cells[-1]
        if cell is not None:
            rows.append((row, cell))
    if table.head is None or not rows:
        return name, f"not ranked ({plural(len(table.rows), 'row')})"
    if table.sender:
        return name, f"{plural(len(rows), 'row')}, no candidates"
    if table.tested is None:
        row, cell = rows[0]
        return name, f"not tested; highest {row_name(row, table)} {score(cell.mean)}"
    best = [f"{row_name(row, table)} {score(cell.mean)}" for row, cell in rows if row.may_be_best]
    return name, list_names(best, 5)


def _table_name(table: Table, first: Table) -> str:
    """Return protocol and text form, sender, backbone if it differs from ``first``, and budget."""
    parts = [table.protocol]
    if table.text not in (None, "tokenised"):
        parts = [f"{table.protocol} ({table.text})"]
    if table.sender:
        parts.append(f"submitted by {table.sender}")
    if (table.setting, table.backbone) != (first.setting, first.backbone):
        parts.append(table.backbone or SEVERAL)
    if table.budget:
        parts.append(table.budget)
    return ", ".join(parts)


def print_seeds_for(
    size: float, runs: Sequence[Run], options: TableOptions, form: str, *, everything: bool
) -> None:
    """Print how many seeds find a difference of ``size`` points.

    Of the first table that can say it; ``everything``: of all tables. Raises BenchError if none
    can.
    """
    by_id = {run.record.run_id: run for run in runs}
    records = {run_id: run.record for run_id, run in by_id.items()}
    found = []
    with no_collection(), Console(stderr=True).status("reading predictions"):
        for shown in board_tables(make_tables(runs, options), records):
            needed = seeds_for(shown.table, by_id, size)
            if needed is None:
                continue
            found.append(needed)
            if not everything:
                break
    if not found:
        raise BenchError(
            "--seeds-for: no table here has a baseline with predictions, another row, "
            "and a row of two seeds",
            "bench run ... --seeds 1-3; --baseline ROW names the baseline",
        )
    if form == "json":
        click.echo(json_text(seeds_data(found), indent=1))
        return
    for number, needed in enumerate(found):
        print_grid(seeds_grid(needed), blank=number > 0)


def print_items(
    runs: Sequence[Run], tasks: Sequence[str], top: int, data: Path | None, form: str
) -> None:
    """Print the items that divide two runs most, ``top`` for each task.

    Raises BenchError unless there are two runs.
    """
    if form not in ("table", "json"):
        raise BenchError(
            f"--items cannot be combined with --format {form}", "--format table or json"
        )
    if len(runs) != 2:
        raise BenchError(
            f"--items needs two runs, got {len(runs)}", "bench compare RUN RUN --items"
        )
    names = [run.record.run_id for run in runs]
    items = disagreements(*runs, texts=partial(read_texts, data), tasks=tasks, top=top)
    if form == "json":
        click.echo(json_text(items_data(items, *names), indent=1))
        return
    print_columns(zip("AB", names, strict=True))
    for task_items in items:
        print_grid(items_grid(task_items), blank=True)
