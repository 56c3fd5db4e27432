"""The forms of ``bench compare``'s output: first table, all tables, items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from bench.base.errors import BenchError
from bench.base.grid import GridColumn, grid
from bench.base.printing import print_grid
from bench.base.text import list_names
from bench.board.board import board_headline
from bench.board.publish.versions import main_budget_of
from bench.board.tables import board_tables, judged_tables
from bench.cli.options import NARROWEST_COLUMN, json_text, print_columns, say
from bench.compare.answer import table_answer
from bench.compare.finding import describe_finding
from bench.compare.footnotes import refuse_footnotes
from bench.compare.forms.first_screen import (
    best_words,
    briefest_name,
    table_names,
    table_title,
    untested_words,
    untrained_line,
    verdict_grid,
    verdict_legend,
)
from bench.compare.forms.forms import print_score_tables
from bench.compare.forms.items import items_data, items_grid
from bench.compare.forms.row_notes import note_rows
from bench.compare.items import disagreements, read_texts
from bench.compare.statistics.table import Table
from bench.compare.tables import TableOptions
from bench.compare.why import calculate, steps_of
from bench.records.record import RunRecord
from bench.records.run import Run
from bench.score.suites import Task

UNTRAINED_NOTE = "encoder not trained: "
"""Begins a table's note that :func:`untrained_line` says in its place."""


def published_tables(
    runs: Sequence[Run], main_budget: str, *, strict: bool, baseline: str | None = None
) -> list[Table]:
    """Return the tables of the published page of these runs, in its order, without costs.

    ``main_budget``: as for ``board_tables``. ``strict``: refuse tables with footnotes.
    ``baseline``: the row to compare with, if it is named.
    """
    records = {run.record.run_id: run.record for run in runs}
    tables = []
    judged = judged_tables(runs, baseline=baseline, extras=False)
    for shown in board_tables(judged, records, main_budget):
        rows = tuple(replace(row, cost=None) for row in shown.table.rows)
        tables.append(replace(shown.table, rows=rows))
    if strict:
        refuse_footnotes([table for table in tables if not table.sender])
    return tables


def print_first_table(tables: Sequence[Table], records: Mapping[str, RunRecord]) -> None:
    """Print the finding, the first table of the published page, and a line for each other table.

    ``records``: of the runs of these tables, by id.
    """
    ranking = [table for table in tables if table.head and len(table.rows) > 1 and not table.sender]
    first = ranking[0] if ranking else tables[0]
    hints = []
    others = [table for table in tables if table is not first]
    if first.has_verdicts or others:
        hints.append("All tables: bench compare --all.")
    if others:
        hints.append("One table: --suite, --backbone, --setting.")
    if first.has_verdicts:
        print_verdicts(first, records)
    else:
        say(board_headline(tables))
        click.echo()
        print_score_tables([first])
    if others:
        _print_other_tables(others, first)
    if hints:
        say("   ".join(hints), blank=True)


def print_verdicts(table: Table, records: Mapping[str, RunRecord]) -> None:
    """Print the finding of a table, the table with verdicts in words, and a legend of its signs."""
    say(describe_finding(table), style="bold")
    notes = note_rows(table)
    title = table_title(table, records)
    print_grid(verdict_grid(table, notes, title), blank=True)
    click.echo()
    for line in verdict_legend(table):
        say(line)
    others = [untrained_line(table)]
    others += [note for note in table.notes if not note.startswith(UNTRAINED_NOTE)]
    lines = [line for line in others if line]
    if notes or lines:
        say("Differences between rows:", blank=True)
    for note in notes:
        say(f"{note.letter or '-'}  {note.text}", indent=2, hang=3)
    for line in lines:
        say(f"-  {line}", indent=2, hang=3)


def _print_other_tables(others: Sequence[Table], first: Table) -> None:
    """Print the best rows of each other table that was tested, and the reasons for the rest."""
    rows = []
    untested: dict[str, dict[str, None]] = {}
    for table, name in zip(others, table_names(others, first), strict=True):
        best = best_words(table)
        if best:
            rows.append((name, best))
        else:
            names = untested.setdefault(untested_words(table), {})
            names[briefest_name(table, first)] = None
    if rows:
        print_columns(rows, headings=("Other tables", "may be the best"), blank=True)
    else:
        say("Other tables", blank=True)
    parts = [f"{list_names(names, len(names))} ({reason})" for reason, names in untested.items()]
    if parts:
        say(f"Not tested: {'; '.join(parts)}.", hang=2)


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


def print_why(runs: Sequence[Run], options: TableOptions, name: str, form: str) -> None:
    """Print how the verdict on a row is computed. Raises BenchError if it has none."""
    if form != "table":
        raise BenchError(f"--why cannot be combined with --format {form}", "--format table")
    tables = published_tables(
        runs, main_budget_of(runs), strict=options.strict, baseline=options.baseline
    )
    found = calculate(tables, {run.record.run_id: run for run in runs}, name)
    rows = []
    for row, seeds in ((found.row, found.of_row), (found.baseline, found.of_baseline)):
        sd = "" if seeds.sd is None else f"{seeds.sd:.4f}"
        values = "  ".join(f"{value:.4f}" for value in seeds.values)
        rows.append((row.name, values, sd))
    columns = ("", GridColumn("each seed", wrap=NARROWEST_COLUMN), GridColumn("SD", right=True))
    print_grid(grid(columns, rows))
    print_columns(steps_of(found), headings=("", "value", "from"), blank=True)
    say("The rule, and what moderates variances: docs/statistics.md.", blank=True)


def print_items(
    runs: Sequence[Run],
    tasks: Sequence[str],
    top: int,
    data: Path | None,
    files: Mapping[str, Task],
    form: str,
) -> None:
    """Print the items that divide two runs most, ``top`` for each task. ``files``: the tasks of
    files that the user named, by protocol.

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
    items = disagreements(*runs, texts=partial(read_texts, data, files), tasks=tasks, top=top)
    if form == "json":
        click.echo(json_text(items_data(items, *names), indent=1))
        return
    print_columns(zip("AB", names, strict=True))
    for task_items in items:
        print_grid(items_grid(task_items), blank=True)
