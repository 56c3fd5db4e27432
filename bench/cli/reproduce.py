"""``bench reproduce PAPER:TABLE``: run a printed table or figure again and put ours beside the print."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import BenchError, UnknownName
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
from bench.cli.reproduced import show_left_out, show_results, write_reproduction
from bench.cli.run import check_budget, parse_overrides, parse_seeds
from bench.cli.run_all import run_all
from bench.cli.show import MAIN
from bench.references import NO, RECIPES, RUNS, SCORES, Part, contents, figure_runs, find_part

if TYPE_CHECKING:
    from bench.data.sets import DataFolder
    from bench.run.executors.build import Options
    from bench.run.plugins import Registry
    from bench.run.reproduce.execute import Job, Need, ReproduceOptions
    from bench.run.reproduce.wanted import WantedRun
    from bench.runs import RunsFolder


@click.command()
@click.argument("name", metavar="[PAPER:TABLE|PAPER:figureN|all]", required=False)
@click.option("--released", is_flag=True, help="Score the checkpoints that authors released (bench references checkpoints); train nothing.")
@click.option("--rows", "words", help="Only these rows (a,b): a setting, a method, own, copied, or part of a label.")
@click.option("--backbone", "backbones", help="Only rows of these backbones; any other name or folder stands in for all of them.")
@click.option("--seeds", default="42", show_default=True, help="42, 1-5, or 1,3,7-9.")
@click.option(
    "--corpus",
    "corpora",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Training text instead of the recipes' own; with NAME= only where a recipe says wiki1m, nli or nli-labelled.",
)
@click.option("--set", "pairs", multiple=True, metavar="KEY=VALUE", help="Change a recipe value of the methods that know it.")
@click.option("--max-steps", type=click.IntRange(min=1), help="Optimiser steps at most: a trial, no reproduction.")
@click.option("--budget", help="How long each run trains, in place of its recipe's epochs: 300steps, 10m, ... A trial, no reproduction.")
@click.option("--suite", "suites", help="Score these suites instead of the tables' own: a trial; orders are then of what they score.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write a page: the paper's order against ours, and figures.")
@click.option("--text", default="tokenised", show_default=True, help="Text form of the sets that have several.")
@device_option
@precision_option("Of training; scores are always float32. auto: fp16 on an NVIDIA GPU where the authors had it, else as bench run.")
@click.option(
    "--margin",
    type=click.FloatRange(0, 100, min_open=True),
    default=0.5,
    show_default=True,
    help="Points within which two numbers are as good as equal.",
)
@click.option("--offline", is_flag=True, help="Open no connection; what is missing is left out.")
@allow_pickle_option
@click.option("--dry-run", is_flag=True, help="List the runs, what they need, what is missing and what they would take; run nothing.")
@data_option
@runs_option
@plugin_option
@json_option
@plain_option
def reproduce(
    name: str | None, released: bool, words: str | None, backbones: str | None, seeds: str, corpora: tuple[str, ...], pairs: tuple[str, ...],
    max_steps: int | None, budget: str | None, suites: str | None, html: Path | None, text: str, device: str, precision: str, margin: float, offline: bool, allow_pickle: bool, dry_run: bool, data: Path | None,
    runs: Path | None, plugins: tuple[Path, ...], as_json: bool, plain: bool,
) -> None:  # fmt: skip
    """Run a paper's table or figure again; say of each cell whether ours is equivalent to the print, different, or cannot be told yet.

    Without a name every table and figure is listed, with yes or no. A figure is drawn from its runs, on a page. "all" runs
    everything that can start here, and ends in a page too. Run again, what is done is not repeated; processes with one command
    share its runs.

    \b
    Example:  bench reproduce promcse:1 --rows unsupervised --backbone bert-base-uncased --seeds 1-5 --dry-run
              bench reproduce promcse:5 --rows unsupervised --backbone builtin --corpus builtin --max-steps 5
              bench reproduce promcse:1 --released --allow-pickle
              bench reproduce all --backbone builtin --corpus builtin --budget 300steps
    """
    from bench.base import devices
    from bench.data.sets import DataFolder
    from bench.run.executors.build import Options
    from bench.run.plugins import discover
    from bench.run.reproduce.execute import ReproduceOptions, in_order, jobs
    from bench.run.reproduce.wanted import check_asked, check_rows, part, scored_on, together, with_asked
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
    overrides, numbers, files = parse_overrides(pairs, max_steps, budget), parse_seeds(seeds), parse_corpora(corpora)
    registry = discover(plugins)
    for warning in registry.warnings:
        warn(f"warning: {warning}")
    if [paper_part.how for paper_part in parts] == [RECIPES]:
        show_recipes(parts[0], registry)
        return
    other_suites = check_suites(suites)
    runs_of: dict[Part, tuple[WantedRun, ...]] = {}
    for paper_part in parts:
        try:
            runs_of[paper_part] = part(paper_part, registry, words=comma_list(words), backbones=comma_list(backbones), released=released)
        except BenchError as error:
            if name != ALL:
                raise
            warn(f"left out: {error.message}")  # a table of other backbones
    check_asked(together(list(runs_of.values())), registry, overrides)
    for paper_part, wanted in runs_of.items():
        changed = with_asked(wanted, registry, overrides)
        runs_of[paper_part] = tuple(scored_on(run, other_suites) for run in changed) if other_suites else changed
    if not runs_of:
        raise BenchError("nothing of this has rows on these backbones", "bench reproduce: lists every table and figure")
    folder, store = DataFolder(data, offline=offline), RunsFolder(runs)
    folder.check_root()
    asked = ReproduceOptions(seeds=numbers, text=text, corpora=files, precision="fp32", allow_pickle=allow_pickle)
    listed = jobs(together(list(runs_of.values())), registry, folder, asked)
    known = {job.corpus for job in in_order(listed) if job.corpus}
    for corpus in files:
        if corpus and corpus not in known:
            raise UnknownName("corpus", corpus, known, "among the recipes of these rows")
    if dry_run:
        show_plan(name, listed, asked, as_json)
        return
    if any(drawn.part in runs_of and drawn.draws != "cosines" for drawn in figure_runs()) and (lacks := missing_library("bench reproduce")):
        raise lacks
    device = devices.choose_device(device)
    check_budget(budget, device)
    asked = replace(
        asked, precision=devices.choose_precision(precision, device, warn), as_authors=precision == "auto" and device.startswith("cuda")
    )
    options = Options(device=device, offline=offline, save_seconds=save_seconds())
    code = run_jobs(listed, registry, folder, asked, store, options, plain or as_json)
    if as_json or (len(parts) == 1 and parts[0].how == SCORES):
        show_results(name, listed, store, asked, as_json, margin)
    if html is not None or name == ALL or parts[0].how == RUNS:
        page = html or store.path / f"reproduced-{name.replace(':', '-')}.html"
        write_reproduction(page, name, runs_of, listed, store, asked, folder, other_suites)
        warn(f"page: {page}") if as_json else click.echo(f"page: {page}")
    raise click.exceptions.Exit(code)


ALL = "all"


def asked_parts(name: str, words: str | None) -> list[Part]:
    """The tables and figures that a name means. Raises BenchError for one that is not known, or that nothing does again."""
    if name != ALL:
        part = find_part(name)
        if part.how == NO:
            raise BenchError(
                f"{part.part} of {part.paper} cannot be run again: {part.why}", "bench reproduce: lists every table and figure"
            )
        return [part]
    if words:
        raise BenchError(f"--rows {words}: all is every row of every table", "bench reproduce PAPER:TABLE --rows ...")
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
            click.echo(json_text({**asdict(part), "again": part.how != NO, "command": part.command or None}))
        return
    rows = [(part.paper, part.part, part.shows, "no" if part.how == NO else "yes", part.command or part.why) for part in contents()]
    print_columns(rows, headings=("paper", "part", "shows", "again", "command, or why not"))
    click.echo()
    say(
        "of hyperparameters our recipes are shown; a figure is drawn from its runs; everything at once, small: "
        "bench reproduce all --backbone builtin --corpus builtin --budget 300steps"
    )


def show_recipes(part: Part, registry: Registry) -> None:
    """What stands here for a paper's hyperparameters: the recipes of its method, each value with its source."""
    from bench.cli.method_card import describe, show

    say(f"{part.part} of {part.paper}: {part.shows}; here, with the source of every value")
    show(describe(registry[part.paper]), parts=("recipes",))


