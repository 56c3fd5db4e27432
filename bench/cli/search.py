"""``bench search``: the same search for the values of every method's recipe, so that a comparison compares methods."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.base.errors import BenchError
from bench.base.text import one_value
from bench.cli.columns import print_columns, say
from bench.cli.options import (
    allow_pickle_option,
    comma_list,
    data_option,
    device_option,
    json_option,
    json_text,
    offline_option,
    parse_overrides,
    parse_seeds,
    plain_option,
    plugin_option,
    precision_option,
    recipe_options,
    runs_option,
)

if TYPE_CHECKING:
    from bench.cli.progress import RunReporter
    from bench.run.search.study import Job
    from bench.run.search.trials import Worker
    from bench.runs import RunsFolder
    from bench.runs.searches import Search, Study, Trial


@click.command()
@click.option(
    "--method",
    "methods",
    required=True,
    help="Methods, separated by commas: each gets the same search.",
)
@click.option(
    "--backbone", default="builtin", show_default=True, help="A hub name, a folder, or builtin."
)
@click.option(
    "--setting",
    type=click.Choice(["unsupervised", "supervised"]),
    help="Default: the one with a recipe for the backbone.",
)
@click.option("--variant", default="", help="A variant of the methods.")
@click.option(
    "--trials",
    type=click.IntRange(1, 999),
    default=12,
    show_default=True,
    help="Of each method, besides its recipe as it is. The same command with more trials continues a search.",
)
@recipe_options(" It has one value in all trials, and is not searched.")
@click.option(
    "--select",
    help="The dev set: STS-B dev, sts-dev-clean, captions dev.  [default: STS-B dev; captions dev with --suite check]",
)
@click.option(
    "--suite",
    "suites",
    default="sts",
    show_default=True,
    help="What the methods will be scored on later, to report the dev set's overlap with it. It is not scored now.",
)
@click.option(
    "--sampler",
    type=click.Choice(["random", "grid", "tpe"]),
    default="random",
    show_default=True,
    help="How Optuna chooses the values of a trial.",
)
@click.option(
    "--pruner",
    type=click.Choice(["none", "median", "halving"]),
    default="none",
    show_default=True,
    help="Ends a trial early whose dev scores are behind.",
)
@click.option(
    "--space",
    "spaces",
    multiple=True,
    metavar="KEY=VALUES",
    help="Search these values instead of those in recipe files: KEY=A,B,C, KEY=LOW..HIGH, KEY=log:LOW..HIGH. May be repeated.",
)
@click.option(
    "--seeds",
    default="901",
    show_default=True,
    help="Of every trial; its score is their mean. Published runs need other seeds.",
)
@click.option("--corpus", help="Training text, as for bench run.  [default: the recipes' own]")
@click.option(
    "--name",
    help="Of the search and of its folder in the runs folder.  [default: search- and a hash of its options]",
)
@click.option(
    "--chunk",
    type=click.IntRange(min=1),
    help="Hold this many rows of a batch in memory at a time.",
)
@device_option
@precision_option("Of training.")
@offline_option
@allow_pickle_option
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show each method's space with the source of each bound, and the time.",
)
@data_option
@runs_option
@plugin_option
@json_option
@plain_option
def search(
    methods: str,
    backbone: str,
    setting: str | None,
    variant: str,
    trials: int,
    budget: str | None,
    max_steps: int | None,
    select: str | None,
    suites: str,
    sampler: str,
    pruner: str,
    spaces: tuple[str, ...],
    pairs: tuple[str, ...],
    seeds: str,
    corpus: str | None,
    name: str | None,
    chunk: int | None,
    device: str,
    precision: str,
    offline: bool,
    allow_pickle: bool,
    dry_run: bool,
    data: Path | None,
    runs: Path | None,
    plugins: tuple[Path, ...],
    as_json: bool,
    plain: bool,
) -> None:
    """Search for the values of recipes: the same trials, budget, seeds and dev set for each method. No test score is computed.

    Each trial is trained and gets a dev score. The best values become a recipe file, which bench run --recipe takes. The same command
    continues a search that was killed; several processes with the same command share the trials.

    \b
    Example:  bench search --method simcse,promcse --trials 12 --budget 500steps --select sts-dev-clean
              bench run --recipe runs/search-.../simcse.toml --seeds 1-5
    """
    from bench.cli.planning import check_nothing_to_fetch, known_methods, prepare, table_of
    from bench.cli.progress import reporting
    from bench.data.fetching import offline_now
    from bench.data.sets import DataFolder
    from bench.run import plan
    from bench.run.config import RunConfig
    from bench.run.search.study import check_seeds, definition, jobs_of, plan_notes
    from bench.run.settle import check_chunks, settled
    from bench.runs import RunsFolder
    from bench.score.suites import check_suite, expand_suites, split_names

    if importlib.util.find_spec("optuna") is None:
        raise BenchError(
            "bench search needs Optuna, which is not installed",
            "pip install 'sentence-bench[search]'",
        )
    known_suites = expand_suites(split_names(suites))
    for suite in known_suites:
        check_suite(suite)
    select = select or ("captions dev" if tuple(known_suites) == ("check",) else "STS-B dev")
    overrides = parse_overrides([*pairs, f"select_on={select}"], max_steps, budget)
    request = RunConfig(
        methods=tuple(dict.fromkeys(comma_list(methods))),
        backbones=(backbone,),
        setting=setting,
        variant=variant,
        seeds=parse_seeds(seeds),
        suites=("check",),  # which needs no data: no suite is scored
        corpus=corpus,
        overrides={key: one_value(value) for key, value in overrides.items()},
        allow_pickle=allow_pickle,
        plugins=tuple(map(str, plugins)),
        device=device,
        precision=precision,
        chunk=chunk,
        offline=offline or offline_now(),
        data=str(data) if data else None,
    )
    names = [method for method, _ in request.named]
    if len({*names}) < len(names):
        text = f"--method {methods}: a method stands there twice, and a search has one recipe per method"
        raise BenchError(text, "one search for each variant")
    space_options = parse_spaces(spaces, overrides)
    plan.check_config(request)
    DataFolder(data).check_root()
    store = RunsFolder(runs)
    check_seeds(request.seeds, names, store)
    request = settled(request, only_look=dry_run)
    device, offline = request.device, request.offline
    make = partial(plan.make, request, known_methods(plugins))
    planned = prepare(make, request, only_look=dry_run)
    check_chunks(planned.runs, chunk)
    jobs = jobs_of(planned.runs, space_options, overrides)
    study = definition(
        jobs,
        name=name,
        trials=trials,
        sampler=sampler,
        pruner=pruner,
        suites=known_suites,
        fixed=tuple(overrides),
    )
    for note in plan_notes(jobs):
        click.echo(f"note: {note}", err=True)
    if dry_run:
        show_space(jobs, study, store, device, as_json)
        for line in table_of(planned.to_fetch) if planned.to_fetch else ():
            click.echo(line, err=as_json)
        if offline:
            check_nothing_to_fetch(planned.to_fetch)
        return
    from bench.run.search.trials import Worker

    worker = Worker(store.folder(study.name), study, jobs, request)
    click.echo(f"{worker.folder}: {', '.join(jobs)}; {study.words}\n{study.overlap}", err=True)
    with reporting(plain or as_json) as reporter:
        reporter.plan(worker.order())
        run_trials(worker, reporter)
    if worker.busy:
        text = f"{worker.busy} trials are running in other processes"
        click.echo(f"{text}; the same command shows all when they are done", err=True)
    with worker.lock:
        show_result(worker.folder, worker.search(), as_json)


def parse_spaces(pairs: Sequence[str], fixed: Collection[str]) -> dict[str, str]:
    """``--space KEY=VALUES`` as a mapping. Raises BenchError for another form, and for a key that is ``fixed`` to one value."""
    spaces = {}
    for pair in pairs:
        key, _, text = (part.strip() for part in pair.partition("="))
        if not key or not text or key in fixed:
            reason = (
                f"{key} has one value for all trials" if key in fixed else "expected KEY=VALUES"
            )
            raise BenchError(
                f"--space {pair}: {reason}",
                "--space temperature=0.03,0.05,0.1, or --space learning_rate=log:1e-5..1e-3",
            )
        spaces[key] = text
    return spaces


def run_trials(worker: Worker, reporter: RunReporter) -> None:
    """All trials that no other process works on, one after the other."""
    while True:
        with ExitStack() as stack:
            if (trial := worker.claim(stack)) is None:
                return
            number = f"trial {trial.number}" if trial.number else "recipe as it is"
            place = worker.order().index((trial.method, trial.number)) + 1
            reporter.start(f"{trial.method} {number}", place)
            reporter.note(values_text(trial))
            trial = worker.run(trial, reporter)
            result = trial.error or f"dev {', '.join(f'{score:.2f}' for score in trial.dev)}"
            reporter.done(f"{trial.state}: {result}; {trial.steps:,} steps, {trial.seconds:.1f} s")


def values_text(trial: Trial) -> str:
    from bench.run.search.space import short

    return (
        ", ".join(f"{key}={short(value)}" for key, value in trial.values.items())
        or "the recipe's values"
    )


def show_space(
    jobs: Mapping[str, Job], study: Study, store: RunsFolder, device: str, as_json: bool
) -> None:
    """What would be searched: each recipe key with the source of its bounds, and the time of all trials."""
    from bench.base.text import duration
    from bench.run.estimates import estimate, speeds_of_earlier_runs
    from bench.run.search.space import short

    earlier, total, rows = speeds_of_earlier_runs(store, device), 0.0, []
    for method, job in jobs.items():
        run, space = job.runs[0], study.methods[method].space
        seconds = (estimate(run, earlier, device).seconds or 0.0) * (study.trials + 1)
        total += seconds * len(job.runs)
        facts = {"search": study.name, "method": method, "trials": study.trials, "space": space}
        facts |= {"seconds": seconds * len(job.runs) or None, "overlap": study.overlap}
        if as_json:
            click.echo(json_text(facts))
        rows += [
            (method, key, short(run.recipe[key]), axis.text(), axis.source)
            for key, axis in job.space.items()
        ]
    if not as_json:
        print_columns(rows, headings=("method", "key", "now", "searched", "source"))
        click.echo()
        say(f"{study.name}: {study.words}; about {duration(total)} for all methods in one process")
        say(study.overlap)


def show_result(folder: Path, search: Search, as_json: bool) -> None:
    """The results so far as a table, recipe files, and figures where matplotlib is installed; and the next command."""
    from bench.compare.statistics.expected_best import expected_best
    from bench.run.search.study import search_facts, write_recipe
    from bench.runs.searches import FAILED, FINISHED, PRUNED, RECIPE, RUNNING, best_trial
    from bench.show.figures.drawing import missing_library
    from bench.show.figures.search import write_figures

    rows, files = [], []
    for method, trials in search.trials.items():
        file, facts = write_recipe(folder, search, method), search_facts(search, method)
        files += [f"--recipe {file}"] if file else []
        if as_json:
            click.echo(json_text({"method": method, "recipe": str(file or ""), **facts}))
            continue
        ended = [trial for trial in trials if trial.number != RECIPE and trial.state != RUNNING]
        curve = expected_best([trial.score for trial in ended])
        expected = [curve[n - 1] for n in sorted({1, (len(curve) + 1) // 2, len(curve)}) if curve]
        dev = [facts["recipe_dev"], facts["dev"], *expected]
        texts = ["" if score is None else f"{score:.2f}" for score in dev]
        counts = [f"{facts[state]} {state}" for state in (FINISHED, FAILED, PRUNED)]
        best = best_trial(trials)
        values = values_text(best) if best else ""
        rows.append((method, *texts[:2], " ".join(texts[2:]), ", ".join(counts), values))
    if as_json:
        return
    columns = "method", "recipe", "best", "expected best", "trials", "values of the best"
    print_columns(rows, headings=columns)
    say(f"{search.study.select_on}, mean over the seeds of the search. New seeds score lower.")
    say("expected best: of one trial, half of them and all (Dodge et al. 2019)")
    if lacks := missing_library("bench search"):
        click.echo(f"no figures: {lacks.message} (try: {lacks.hint}, then the same command)")
    else:
        write_figures(folder, search.study, search.trials)
    if files:
        say(f"next: bench run {' '.join(files)} --seeds 1-5")
