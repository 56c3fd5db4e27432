"""``bench evaluate``: finished encoders, scored; each gets a record like those of ``bench run``."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from bench.base.errors import BenchError
from bench.base.files import write_or_fail
from bench.cli.dry_run import show_plan
from bench.cli.options import comma_list, warn
from bench.cli.run import show_missing, show_result
from bench.cli.run_options import OUTPUT, WHAT, GroupedCommand, option, plan_of, shared_options
from bench.data.sets import DataFolder
from bench.external import (
    ServerOptions,
    check_model,
    check_prompts,
    find_model,
    plan_model,
)
from bench.records import RunRecord, RunsFolder
from bench.run.config import RunConfig
from bench.run.plan import scored_sentences_of
from bench.session.needs import Planned, checked, prepare
from bench.session.progress import reporting
from bench.session.runs import run_all

SERVER = "A server"


@click.command(
    cls=GroupedCommand,
    params=shared_options(
        *("suites", "text", "device", "fresh", "offline", "allow_pickle", "data", "runs"),
        *("plugins", "dry_run", "as_json", "plain"),
    ),
)
@click.argument("models", metavar="[MODEL | FILE.py]...", nargs=-1)
@option(
    WHAT,
    "--name",
    "names",
    type=comma_list,
    metavar="TEXT",
    help="Names of the models in tables, separated by commas.  [default: as card, folder or file say]",
)
@option(
    WHAT,
    "--prefix",
    default="",
    help='Text before every sentence ("query: "), or a template with the sentence at [X].',
)
@option(
    WHAT,
    "--prompt",
    "prompts",
    nargs=2,
    multiple=True,
    metavar="TASK TEXT",
    help="The same for one task or suite; may be repeated.",
)
@option(
    WHAT,
    "--set",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="How a folder or hub model is built: pooling=mean|cls|last, max_length=N, padding=left, dtype=bf16.",
)
@option(SERVER, "--model", "server_model", help="The model, as the server calls it.")
@option(
    SERVER,
    "--batch",
    type=click.IntRange(min=1),
    default=128,
    show_default=True,
    help="Sentences in one request.",
)
@option(
    SERVER,
    "--dimensions",
    type=click.IntRange(min=1),
    help="Dimensions of the vectors, if the model offers several.",
)
@option(
    SERVER, "--key-env", help="The environment variable with the key.  [default: BENCH_API_KEY]"
)
@option(
    SERVER,
    "--empty-text",
    metavar="TEXT",
    help="Send this in place of an empty text, which many servers refuse: ' ' is a space.",
)
@option(
    OUTPUT,
    "--list-sentences",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Only write the sentences that these suites need, as JSON lines.",
)
def evaluate(
    models: tuple[str, ...],
    prefix: str,
    prompts: tuple[tuple[str, str], ...],
    server_model: str | None,
    batch: int,
    dimensions: int | None,
    key_env: str | None,
    empty_text: str | None,
    list_sentences: Path | None,
    dry_run: bool,
    as_json: bool,
    plain: bool,
    **options: Any,
) -> None:
    """Score finished encoders and print one table; one record per model in the runs folder.

    MODEL is a hub name, a folder, a run, vectors:FILE.npz, or a server's http://HOST/v1/embeddings with --model NAME.
    FILE.py defines a suite.

    \b
    Example:  bench evaluate sentence-transformers/all-mpnet-base-v2 --suite sts
              bench evaluate A B --name mpnet,e5 --prompt transfer "classify: "
    """
    config = checked(plan_of((), None, options)).runs[0]
    store, titles = RunsFolder(config.runs), config.names
    if bool(models) == (list_sentences is not None):
        raise BenchError(
            "expected one or more models, or only --list-sentences FILE",
            "bench evaluate MODEL --suite sts",
        )
    if list_sentences is not None:
        write_sentences(list_sentences, config)
        return
    if titles and not len(titles) == len(set(titles)) == len(models):
        raise BenchError(
            f"--name {','.join(titles)}: {len(set(titles))} names for {len(models)} models",
            "one name for each, in their order",
        )
    check_prompts(dict(prompts), config.suites)
    encoders, plans = [], []
    for model, title in zip(models, titles or [""] * len(models), strict=True):
        encoder = find_model(
            model,
            runs=store,
            name=title,
            prompt=prefix,
            prompts=dict(prompts),
            values=config.overrides,
            server=ServerOptions(server_model, batch, dimensions, key_env, empty_text),
        )
        encoders.append(encoder)
        titled = replace(config, names=(title,) if title else ())
        plans.append(prepare(partial(plan_model, encoder, titled), titled, only_look=dry_run))
    planned = tuple(run for plan in plans for run in plan.runs)
    worst = show_missing(planned)
    for run in planned:
        if not run.provisional and (line := check_model(run)):
            warn(line)
    if dry_run:
        show_plan(
            Planned(planned, tuple(item for plan in plans for item in plan.to_fetch)),
            store,
            config,
            as_json,
            everything=True,
        )
        raise click.exceptions.Exit(worst)
    records: dict[str, RunRecord] = {}
    with reporting(plain or as_json) as reporter:
        for encoder, plan in zip(encoders, plans, strict=True):
            made, code = run_all(plan.runs, encoder.store(store), config, reporter, as_json)
            records |= {record.run_id: record for record in made}
            worst = max(worst, code)
    if not as_json and records:
        show_result(list(records.values()), store)
    raise click.exceptions.Exit(worst)


def write_sentences(file: Path, config: RunConfig) -> None:
    """One JSON object per line, {"sentence": ...}: the distinct sentences of every task, as they are encoded."""
    sentences = scored_sentences_of(
        config.suites,
        config.text,
        DataFolder(Path(config.data) if config.data else None, offline=config.offline),
    )
    lines = [json.dumps({"sentence": text}, ensure_ascii=False) + "\n" for text in sentences]
    write_or_fail(file, "".join(lines).encode("utf-8", "surrogatepass"))
    click.echo(f"{len(sentences):,} sentences: {file}")
