"""``bench reproduce PAPER:TABLE``: run a printed table or figure again and put ours beside the print."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import BenchError, FetchFailed, UnknownName
from bench.cli.columns import print_columns, say
from bench.cli.options import (
    allow_pickle_option,
    comma_list,
    data_option,
    device_option,
    json_option,
    json_text,
    plain_option,
    plugin_option,
    precision_option,
    runs_option,
    save_seconds,
    warn,
)
from bench.cli.reproduced import show_left_out, show_results, write_formula, write_reproduction
from bench.cli.run import check_budget, parse_overrides, parse_seeds
from bench.cli.run_all import run_all
from bench.cli.run_card import MAIN
from bench.references import (
    FORMULA,
    NO,
    RECIPES,
    RUNS,
    SCORES,
    TEMPLATES,
    Part,
    contents,
    figure_runs,
    find_part,
)

if TYPE_CHECKING:
    from bench.backbones import Reference
    from bench.data.fetching import Report
    from bench.data.sets import DataFolder, Pending
    from bench.run.executors.build import Options
    from bench.run.plan import PlannedRun
    from bench.run.plugins import Registry
    from bench.run.reproduce.execute import Job, Need, ReproduceOptions
    from bench.run.reproduce.wanted import WantedRun
    from bench.runs import RunsFolder


@click.command()
@click.argument("name", metavar="[PAPER:TABLE|PAPER:figureN|all]", required=False)
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
    help="42, 1-5, or 1,3,7-9.  [default: 42 and those after it, as many as the printed number is of]",
)
@click.option(
    "--corpus",
    "corpora",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Training text instead of the recipes' own; with NAME= only where a recipe says wiki1m, nli or nli-labelled.",
)
@click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a recipe value of the methods that know it.",
)
@click.option(
    "--max-steps",
    type=click.IntRange(min=1),
    help="Optimiser steps at most: a trial, no reproduction.",
)
@click.option(
    "--budget",
    help="How long each run trains, in place of its recipe's epochs: 300steps, 10m, ... A trial, no reproduction.",
)
@click.option(
    "--suite",
    "suites",
    help="Score these suites instead of the tables' own: a trial; orders are then of what they score.",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page: the paper's order against ours, and figures.",
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
@click.option(
    "--margin",
    type=click.FloatRange(0, 100, min_open=True),
    default=0.5,
    show_default=True,
    help="Points within which two numbers are as good as equal.",
)
@click.option("--offline", is_flag=True, help="Open no connection; what is missing is left out.")
@allow_pickle_option
@click.option(
    "--dry-run",
    is_flag=True,
    help="List the runs, what they need, what is missing and what they would take; run nothing.",
)
@data_option
@runs_option
@plugin_option
@json_option
@plain_option
def reproduce(
    name: str | None,
    released: bool,
    words: str | None,
    backbones: str | None,
    seeds: str | None,
    corpora: tuple[str, ...],
    pairs: tuple[str, ...],
    max_steps: int | None,
    budget: str | None,
    suites: str | None,
    html: Path | None,
    text: str,
    device: str,
    precision: str,
    margin: float,
    offline: bool,
    allow_pickle: bool,
    dry_run: bool,
    data: Path | None,
    runs: Path | None,
    plugins: tuple[Path, ...],
    as_json: bool,
    plain: bool,
) -> None:
    """Run a paper's table or figure again; say of each cell whether ours is equivalent to the print, different, or cannot be told yet.

    Without a name every table and figure is listed, with yes or no. A figure is drawn from its runs, on a page. "all" runs
    everything that can start here, and ends in a page too. What is missing is fetched first, as bench run does it. Run again, what is
    done is not repeated; processes with one command share its runs.

    \b
    Example:  bench reproduce promcse:1 --rows unsupervised --backbone bert-base-uncased --seeds 1-5 --dry-run
              bench reproduce promcse:5 --rows unsupervised --backbone builtin --corpus builtin --max-steps 5
              bench reproduce promcse:1 --released --allow-pickle
              bench reproduce all --backbone builtin --corpus builtin --budget 300steps
    """
    from bench.base import devices
    from bench.cli.progress import downloads
    from bench.data.fetching import offline_now
    from bench.data.sets import DataFolder, Later
    from bench.run.executors.build import Options
    from bench.run.plugins import discover
    from bench.run.reproduce.execute import ReproduceOptions, in_order, jobs
    from bench.run.reproduce.wanted import (
        check_asked,
        check_rows,
        part,
        scored_on,
        together,
        with_asked,
    )
    from bench.runs import RunsFolder
    from bench.show.figures.drawing import missing_library

    if margin != margin:
        raise BenchError("--margin nan is no number of points", "--margin 0.5")
    if name is None:
        list_parts(as_json)
        return
    parts = asked_parts(name, words)
    for paper_part in parts:
        check_rows(paper_part, comma_list(words))
    overrides, files = parse_overrides(pairs, max_steps, budget), parse_corpora(corpora)
    numbers = None if seeds is None else parse_seeds(seeds)
    offline = offline or offline_now()
    registry = discover(plugins)
    for warning in registry.warnings:
        warn(f"warning: {warning}")
    if len(parts) == 1 and parts[0].how in (RECIPES, TEMPLATES):
        show_recipes(parts[0], registry)
        return
    if len(parts) == 1 and parts[0].how == FORMULA:
        draw_formula(parts[0], html, RunsFolder(runs).path, dry_run)
        return
    other_suites = check_suites(suites)
    runs_of: dict[Part, tuple[WantedRun, ...]] = {}
    for paper_part in parts:
        try:
            runs_of[paper_part] = part(
                paper_part,
                registry,
                words=comma_list(words),
                backbones=comma_list(backbones),
                released=released,
            )
        except BenchError as error:
            if name != ALL:
                raise
            warn(f"left out: {error.message}")  # a table of other backbones
    check_asked(together(list(runs_of.values())), registry, overrides)
    for paper_part, wanted in runs_of.items():
        changed = with_asked(wanted, registry, overrides)
        runs_of[paper_part] = (
            tuple(scored_on(run, other_suites) for run in changed) if other_suites else changed
        )
    if not runs_of:
        raise BenchError(
            "nothing of this has rows on these backbones",
            "bench reproduce: lists every table and figure",
        )
    later, store = Later(), RunsFolder(runs)
    folder = DataFolder(data, offline=offline, fetcher=later)
    folder.check_root()
    asked = ReproduceOptions(
        seeds=numbers, text=text, corpora=files, precision="fp32", allow_pickle=allow_pickle
    )
    listed = jobs(together(list(runs_of.values())), registry, folder, asked)
    known = {job.corpus for job in in_order(listed) if job.corpus}
    for corpus in files:
        if corpus and corpus not in known:
            raise UnknownName("corpus", corpus, known, "among the recipes of these rows")
    if dry_run:
        show_plan(name, listed, asked, later.pending, as_json)
        return
    if any(drawn.part in runs_of and drawn.draws != "cosines" for drawn in figure_runs()) and (
        lacks := missing_library("bench reproduce")
    ):
        raise lacks
    device = devices.choose_device(device)
    check_budget(budget, device)
    asked = replace(
        asked,
        precision=devices.choose_precision(precision, device),
        as_authors=precision == "auto" and device.startswith("cuda"),
    )
    options = Options(device=device, offline=offline, save_seconds=save_seconds())
    code = run_jobs(
        listed, registry, data, asked, store, options, downloads(plain or as_json), later.pending
    )
    if as_json or (len(parts) == 1 and parts[0].how == SCORES):
        show_results(name, listed, store, asked, as_json, margin)
    if html is not None or name == ALL or parts[0].how == RUNS:
        page = html or store.path / f"reproduced-{name.replace(':', '-')}.html"
        write_reproduction(
            page, name, runs_of, listed, store, asked, DataFolder(data, offline=True), other_suites
        )
        warn(f"page: {page}") if as_json else click.echo(f"page: {page}")
    raise click.exceptions.Exit(code)


ALL = "all"


def asked_parts(name: str, words: str | None) -> list[Part]:
    """The tables and figures that a name means. Raises BenchError for one that is not known, or that nothing does again."""
    if name != ALL:
        part = find_part(name)
        if part.how == NO:
            raise BenchError(
                f"{part.part} of {part.paper} cannot be run again: {part.why}",
                "bench reproduce: lists every table and figure",
            )
        return [part]
    if words:
        raise BenchError(
            f"--rows {words}: all is every row of every table",
            "bench reproduce PAPER:TABLE --rows ...",
        )
    return [part for part in contents() if part.how in (SCORES, RUNS)]


def check_suites(text: str | None) -> tuple[str, ...]:
    """Their names. Raises UnknownName for a suite that there is not."""
    from bench.score.suites import check_suite, expand_suites, split_names

    names = split_names(text) if text else ()
    for suite in expand_suites(names):
        check_suite(suite)
    return names


def list_parts(as_json: bool) -> None:
    """Every table and figure of the papers: whether it can be done again, and by which command or why not."""
    if as_json:
        for part in contents():
            click.echo(
                json_text(
                    {**asdict(part), "again": part.how != NO, "command": part.command or None}
                )
            )
        return
    rows = [
        (
            part.paper,
            part.part,
            part.shows,
            "no" if part.how == NO else "yes",
            part.command or part.why,
        )
        for part in contents()
    ]
    print_columns(rows, headings=("paper", "part", "shows", "again", "command, or why not"))
    click.echo()
    say(
        "of hyperparameters our recipes are shown; a figure is drawn from its runs; everything at once, small: "
        "bench reproduce all --backbone builtin --corpus builtin --budget 300steps"
    )


def show_recipes(part: Part, registry: Registry) -> None:
    """What stands here for a paper's hyperparameters: the recipes of its method, each value with its source; or for its templates."""
    from bench.cli.method_card import describe, show

    what = "" if part.how == TEMPLATES else "; here, with the source of every value"
    say(f"{part.part} of {part.paper}: {part.shows}{what}")
    show(describe(registry[part.paper]), parts=(part.how,))


