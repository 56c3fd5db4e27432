"""``bench search``: search for recipe values, with the same effort for every method."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import click
from msgspec import to_builtins

from bench.base.printing import print_grid
from bench.base.terminal import warn
from bench.cli.options import print_columns, print_json, say
from bench.cli.run_options import (
    GroupedCommand,
    field_option,
    grouped_option,
    plan_of,
    shared_options,
)
from bench.method.config import HOW, WHAT
from bench.records.searches import (
    RECIPE,
    RUNNING,
    Search,
    Study,
    Trial,
    best_trial,
    expected_best,
)
from bench.run.needs import pending_grid
from bench.run.plan_toml import Plan
from bench.run.progress import terminal_reporter
from bench.run.search.found import search_facts
from bench.run.search.space import short_value
from bench.run.search.study import (
    Sampler,
    SearchedMethod,
    define_study,
    find_searched_methods,
    plan_notes,
    search_options,
)
from bench.run.search.worker import SearchWorker, describe_values, run_trials, write_found
from bench.run.session import Session


@click.command(
    cls=GroupedCommand,
    params=shared_options(
        *("methods", "backbones", "setting", "corpus", "budget", "device", "precision", "chunk"),
        *("offline", "allow_pickle", "data", "runs", "plugins"),
        *("dry_run", "as_json", "plain", "verbose"),
    ),
)
@click.argument("targets", metavar="[METHOD | FILE.py]...", nargs=-1)
@grouped_option(
    WHAT,
    "--trials",
    type=click.IntRange(1, 999),
    default=12,
    show_default=True,
    help="Trials per method, besides its unchanged recipe. The same command with more trials "
    "continues a search.",
)
@field_option(
    "overrides",
    "Change a recipe value; it is the same in all trials and is not searched. May be repeated.",
)
@grouped_option(
    WHAT,
    "--space",
    "spaces",
    multiple=True,
    metavar="KEY=VALUES",
    help="Search this key, and no others, instead of what recipe files say: KEY=A,B,C, "
    "KEY=LOW..HIGH, KEY=log:LOW..HIGH. May be repeated.",
)
@grouped_option(
    WHAT,
    "--select",
    help="The dev set: sts-dev-clean, STS-B dev, captions dev.  [default: sts-dev-clean; captions "
    "dev with --suite check, or with the backbone or corpus builtin]",
)
@field_option(
    "suites",
    "Suite of later runs: report the overlap of the dev set with it, and score nothing now.  "
    "[default: sts]",
)
@field_option(
    "seeds",
    "Seeds of every trial; its score is their mean. Published runs need other seeds.  "
    "[default: 901]",
)
@grouped_option(
    HOW,
    "--sampler",
    type=click.Choice(get_args(Sampler)),
    default="random",
    show_default=True,
    help="How the values of a trial are chosen.",
)
@grouped_option(
    WHAT,
    "--name",
    help="Name of the search and of its folder.  [default: search- and a hash of its options]",
)
def search(
    targets: tuple[str, ...],
    trials: int,
    spaces: tuple[str, ...],
    select: str | None,
    sampler: Sampler,
    name: str | None,
    dry_run: bool,
    as_json: bool,
    plain: bool,
    verbose: bool,
    **options: Any,
) -> None:
    """Search for the values of recipes: the same trials, budget, seeds and dev set for each method.

    No test score is computed.

    Each trial is trained and gets a dev score. The best values become a recipe file, which bench
    run takes. The same command continues a search that was killed; several processes with the same
    command share the trials.

    \b
    Example:  bench search simcse,promcse --trials 12 --budget 500steps
              bench run runs/search-.../simcse.toml --seeds 1-5
    """
    plan = plan_of(options, targets)
    asked = search_options(
        plan.runs,
        select,
        seeds_named=bool(options["seeds"]),
        trials=trials,
        sampler=sampler,
        name=name,
    )
    session = Session.begin(
        Plan((asked.config,)), terminal_reporter(plain or as_json, verbose), only_look=dry_run
    )
    prepared = session.plan_runs()
    given = {}
    for space in spaces:
        key, _, values = space.partition("=")
        given[key] = values
    jobs = find_searched_methods(prepared.runs, given, asked.fixed)
    study = define_study(jobs, asked)
    for note in plan_notes(jobs):
        warn(f"note: {note}")
    if dry_run:
        _print_space(study, jobs, as_json)
        if prepared.to_fetch and not as_json:
            print_grid(pending_grid(prepared.to_fetch), indent=2)
        return
    worker = SearchWorker(session.store.folder(study.name), study, jobs, session.config)
    warn(f"{worker.folder}: {', '.join(jobs)}; {study.words}")
    warn(study.overlap)
    with session.reporter.display():
        run_trials(worker, session.reporter)
    results, files = write_found(worker)
    facts = {method: search_facts(results, method) for method in jobs}
    if as_json:
        for method, file in files.items():
            recipe = "" if file is None else str(file)
            print_json([{"method": method, "recipe": recipe, **facts[method]}])
        return
    with worker.lock:
        _print_results(results, facts)
    written = [str(file) for file in files.values() if file is not None]
    if written:
        words = ["bench", "run", *written, "--seeds", "1-5"]
        for plugin in session.config.plugins:
            words += ["--plugin", plugin]
        if str(session.store.path) != "runs":
            words += ["--runs", str(session.store.path)]
        click.echo(f"next: {shlex.join(words)}")


def _print_space(study: Study, jobs: Mapping[str, SearchedMethod], as_json: bool) -> None:
    """Print the plan: each recipe key with the source of its bounds."""
    if as_json:
        print_json([to_builtins(study)])
        return
    rows = []
    for method, job in jobs.items():
        for key, axis in job.space.items():
            rows.append(
                (method, key, short_value(job.runs[0].recipe[key]), axis.text(), axis.source)
            )
    print_columns(rows, headings=("method", "key", "now", "searched", "source"))
    say(f"{study.name}: {study.words}", blank=True)
    say(study.overlap)


def _print_results(search: Search, facts: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the results so far as a table.

    ``facts``: method -> its facts, as :func:`bench.run.search.found.search_facts` returns them.
    """
    rows = [_result_row(method, trials, facts[method]) for method, trials in search.trials.items()]
    headings = ("method", "recipe", "best", "expected best", "trials", "values of the best")
    print_columns(rows, headings=headings)
    say(f"{search.study.select_on}, mean over the seeds of the search. New seeds score lower.")
    say("expected best: of one trial, half of them and all (Dodge et al. 2019)")


def _result_row(method: str, trials: Sequence[Trial], facts: Mapping[str, Any]) -> list[str]:
    tried = [trial for trial in trials if trial.number != RECIPE]
    curve = expected_best([trial.score for trial in tried if trial.state != RUNNING])
    counts = sorted({1, (len(curve) + 1) // 2, len(curve)}) if curve else []
    states = Counter(trial.state for trial in tried)
    return [
        method,
        _score_text(facts["recipe_dev"]),
        _score_text(facts["dev"]),
        " ".join(f"{curve[count - 1]:.2f}" for count in counts),
        ", ".join(f"{count} {state}" for state, count in states.items()),
        describe_values(best_trial(trials)),
    ]


def _score_text(score: float | None) -> str:
    return "" if score is None else f"{score:.2f}"
