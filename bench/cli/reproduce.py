"""``bench reproduce PAPER:TABLE``: run a printed table or figure again, and compare the scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace as replace_config

from bench.base.errors import BenchError, FetchFailed
from bench.base.grid import GridColumn, grid
from bench.base.printing import print_grid
from bench.base.terminal import warn
from bench.base.text import comma_list
from bench.board.figures import missing_library
from bench.cli.dry_run import print_plan
from bench.cli.errors import show_error
from bench.cli.method_facts import describe_method
from bench.cli.method_tables import print_method_part
from bench.cli.options import print_json, say
from bench.cli.reproduced import (
    print_comparison,
    print_printed_rows,
    print_skipped,
    write_comparison_page,
)
from bench.cli.run_options import (
    OUTPUT,
    GroupedCommand,
    field_option,
    grouped_option,
    plan_of,
    shared_options,
)
from bench.cli.run_output import execute_and_report, print_missing_sets
from bench.method.config import WHAT, RunConfig
from bench.method.plugins import Registry
from bench.papers import NO, RECIPES, SCORES, TEMPLATES, PaperPart, contents, find_part
from bench.run.needs import PreparedRuns
from bench.run.plan_toml import Plan
from bench.run.printed_runs import runs_of
from bench.run.progress import terminal_reporter
from bench.run.reproduce import plan_table_runs, runs_in_order, seeds_of, with_set
from bench.run.session import FOR_EVER, Session, known_methods
from bench.run.table_run import TableRun

COMMAND = "bench reproduce"


@click.command(
    cls=GroupedCommand,
    params=shared_options(
        *("overrides", "budget", "corpus", "device", "precision", "offline", "allow_pickle"),
        *("data", "runs", "plugins", "dry_run", "everything", "as_json", "plain"),
    ),
)
@click.argument("name", metavar="[PAPER:TABLE|PAPER:figureN]", required=False)
@grouped_option(
    WHAT,
    "--rows",
    "filters",
    type=comma_list,
    metavar="TEXT",
    help="Only these rows (a,b): a setting, a method, own, copied, or part of a label.",
)
@grouped_option(
    WHAT,
    "--backbone",
    "backbones",
    type=comma_list,
    metavar="TEXT",
    help="Only rows of these backbones; any other name or folder stands in for all of them.",
)
@grouped_option(
    WHAT,
    "--released",
    is_flag=True,
    help="Score the checkpoints that authors released (bench references checkpoints); train "
    "nothing.",
)
@field_option(
    "seeds",
    "42, 1-5, or 1,3,7-9.  [default: 42 upward, as many seeds as the published number averages]",
)
@grouped_option(
    OUTPUT,
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of the page: our scores next to the published ones, or a figure.",
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
    """Run a paper's table or figure again, and compare our scores with the published ones.

    Each is consistent, differs, or is not tested.

    Without a name, list every table and figure and whether it can be rerun. A figure is drawn from
    its runs, on a page. What is missing is fetched first, as by bench run. The same command again
    repeats nothing that is done and continues what was interrupted; several processes with the same
    command share the runs. With --set or --budget a run is a trial, not a reproduction.

    \b
    Example:  bench reproduce promcse:1 --rows unsupervised --backbone bert-base-uncased --dry-run
              bench reproduce promcse:5 --rows unsupervised --backbone builtin \\
                  --corpus builtin --budget 5steps
              bench reproduce promcse:1 --released --allow-pickle
    """
    if name is None:
        _list_parts(as_json)
        return
    part = _find_runnable_part(name)
    config = plan_of(options).runs[0]
    registry = known_methods(config.plugins)
    if part.how in (RECIPES, TEMPLATES):
        _print_our_recipes(part, registry)
        return
    table_runs = runs_of(
        part, registry, filters=filters or (), backbones=backbones or (), released=released
    )
    table_runs = with_set(table_runs, registry, config.recipe_values)
    order = runs_in_order(table_runs)
    if part.how != SCORES and not dry_run:
        _check_drawing_library()
    seeds = config.seeds if options["seeds"] else ()
    session = _begin_session(config, seeds, plain=plain or as_json, only_look=dry_run)
    if dry_run:
        prepared = _prepare_table(session, order, registry)
        if as_json:
            print_plan(prepared, session, as_json=True)
        else:
            _print_table_plan(name, session, prepared, table_runs, everything=everything)
        return
    with session.reporter.display():
        code = _run_stages(session, order, registry)
    if part.how == SCORES:
        print_comparison(table_runs, session.store, as_json)
    page = html or _figure_page(part, name, session)
    if page is not None:
        write_comparison_page(page, part, table_runs, session.store)
        click.echo(f"page: {page}", err=as_json)
    raise click.exceptions.Exit(code)


def _figure_page(part: PaperPart, name: str, session: Session) -> Path | None:
    """Return the page that a figure is drawn on without --html; None for a table of scores."""
    if part.how == SCORES:
        return None
    return session.store.path / f"reproduced-{name.replace(':', '-')}.html"


def _find_runnable_part(name: str) -> PaperPart:
    """Return the table or figure of that name. Raises BenchError if it cannot be run again."""
    part = find_part(name)
    if part.how == NO:
        raise BenchError(
            f"{part.part} of {part.paper} cannot be run again: {part.why}",
            "bench reproduce lists every table and figure",
        )
    return part


def _begin_session(
    config: RunConfig, seeds: tuple[int, ...], *, plain: bool, only_look: bool
) -> Session:
    """Return a session that waits for runs of other processes, with these seeds.

    Without seeds each printed row has its own.
    """
    session = Session.begin(Plan((config,)), terminal_reporter(plain), only_look=only_look)
    settled = replace_config(session.config, wait_seconds=FOR_EVER, seeds=seeds, budget=None)
    return replace(session, plan=Plan((settled,)))


def _print_our_recipes(part: PaperPart, registry: Registry) -> None:
    """Print our recipes or templates for a table of them, with the source of each value."""
    say(f"{part.part} of {part.paper}: {part.shows}")
    print_method_part(describe_method(registry[part.paper]), part.how)


def _check_drawing_library() -> None:
    """Raise BenchError if the library that draws figures is not installed."""
    lacks = missing_library("bench reproduce")
    if lacks is not None:
        raise lacks


def _print_table_plan(
    name: str,
    session: Session,
    prepared: PreparedRuns,
    table_runs: Sequence[TableRun],
    *,
    everything: bool,
) -> None:
    """Print the printed rows with their runs, the plan, and the rows that are not run."""
    order = runs_in_order(table_runs)
    count = sum(len(seeds_of(run, table_runs, session.config.seeds)) for run in order)
    say(f"{name}: {count or 'no'} runs")
    print_printed_rows(order)
    if prepared.runs:
        click.echo()
        print_plan(prepared, session, as_json=False, everything=everything, takes_chunk=False)
    print_skipped(table_runs)


def _prepare_table(
    session: Session, table_runs: Sequence[TableRun], registry: Registry
) -> PreparedRuns:
    """Plan the runs of printed rows, and fetch what they need."""
    return session.prepare(
        partial(plan_table_runs, table_runs, session.config, registry, session.store)
    )


def _run_stages(session: Session, order: Sequence[TableRun], registry: Registry) -> int:
    """Do all that can be run, then the runs that need those; returns the exit code.

    A run that cannot be planned is left out with a line. Raises the first such error if none can
    be.
    """
    worst = 0
    first_stage = [run for run in order if not run.on]
    second_stage = [run for run in order if run.on]
    for stage in (first_stage, second_stage):
        try:
            runs = _prepare_table(session, stage, registry).runs
        except FetchFailed as error:
            warn(f"{error.message}: runs that need it are left out")
            session = replace(session, plan=session.plan.with_values(offline=True))
            runs = _prepare_table(session, stage, registry).runs
        can_run_something = any(run.planned for run in order)
        for run in stage:
            if run.error is None:
                continue
            if not can_run_something:
                raise BenchError(f"none of it can be run here: {run.error.message}", run.error.hint)
            show_error(run.error, f"left out: {run.name}")
            worst = max(worst, 1)
        missing = print_missing_sets(runs)
        _, code = execute_and_report(session, runs)
        worst = max(worst, missing, code)
    return worst


def _list_parts(as_json: bool) -> None:
    """Print every table and figure of the papers: if it can be run again, how, or why not."""
    if as_json:
        for part in contents():
            can_run = part.how != NO
            print_json([{**asdict(part), "again": can_run, "command": part.command or None}])
        return
    rows = []
    for part in contents():
        name = part.command.removeprefix(f"{COMMAND} ")
        if not name:
            name = f"{part.paper}:{part.part.removeprefix('table ').replace(' ', '')}"
        again, shows = "yes", part.shows
        if part.how == NO:
            again, shows = "no", f"{part.shows} ({part.why})"
        rows.append((name, again, shows))
    columns = ("table", "again", GridColumn("shows", wrap=24))
    print_grid(grid(columns, rows, notes=[f"one of them: {COMMAND} PAPER:TABLE"]))