def parse_corpora(given: Sequence[str]) -> dict[str, str]:
    """``nli=FILE`` as {"nli": FILE}; a FILE alone is that of all recipes: {"": FILE}. Raises BenchError for a name twice."""
    corpora: dict[str, str] = {}
    for text in given:
        name, equals, file = text.partition("=")
        if not equals or "/" in name or Path(text).exists():
            name, file = "", text
        if name in corpora:
            raise BenchError(f"--corpus {text}: a second file for {name or 'all recipes'}", "--corpus wiki1m=FILE --corpus nli=FILE")
        corpora[name] = file
    return corpora


def run_jobs(
    listed: Sequence[Job], registry: Registry, data: DataFolder, asked: ReproduceOptions, store: RunsFolder, options: Options, plain: bool
) -> int:
    """Plan all that can be planned, then run it, then what stands on it; returns the exit code.

    What cannot be planned is told and left out. Raises the first such error where nothing is left.
    """
    from bench.backbones import fetch
    from bench.cli.progress import reporting
    from bench.run.reproduce.execute import in_order, plan_job

    worst = 0
    ready = partial(fetch, offline=options.offline, allow_pickle=asked.allow_pickle)
    order = in_order(listed)
    for stage in ([job for job in order if job.first is None], [job for job in order if job.first is not None]):
        for job in stage:
            try:
                job.planned = tuple(plan_job(job, registry, data, asked, ready, store))
            except BenchError as error:
                job.error, worst = error, max(worst, 1)
                warn(f"left out: {job.run.name}: {error.message}" + (f" (try: {error.hint})" if error.hint else ""))
        missing = {error.message: error for job in stage for planned_run in job.planned for error in planned_run.missing}
        for told in missing.values():  # sets that are not here: the others go on
            worst = max(worst, 1)
            warn(f"missing: {told.message}" + (f" (try: {told.hint})" if told.hint else ""))
        if stage and not any(job.planned for job in order):
            first = next(job.error for job in stage if job.error)
            raise BenchError(f"nothing of this can be run here: {first.message}", first.hint)
        with reporting(plain) as reporter:
            _, code = run_all([run for job in stage for run in job.planned], store, options, reporter, as_json=False, shared=True)
        worst = max(worst, code)
    return worst


