"""``bench reproduce PAPER:TABLE``: the plan of a printed table or figure, its runs, and ours beside the print."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import click

from bench.backbones import Reference
from bench.base.errors import BenchError, FetchFailed, UnknownName
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
    precision_option,
    recipe_options,
    runs_option,
    warn,
)
from bench.cli.planning import Planned, as_dict, known_methods, plan_rows, prepare, show_plan
from bench.cli.progress import RunReporter, reporting
from bench.cli.reproduced import show_left_out, show_results, show_rows, write_page
from bench.cli.run_all import run_all
from bench.data.fetching import offline_now
from bench.data.sets import DataFolder
from bench.references import (
    FORMULA,
    NO,
    RECIPES,
    RUNS,
    SCORES,
    TEMPLATES,
    contents,
    find_part,
)
from bench.run.config import RunConfig
from bench.run.plan import PlannedRun
from bench.run.plugins import Registry
from bench.run.reproduce.jobs import Job, ReproduceOptions, in_order, jobs, plan_job
from bench.run.reproduce.table import TableRun, printed_rows, runs_of, with_set
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
    "corpora",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Training text instead of the recipes' own; with NAME= only where a recipe names that corpus.",
)
@recipe_options(" Then the run is a trial, no reproduction.")
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
@precision_option(
    "Of training; scores are always float32. auto: fp16 on an NVIDIA GPU where the authors had it, else as bench run."
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
    corpora: tuple[str, ...],
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
    printed_rows(part, comma_list(words))
    overrides = parse_overrides(pairs, max_steps, budget)
    numbers = None if seeds is None else parse_seeds(seeds)
    registry = known_methods(plugins)
    if part.how in (RECIPES, TEMPLATES):  # our recipes, each value with its source
        say(f"{part.part} of {part.paper}: {part.shows}")
        show_part(describe(registry[part.paper]), part.how)
        return
    found: Sequence[TableRun] = runs_of(
        part,
        registry,
        words=comma_list(words),
        backbones=comma_list(backbones),
        released=released,
    )
    found = with_set(found, registry, overrides)
    if (
        part.how in (RUNS, FORMULA)
        and not dry_run
        and (lacks := missing_library("bench reproduce"))
    ):
        raise lacks
    config = RunConfig(
        device=device,
        precision=precision,
        budget=budget,
        allow_pickle=allow_pickle,
        offline=offline or offline_now(),
        data=str(data) if data else None,
    )
    config = settled(config, only_look=dry_run)
    device = config.device
    options = ReproduceOptions(
        seeds=numbers,
        text=text,
        precision=config.precision,
        as_authors=precision == "auto" and device.startswith("cuda"),
        allow_pickle=allow_pickle,
    )
    listed = jobs(found, registry, options)
    order = in_order(listed)
    known = {job.corpus for job in order if job.corpus}
    options = replace(options, corpora=parse_corpora(corpora, known))
    DataFolder(data, offline=True).check_root()
    plan = partial(plan_stage, registry, options, store)
    if dry_run:
        planned = plan(order, config, only_look=True)
        if as_json:
            print_json(listed, planned, store, device)
            return
        say(f"{name}: {sum(len(job.seeds) for job in order) or 'no'} runs")
        show_rows(order)
        if planned.runs:
            click.echo()
            show_plan(planned, store, config, False, everything=everything)
        show_left_out(listed)
        return
    with reporting(plain or as_json) as reporter:
        code = run_jobs(order, plan, store, config, reporter)
    if part.how == SCORES:
        show_results(listed, store, text, as_json)
    if html is not None or part.how != SCORES:
        page = html or store.path / f"reproduced-{name.replace(':', '-')}.html"
        write_page(page, part, listed, store, text)
        click.echo(f"page: {page}", err=as_json)
    raise click.exceptions.Exit(code)


# --- what the options mean ---


def parse_corpora(texts: Sequence[str], known: Collection[str]) -> dict[str, str]:
    """``nli=FILE`` as {"nli": FILE}; a FILE alone is that of all recipes: {"": FILE}. Raises BenchError for a name twice, UnknownName
    for one that is not ``known``: no recipe of these rows has it."""
    corpora: dict[str, str] = {}
    for text in texts:
        name, equals, file = text.partition("=")
        if not equals or "/" in name or Path(text).exists():
            name, file = "", text
        if name and name not in known:
            raise UnknownName("corpus", name, known, "among the recipes of these rows")
        if name in corpora:
            raise BenchError(
                f"--corpus {text}: a second file for {name or 'all recipes'}",
                "--corpus wiki1m=FILE --corpus nli=FILE",
            )
        corpora[name] = file
    return corpora


# --- planning and running ---


def plan_stage(
    registry: Registry,
    options: ReproduceOptions,
    store: RunsFolder,
    stage: Sequence[Job],
    config: RunConfig,
    *,
    only_look: bool = False,
) -> Planned:
    """Give jobs their planned runs, or the error for which each is left out, and fetch what they need."""

    def make(data: DataFolder, ready: Callable[[Reference], Reference]) -> list[PlannedRun]:
        for job in stage:
            job.planned, job.error = (), None
            try:
                job.planned = tuple(plan_job(job, registry, data, options, ready, store))
            except BenchError as error:
                job.error = error
        return [run for job in stage for run in job.planned]

    return prepare(make, config, only_look=only_look)


def run_jobs(
    order: Sequence[Job],
    plan: Callable[..., Planned],
    store: RunsFolder,
    config: RunConfig,
    reporter: RunReporter,
) -> int:
    """Fetch what is missing and run all that can be run, then what stands on it; returns the exit code.

    What cannot be planned is left out with a line. Raises the first such error where nothing remains.
    """
    worst = 0
    for later in (False, True):
        stage = [job for job in order if (job.first is not None) is later]
        try:
            plan(stage, config)
        except FetchFailed as error:
            warn(f"{error.message}: runs that need it are left out")
            config = replace(config, offline=True)
            plan(stage, config)
        planned = [run for job in stage for run in job.planned]
        errors = [(f"left out: {job.run.name}", job.error) for job in stage if job.error]
        if errors and not any(job.planned for job in order):
            first = errors[0][1]
            raise BenchError(f"nothing of this can be run here: {first.message}", first.hint)
        missing = {why.message: ("missing", why) for run in planned for why in run.missing}
        for label, why in [*errors, *missing.values()]:
            worst = 1
            show_error(why, label)
        _, code = run_all(planned, store, config, reporter, as_json=False, shared=True)
        worst = max(worst, code)
    return worst


# --- what is shown before anything runs ---


def print_json(listed: Sequence[Job], planned: Planned, store: RunsFolder, device: str) -> None:
    """A line for each run of the plan, which may stand for several printed rows, and for each row that cannot be run."""
    for job in (*in_order(listed), *(job for job in listed if not job.run.method)):
        rows = [
            {
                "label": row.first.label,
                "runs": row.first.runs,
                "printed": {one.task: one.value for one in row.cells},
            }
            for row in job.run.rows
        ]
        runs = [
            as_dict(run, row.guess, done, planned.to_fetch, device)
            for row in plan_rows(job.planned, store, device)
            for run, done in zip(row.runs, row.finished, strict=True)
        ]
        left_out = job.run.why_not or (job.error.message if job.error else None)
        facts = {"name": job.run.name, "notes": job.run.notes, "left_out": left_out}
        click.echo(json_text({**facts, "seeds": job.seeds, "rows": rows, "runs": runs}))


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
