"""``bench search``: the same search for the values of every method's recipe, so that a comparison compares methods."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import BenchError
from bench.cli.columns import print_columns, say
from bench.cli.options import (
    allow_pickle_option,
    comma_list,
    data_option,
    device_option,
    json_option,
    json_text,
    known_methods,
    max_steps_option,
    offline_option,
    plain_option,
    plugin_option,
    precision_option,
    runs_option,
    save_seconds,
)
from bench.cli.run import (
    check_budget,
    check_chunks,
    one_of_several,
    parse_overrides,
    parse_seeds,
    settled_here,
)
from bench.cli.run_all import work_of

if TYPE_CHECKING:
    from bench.method.ranks import Ranks
    from bench.run.executors.build import Options
    from bench.run.search.study import Job, SearchOptions
    from bench.runs import RunsFolder
    from bench.runs.searches import Study, Trial


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
    help="Of each method, besides its recipe as it is. More of them later go on with the same search.",
)
@click.option(
    "--budget",
    help="How long every trial trains: 500steps, 1e6sentences, 3e7tokens, 10m, 2gpu-h.  [default: the recipes' epochs]",
)
@max_steps_option
@click.option(
    "--select",
    help="The dev set: STS-B dev, sts-dev-clean, captions dev.  [default: STS-B dev; captions dev with --suite check]",
)
@click.option(
    "--suite",
    "suites",
    default="sts",
    show_default=True,
    help="What the methods will be scored on later: says how far the dev set overlaps with it. Nothing of it is scored now.",
)
@click.option(
    "--sampler",
    type=click.Choice(["random", "grid", "tpe", "gp"]),
    default="random",
    show_default=True,
    help="tpe and gp are Optuna's.",
)
@click.option(
    "--pruner",
    type=click.Choice(["none", "median", "halving"]),
    default="none",
    show_default=True,
    help="Optuna's: ends trials that are behind.",
)
@click.option(
    "--space",
    "spaces",
    multiple=True,
    metavar="KEY=VALUES",
    help="What is searched, in place of what recipe files say: KEY=A,B,C, KEY=LOW..HIGH, KEY=log:LOW..HIGH. May be repeated.",
)
@click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="One value for all trials; it is not searched. May be repeated.",
)
@click.option(
    "--seeds",
    default="901",
    show_default=True,
    help="Of every trial, whose score is the mean over them; never those that are published.",
)
@click.option("--corpus", help="Training text, as for bench run.  [default: the recipes' own]")
@click.option(
    "--name",
    help="Of the search, and its folder below the runs.  [default: search- and a hash of what is asked for]",
)
@click.option(
    "--chunk", type=click.IntRange(min=1), help="Hold so many rows of a batch in memory at a time."
)
@device_option
@precision_option("Of training.")
@click.option(
    "--executor",
    type=click.Choice(["local", "torchrun"]),
    default="local",
    show_default=True,
    help="torchrun: several processes share every batch of a trial, one for each GPU.",
)
@click.option(
    "--gpus", type=click.IntRange(min=1), help="How many, with --executor torchrun.  [default: all]"
)
@offline_option
@allow_pickle_option
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show the space of each method with the source of each bound, the trials, and the time.",
)
@data_option
@runs_option
@plugin_option
@json_option
@plain_option
@one_of_several
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
    executor: str,
    gpus: int | None,
    ranks: Ranks | None,
) -> None:
    """Search for the values of recipes: the same trials, budget, seeds and dev set for each method. No test score is computed.

    Each trial is trained and given a dev score. The best values become a recipe file, which bench run --recipe takes. The same command
    goes on where it was killed; given to several processes at once it shares the trials among them.

    \b
    Example:  bench search --method simcse,promcse --trials 12 --budget 500steps --select sts-dev-clean
              bench run --recipe runs/search-.../simcse.toml --seeds 1-5
    """
    from bench.cli.planning import check_nothing_to_fetch, plan_and_fetch, table_of
    from bench.cli.progress import downloads, reporting
    from bench.data.fetching import offline_now
    from bench.data.sets import DataFolder
    from bench.run import plan
    from bench.run.executors.build import Options
    from bench.run.executors.torchrun import launch
    from bench.run.search.space import check_optuna
    from bench.run.search.study import (
        SearchOptions,
        check_seeds,
        definition,
        jobs_of,
        open_study,
        search_name,
        unequal_budgets,
    )
    from bench.runs import RunsFolder
    from bench.runs.searches import read_study
    from bench.score.suites import check_suite, expand_suites, split_names

    known_suites = expand_suites(split_names(suites))
    for suite in known_suites:
        check_suite(suite)
    select = select or ("captions dev" if tuple(known_suites) == ("check",) else "STS-B dev")
    overrides, every = (
        parse_overrides([*pairs, f"select_on={select}"], max_steps, budget),
        save_seconds(),
    )
    given = parse_spaces(spaces)
    if both := [key for key in given if key in overrides]:
        raise BenchError(
            f"--space {both[0]} and --set {both[0]}: one searches it, the other does not",
            "give one",
        )
    if select == "last":
        raise BenchError(
            "--select last: a search chooses by a dev score, and the last step has none",
            "--select 'STS-B dev'",
        )
    request = plan.Request(
        methods=tuple(dict.fromkeys(comma_list(methods))),
        backbones=(backbone,),
        setting=setting,
        variant=variant,
        seeds=parse_seeds(seeds),
        suites=("check",),  # which needs no data: nothing of any suite is scored
        corpus=corpus,
        overrides={key: value.replace(",", "\\,") for key, value in overrides.items()},
        allow_pickle=allow_pickle,
    )
    known = plan.check_methods(request.methods, plugins).methods
    names = [method for method, _ in request.named]
    if twice := [method for method in names if names.count(method) > 1]:
        raise BenchError(
            f"--method {','.join(request.methods)}: {twice[0]} stands there twice, and a search has one recipe for each method",
            "a search for each variant",
        )
    for method in names:
        if method in known and known[method].settings == ("none",):
            raise BenchError(
                f"{method} cannot be searched: nothing of it is trained, so there is no dev score",
                "leave it out",
            )
    plan.check_request(request, plugins)
    DataFolder(data).check_root()
    check_optuna(sampler, pruner)
    store = RunsFolder(runs)
    check_seeds(request.seeds, names, store)
    if executor != "local" and pruner != "none":
        raise BenchError(
            "--pruner ends a trial in one process, and --executor torchrun has several",
            "--pruner none, or --executor local",
        )
    device, precision, count = settled_here(
        device, precision, executor, gpus, ranks, only_look=dry_run
    )
    check_budget(budget, device)
    request = replace(request, precision=precision, ranks=count)
    registry = known_methods(plugins)
    offline = offline or offline_now()
    make = partial(
        plan_and_fetch,
        request,
        registry,
        data,
        downloads(plain or as_json),
        offline=offline,
        only_look=dry_run,
    )
    planned = ranks.in_turn(make) if ranks else make()
    if chunk is not None:
        check_chunks(planned.runs, chunk)
    wanted = SearchOptions(
        trials=trials,
        sampler=sampler,
        pruner=pruner,
        spaces=given,
        name=name,
        suites=tuple(known_suites),
    )
    asked = {
        "methods": sorted(request.methods),
        "backbone": backbone,
        "setting": setting,
        "variant": variant,
        "set": overrides,
        "seeds": request.seeds,
        "corpus": corpus,
        "sampler": sampler,
        "pruner": pruner,
        "spaces": given,
        "precision": precision,
    }
    title = name or search_name(asked)
    folder = store.folder(title)
    jobs = jobs_of(planned.runs, folder, wanted, tuple(overrides))
    for warning in unequal_budgets(jobs):
        click.echo(f"warning: {warning}", err=True)
    if dry_run:
        show_space(jobs, wanted, title, store, device, as_json)
        if planned.to_fetch:
            click.echo("not on this machine; without --dry-run this is fetched first", err=as_json)
            for line in table_of(planned.to_fetch):
                click.echo(line, err=as_json)
        if offline:
            check_nothing_to_fetch(planned.to_fetch)
        return
    if count > 1 and not ranks:
        raise click.exceptions.Exit(launch(sys.argv[1:], count))
    options = Options(device=device, offline=offline, save_seconds=every, chunk=chunk, ranks=ranks)
    from bench.run.search.trials import WAIT, follow_trials

    if ranks and not ranks.lead:
        raise click.exceptions.Exit(follow_trials(folder, jobs, options, ranks))
    before = read_study(folder)
    study = open_study(folder, definition(jobs, wanted, title, tuple(overrides)))
    click.echo(f"{'goes on with' if before else 'begins'} {folder}: {words(study)}", err=True)
    click.echo(study.overlap, err=True)
    run_trials(folder, study, jobs, store, reporting(plain or as_json), options)
    with RunsFolder(folder).lock("study", WAIT):  # another process of this search may end, too
        show_result(folder, study, as_json)


def parse_spaces(pairs: Sequence[str]) -> dict[str, str]:
    """``--space KEY=VALUES`` as a mapping; raises BenchError for what is none."""
    spaces = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key or not text.strip():
            raise BenchError(
                f"--space {pair}: it is empty; expected KEY=VALUES",
                "--space temperature=0.03,0.05,0.1, or --space learning_rate=log:1e-5..1e-3",
            )
        spaces[key.strip()] = text.strip()
    return spaces


def words(study: Study) -> str:
    """ "3 methods, 12 trials each and the recipe as it is, seed 901, 200steps each, chosen on STS-B dev" """
    seeds = f"seed{'s' * (len(study.seeds) > 1)} {', '.join(map(str, study.seeds))}"
    methods = f"{len(study.methods)} method{'s' * (len(study.methods) > 1)}"
    trials = f"{study.trials} trial{'s' * (study.trials > 1)} each and the recipe as it is"
    budget = study.budget or "as long as its recipe says"
    return f"{methods}, {trials}; {study.sampler}, {seeds}, trained {budget}, chosen on {study.select_on}"


def run_trials(
    folder: Path,
    study: Study,
    jobs: Mapping[str, Job],
    store: RunsFolder,
    shown: Any,
    options: Options,
) -> None:
    """All trials that nobody has done, one after the other; says how many other processes have, and what the search itself took."""
    from bench.run.search.trials import Worker, work

    worker = Worker(folder, study, jobs, options)
    order, taken, began = worker.trials(), 0, time.perf_counter()
    with shown as reporter:
        reporter.plan([work_of(jobs[method].runs[0], store, False) for method, _ in order])

        def start(trial: Trial) -> None:
            nonlocal taken
            taken += 1
            reporter.start(
                f"{trial.method} {label(trial)}", order.index((trial.method, trial.number)) + 1
            )
            reporter.note(values_words(trial))

        work(worker, reporter, start, lambda trial: reporter.done(outcome(trial, study)))
    whole = time.perf_counter() - began
    if taken:
        itself = whole - worker.inside
        share = f"{itself:.2f} s, {100 * itself / whole:.2f} % of the time"
        click.echo(
            f"{taken} trials here in {worker.inside:,.1f} s; the search itself took {share}",
            err=True,
        )
    if worker.busy:
        click.echo(
            f"{worker.busy} trials are with other processes; the same command shows the whole when they are done",
            err=True,
        )


def label(trial: Trial) -> str:
    return "recipe as it is" if trial.number == 0 else f"trial {trial.number}"


def values_words(trial: Trial) -> str:
    from bench.run.search.space import short

    return (
        ", ".join(f"{key}={short(value)}" for key, value in trial.values.items())
        or "the values of the recipe"
    )


def outcome(trial: Trial, study: Study) -> str:
    if trial.score is not None:
        return f"{study.select_on} {trial.score:.2f}; {trial.steps:,} steps, {trial.seconds:.1f} s"
    if trial.state == "pruned":
        return f"pruned after {trial.steps:,} steps, at {trial.dev[0]:.2f}; {trial.seconds:.1f} s"
    return f"failed, and counts as a trial: {trial.error}"


def show_space(
    jobs: Mapping[str, Job],
    wanted: SearchOptions,
    title: str,
    store: RunsFolder,
    device: str,
    as_json: bool,
) -> None:
    """What would be searched: each dimension with the source of its bounds, and what the trials would take."""
    from bench.base.text import duration
    from bench.run.estimates import estimate, speeds_of_earlier_runs
    from bench.run.search.space import short
    from bench.run.search.study import definition

    study, earlier = definition(jobs, wanted, title, ()), speeds_of_earlier_runs(store, device)
    total = 0.0
    for method, job in jobs.items():
        run = job.runs[0]
        guess = estimate(run, earlier, device)
        seconds = (
            None if guess.seconds is None else guess.seconds * (wanted.trials + 1) * len(job.runs)
        )
        total += seconds or 0.0
        if as_json:
            click.echo(
                json_text(
                    {
                        "search": title,
                        "method": method,
                        "trials": wanted.trials,
                        "estimate": asdict(guess),
                        "seconds": seconds,
                        "overlap": study.overlap,
                        "space": {dimension.key: dimension.to_json() for dimension in job.space},
                    }
                )
            )
            continue
        say(
            f"{method}, {run.setting}, on {run.backbone.name}: {wanted.trials} trials and the recipe as it is"
        )
        print_columns(
            [
                (
                    dimension.key,
                    f"now {short(run.recipe[dimension.key])}",
                    dimension.words(),
                    dimension.source,
                )
                for dimension in job.space
            ],
            indent=4,
        )
        parts = [f"{guess.steps:,} steps a trial"] if guess.steps else []
        parts += [f"about {duration(seconds)} in all ({guess.basis})"] if seconds else [guess.basis]
        say("; ".join(parts), indent=2)
        click.echo()
    if as_json:
        return
    say(f"{title}: {words(study)}")
    say(study.overlap)
    if total:
        shared = "trials of one search are shared by every process that is given the same command: start it once for each GPU, or job"
        say(f"about {duration(total)} for all methods in one process; {shared}")


def show_result(folder: Path, study: Study, as_json: bool) -> None:
    """The table of what was found so far, recipe files, and figures where matplotlib is installed; and the next command."""
    from bench.run.search.study import search_facts, write_recipe
    from bench.runs.searches import (
        FAILED,
        FINISHED,
        PRUNED,
        RECIPE,
        RUNNING,
        best_trial,
        read_trials,
    )

    trials = {method: read_trials(folder, method) for method in study.methods}
    files = {
        method: file
        for method, own in trials.items()
        if (file := write_recipe(folder, study, method, own)) is not None
    }
    if as_json:
        for method, own in trials.items():
            click.echo(
                json_text(
                    {
                        "method": method,
                        "recipe": str(files.get(method, "")),
                        **search_facts(study, method, own),
                    }
                )
            )
        return
    from bench.compare.statistics.expected_best import expected_best
    from bench.show.figures.drawing import missing_library
    from bench.show.figures.search import sensitivity_rows, write_figures

    def score(trial: Trial | None) -> str:
        return "" if trial is None or trial.score is None else f"{trial.score:.2f}"

    rows = []
    for method, own in trials.items():
        best, recipe = (
            best_trial(own),
            next((trial for trial in own if trial.number == RECIPE), None),
        )
        counted = [trial for trial in own if trial.number != RECIPE]
        states = Counter(trial.state for trial in counted)
        curve = expected_best([trial.score for trial in counted if trial.state != RUNNING])
        points = sorted({1, max(1, len(curve) // 2), len(curve)}) if len(curve) > 1 else []
        expected = " ".join(f"{curve[n - 1]:.2f}" for n in points)
        ended = f"{states[FINISHED]} + {states[FAILED]} failed + {states[PRUNED]} pruned"
        ended += f" + {states[RUNNING]} running" if states[RUNNING] else ""
        rows.append(
            (
                method,
                score(recipe),
                score(best),
                expected,
                ended,
                "" if best is None else values_words(best),
            )
        )
    half = max(1, study.trials // 2)
    print_columns(
        rows,
        headings=(
            "method",
            "recipe",
            "best",
            f"expected of 1, {half}, {study.trials}",
            "trials",
            "values of the best",
        ),
    )
    say(
        f"{study.select_on}, mean over the seeds of the search; a best of several is higher than the same values score on new seeds"
    )
    if len(study.seeds) == 1:
        say(
            "one seed: the values may suit this seed alone; --seeds 901-903 chooses by the mean of three, at three times the cost"
        )
    click.echo()
    moved = []
    for method, own in trials.items():
        moved += [
            (method, key, f"{apart:.2f}", means)
            for key, apart, means in sensitivity_rows(study, method, own)
        ]
    if moved:
        what = "mean dev score of each value, or of thirds of the range; the others differ, too"
        print_columns(moved, headings=("method", "value", "moves by", what))
        click.echo()
    lacks = missing_library("bench search")
    if not lacks:
        write_figures(folder, study, trials)
    unfinished = sum(
        len(own) < study.trials + 1 or any(trial.state == RUNNING for trial in own)
        for own in trials.values()
    )
    if unfinished:
        say(f"{unfinished} of {len(trials)} methods are not done: the same command goes on")
    where = os.path.relpath(folder)
    say(f"recipes{'' if lacks else ', figures and their data'}: {where}")
    if lacks:
        click.echo(f"no figures: {lacks.message} (try: {lacks.hint}, then the same command)")
    if files:
        say(
            "next: bench run "
            + " ".join(f"--recipe {os.path.relpath(file)}" for file in files.values())
            + " --seeds 1-5"
        )