def draw_formula(part: Part, html: Path | None, runs: Path, dry_run: bool) -> None:
    """Write the page of a figure that needs no run."""
    from bench.show.figures.drawing import missing_library

    if dry_run:
        say(f"{part.name}: {part.shows}, drawn from a formula; no run is needed")
        return
    if lacks := missing_library("bench reproduce"):
        raise lacks
    page = html or runs / f"reproduced-{part.name.replace(':', '-')}.html"
    write_formula(part, page)
    click.echo(f"page: {page}")


def parse_corpora(given: Sequence[str]) -> dict[str, str]:
    """``nli=FILE`` as {"nli": FILE}; a FILE alone is that of all recipes: {"": FILE}. Raises BenchError for a name twice."""
    corpora: dict[str, str] = {}
    for text in given:
        name, equals, file = text.partition("=")
        if not equals or "/" in name or Path(text).exists():
            name, file = "", text
        if name in corpora:
            raise BenchError(
                f"--corpus {text}: a second file for {name or 'all recipes'}",
                "--corpus wiki1m=FILE --corpus nli=FILE",
            )
        corpora[name] = file
    return corpora


def run_jobs(
    listed: Sequence[Job],
    registry: Registry,
    data: Path | None,
    asked: ReproduceOptions,
    store: RunsFolder,
    options: Options,
    report: Report,
    to_fetch: Sequence[Pending],
) -> int:
    """Fetch what is missing, plan all that can be planned, then run it, then what stands on it; returns the exit code.

    What cannot be planned is told and left out. Raises the first such error where nothing is left. ``to_fetch``: what all of the
    runs would fetch, which is announced in one table.
    """
    from bench.cli.planning import prepare
    from bench.cli.progress import PlainDownloads, reporting
    from bench.run.reproduce.execute import in_order

    worst, offline = 0, options.offline
    plain = isinstance(report, PlainDownloads)
    order = in_order(listed)
    for stage in (
        [job for job in order if job.first is None],
        [job for job in order if job.first is not None],
    ):
        make = partial(plan_jobs, stage, registry, asked, store, to_fetch)
        try:
            prepare(
                make,
                data,
                report,
                offline=offline,
                only_look=False,
                allow_pickle=asked.allow_pickle,
            )
        except FetchFailed as error:
            warn(f"{error.message}: runs that need it are left out")
            offline = True
            prepare(
                make,
                data,
                report,
                offline=offline,
                only_look=False,
                allow_pickle=asked.allow_pickle,
            )
        to_fetch = ()  # of the first stage's table
        for job in stage:
            if job.error is not None:
                worst = max(worst, 1)
                hint = f" (try: {job.error.hint})" if job.error.hint else ""
                warn(f"left out: {job.run.name}: {job.error.message}{hint}")
        missing = {
            error.message: error
            for job in stage
            for planned_run in job.planned
            for error in planned_run.missing
        }
        for told in missing.values():  # sets that are not here: the others go on
            worst = max(worst, 1)
            warn(f"missing: {told.message}" + (f" (try: {told.hint})" if told.hint else ""))
        if stage and not any(job.planned for job in order):
            first = next(job.error for job in stage if job.error)
            raise BenchError(f"nothing of this can be run here: {first.message}", first.hint)
        with reporting(plain) as reporter:
            _, code = run_all(
                [run for job in stage for run in job.planned],
                store,
                options,
                reporter,
                as_json=False,
                shared=True,
            )
        worst = max(worst, code)
    return worst


