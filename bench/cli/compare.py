"""``bench compare``: runs side by side, as the papers print them, and how sure the differences
are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
from msgspec import structs
from rich.console import Console

from bench.base.errors import BenchError, RecordDamaged
from bench.base.files import write_or_fail
from bench.base.text import list_names, plural
from bench.board.board import board_headline
from bench.board.tables import board_tables, judged_tables
from bench.cli.options import (
    check_names,
    comma_list,
    data_option,
    json_text,
    matching,
    no_collection,
    print_columns,
    print_grid,
    runs_option,
    say,
    suite_file_option,
    warn,
)
from bench.compare.answer import table_answer
from bench.compare.footnotes import refuse_footnotes
from bench.compare.formatting import SEVERAL, row_name, score
from bench.compare.items import disagreements, read_texts
from bench.compare.seeds import check_size, seeds_for
from bench.compare.senders import with_senders
from bench.compare.statistics.table import Table
from bench.compare.tables import TableOptions, compare_runs
from bench.records.copies import distinct_runs
from bench.records.record import read_record
from bench.records.run import Run
from bench.records.store import RunsFolder
from bench.show.pages.board import comparison
from bench.show.tables.forms import format_tables, print_score_tables
from bench.show.tables.items import items_data, items_grid
from bench.show.tables.seeds import seeds_data, seeds_grid


@click.command()
@click.argument("references", metavar="[RUN]...", nargs=-1)
@runs_option
@click.option("--method", help="Only these methods (a,b); METHOD+VARIANT is only that variant.")
@click.option("--backbone", help="Only these backbones.")
@click.option("--setting", help="Only these settings: unsupervised, supervised, none.")
@click.option("--variant", help="Only these variants; none = the method as its paper has it.")
@click.option(
    "--suite",
    multiple=True,
    callback=lambda context, option, names: ",".join(names) or None,
    help="Only these suites (a,b); may be repeated.",
)
@click.option("--text", help="Only this text form: tokenised, raw.")
@click.option(
    "--baseline",
    metavar="ROW",
    help="The row to compare with; it must match exactly one. [default: simcse]",
)
@click.option(
    "--with-paper",
    is_flag=True,
    help="The printed value, ours minus it, and whether the two are consistent.",
)
@click.option("--cost", is_flag=True, help="Trained parameters, training time, peak memory.")
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse runs that differ in protocol, text, data, training or library versions.",
)
@click.option(
    "--seeds-for",
    "size",
    type=float,
    metavar="POINTS",
    help="How many seeds find a difference of so many points from the baseline in 80 of 100 tables.",
)
@click.option("--together", is_flag=True, help="All backbones, settings and budgets in one table.")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Every table in full, not only the first.",
)
@click.option(
    "--items", "items", is_flag=True, help="For two runs: the items on which they disagree most."
)
@click.option(
    "--task",
    "tasks",
    multiple=True,
    help="Only this task; a single one is the column that is tested. May be repeated.",
)
@click.option(
    "--top",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="With --items: how many per task.",
)
@data_option
@suite_file_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "md", "latex", "csv", "json", "html"]),
    default="table",
    show_default=True,
    help="The form of the tables.",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write one self-contained page.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def compare(
    references: tuple[str, ...],
    runs: Path | None,
    method: str | None,
    backbone: str | None,
    setting: str | None,
    variant: str | None,
    suite: str | None,
    text: str | None,
    baseline: str | None,
    with_paper: bool,
    cost: bool,
    strict: bool,
    size: float | None,
    together: bool,
    everything: bool,
    items: bool,
    tasks: tuple[str, ...],
    top: int,
    data: Path | None,
    form: str,
    html: Path | None,
    as_json: bool,
) -> None:
    """Compare runs: methods by tasks, mean over seeds, intervals, which rows are better than the
    baseline, and which may be the best.

    RUN is an id, the beginning of ids, or a path; without any, all runs in the runs folder.

    \b
    Example:  bench compare
              bench compare --suite sts --baseline simcse
              bench compare --task STS-B
              bench compare --seeds-for 2.0
              bench compare simcse-builtin-s42 promcse-builtin-s42 --items --task STS12
    """
    if as_json and form not in ("table", "json"):
        raise BenchError(f"--json cannot be combined with --format {form}", "one of the two")
    if as_json:
        form = "json"
    if size is not None:
        _check_seeds_for(size, form, alone=not items and html is None)
    chosen = tuple(dict.fromkeys(comma_list(",".join(tasks))))
    with no_collection():
        selected = with_scores(
            choose(
                references,
                runs,
                {"method": method, "backbone": backbone, "setting": setting, "variant": variant},
            ),
            {"suite": suite, "text": text, "task": "" if items else ",".join(chosen)},
        )
    if items:
        _show_items(selected, chosen, top, data, form)
        return
    options = TableOptions(
        strict=strict,
        baseline=baseline,
        together=together,
        tasks=chosen,
        with_paper=with_paper,
        cost=cost,
    )
    if size is not None:
        _show_seeds_for(size, selected, options, form, everything=everything)
        return
    first_alone = form == "table" and not everything and options == TableOptions(strict=strict)
    tables_of = published_tables if first_alone else compare_runs
    with no_collection(), Console(stderr=True).status("reading predictions"):
        tables = list(tables_of(selected, options))
    page = comparison(selected, tables) if html is not None or form == "html" else ""
    if form == "html":
        click.echo(page, nl=False)
    elif form != "table":
        click.echo(format_tables(tables, form), nl=False)
    elif first_alone:
        _show_first(tables)
    else:
        for i, table in enumerate(tables):
            click.echo("\n" * bool(i), nl=False)
            if sentence := table_answer(table):
                say(sentence)
                click.echo()
            print_score_tables([table])
    if html is not None:
        write_or_fail(html, page.encode(), hint="--html FILE in another folder")
        click.echo(f"page: {html}", err=form != "table")


# --- the runs ---


def choose(
    references: Sequence[str], runs: Path | None, filters: Mapping[str, str | None]
) -> list[Run]:
    """The finished runs among those named (all, if none is) that match the filters; a warning
    names the runs that are left out. Raises BenchError if none is left, or if two different runs have one id."""
    store = RunsFolder(runs)
    records, damaged = ([], []) if references else store.records()
    fitting = [Run(record, store.folder(record.run_id)) for record in records]
    for file in (file for name in references for file in store.record_files(name)):
        try:
            fitting.append(Run(read_record(file), file.parent))
        except RecordDamaged as error:
            damaged.append(error)
    for problem in damaged:
        warn(f"left out, damaged: {problem.message}")
    for key, text in filters.items():
        fields, names = FIELDS.get(key, (key,)), comma_list(text)
        fitting = matching(
            fitting,
            [{getattr(run.record, field) or "none" for field in fields} for run in fitting],
            key,
            names,
            "among these runs",
            "bench runs",
        )
    finished = [run for run in fitting if run.record.status == "finished"]
    unfinished = dict.fromkeys(
        run.record.run_id for run in fitting if run.record.status != "finished"
    )
    if unfinished:
        warn(f"left out, not finished: {list_names(unfinished, 5)}")
    if not finished:
        raise BenchError(
            f"no finished run {'among those named' if references else f'in {store.path}'}",
            "bench runs" if fitting else "bench run ..., or another folder: --runs DIR",
        )
    return with_senders(distinct_runs(finished))


FIELDS = {
    "backbone": ("backbone", "backbone_name"),
    "method": ("method", "method_name", "label"),
}
"""Option -> the attributes of a record that its values may be; for other options, the attribute of that name."""


def with_scores(runs: list[Run], filters: Mapping[str, str | None]) -> list[Run]:
    """With the scores of these suites, text forms and tasks only; runs without any are left out."""
    for key, text in filters.items():
        if names := comma_list(text):
            check_names(
                key,
                names,
                {getattr(score, key) or "none" for run in runs for score in run.record.scores},
                "among the scores of these runs",
                "bench runs",
            )
            runs = [
                Run(
                    structs.replace(
                        run.record,
                        scores=tuple(
                            s for s in run.record.scores if (getattr(s, key) or "none") in names
                        ),
                    ),
                    run.folder,
                )
                for run in runs
            ]
    return [run for run in runs if run.record.scores or not any(filters.values())]


# --- the tables ---


def published_tables(selected: Sequence[Run], options: TableOptions) -> list[Table]:
    """The tables of the published page of these runs, in its order, without costs."""
    tables = [
        replace(one.table, rows=tuple(replace(row, cost=None) for row in one.table.rows))
        for one in board_tables(
            judged_tables(selected, extras=False),
            {run.record.run_id: run.record for run in selected},
        )
    ]
    if options.strict:
        refuse_footnotes([table for table in tables if not table.sender])
    return tables


def _show_first(tables: Sequence[Table]) -> None:
    """The headline and the first table of the published page; then a line for each other table."""
    own = [table for table in tables if not table.sender]
    first = next((table for table in own if table.head and len(table.rows) > 1), tables[0])
    say(board_headline(tables))
    click.echo()
    print_score_tables([first])
    if others := [_line(table, first) for table in tables if table is not first]:
        print_columns(others, headings=("other tables", "rows that may be the best"), blank=True)
        say(
            "all tables: bench compare --all; one table: --suite, --backbone, --setting", blank=True
        )


def _check_seeds_for(size: float, form: str, *, alone: bool) -> None:
    check_size(size)
    if form not in ("table", "json"):
        raise BenchError(
            f"--seeds-for cannot be combined with --format {form}", "--format table or json"
        )
    if not alone:
        raise BenchError("--seeds-for cannot be combined with --items or --html", "one of them")


def _show_seeds_for(
    size: float, selected: Sequence[Run], options: TableOptions, form: str, *, everything: bool
) -> None:
    """How many seeds find such a difference: of the first table that can say it, or of all."""
    runs = {run.record.run_id: run for run in selected}
    found = []
    with no_collection(), Console(stderr=True).status("reading predictions"):
        records = {run_id: run.record for run_id, run in runs.items()}
        for shown in board_tables(compare_runs(selected, options), records):
            needed = seeds_for(shown.table, runs, size)
            if needed is not None:
                found.append(needed)
                if not everything:
                    break
    if not found:
        raise BenchError(
            "--seeds-for: no table here has a baseline with predictions, another row, and a row of two seeds",
            "bench run ... --seeds 1-3; --baseline ROW names the baseline",
        )
    if form == "json":
        click.echo(json_text(seeds_data(found), indent=1))
        return
    for i, needed in enumerate(found):
        print_grid(seeds_grid(needed), blank=i > 0)


def _line(table: Table, first: Table) -> tuple[str, str]:
    """The name of a table that is not printed, and which of its rows may be the best."""
    form = f" ({table.text})" if table.text not in (None, "tokenised") else ""
    same = (table.setting, table.backbone) == (first.setting, first.backbone)
    name = ", ".join(
        filter(
            None,
            (
                f"{table.protocol}{form}",
                table.sender and f"submitted by {table.sender}",
                None if same else table.backbone or SEVERAL,
                table.budget,
            ),
        )
    )
    rows = [(row, cell) for row in table.rows if (cell := row.cells[-1]) is not None]
    if table.head is None or not rows:
        return name, f"not ranked ({plural(len(table.rows), 'row')})"
    if table.sender:
        return name, f"{plural(len(rows), 'row')}, no candidates"
    if table.tested is None:
        return name, f"not tested; highest {row_name(rows[0][0], table)} {score(rows[0][1].mean)}"
    top = [f"{row_name(row, table)} {score(cell.mean)}" for row, cell in rows if row.may_be_best]
    return name, list_names(top, 5)


def _show_items(
    selected: Sequence[Run], tasks: Sequence[str], top: int, data: Path | None, form: str
) -> None:
    if form not in ("table", "json"):
        raise BenchError(
            f"--items cannot be combined with --format {form}", "--format table or json"
        )
    if len(selected) != 2:
        raise BenchError(
            f"--items needs two runs, got {len(selected)}", "bench compare RUN RUN --items"
        )
    names = [run.record.run_id for run in selected]
    items = disagreements(*selected, texts=partial(read_texts, data), tasks=tasks, top=top)
    if form == "json":
        click.echo(json_text(items_data(items, *names), indent=1))
    else:
        print_columns(zip("AB", names, strict=True))
        for task_items in items:
            print_grid(items_grid(task_items), blank=True)
