"""``bench reproduce PAPER:TABLE``: the plan of a printed table or figure, its runs, and ours beside the print."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import click

from bench.base.errors import BenchError, FetchFailed
from bench.cli import show_error
from bench.cli.columns import print_columns, say
from bench.cli.method_card import describe, show_part
from bench.cli.options import (
    allow_pickle_option,
    comma_list,
    data_option,
    device_option,
    json_option,
    json_text,
    parse_overrides,
    parse_seeds,
    plain_option,
    plugin_option,
    runs_option,
    warn,
)
from bench.cli.planning import Planned, known_methods, prepare, show_plan
from bench.cli.progress import RunReporter, reporting
from bench.cli.reproduced import show_results, show_rows, show_skipped, write_page
from bench.cli.run_all import run_all, show_missing
from bench.data.fetching import offline_now
from bench.data.sets import DataFolder
from bench.references import NO, RECIPES, SCORES, TEMPLATES, contents, find_part
from bench.run.config import RunConfig
from bench.run.reproduce.runs import in_order, plan_runs, seeds_of
from bench.run.reproduce.table import TableRun, runs_of, with_set
from bench.run.settle import settled
from bench.runs import RunsFolder
from bench.show.figures.drawing import missing_library


@click.command()
@click.argument("name", metavar="[PAPER:TABLE|PAPER:figureN]", required=False)
@click.option(
    "--released",
    is_flag=True,
    help="Score the checkpoints that authors released (bench references checkpoints); train nothing.",
)
@click.option(
    "--rows",
    "words",
    help="Only these rows (a,b): a setting, a method, own, copied, or part of a label.",
)
@click.option(
    "--backbone",
    "backbones",
    help="Only rows of these backbones; any other name or folder stands in for all of them.",
)
@click.option(
    "--seeds",
    help="42, 1-5, or 1,3,7-9.  [default: from 42 on, as many as the printed number is of]",
)
@click.option(
    "--corpus",
    help="Training text of every run instead of the recipes' own: as bench run takes it.",
)
@click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a recipe value. May be repeated. Then the run is a trial, no reproduction.",
)
@click.option(
    "--max-steps",
    type=click.IntRange(min=1),
    help="Optimiser steps at most (recipe key max_steps).",
)
@click.option(
    "--budget",
    help="How long to train, in place of the recipe's epochs: 10m, 2h, 5000steps, 1e6sentences, 3e7tokens, 2gpu-h.",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where the page is written: ours beside the print of a table, or a figure.",
)
@click.option(
    "--text",
    default="tokenised",
    show_default=True,
    help="Text form of the sets that have several.",
)
@device_option
@click.option(
    "--precision",
    type=click.Choice(["auto", "fp32", "tf32", "bf16", "fp16"]),
    default="auto",
    show_default=True,
    help="Of training, as in bench run; scores are always float32.",
)
@click.option("--offline", is_flag=True, help="Open no connection; what is missing is left out.")
@allow_pickle_option
@click.option("--dry-run", is_flag=True, help="Show the plan: rows, runs, hours, what is fetched.")
@click.option("--all", "everything", is_flag=True, help="With --dry-run: all recipe values.")
@data_option
@runs_option
@plugin_option
@json_option
@plain_option
def reproduce(
    name: str | None,
    words: str | None,
    backbones: str | None,
    released: bool,
    seeds: str | None,
    corpus: str | None,
    pairs: tuple[str, ...],
    max_steps: int | None,
    budget: str | None,
    html: Path | None,
    text: str,
    device: str,
    precision: str,
    offline: bool,
    allow_pickle: bool,
    dry_run: bool,
    everything: bool,
    data: Path | None,
    runs: Path | None,
    plugins: tuple[Path, ...],
    as_json: bool,
    plain: bool,
) -> None:
    """Run a paper's table or figure again, and show ours beside the print: consistent, differs, or not tested.

    Without a name every table and figure is listed, with yes or no. A figure is drawn from its runs, on a page. What is missing is fetched first, as bench run does it. The same command again repeats
    nothing that is done and goes on with what was interrupted; processes with one command share its runs.

    \b
    Example:  bench reproduce promcse:1 --rows unsupervised --backbone bert-base-uncased --seeds 1-5 --dry-run
              bench reproduce promcse:5 --rows unsupervised --backbone builtin --corpus builtin --max-steps 5
              bench reproduce promcse:1 --released --allow-pickle
    """
    if name is None:
        list_parts(as_json)
        return
    part, store = find_part(name), RunsFolder(runs)
    if part.how == NO:
        reason = f"{part.part} of {part.paper} cannot be run again: {part.why}"
        raise BenchError(reason, "bench reproduce: lists every table and figure")
    registry = known_methods(plugins)
    if part.how in (RECIPES, TEMPLATES):  # our recipes, each value with its source
        say(f"{part.part} of {part.paper}: {part.shows}")
        show_part(describe(registry[part.paper]), part.how)
        return
    chosen = runs_of(
        part,
        registry,
        words=comma_list(words),
        backbones=comma_list(backbones),
        released=released,
    )
    listed = with_set(chosen, registry, parse_overrides(pairs, max_steps, budget))
    if part.how != SCORES and not dry_run and (lacks := missing_library("bench reproduce")):
        raise lacks
    config = RunConfig(
        seeds=() if seeds is None else parse_seeds(seeds),
        text=text,
        corpus=corpus,
        budget=budget,
        device=device,
        precision=precision,
        allow_pickle=allow_pickle,
        offline=offline or offline_now(),
        data=str(data) if data else None,
    )
    config = replace(
        settled(config, only_look=dry_run), budget=None
    )  # each run has it in its recipe
    DataFolder(data, offline=True).check_root()
    order = in_order(listed)

    def plan(stage: Sequence[TableRun], config: RunConfig) -> Planned:
        make = partial(plan_runs, stage, config, registry, store)
        return prepare(make, config, only_look=dry_run)

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
        show_results(listed, store, text, as_json)
    if html is not None or part.how != SCORES:
        page = html or store.path / f"reproduced-{name.replace(':', '-')}.html"
        write_page(page, part, listed, store, text)
        click.echo(f"page: {page}", err=as_json)
    raise click.exceptions.Exit(code)


def run_stages(
    order: Sequence[TableRun],
    plan: Callable[[Sequence[TableRun], RunConfig], Planned],
    store: RunsFolder,
    config: RunConfig,
    reporter: RunReporter,
) -> int:
    """Fetch what is missing and run all that can be run, then what stands on it; returns the exit code.

    What cannot be planned is left out with a line. Raises the first such error where nothing can be.
    """
    worst = 0
    for stage in ([run for run in order if not run.on], [run for run in order if run.on]):
        try:
            planned = plan(stage, config).runs
        except FetchFailed as error:
            warn(f"{error.message}: runs that need it are left out")
            config = replace(config, offline=True)
            planned = plan(stage, config).runs
        errors = [(run.name, run.error) for run in stage if run.error]
        if errors and not any(run.planned for run in order):
            first = errors[0][1]
            raise BenchError(f"nothing of this can be run here: {first.message}", first.hint)
        for name, why in errors:
            show_error(why, f"left out: {name}")
        missing = show_missing(planned)
        _, code = run_all(planned, store, config, reporter, as_json=False, shared=True)
        worst = max(worst, code, missing, int(bool(errors)))
    return worst


def list_parts(as_json: bool) -> None:
    """Every table and figure of the papers: whether it can be done again, and by which command or why not."""
    if as_json:
        for part in contents():
            facts = {**asdict(part), "again": part.how != NO, "command": part.command or None}
            click.echo(json_text(facts))
        return
    rows = [
        (one.paper, one.part, one.shows, "no" if one.how == NO else "yes", one.command or one.why)
        for one in contents()
    ]
    print_columns(rows, headings=("paper", "part", "shows", "again", "command, or why not"))