def plan_jobs(
    stage: Sequence[Job],
    registry: Registry,
    asked: ReproduceOptions,
    store: RunsFolder,
    to_fetch: Sequence[Pending],
    data: DataFolder,
    ready: Callable[[Reference], Reference],
) -> list[PlannedRun]:
    """Give every job its planned runs, or the error for which it is left out; returns the runs. See ``prepare`` of the planning."""
    from bench.run.reproduce.execute import plan_job

    if data.later is not None:
        for item in to_fetch:
            data.later.note(item)
    for job in stage:
        job.planned, job.error = (), None
        try:
            job.planned = tuple(plan_job(job, registry, data, asked, ready, store))
        except BenchError as error:
            job.error = error
    return [run for job in stage for run in job.planned]


# --- the plan; what became of it is told by bench.cli.reproduced ---


def show_plan(
    name: str,
    listed: Sequence[Job],
    asked: ReproduceOptions,
    to_fetch: Sequence[Pending],
    as_json: bool,
) -> None:
    """Every run with its rows, recipe, needs, time and command; then what cannot be run, what is fetched, what is missing, and the sum."""
    from bench.cli.planning import table_of
    from bench.run.reproduce.execute import in_order

    order = in_order(listed)
    if as_json:
        for job in (*order, *(job for job in listed if not job.run.method)):
            click.echo(json_text(_plan_json(job, asked)))
        return
    rows = {label for job in listed for label in _lines_of(job)}
    runnable = {label for job in listed if job.run.method for label in _lines_of(job)}
    total = sum(len(job.seeds) for job in order)
    printed = (
        f"{len(rows)} printed rows; {len(runnable)} of them mean {total} runs here"
        if rows
        else f"drawn from {total} runs"
    )
    say(f"{name}: {printed}")
    _show_seeds(order)
    for i, job in enumerate(order, 1):
        _show_job(job, i, order, asked)
    show_left_out(listed)
    if to_fetch:
        click.echo("\nnot on this machine; without --dry-run this is fetched first")
        for line in table_of(to_fetch):
            say(line[2:], indent=3, hang=5)
    _show_missing(order)
    _show_sum(order)


