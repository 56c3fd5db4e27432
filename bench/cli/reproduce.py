"""``bench reproduce PAPER:TABLE``: the plan of a printed table or figure, its runs, and our scores beside the printed ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from bench.base.errors import BenchError, FetchFailed
from bench.base.files import write_or_fail
from bench.base.text import seed_ranges
from bench.cli import show_error
from bench.cli.methods import describe, show_part
from bench.cli.options import comma_list, parse_seeds, print_columns, print_json, say, warn
from bench.cli.planning import (
    Planned,
    RunReporter,
    checked,
    known_methods,
    prepare,
    reporting,
    show_plan,
)
from bench.cli.run import (
    FOR_EVER,
    OUTPUT,
    WHAT,
    GroupedCommand,
    option,
    plan_of,
    run_all,
    shared_options,
    show_missing,
)
from bench.compare.consistency import verdict_text
from bench.compare.printed import Beside, Reproduced, judge_rows
from bench.records import RunsFolder
from bench.references import (
    NO,
    RECIPES,
    SCORES,
    TEMPLATES,
    Part,
    ReferenceResult,
    contents,
    find_part,
)
from bench.run.config import Plan, RunConfig
from bench.run.printed_runs import runs_of
from bench.run.reproduce import finished_runs_of, plan_table_runs, runs_in_order, seeds_of, with_set
from bench.run.table_run import TableRun
from bench.show.figures import missing_library
from bench.show.pages.reproduced import paper_figure


@click.command(
    cls=GroupedCommand,
    params=shared_options(
        *("pairs", "budget", "corpus", "text", "device", "precision", "offline", "allow_pickle"),
        *("data", "runs", "plugins", "max_steps", "dry_run", "everything", "as_json", "plain"),
    ),
)
@click.argument("name", metavar="[PAPER:TABLE|PAPER:figureN]", required=False)
@option(
    WHAT,
    "--rows",
    "filters",
    type=comma_list,
    metavar="TEXT",
    help="Only these rows (a,b): a setting, a method, own, copied, or part of a label.",
)
@option(
    WHAT,
    "--backbone",
    "backbones",
    type=comma_list,
    metavar="TEXT",
    help="Only rows of these backbones; any other name or folder stands in for all of them.",
)
@option(
    WHAT,
    "--released",
    is_flag=True,
    help="Score the checkpoints that authors released (bench references checkpoints); train nothing.",
)
@option(
    WHAT,
    "--seeds",
    type=parse_seeds,
    metavar="TEXT",
    help="42, 1-5, or 1,3,7-9.  [default: from 42 on, as many as the printed number is of]",
)
@option(
    OUTPUT,
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of the page: our scores beside the printed ones, or a figure.",
)
def reproduce(
    name: str | None,
    filters: tuple[str, ...] | None,
    backbones: tuple[str, ...] | None,
    released: bool,
    html: Path | None,
    dry_run: bool,
    everything: bool,
    as_json: bool,
    plain: bool,
    **options: Any,
) -> None:
    """Run a paper's table or figure again, and show our scores beside the printed ones: consistent, differs, or not tested.

    Without a name it lists every table and figure, with yes or no. A figure is drawn from its runs, on a page. What is missing is
    fetched first, as by bench run. The same command again repeats nothing that is done and continues what was interrupted;
    several processes with the same command share the runs. With --set or --budget a run is a trial, not a reproduction.

    \b
    Example:  bench reproduce promcse:1 --rows unsupervised --backbone bert-base-uncased --seeds 1-5 --dry-run
              bench reproduce promcse:5 --rows unsupervised --backbone builtin --corpus builtin --budget 5steps
              bench reproduce promcse:1 --released --allow-pickle
    """
    if name is None:
        list_parts(as_json)
        return
    part = find_part(name)
    if part.how == NO:
        raise BenchError(
            f"{part.part} of {part.paper} cannot be run again: {part.why}",
            "bench reproduce lists every table and figure",
        )
    config = plan_of((), None, options).runs[0]
    registry = known_methods(config.plugins)
    if part.how in (RECIPES, TEMPLATES):  # our recipes, each value with its source
        say(f"{part.part} of {part.paper}: {part.shows}")
        show_part(describe(registry[part.paper]), part.how)
        return
    listed = with_set(
        runs_of(
            part, registry, filters=filters or (), backbones=backbones or (), released=released
        ),
        registry,
        config.values,
    )
    if part.how != SCORES and not dry_run and (lacks := missing_library("bench reproduce")):
        raise lacks
    store, order = RunsFolder(config.runs), runs_in_order(listed)
    config = replace(
        checked(Plan((config,)), only_look=dry_run).runs[0],
        seeds=options["seeds"] or (),
        budget=None,
        wait_seconds=FOR_EVER,
    )

    def plan(stage: Sequence[TableRun], config: RunConfig) -> Planned:
        return prepare(
            partial(plan_table_runs, stage, config, registry, store), config, only_look=dry_run
        )

    if dry_run:
        planned = plan(order, config)
        if as_json:
            show_plan(planned, store, config, as_json)
            return
        count = sum(len(seeds_of(run, listed, config.seeds)) for run in order)
        say(f"{name}: {count or 'no'} runs")
        show_rows(order)
        if planned.runs:
            click.echo()
            show_plan(planned, store, config, False, everything=everything)
        show_skipped(listed)
        return
    with reporting(plain or as_json) as reporter:
        code = run_stages(order, plan, store, config, reporter)
    if part.how == SCORES:
        show_results(listed, store, config.text, as_json)
    if html is not None or part.how != SCORES:
        page = html or store.path / f"reproduced-{name.replace(':', '-')}.html"
        write_page(page, part, listed, store, config.text)
        click.echo(f"page: {page}", err=as_json)
    raise click.exceptions.Exit(code)


def run_stages(
    order: Sequence[TableRun],
    plan: Callable[[Sequence[TableRun], RunConfig], Planned],
    store: RunsFolder,
    config: RunConfig,
    reporter: RunReporter,
) -> int:
    """Fetch what is missing and run all that can be run, then the runs that need those; returns the exit code.

    A run that cannot be planned is left out with a line. Raises the first such error if none can be.
    """
    worst = 0
    for stage in ([run for run in order if not run.on], [run for run in order if run.on]):
        try:
            planned = plan(stage, config).runs
        except FetchFailed as error:
            warn(f"{error.message}: runs that need it are left out")
            config = replace(config, offline=True)
            planned = plan(stage, config).runs
        for run in stage:
            if run.error and not any(one.planned for one in order):
                raise BenchError(f"none of it can be run here: {run.error.message}", run.error.hint)
            if run.error:
                show_error(run.error, f"left out: {run.name}")
                worst = max(worst, 1)
        missing = show_missing(planned)
        worst = max(worst, missing, run_all(planned, store, config, reporter, as_json=False)[1])
    return worst


def list_parts(as_json: bool) -> None:
    """Every table and figure of the papers: whether it can be run again, by which command or why not."""
    if as_json:
        print_json(
            {**asdict(part), "again": part.how != NO, "command": part.command or None}
            for part in contents()
        )
    else:
        print_columns(
            (
                (
                    one.paper,
                    one.part,
                    one.shows,
                    "no" if one.how == NO else "yes",
                    one.command or one.why,
                )
                for one in contents()
            ),
            headings=("paper", "part", "shows", "again", "command, or why not"),
        )


# --- the results: our scores beside the printed ones ---


def show_rows(order: Sequence[TableRun]) -> None:
    """Each printed row, its value, and its run."""
    print_columns(
        (
            (row.first.label, (row.average or row.cells[0]).printed, row.first.runs, run.name)
            for run in order
            for row in run.rows
        ),
        headings=("printed row", "value", "of", "run"),
        indent=2,
    )
    for note in dict.fromkeys(note for run in order for note in run.notes):
        say(f"note: {note}", indent=2, hang=2)


def show_skipped(listed: Sequence[TableRun]) -> None:
    """Rows that are not run, and why."""
    print_columns(skipped_rows(listed), headings=("not run", "why"), indent=2, blank=True)


def skipped_rows(listed: Sequence[TableRun]) -> list[tuple[str, str]]:
    """(labels of rows, why they were not run), once for each reason."""
    labels: dict[str, dict[str, None]] = {}
    for run in listed:
        if run.reason:
            labels.setdefault(run.reason, {}).update(dict.fromkeys(run.labels or (run.name,)))
    return [(", ".join(names), why) for why, names in labels.items()]


def judged(listed: Sequence[TableRun], store: RunsFolder, text: str) -> dict[str, list[Reproduced]]:
    """Title of a printed row and its run -> the results of its cells."""
    rows = [(run, row) for run in listed if not run.why_not for row in run.rows]
    beside = [
        Beside(
            row.cells, [one for one, _ in finished_runs_of(run, store)], run.differs_from(row.first)
        )
        for run, row in rows
    ]
    by_title: dict[str, list[Reproduced]] = {}
    for (run, row), cells in zip(rows, judge_rows(beside, text), strict=True):
        by_title.setdefault(_title(run, row.first), []).extend(cells)
    return by_title


def show_results(listed: Sequence[TableRun], store: RunsFolder, text: str, as_json: bool) -> None:
    """Every printed cell beside ours, and whether as many new runs as the paper had would give it."""
    for title, cells in judged(listed, store, text).items():
        if as_json:
            print_json(
                {**asdict(cell), "row": title, "sentence": verdict_text(cell, cell.printed)}
                for cell in cells
            )
        else:
            say(title, hang=2)
            print_columns(
                map(_columns, cells),
                headings=("task", "printed", "ours", "as many new runs as the paper had, 95 %"),
                indent=2,
            )
            for note in dict.fromkeys(note for cell in cells for note in cell.notes):
                say(f"note: {note}", indent=2, hang=6)
            click.echo()
    if not as_json:
        show_skipped(listed)
        say("each interval is a 95 % interval on its own: of 20 cells, one differs by chance")
        say(f"records: {store.path}; next: bench compare --with-paper --runs {store.path}")


def _title(run: TableRun, cell: ReferenceResult) -> str:
    """ "PromCSE-BERT-base (promcse table 1, one run): promcse, unsupervised, bert-base-uncased; seeds 42-44"."""
    source = "" if cell.own_result else f"copied from {cell.source}"
    facts = ", ".join(filter(None, (f"{cell.paper} table {cell.table}", cell.runs, source)))
    seeds = seed_ranges([one.seed for one in run.planned if one.seed is not None])
    return f"{cell.label} ({facts}): {run.name}{f'; seeds {seeds}' if seeds else ''}"


def _columns(cell: Reproduced) -> tuple[str, str, str, str]:
    printed = cell.printed
    ours = "-" if cell.mean is None else f"{cell.mean:.{cell.decimals}f}"
    spread = "" if printed.std is None else f" ±{printed.std:g}"
    return printed.task, printed.printed + spread, ours, verdict_text(cell, printed)


def write_page(
    file: Path, part: Part, listed: Sequence[TableRun], store: RunsFolder, text: str
) -> None:
    """The page of a figure that is drawn from our runs, or of a table's cells beside ours; and the rows that were not run."""
    runs = {run.name: ours for run in listed if (ours := finished_runs_of(run, store))}
    page = render(
        f"{part.name}, run again",
        paper_figure(part, runs) if part.how != SCORES else None,
        {title: map(_columns, cells) for title, cells in judged(listed, store, text).items()},
        skipped_rows(listed),
    )
    write_or_fail(file, page.encode(), hint="--html FILE")
