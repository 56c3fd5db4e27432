"""``bench search``: the same search for the recipe values of every method, so that a comparison compares methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from msgspec import to_builtins

from bench.base.text import duration
from bench.cli.options import parse_seeds, print_columns, print_grid, print_json, say, warn
from bench.cli.run_options import HOW, WHAT, GroupedCommand, option, plan_of, shared_options
from bench.records import RunsFolder
from bench.records.searches import RECIPE, RUNNING, Search, Study, best_trial, expected_best
from bench.run.config import Plan
from bench.run.estimates import estimate, speeds_of_earlier_runs
from bench.run.search import (
    Job,
    Worker,
    definition,
    jobs_of,
    plan_notes,
    search_facts,
    short,
)
from bench.run.searching import check_optuna, do_trials, search_options, values_of, write_found
from bench.session.needs import checked, pending_grid, plan_runs
from bench.session.progress import reporting
from bench.show.figures import missing_library, write_figures


@click.command(
    cls=GroupedCommand,
    params=shared_options(
        *("methods", "backbones", "setting", "corpus", "budget", "device", "precision", "chunk"),
        *("offline", "allow_pickle", "data", "runs", "plugins", "variant", "max_steps"),
        *("dry_run", "as_json", "plain"),
    ),
)
@click.argument("targets", metavar="[METHOD | FILE.py]...", nargs=-1)
@option(
    WHAT,
    "--trials",
    type=click.IntRange(1, 999),
    default=12,
    show_default=True,
    help="Trials per method, besides its unchanged recipe. The same command with more trials continues a search.",
)
@option(
    WHAT,
    "--set",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a recipe value; it is the same in all trials and is not searched. May be repeated.",
)
@option(
    WHAT,
    "--space",
    "spaces",
    multiple=True,
    metavar="KEY=VALUES",
    help="Search these values instead of those in recipe files: KEY=A,B,C, KEY=LOW..HIGH, KEY=log:LOW..HIGH. May be repeated.",
)
@option(
    WHAT,
    "--select",
    help="The dev set: STS-B dev, sts-dev-clean, captions dev.  [default: STS-B dev; captions dev with --suite check, or with the backbone or corpus builtin]",
)
@option(
    WHAT,
    "--suite",
    "suites",
    multiple=True,
    metavar="SUITE",
    help="What the methods will be scored on later, to report the dev set's overlap with it. It is not scored now.  [default: sts]",
)
@option(
    WHAT,
    "--seeds",
    type=parse_seeds,
    metavar="TEXT",
    help="Seeds of every trial, whose score is their mean. Published runs need other seeds.  [default: 901]",
)
@option(
    HOW,
    "--sampler",
    type=click.Choice(["random", "grid", "tpe"]),
    default="random",
    show_default=True,
    help="How Optuna chooses the values of a trial.",
)
@option(
    HOW,
    "--pruner",
    type=click.Choice(["none", "median", "halving"]),
    default="none",
    show_default=True,
    help="Ends a trial early whose dev scores are behind.",
)
@option(
    WHAT,
    "--name",
    help="Name of the search and of its folder.  [default: search- and a hash of its options]",
)
def search(
    targets: tuple[str, ...],
    trials: int,
    spaces: tuple[str, ...],
    select: str | None,
    sampler: str,
    pruner: str,
    name: str | None,
    dry_run: bool,
    as_json: bool,
    plain: bool,
    **options: Any,
) -> None:
    """Search for the values of recipes: the same trials, budget, seeds and dev set for each method. No test score is computed.

    Each trial is trained and gets a dev score. The best values become a recipe file, which bench run takes. The same command
    continues a search that was killed; several processes with the same command share the trials.

    \b
    Example:  bench search simcse,promcse --trials 12 --budget 500steps --select sts-dev-clean
              bench run runs/search-.../simcse.toml --seeds 1-5
    """
    check_optuna()
    asked = search_options(
        plan_of(targets, None, options).runs, select, seeds_named=bool(options["seeds"])
    )
    config, fixed = asked.config, asked.fixed
    plan = checked(Plan((config,)), only_look=dry_run)
    config, planned = plan.runs[0], plan_runs(plan, only_look=dry_run)
    store = RunsFolder(config.runs)
    jobs = jobs_of(planned.runs, dict(pair.partition("=")[::2] for pair in spaces), fixed)
    study = definition(
        jobs,
        name=name,
        trials=trials,
        sampler=sampler,
        pruner=pruner,
        suites=asked.suites,
        fixed=fixed,
    )
    for note in plan_notes(jobs):
        warn(f"note: {note}")
    if dry_run:
        show_space(jobs, study, store, config.device, as_json)
        if planned.to_fetch and not as_json:
            print_grid(pending_grid(planned.to_fetch), indent=2)
        return
    worker = Worker(store.folder(study.name), study, jobs, config)
    warn(f"{worker.folder}: {', '.join(jobs)}; {study.words}")
    warn(study.overlap)
    with reporting(plain or as_json) as reporter:
        do_trials(worker, reporter)
    results, files = write_found(worker)
    facts = {method: search_facts(results, method) for method in jobs}
    if as_json:
        print_json(
            {"method": method, "recipe": str(file or ""), **facts[method]}
            for method, file in files.items()
        )
    else:
        with worker.lock:
            show_result(worker.folder, results, facts)
        if made := [str(file) for file in files.values() if file]:
            say(f"next: bench run {' '.join(made)} --seeds 1-5")


def show_space(
    jobs: Mapping[str, Job], study: Study, store: RunsFolder, device: str, as_json: bool
) -> None:
    """The plan: each recipe key with the source of its bounds, and the time of all trials."""
    earlier = speeds_of_earlier_runs(store, device)
    seconds = (study.trials + 1) * sum(
        estimate(run, earlier, device).seconds or 0 for job in jobs.values() for run in job.runs
    )
    if as_json:
        print_json([{**to_builtins(study), "seconds": seconds or None}])
    else:
        print_columns(
            (
                (method, key, short(job.runs[0].recipe[key]), axis.text(), axis.source)
                for method, job in jobs.items()
                for key, axis in job.space.items()
            ),
            headings=("method", "key", "now", "searched", "source"),
        )
        say(
            f"{study.name}: {study.words}; about {duration(seconds)} for all methods in one process",
            blank=True,
        )
        say(study.overlap)


def show_result(folder: Path, search: Search, facts: Mapping[str, Mapping[str, Any]]) -> None:
    """The results so far as a table, and as figures if matplotlib is installed. ``facts``: of each method."""
    rows = []
    for method, trials in search.trials.items():
        tried = [trial for trial in trials if trial.number != RECIPE]
        curve = expected_best([trial.score for trial in tried if trial.state != RUNNING])
        places = sorted({1, (len(curve) + 1) // 2, len(curve)}) if curve else []
        recipe, best = (facts[method][key] for key in ("recipe_dev", "dev"))
        rows.append(
            (
                method,
                "" if recipe is None else f"{recipe:.2f}",
                "" if best is None else f"{best:.2f}",
                " ".join(f"{curve[n - 1]:.2f}" for n in places),
                ", ".join(f"{n} {state}" for state, n in Counter(t.state for t in tried).items()),
                values_of(best_trial(trials)),
            )
        )
    print_columns(
        rows,
        headings=("method", "recipe", "best", "expected best", "trials", "values of the best"),
    )
    say(f"{search.study.select_on}, mean over the seeds of the search. New seeds score lower.")
    say("expected best: of one trial, half of them and all (Dodge et al. 2019)")
    if lacks := missing_library("bench search"):
        say(f"no figures: {lacks.message} (try: {lacks.hint}, then the same command)")
    else:
        write_figures(folder, search.study, search.trials)