def _show_seeds(order: Sequence[Job]) -> None:
    """Which seeds how many of the runs have, and of how many runs their printed numbers are."""
    from bench.board.repeat import seed_words

    printed: dict[str, dict[str, None]] = {}
    count: Counter[str] = Counter()
    for job in order:
        numbers = [seed for seed in job.seeds if seed is not None]
        seeds = (
            f"seed{'s' * (len(numbers) > 1)} {seed_words(numbers)}"
            if numbers
            else "no seed, nothing is random"
        )
        count[seeds] += 1
        words = printed.setdefault(seeds, {})
        words.update(dict.fromkeys(row.first.runs or "number not stated" for row in job.run.rows))
    for seeds, n in count.items():
        of = f"; printed: {', '.join(printed[seeds])}" if printed[seeds] else ""
        say(f"{seeds}: {n} of {len(order)} runs{of}", indent=3, hang=3)


def _show_job(job: Job, i: int, order: Sequence[Job], asked: ReproduceOptions) -> None:
    click.echo()
    say(f"{i}. {job.run.name}", hang=3)
    why = (
        "others stand on it"
        if any(other.first is job for other in order)
        else "a figure is drawn from it"
    )
    lines = [
        ("rows", ", ".join(_printed_rows(job)) or f"none: {why}"),
        ("recipe", _recipe_words(job)),
    ]
    lines += [("note", text) for text in (job.note, *job.run.notes) if text]
    if job.in_fp16:
        lines.append(
            (
                "note",
                "the authors trained in fp16 autocast: so does this on an NVIDIA GPU (bench run: --precision fp16)",
            )
        )
    if job.run.instead_of:
        lines.append(
            (
                "note",
                f"{job.run.backbone} stands in for {job.run.instead_of}: not comparable with the print",
            )
        )
    lines += [
        ("needs", "; ".join(_need_words(job))),
        ("takes", _hours_words(job)),
        ("command", command(job, asked)),
    ]
    for label, text in lines:
        say(f"{label:<8} {text}", indent=3, hang=9)