# --- the plan; what became of it is told by bench.cli.reproduced ---


def show_plan(name: str, listed: Sequence[Job], asked: ReproduceOptions, as_json: bool) -> None:
    """Every run with its rows, recipe, needs, time and command; then what cannot be run, what is missing, and the sum."""
    from bench.board.repeat import seed_words
    from bench.run.reproduce.execute import in_order

    order = in_order(listed)
    if as_json:
        for job in (*order, *(job for job in listed if not job.run.method)):
            click.echo(json_text(_plan_json(job, asked)))
        return
    rows = {label for job in listed for label in _lines_of(job)}
    runnable = {label for job in listed if job.run.method for label in _lines_of(job)}
    total = sum(len(job.seeds) for job in order)
    printed = f"{len(rows)} printed rows; {len(runnable)} of them mean {total} runs here" if rows else f"drawn from {total} runs"
    say(f"{name}: {printed} (seeds {seed_words(asked.seeds)})")
    for i, job in enumerate(order, 1):
        _show_job(job, i, order, asked)
    show_left_out(listed)
    _show_missing(order)
    _show_sum(order)


def _show_job(job: Job, i: int, order: Sequence[Job], asked: ReproduceOptions) -> None:
    click.echo()
    say(f"{i}. {job.run.name}", hang=3)
    why = "others stand on it" if any(other.first is job for other in order) else "a figure is drawn from it"
    lines = [("rows", ", ".join(_printed_rows(job)) or f"none: {why}"), ("recipe", _recipe_words(job))]
    lines += [("note", text) for text in (job.note, *job.run.notes) if text]
    if job.in_fp16:
        lines.append(("note", "the authors trained in fp16 autocast: so does this on an NVIDIA GPU (bench run: --precision fp16)"))
    if job.run.instead_of:
        lines.append(("note", f"{job.run.backbone} stands in for {job.run.instead_of}: not comparable with the print"))
    lines += [("needs", "; ".join(_need_words(job))), ("takes", _hours_words(job)), ("command", command(job, asked))]
    for label, text in lines:
        say(f"{label:<8} {text}", indent=3, hang=9)


