"""The forms of ``bench compare``'s output: first table, all tables, items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import click

from bench.base.errors import BenchError
from bench.base.grid import GridColumn, grid
from bench.base.markup import as_latex, as_markdown
from bench.base.printing import print_grid
from bench.base.text import list_names
from bench.cli.options import NARROWEST_COLUMN, json_text, print_columns, say
from bench.compare.beside_paper import rows_beside
from bench.compare.forms.beside import beside_csv, beside_data, beside_grid
from bench.compare.forms.items import items_data, items_grid
from bench.compare.forms.scores import score_grid
from bench.compare.items import disagreements, read_texts
from bench.compare.statistics.table import Table
from bench.compare.why import calculate
from bench.compare.words.finding import best_words, find, main_table, why_no_verdicts
from bench.compare.words.names import table_name, table_names
from bench.papers import PaperPart
from bench.records.run import Run
from bench.score.suites import Task


def print_first_table(tables: Sequence[Table]) -> None:
    """Print the finding, the first table, and a line for each other table."""
    first = main_table(tables)
    if first is None:
        say(find(tables).text, style="bold")
        click.echo()
        first = tables[0]
    others = [table for table in tables if table is not first]
    print_grid(score_grid(first))
    if others:
        _print_other_tables(others, first)
        say(
            "All tables: bench compare --all. One table: --suite, --backbone, --setting.",
            blank=True,
        )


def print_all_tables(tables: Sequence[Table]) -> None:
    """Print every table in full, each with its finding."""
    for number, table in enumerate(tables):
        print_grid(score_grid(table), blank=number > 0)


def _print_other_tables(others: Sequence[Table], first: Table) -> None:
    """Print the best rows of each other table that was tested, and the reasons for the rest."""
    rows = []
    untested: dict[str, list[str]] = {}
    for table, name in zip(others, table_names(others, beside=first), strict=True):
        best = best_words(table)
        if best:
            rows.append((name, best))
        else:
            untested.setdefault(why_no_verdicts(table), []).append(name)
    if rows:
        print_columns(rows, headings=("Other tables", "may be the best"), blank=True)
    else:
        say("Other tables", blank=True)
    parts = [f"{'; '.join(names)} ({reason})" for reason, names in untested.items()]
    if parts:
        say(f"Not tested: {'; '.join(parts)}.", hang=2)


def print_why(runs: Sequence[Run], tables: Sequence[Table], name: str) -> None:
    """Print how the verdict on a row is computed. Raises BenchError if it has none."""
    found = calculate(tables, {run.record.run_id: run for run in runs}, name)
    say(table_name(found.table), style="bold")
    for table, reason in found.passed:
        say(f"without a verdict in {table_name(table)}: {reason}")
    rows = []
    if found.seeds:
        rows.append(("seed", "  ".join(map(str, found.seeds)), ""))
    for seeds in found.shown:
        sd = "" if seeds.sd is None else f"{seeds.sd:.4f}"
        values = "  ".join(f"{value:.4f}" for value in seeds.values)
        rows.append((seeds.name, values, sd))
    first = GridColumn("", wrap=NARROWEST_COLUMN)
    columns = (first, GridColumn("each seed", wrap=NARROWEST_COLUMN), GridColumn("SD", right=True))
    print_grid(grid(columns, rows))
    steps = (first, GridColumn("value"), GridColumn("from", wrap=NARROWEST_COLUMN))
    print_grid(grid(steps, found.steps), blank=True)
    say("The rule, and what moderates variances: docs/statistics.md.", blank=True)


def print_paper(part: PaperPart, runs: Sequence[Run], form: str) -> None:
    """Show a printed table with our scores.

    Raises BenchError if it prints no scores, or if no run makes a row of it again.
    """
    beside = rows_beside(part, runs)
    if form == "json":
        click.echo(json_text(beside_data(beside), indent=1))
    elif form == "csv":
        click.echo(beside_csv(beside), nl=False)
    elif form == "table":
        print_grid(beside_grid(part, beside))
    else:
        written = {"md": as_markdown, "latex": as_latex}[form]
        click.echo(written(beside_grid(part, beside)), nl=False)


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
    if len(runs) != 2:
        raise BenchError(
            f"--items needs two runs, got {len(runs)}: "
            f"{list_names(run.record.run_id for run in runs)}",
            "bench compare RUN RUN --items",
        )
    names = [run.record.run_id for run in runs]
    items = disagreements(*runs, texts=partial(read_texts, data, files), tasks=tasks, top=top)
    if form == "json":
        click.echo(json_text(items_data(items, *names), indent=1))
        return
    print_columns(zip("AB", names, strict=True))
    for task_items in items:
        print_grid(items_grid(task_items), blank=True)