def _lines_of(job: Job) -> set[tuple[str, ...]]:
    """The lines of print that a job's rows are in: one may hold several metrics."""
    return {
        (row.first.label, row.first.setting, row.first.backbone, row.first.variant)
        for row in job.run.rows
    }


def _printed_rows(job: Job) -> list[str]:
    """The labels with the printed values that they will be held against: "PromCSE-BERT-base (Avg. 78.49)"."""
    told: dict[str, list[str]] = {}
    for row in job.run.rows:
        cell = row.average or row.cells[0]
        mark = "" if cell.own_result else ", copied"
        told.setdefault(row.first.label, []).append(f"{cell.task} {cell.printed}{mark}")
    return [f"{label} ({'; '.join(dict.fromkeys(values))})" for label, values in told.items()]


def _recipe_words(job: Job) -> str:
    """The values that every run shows first; then those of the method's own recipe."""
    if job.recipe is None:
        return "none"
    keys = [key for key in MAIN if key in job.recipe] + [
        key for key in job.set_here if key not in MAIN
    ]
    told = [f"{key} {json.dumps(job.recipe[key])}" for key in keys if job.recipe[key] is not None]
    return ", ".join(told) or "nothing to set"


def _need_words(job: Job) -> list[str]:
    alike: dict[tuple[str, str], list[str]] = {}
    for need in job.needs:
        absent = " (fetched first)" if need.fetched else " (MISSING)"
        alike.setdefault((need.kind, "" if need.here else absent), []).append(need.name)
    return [f"{kind} {', '.join(names)}{absent}" for (kind, absent), names in alike.items()]


NO_TRAINING = "no training"


def _hours_words(job: Job) -> str:
    if job.hours is None:
        return NO_TRAINING if not any(need.kind == "corpus" for need in job.needs) else "not known"
    return f"{_hours(job.hours)} a seed"


def _hours(hours: float) -> str:
    if hours >= 2:
        return f"about {hours:.1f} GPU hours"
    minutes = round(hours * 60)
    return f"about {minutes} GPU minute{'s' * (minutes > 1)}" if minutes else "under a GPU minute"


