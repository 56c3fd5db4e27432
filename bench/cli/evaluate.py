"""``bench evaluate``: score ready-made encoders; each gets a record, as a run of ``bench run``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace as replace_config

from bench.base.errors import BenchError
from bench.base.files import write_or_fail
from bench.base.sides import DOCUMENT, QUERY
from bench.base.text import comma_list
from bench.cli.compare_output import print_all_tables
from bench.cli.dry_run import print_plan
from bench.cli.run_options import (
    OUTPUT,
    GroupedCommand,
    field_option,
    grouped_option,
    plan_of,
    shared_options,
)
from bench.cli.run_output import execute_and_report, print_missing_sets, print_scores
from bench.compare.statistics.table import Table
from bench.data.reading import SUFFIXES, format_of
from bench.data.sets import DataFolder, Pending
from bench.method.config import WHAT, RunConfig
from bench.method.smaller import PRECISIONS
from bench.records import RunRecord, RunsFolder
from bench.run.external import check_model, check_prompts, find_model, plan_model
from bench.run.needs import PreparedRuns
from bench.run.planned import PlannedRun
from bench.run.progress import terminal_reporter
from bench.run.scored_tasks import scored_sentences_of
from bench.run.session import Session
from bench.run.smaller import Sizes, smaller_runs, tables_of_sizes, with_sizes


@click.command(
    cls=GroupedCommand,
    params=shared_options(
        *("suites", "device", "fresh", "offline", "allow_pickle", "data", "runs"),
        *("as_json", "plain", "verbose"),
    ),
)
@click.argument("models", metavar="[MODEL]...", nargs=-1)
@grouped_option(
    WHAT,
    "--name",
    "names",
    type=comma_list,
    metavar="TEXT",
    help="Names of the models in tables, separated by commas.  [default: from the model card, "
    "folder or file name]",
)
@grouped_option(
    WHAT,
    "--prefix",
    help='Text before every sentence ("query: "), or a template with the sentence at [X]. '
    '"" removes the default prompt of a folder.',
)
@grouped_option(
    WHAT,
    "--prompt",
    "prompts",
    nargs=2,
    multiple=True,
    metavar="TASK TEXT",
    help="The same for one task or suite; may be repeated.",
)
@grouped_option(
    WHAT,
    "--prompt-query",
    metavar="TEXT",
    help="The same for queries, in retrieval and in pairs with two sides.  [default: the folder's]",
)
@grouped_option(
    WHAT,
    "--prompt-document",
    metavar="TEXT",
    help="The same for documents.  [default: the folder's]",
)
@grouped_option(
    WHAT,
    "--dimensions",
    type=comma_list,
    metavar="N,...",
    help="Score the first N numbers of each vector, too, and print what that costs.",
)
@grouped_option(
    WHAT,
    "--precision",
    "precisions",
    type=comma_list,
    metavar="NAME,...",
    help=f"Score the vectors in these precisions, too: {', '.join(PRECISIONS)}.",
)
@field_option(
    "overrides",
    "How a folder or hub model is built: pooling=mean|cls|last, max_length=N, dtype=bf16.",
)
@field_option("plugins", "Python file that defines a suite; may be repeated.")
@grouped_option(OUTPUT, "--dry-run", is_flag=True, help="Show what would be scored and fetched.")
@grouped_option(
    OUTPUT,
    "--list-sentences",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Only write the sentences that these suites need, as JSON lines.",
)
def evaluate(
    models: tuple[str, ...],
    prefix: str | None,
    prompts: tuple[tuple[str, str], ...],
    prompt_query: str | None,
    prompt_document: str | None,
    dimensions: tuple[str, ...] | None,
    precisions: tuple[str, ...] | None,
    list_sentences: Path | None,
    dry_run: bool,
    as_json: bool,
    plain: bool,
    verbose: bool,
    **options: Any,
) -> None:
    """Score ready-made encoders and print one table; one record per model in the runs folder.

    MODEL is a hub name, a folder, a run, or vectors:FILE.npz. --plugin FILE.py defines a suite.

    \b
    Example:  bench evaluate sentence-transformers/all-mpnet-base-v2 --suite sts
              bench evaluate A B --name mpnet,e5 --prompt transfer "classify: "
    """
    _check_models(models, list_sentences)
    has_prompt = prompts or {prefix, prompt_query, prompt_document} != {None}
    if list_sentences is not None and has_prompt:
        raise BenchError(
            "--list-sentences writes sentences without a prompt",
            "put the prompt before each sentence of the file",
        )
    sizes = Sizes.read(dimensions or (), precisions or ())
    session = Session.begin(
        plan_of(options),
        terminal_reporter(plain or as_json, verbose),
        only_look=dry_run,
    )
    if list_sentences is not None:
        _write_sentences(list_sentences, session.config)
        return
    sides = {QUERY: prompt_query, DOCUMENT: prompt_document}
    prepared = _prepare_models(session, models, prefix, dict(prompts), sides, sizes)
    together = _all_runs(prepared)
    worst = print_missing_sets(together.runs)
    for run in together.runs:
        if not run.provisional:
            check_model(run)
    if dry_run:
        print_plan(together, session, as_json=as_json, everything=True)
        raise click.exceptions.Exit(worst)
    code = _score_models(session, prepared, sizes, as_json)
    raise click.exceptions.Exit(max(worst, code))


def _check_models(models: Sequence[str], list_sentences: Path | None) -> None:
    """Raise BenchError without a model, for a file of data, and for a model and a list at once."""
    if bool(models) == (list_sentences is not None):
        raise BenchError(
            "expected one or more models, or only --list-sentences FILE",
            "bench evaluate MODEL --suite sts",
        )
    for model in models:
        if format_of(model) in SUFFIXES and Path(model).is_file():
            raise BenchError(
                f"{model} is a file of data, and no model",
                f"bench evaluate MODEL --suite {shlex.quote(model)}",
            )


def _all_runs(prepared: Sequence[tuple[RunsFolder, PreparedRuns]]) -> PreparedRuns:
    """Return the runs of all models together, with everything that they need."""
    runs: list[PlannedRun] = []
    to_fetch: list[Pending] = []
    for _, model_runs in prepared:
        runs += model_runs.runs
        to_fetch += model_runs.to_fetch
    return PreparedRuns(tuple(runs), tuple(to_fetch))


def _score_models(
    session: Session,
    prepared: Sequence[tuple[RunsFolder, PreparedRuns]],
    sizes: Sizes,
    as_json: bool,
) -> int:
    """Score each model into its folder of runs, and print the scores; returns the exit code."""
    worst = 0
    scored: dict[Path, list[RunRecord]] = {}
    tables: list[Table] = []
    with session.reporter.display():
        for store, model_runs in prepared:
            own = replace(session, store=store)
            new_records, code = execute_and_report(own, model_runs.runs, as_json=as_json)
            scored.setdefault(store.path, []).extend(new_records)
            records = {record.run_id: record for record in new_records}
            worst = max(worst, code)
            for run in model_runs.runs:
                if not sizes or run.run_id not in records:
                    continue
                whole = records[run.run_id]
                smaller = smaller_runs(run, whole, sizes)
                made, code = execute_and_report(own, smaller, as_json=as_json)
                tables += tables_of_sizes(run, whole, made, store)
                worst = max(worst, code)
    if tables and not as_json:
        print_all_tables(tables)
    elif not as_json:
        for folder, of_folder in scored.items():
            if of_folder:
                print_scores(of_folder, RunsFolder(folder))
    return worst


def _prepare_models(
    session: Session,
    models: Sequence[str],
    prefix: str | None,
    prompts: Mapping[str, str],
    sides: Mapping[str, str | None],
    sizes: Sizes,
) -> list[tuple[RunsFolder, PreparedRuns]]:
    """Find each model and plan its runs; returns the folder of its records, and the runs.

    Raises BenchError, also if there are not as many names as models.
    """
    config = session.config
    titles = _titles(config.names, len(models))
    check_prompts(dict(prompts), config.suites)
    prepared = []
    for model, title in zip(models, titles, strict=True):
        encoder = find_model(
            model,
            runs=session.store,
            name=title,
            prompt=prefix,
            prompts=dict(prompts),
            sides=sides,
            values=config.overrides,
        )
        titled = replace_config(config, names=(title,) if title else ())
        found = session.prepare(partial(plan_model, encoder, titled))
        runs = tuple(with_sizes(run, sizes) for run in found.runs)
        prepared.append((encoder.store(session.store), replace(found, runs=runs)))
    return prepared


def _titles(names: Sequence[str], count: int) -> Sequence[str]:
    """Return a name in tables for each of ``count`` models; "" if none was given."""
    if not names:
        return [""] * count
    distinct = len(set(names))
    if distinct != len(names) or distinct != count:
        raise BenchError(
            f"--name {','.join(names)}: {distinct} names for {count} models",
            "one name for each, in their order",
        )
    return names


def _write_sentences(file: Path, config: RunConfig) -> None:
    """Write the distinct sentences of every task, as they are encoded, as JSON lines."""
    root = Path(config.data) if config.data else None
    folder = DataFolder(root, offline=config.offline)
    sentences = scored_sentences_of(config.suites, folder)
    lines = [json.dumps({"sentence": text}, ensure_ascii=False) + "\n" for text in sentences]
    write_or_fail(file, "".join(lines).encode("utf-8", "surrogatepass"))
    click.echo(f"{len(sentences):,} sentences: {file}")
