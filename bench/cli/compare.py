"""``bench compare``: tables of runs, laid out as in the papers, and how sure differences are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from bench.base.collector import no_collection
from bench.base.errors import BenchError
from bench.base.files import write_or_fail
from bench.base.text import comma_list, list_names
from bench.board.pages.board import comparison
from bench.board.publish.versions import judged_as
from bench.cli.compare_output import (
    print_all_tables,
    print_first_table,
    print_items,
    print_paper,
    print_why,
)
from bench.cli.options import data_option, runs_option, say, suite_file_option
from bench.cli.selection import name_files_by_protocol, select_runs, select_scores
from bench.compare.forms.forms import format_tables
from bench.compare.statistics.table import Table
from bench.compare.tables import SAMPLE, make_tables
from bench.papers import find_part
from bench.records.run import Run

TOP = 10
"""Items per task of --items."""

ITEMS_AND_PAGE = ("items", "html", "everything")
OF_TABLES = ("baseline", "with_paper", "cost", "strict", "together")
WITHOUT_EFFECT = {
    "why": (*ITEMS_AND_PAGE, "paper", "with_paper", "cost"),
    "paper": (*ITEMS_AND_PAGE, *OF_TABLES, "suite", "tasks"),
    "items": ("html", "everything", *OF_TABLES),
}
"""An option with an answer of its own -> options that change only the usual tables."""
FORMS = {
    "why": ("table",),
    "paper": ("table", "md", "latex", "csv", "json"),
    "items": ("table", "json"),
}
"""An option with an answer of its own -> the values of --format that it has."""


@click.command()
@click.argument("references", metavar="[RUN]...", nargs=-1)
@runs_option
@click.option("--method", help="Only these methods (a,b); METHOD+VARIANT is only that variant.")
@click.option("--backbone", help="Only these backbones.")
@click.option("--setting", help="Only these settings: unsupervised, supervised, none.")
@click.option("--variant", help="Only these variants; 'none' is the plain method.")
@click.option(
    "--suite",
    multiple=True,
    callback=lambda context, option, names: ",".join(names) or None,
    help="Only these suites, protocols or files of yours (a,b); may be repeated.",
)
@click.option(
    "--baseline",
    metavar="ROW",
    help="The row to compare with; if several have that name, the one with the most seeds. "
    "[default: that of the version which the runs are in, else simcse]",
)
@click.option(
    "--with-paper",
    is_flag=True,
    help="Show the published value, our difference from it, and whether they agree.",
)
@click.option(
    "--paper",
    metavar="PAPER:TABLE",
    help="A published table, with our runs beside each number (bench papers lists them).",
)
@click.option(
    "--why",
    metavar="ROW",
    help="Show how the verdict on this row is computed, so that you can check it by hand.",
)
@click.option("--cost", is_flag=True, help="Trained parameters, training time, peak memory.")
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse runs that differ in protocol, data, training or library versions.",
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
    help="With --items: how many per task.  [default: 10]",
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
    baseline: str | None,
    with_paper: bool,
    paper: str | None,
    why: str | None,
    cost: bool,
    strict: bool,
    together: bool,
    everything: bool,
    items: bool,
    tasks: tuple[str, ...],
    top: int | None,
    data: Path | None,
    form: str,
    html: Path | None,
    as_json: bool,
) -> None:
    """Compare runs: the scores of methods with intervals, and a verdict on each row against the
    baseline.

    RUN is an id, the beginning of ids, or a path; without any, all runs in the runs folder.

    \b
    Example:  bench compare
              bench compare --suite sts --baseline simcse
              bench compare --task STS-B
              bench compare --paper promcse:5
              bench compare simcse-builtin-s42 promcse-builtin-s42 --items
              bench compare cls-builtin last-avg-builtin --items --suite pairs.tsv
    """
    if as_json:
        form = _json_form(form)
    _refuse_without_effect(form)
    chosen_tasks = tuple(dict.fromkeys(comma_list(",".join(tasks))))
    run_filters = {
        "method": method,
        "backbone": backbone,
        "setting": setting,
        "variant": variant,
    }
    # --items compares the tasks by themselves
    task_filter = "" if items else ",".join(chosen_tasks)
    with no_collection():
        chosen_runs = select_runs(references, runs, run_filters)
        suites, files = name_files_by_protocol(suite, chosen_runs)
        selected = select_scores(chosen_runs, {"suite": suites, "task": task_filter})
    if paper is not None:
        print_paper(find_part(paper), chosen_runs, form)
        return
    if items:
        print_items(selected, chosen_tasks, top or TOP, data, files, form)
        return
    with no_collection(), Console(stderr=True).status("reading predictions"):
        published = judged_as(selected)
        tables = make_tables(
            selected,
            baseline=baseline or published.baseline,
            together=together,
            tasks=chosen_tasks,
            strict=strict,
            paper=with_paper,
            cost=cost,
            main_budget=published.main_budget,
        )
    if why is not None:
        print_why(selected, tables, why)
        return
    with no_collection():
        _print_tables(selected, tables, form, everything=everything, html=html)


def _refuse_without_effect(form: str) -> None:
    """Raise BenchError if an option is given that has no effect beside another one.

    ``form``: that of --format or --json.
    """
    context = click.get_current_context()
    names = {param.name: param.opts[0] for param in context.command.params}
    if context.params["top"] is not None and not context.params["items"]:
        raise BenchError("--top needs --items", "bench compare RUN RUN --items --top 5")
    for answer, ignored in WITHOUT_EFFECT.items():
        if not context.params[answer]:
            continue
        given = [names[name] for name in ignored if context.params[name]]
        if form not in FORMS[answer]:
            given.append("--json" if context.params["as_json"] else f"--format {form}")
        if given:
            listed = list_names(given, len(given))
            raise BenchError(
                f"{names[answer]} cannot be combined with {listed}", f"leave {listed} out"
            )


def _json_form(form: str) -> str:
    """Return the form for --json. Raises BenchError if --format names another one."""
    if form not in ("table", "json"):
        raise BenchError(
            f"--json cannot be combined with --format {form}", f"leave --format {form} out"
        )
    return "json"


def _print_tables(
    selected: Sequence[Run],
    tables: Sequence[Table],
    form: str,
    *,
    everything: bool,
    html: Path | None,
) -> None:
    """Print the tables of the runs in a form, and write them as a page if ``html`` names a file."""
    page = ""
    if html is not None or form == "html":
        page = comparison(selected, tables)
    if form == "html":
        click.echo(page, nl=False)
    elif form != "table":
        click.echo(format_tables(tables, form), nl=False)
    elif everything:
        print_all_tables(tables)
    else:
        print_first_table(tables)
    if form == "table" and SAMPLE not in {table.suite for table in tables}:
        scored = {score.suite for run in selected for score in run.record.scores}
        if SAMPLE in scored:
            say(f"Not shown: {SAMPLE}, a small sample; --suite {SAMPLE} shows it.", blank=True)
    if html is not None:
        write_or_fail(html, page.encode(), hint="--html FILE in another folder")
        click.echo(f"page: {html}", err=form != "table")