def _lines_of(job: Job) -> set[tuple[str, ...]]:
    """The lines of print that a job's rows are in: one may hold several metrics."""
    return {(row.first.label, row.first.setting, row.first.backbone, row.first.variant) for row in job.run.rows}


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
    keys = [key for key in MAIN if key in job.recipe] + [key for key in job.set_here if key not in MAIN]
    told = [f"{key} {json.dumps(job.recipe[key])}" for key in keys if job.recipe[key] is not None]
    return ", ".join(told) or "nothing to set"


def _need_words(job: Job) -> list[str]:
    by_kind: dict[str, list[str]] = {}
    for need in job.needs:
        absent = " (to be fetched)" if need.fetched else " (MISSING)"
        by_kind.setdefault(need.kind, []).append(need.name + ("" if need.here else absent))
    return [f"{kind} {', '.join(names)}" for kind, names in by_kind.items()]


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
    words += ["--setting", run.setting, *(["--variant", run.variant] if run.variant else []), "--suite", ",".join(run.suites)]
    corpus = asked_corpus(job.corpus, asked.corpora)
    words += ["--corpus", corpus] if corpus and any(need.kind == "corpus" for need in job.needs) else []
    for key, value in {**run.changes, **{key: place for key, place in below.items() if key}, **run.asked}.items():
        words += ["--set", f"{key}={one_value(value)}"]
    return shlex.join([*words, *([] if job.seeds == (None,) else ["--seeds", seed_words(asked.seeds)])])


def _show_missing(order: Sequence[Job]) -> None:
    missing: dict[tuple[str, str], Need] = {}
    jobs: Counter[tuple[str, str]] = Counter()
    for job in order:
        lacking = {(need.kind, need.name): need for need in job.missing}
        missing |= lacking
        jobs.update(lacking.keys())
    if missing:
        click.echo("\nnot on this machine")
    for (kind, name), need in missing.items():
        say(f"{kind} {name}: {need.what} (needed by {jobs[kind, name]} of {len(order)} runs)", indent=3, hang=3)


def _show_sum(order: Sequence[Job]) -> None:
    from bench.run.reproduce.execute import ASSUMED

    trained = [(job.hours * len(job.seeds), len(job.seeds)) for job in order if job.hours is not None]
    unknown = sum(len(job.seeds) for job in order if job.hours is None and _hours_words(job) != NO_TRAINING)
    ready = sum(all(need.fetched for need in job.missing) for job in order)
    click.echo()
    rest = f"; how long {unknown} more take is not known" if unknown else ""
    say(f"in all {_hours(sum(hours for hours, _ in trained))} for {sum(n for _, n in trained)} trainings ({ASSUMED}){rest}")
    say(f"{ready} of {len(order)} could start here now; the same command without --dry-run runs them and leaves the others out")


def _plan_json(job: Job, asked: ReproduceOptions) -> dict[str, Any]:
    run = job.run
    recipe = {key: asdict(value) for key, value in job.recipe.values_with_source().items()} if job.recipe else None
    return {
        "rows": [{"paper": r.first.paper, "table": r.first.table, "label": r.first.label, "printed": dict(r.values)} for r in run.rows],
        "why_not": run.why_not or None, "method": run.method, "variant": run.variant, "setting": run.setting, "backbone": run.backbone,
        "on": run.on.method if run.on else None, "instead_of": run.instead_of or None, "suites": list(run.suites),
        "seeds": list(job.seeds), "recipe": recipe, "notes": [text for text in (job.note, *run.notes) if text],
        "checkpoint": run.checkpoint.hub if run.checkpoint else None,
        "needs": [asdict(need) for need in job.needs], "gpu_hours_per_seed": job.hours, "command": command(job, asked) if run.method else None,
    }  # fmt: skip
