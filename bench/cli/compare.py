"""``bench compare``: runs side by side, as the papers print them, and how sure the differences are."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import structs

from bench.base.errors import BenchError, RecordDamaged, UnknownName
from bench.base.text import plural
from bench.cli.columns import print_columns, say
from bench.cli.options import (
    comma_list,
    data_option,
    json_text,
    no_collection,
    runs_option,
    suite_file_option,
    warn,
)
from bench.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bench.compare.statistics.table import Table
    from bench.runs import RunsFolder
FORMATS = ["table", "md", "latex", "csv", "json", "html"]
HELP = {
    "statistics": "Intervals and verdicts: auto with up to 1,000 runs that have predictions.",
    "with_paper": "What a paper printed, ours less that, and whether new runs of ours would give it.",
    "items": "Of two runs, the items on which they disagree most.",
    "baseline": "The row that the others are compared with; must mean exactly one. [default: simcse]",
    "task": "Only this task; a single one is what rows are compared by. May be repeated.",
}


@click.command()
@click.argument("references", metavar="[RUN]...", nargs=-1)
@runs_option
@click.option("--method", help="Only these methods (a,b); METHOD+VARIANT is only that variant.")
@click.option("--backbone", help="Only these backbones.")
@click.option("--setting", help="Only these settings: unsupervised, supervised, none.")
@click.option("--variant", help="Only these variants; none = the method as its paper has it.")
@click.option("--suite", help="Only these suites.")
@click.option("--text", help="Only this text form: tokenised, raw.")
@click.option("--baseline", metavar="ROW", help=HELP["baseline"])
@click.option("--with-paper", is_flag=True, help=HELP["with_paper"])
@click.option("--cost", is_flag=True, help="Trained parameters, training time, peak memory.")
@click.option(
    "--equal-budget",
    is_flag=True,
    help="Refuse rows that were not trained alike: rows seen, corpus, seeds.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse runs of other protocols, text forms, data or library versions.",
)
@click.option("--together", is_flag=True, help="All backbones and settings in one table.")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Every table whole; without it the first, and a line for each other.",
)
@click.option(
    "--statistics",
    type=click.Choice(["auto", "yes", "no"]),
    default="auto",
    show_default=True,
    help=HELP["statistics"],
)
@click.option("--items", "items", is_flag=True, help=HELP["items"])
@click.option("--task", "tasks", multiple=True, help=HELP["task"])
@click.option(
    "--top",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="With --items: how many of each task.",
)
@data_option
@suite_file_option
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write one self-contained page.",
)
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
    equal_budget: bool,
    strict: bool,
    together: bool,
    everything: bool,
    statistics: str,
    items: bool,
    tasks: tuple[str, ...],
    top: int,
    data: Path | None,
    form: str,
    html: Path | None,
) -> None:
    """Compare runs: methods by tasks, mean over seeds, intervals, which rows are better than the baseline, and which may be the best.

    RUN is an id, the beginning of ids, or a path; without any, all runs in the runs folder.

    \b
    Example:  bench compare
              bench compare --suite sts --baseline simcse
              bench compare --task STS-B
              bench compare simcse-builtin-s42 promcse-builtin-s42 --items --task STS12
    """
    from bench.compare.tables import TableOptions, compare_runs

    filters = {"method": method, "backbone": backbone, "setting": setting, "variant": variant}
    with no_collection():
        kept = choose(
            references,
            runs,
            {key: comma_list(names) for key, names in filters.items() if names is not None},
        )
    chosen = tuple(dict.fromkeys(name for one in tasks for name in comma_list(one)))
    kept = with_scores(kept, comma_list(suite), comma_list(text), () if items else chosen)
    if items:
        if form not in ("table", "json"):
            raise BenchError(f"--items has no --format {form}", "--format table or json")
        _show_items(kept, chosen, top, data, form)
        return
    options = TableOptions(
        baseline=baseline,
        together=together,
        statistics=statistics,
        tasks=chosen,
        with_paper=with_paper,
        cost=cost,
        equal_budget=equal_budget,
        strict=strict,
    )
    if (
        form == "table"
        and not everything
        and options == TableOptions(statistics=statistics, equal_budget=equal_budget, strict=strict)
    ):
        show_answer(
            kept, statistics, strict=strict, equal_budget=equal_budget, html=html
        )  # nothing else was asked of the tables
        return
    with no_collection():
        with _progress() as report:
            tables = compare_runs(kept, options, report)
        _show(kept, tables, form, html)


def choose(
    references: Sequence[str], runs: Path | None, wanted: dict[str, Sequence[str]]
) -> list[Run]:
    """The finished runs that are named (all, if none is) and fit. What is left out is said on standard error."""
    from bench.compare.formatting import list_names
    from bench.runs import RunsFolder

    store = RunsFolder(runs)
    unique: dict[str, Run] = {}
    for run in _named(store, references) if references else _all(store):
        unique.setdefault(run.record.run_id, run)
    fitting = _fitting(list(unique.values()), wanted)
    finished = [run for run in fitting if run.record.status == "finished"]
    if unfinished := [run.record.run_id for run in fitting if run.record.status != "finished"]:
        warn(f"left out, not finished: {list_names(unfinished, 5)}")
    if not finished:
        where = f"in {store.path}" if not references else "among those named"
        raise BenchError(
            f"no finished run {where}",
            "bench run ..., or another folder: --runs DIR" if not fitting else "bench runs",
        )
    return finished


def _all(store: RunsFolder) -> list[Run]:
    records, damaged = store.records()
    for error in damaged:
        warn(f"left out, damaged: {error.message}")
    return [Run(record, store.folder(record.run_id)) for record in records]


def _named(store: RunsFolder, references: Sequence[str]) -> list[Run]:
    from bench.runs.store import read_record

    kept = []
    for reference in references:
        for file in store.record_files(reference):
            try:
                kept.append(Run(read_record(file), file.parent))
            except RecordDamaged as error:
                warn(f"left out, damaged: {error.message}")
    return kept


def _fitting(runs: list[Run], wanted: dict[str, Sequence[str]]) -> list[Run]:
    for key, names in wanted.items():
        fields = {
            "backbone": ("backbone", "backbone_name"),
            "method": ("method", "method_name", "label"),
        }.get(key, (key,))
        having = [(run, {getattr(run[0], name) or "none" for name in fields}) for run in runs]
        have = {value for _, values in having for value in values}
        for name in names:
            if name not in have and runs:
                raise UnknownName(key, name, have, "among these runs", "bench runs")
        runs = [run for run, values in having if not values.isdisjoint(names)]
    return runs


def with_scores(
    kept: list[Run], suites: Sequence[str], texts: Sequence[str], tasks: Sequence[str] = ()
) -> list[Run]:
    """With the scores of these suites, text forms and tasks only; runs without any are left out."""
    for kind, names in (("suite", suites), ("text", texts), ("task", tasks)):
        have = {getattr(score, kind) or "none" for record, _ in kept for score in record.scores}
        for name in names:
            if name not in have:
                raise UnknownName(
                    "text form" if kind == "text" else kind,
                    name,
                    have,
                    "among the scores of these runs",
                    "bench runs",
                )
        if names:
            kept = [
                Run(structs.replace(record, scores=scores), folder)
                for record, folder in kept
                if (
                    scores := tuple(
                        score
                        for score in record.scores
                        if (getattr(score, kind) or "none") in names
                    )
                )
            ]
    return kept


def show_answer(
    kept: Sequence[Run], statistics: str, *, strict: bool, equal_budget: bool, html: Path | None
) -> None:
    """What the published page says first, of these runs: its sentence and its first table; then a line for each other table."""
    from bench.board.content import board_tables
    from bench.board.judged_tables import answer, judged_tables
    from bench.compare import costs
    from bench.compare.tables import refuse
    from bench.show.tables import print_tables

    records = {run.record.run_id: run.record for run in kept}
    with no_collection(), _progress() as report:
        judged = judged_tables(kept, statistics=statistics, report=report, extras=False)
    if not judged:
        raise BenchError("none of these runs has a score", "bench run ... --suite sts")
    tables = board_tables(judged, records)
    shown = [board_table.table for board_table in tables]
    if strict:
        refuse(shown)
    if equal_budget:
        costs.refuse_unequal(shown, records)
    if html is not None:
        _write_page(_page(kept, shown), html)
    first = next((table for table in shown if table.head and len(table.rows) > 1), shown[0])
    say(answer(tables))
    others = [table for table in shown if table is not first]
    first = replace(
        first, rows=tuple(replace(row, cost=None) for row in first.rows)
    )  # --cost has its columns
    click.echo()
    print_tables([first])
    if others:
        click.echo()
        print_columns(
            [_line(table, first) for table in others],
            headings=("other tables", "rows that may be the best"),
        )
        click.echo()
        say("all of them: bench compare --all; one: --suite, --backbone, --setting")
    if html is not None:
        click.echo(f"page: {html}")


def _line(table: Table, first: Table) -> tuple[str, str]:
    """What a table that is not drawn is of, and which of its rows may be the best."""
    from bench.compare.formatting import SEVERAL, list_names, row_name, score

    same = (table.setting, table.backbone) == (first.setting, first.backbone)
    form = f" ({table.text})" if table.text not in (None, "tokenised") else ""
    what = f"{table.protocol}{form}{'' if same else f', {table.backbone or SEVERAL}'}"
    rows = [(row, cell) for row in table.rows if (cell := row.cells[-1]) is not None]
    if table.head is None or not rows:
        return what, f"not ranked ({plural(len(table.rows), 'row')})"
    if table.tested is None:
        return what, f"not tested; highest {row_name(rows[0][0], table)} {score(rows[0][1].mean)}"
    top = [f"{row_name(row, table)} {score(cell.mean)}" for row, cell in rows if row.may_be_best]
    return what, list_names(top, 5)


def _page(kept: Sequence[Run], tables: Sequence[Table]) -> str:
    """The comparison as one HTML file."""
    from bench.show.pages.comparison import render_page

    return render_page(
        [run.record for run in kept],
        folders={run.record.run_id: run.folder for run in kept},
        tables=tables,
    )


def _write_page(page: str, file: Path) -> None:
    from bench.base.files import write_or_fail

    write_or_fail(file, page.encode(), hint="another place for the page")


def _show(kept: Sequence[Run], tables: Sequence[Table], form: str, html: Path | None) -> None:
    from bench.compare.statements import answer
    from bench.show.tables import print_tables, render

    page = _page(kept, tables) if html is not None or form == "html" else ""
    if html is not None:
        _write_page(page, html)
    if form == "table":
        for i, table in enumerate(tables):
            click.echo("\n" * bool(i), nl=False)
            if sentence := answer(table):
                say(sentence)
                click.echo()
            print_tables([table])
    elif form == "html":
        click.echo(page, nl=False)
    else:
        click.echo(render(tables, form), nl=False)
    if html is not None:
        click.echo(f"page: {html}", err=form != "table")


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None] | None]:
    """A line on standard error that says what is being read; on a terminal only, and gone when it is done."""
    if not sys.stderr.isatty():
        yield None
        return

    def report(task: str, done: int, count: int) -> None:
        shown = "".join(c for c in task[:40] if c.isprintable())
        click.echo(f"\r\x1b[Kreading {shown} ({done + 1} of {count}) ...", nl=False, err=True)

    try:
        yield report
    finally:
        click.echo("\r\x1b[K", nl=False, err=True)


def _show_items(
    kept: Sequence[Run], tasks: Sequence[str], top: int, data: Path | None, form: str
) -> None:
    from bench.compare.items import TextsOf, disagreements
    from bench.show.tables.items import as_data, print_items

    if len(kept) != 2:
        raise BenchError(
            f"--items needs two runs, and these are {len(kept)}", "bench compare RUN RUN --items"
        )
    first, second = kept
    names, texts = (first[0].run_id, second[0].run_id), TextsOf(data)
    items = disagreements(first, second, texts=texts, tasks=tasks, top=top)
    if form == "json":
        click.echo(json_text(as_data(items, *names), indent=1))
    else:
        print_items(items, *names, texts.reasons)