def command(job: Job, asked: ReproduceOptions) -> str:
    """The ``bench run`` that does the same, for one who wants only this run."""
    from bench.board.repeat import seed_words
    from bench.run.recipes import one_value
    from bench.run.reproduce.execute import asked_corpus

    run = job.run
    below = {run.on_as: f"RUN-OF-{run.on.method}"} if run.on else {}
    words = ["bench", "run", "--method", run.method, "--backbone", below.get("", run.backbone)]
    words += [
        "--setting",
        run.setting,
        *(["--variant", run.variant] if run.variant else []),
        "--suite",
        ",".join(run.suites),
    ]
    corpus = asked_corpus(job.corpus, asked.corpora)
    words += (
        ["--corpus", corpus] if corpus and any(need.kind == "corpus" for need in job.needs) else []
    )
    for key, value in {
        **run.changes,
        **{key: place for key, place in below.items() if key},
        **run.asked,
    }.items():
        words += ["--set", f"{key}={one_value(value)}"]
    seeds = [seed for seed in job.seeds if seed is not None]
    return shlex.join([*words, *(["--seeds", seed_words(seeds)] if seeds else [])])


def _show_missing(order: Sequence[Job]) -> None:
    missing: dict[tuple[str, str], Need] = {}
    jobs: Counter[tuple[str, str]] = Counter()
    for job in order:
        lacking = {(need.kind, need.name): need for need in job.missing if not need.fetched}
        missing |= lacking
        jobs.update(lacking.keys())
    if missing:
        click.echo("\nnot on this machine, and not fetched")
    for (kind, name), need in missing.items():
        say(
            f"{kind} {name}: {need.what} (needed by {jobs[kind, name]} of {len(order)} runs)",
            indent=3,
            hang=3,
        )


def _show_sum(order: Sequence[Job]) -> None:
    from bench.run.reproduce.execute import ASSUMED

    trained = [
        (job.hours * len(job.seeds), len(job.seeds)) for job in order if job.hours is not None
    ]
    unknown = sum(
        len(job.seeds) for job in order if job.hours is None and _hours_words(job) != NO_TRAINING
    )
    ready = sum(all(need.fetched for need in job.missing) for job in order)
    click.echo()
    rest = f"; how long {unknown} more take is not known" if unknown else ""
    say(
        f"in all {_hours(sum(hours for hours, _ in trained))} for {sum(n for _, n in trained)} trainings ({ASSUMED}){rest}"
    )
    fetching = sum(
        any(need.fetched for need in job.needs) and all(need.fetched for need in job.missing)
        for job in order
    )
    first = f", {fetching} of them after what they need is fetched" if fetching else ""
    say(
        f"{ready} of {len(order)} can run here{first}; the same command without --dry-run runs them and leaves the others out"
    )


def _plan_json(job: Job, asked: ReproduceOptions) -> dict[str, Any]:
    run = job.run
    recipe = (
        {key: asdict(value) for key, value in job.recipe.values_with_source().items()}
        if job.recipe
        else None
    )
    return {
        "rows": [
            {
                "paper": r.first.paper,
                "table": r.first.table,
                "label": r.first.label,
                "printed": dict(r.values),
                "runs": r.first.runs,
            }
            for r in run.rows
        ],
        "why_not": run.why_not or None,
        "method": run.method,
        "variant": run.variant,
        "setting": run.setting,
        "backbone": run.backbone,
        "on": run.on.method if run.on else None,
        "instead_of": run.instead_of or None,
        "suites": list(run.suites),
        "seeds": list(job.seeds),
        "recipe": recipe,
        "notes": [text for text in (job.note, *run.notes) if text],
        "checkpoint": run.checkpoint.hub if run.checkpoint else None,
        "needs": [asdict(need) for need in job.needs],
        "gpu_hours_per_seed": job.hours,
        "command": command(job, asked) if run.method else None,
    }
