"""``bench evaluate``: finished encoders, scored; each makes the record that ``bench run`` makes."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from bench.base import devices
from bench.base.errors import BenchError
from bench.base.files import write_or_fail
from bench.cli.options import (
    allow_pickle_option,
    comma_list,
    data_option,
    device_option,
    json_option,
    offline_option,
    parse_overrides,
    plain_option,
    plugin_option,
    runs_option,
)
from bench.cli.planning import Planned, prepare, show_plan
from bench.cli.progress import reporting
from bench.cli.run_all import run_all, show_missing, show_result
from bench.data.fetching import offline_now
from bench.data.sets import DataFolder
from bench.run.config import RunConfig
from bench.run.models import (
    ServerOptions,
    check_model,
    check_prompts,
    find_model,
    plan_model,
)
from bench.run.plan import scored_sentences_of
from bench.runs import RunRecord, RunsFolder
from bench.score.suites import split_names


@click.command()
@click.argument("models", metavar="[MODEL]...", nargs=-1)
@click.option(
    "--suite",
    "suites",
    default="sts",
    show_default=True,
    help="Suites, separated by commas, or all (see bench suites).",
)
@click.option(
    "--name",
    "names",
    help="What tables call the models, separated by commas.  [default: as card, folder or file say]",
)
@click.option(
    "--prefix",
    default="",
    help='Before every sentence ("query: "), or a template with the sentence at [X].',
)
@click.option(
    "--prompt",
    "prompts",
    nargs=2,
    multiple=True,
    metavar="TASK TEXT",
    help="The same for one task or suite; may be repeated.",
)
@click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="How a folder or hub model is built: pooling=mean|cls|last, max_length=N, padding=left, dtype=bf16.",
)
@click.option("--model", "server_model", help="Of a server: the model, as the server calls it.")
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    default=128,
    show_default=True,
    help="Of a server: sentences in one request.",
)
@click.option(
    "--dimensions", type=click.IntRange(min=1), help="Of a server: how many dimensions to ask for."
)
@click.option(
    "--key-env",
    help="Of a server: the environment variable with the key.  [default: BENCH_API_KEY]",
)
@click.option(
    "--text",
    default="tokenised",
    show_default=True,
    help="Text form: tokenised, raw, tokenised,raw, any.",
)
@device_option
@click.option("--fresh", is_flag=True, help="Do it again, even what is done.")
@offline_option
@allow_pickle_option
@click.option(
    "--dry-run", is_flag=True, help="Show what would be done, and what a server would be asked."
)
@click.option(
    "--list-sentences",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Only write what these suites ask for, as JSON lines.",
)
@data_option
@runs_option
@plugin_option
@json_option
@plain_option
def evaluate(
    models: tuple[str, ...],
    suites: str,
    names: str | None,
    prefix: str,
    prompts: tuple[tuple[str, str], ...],
    pairs: tuple[str, ...],
    server_model: str | None,
    batch: int,
    dimensions: int | None,
    key_env: str | None,
    text: str,
    device: str,
    fresh: bool,
    offline: bool,
    allow_pickle: bool,
    dry_run: bool,
    list_sentences: Path | None,
    data: Path | None,
    runs: Path | None,
    plugins: tuple[Path, ...],
    as_json: bool,
    plain: bool,
) -> None:
    """Score finished encoders and print one table; one record per model in the runs folder.

    MODEL is a hub name, a folder, a run, vectors:FILE.npz, or a server's http://HOST/v1/embeddings with --model NAME.

    \b
    Example:  bench evaluate sentence-transformers/all-mpnet-base-v2 --suite sts
              bench evaluate A B --name mpnet,e5 --prompt transfer "classify: "
    """
    store, titles = RunsFolder(runs), comma_list(names)
    config = RunConfig(
        suites=split_names(suites),
        text=",".join(comma_list(text)),
        plugins=tuple(map(str, plugins)),
        allow_pickle=allow_pickle,
        device=devices.choose_device(device),
        fresh=fresh,
        offline=offline or offline_now(),
        data=str(data) if data else None,
    )
    DataFolder(data).check_root()
    if bool(models) == (list_sentences is not None):
        raise BenchError(
            "expected models, or --list-sentences FILE alone", "bench evaluate MODEL --suite sts"
        )
    if list_sentences is not None:
        count = write_sentences(list_sentences, config)
        click.echo(f"{count:,} sentences: {list_sentences}")
        return
    if titles and not len(titles) == len(set(titles)) == len(models):
        raise BenchError(
            f"--name {names}: {len(set(titles))} names for {len(models)} models",
            "one name for each, in their order",
        )
    check_prompts(dict(prompts), config.suites)
    server = ServerOptions(server_model, batch, dimensions, key_env)
    values = parse_overrides(pairs)
    encoders, plans = [], []
    for model, title in zip(models, titles or [""] * len(models), strict=True):
        encoder = find_model(
            model,
            runs=store,
            name=title,
            prompt=prefix,
            prompts=dict(prompts),
            values=values,
            server=server,
        )
        encoders.append(encoder)
        titled = replace(config, names=(title,) if title else ())
        make = partial(plan_model, encoder, titled)
        plans.append(prepare(make, titled, only_look=dry_run))
    planned = tuple(run for plan in plans for run in plan.runs)
    worst = show_missing(planned)
    for run in planned:
        if not run.provisional and (line := check_model(run)):
            click.echo(line, err=True)
    if dry_run:
        pending = tuple(item for plan in plans for item in plan.to_fetch)
        show_plan(Planned(planned, pending), store, config, as_json, everything=True)
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


def write_sentences(file: Path, config: RunConfig) -> int:
    """One JSON object a line, {"sentence": ...}: the distinct sentences of every task, as they are encoded. Returns how many."""
    data = DataFolder(Path(config.data) if config.data else None, offline=config.offline)
    sentences = scored_sentences_of(config.suites, config.text, data)
    lines = [json.dumps({"sentence": text}, ensure_ascii=False) + "\n" for text in sentences]
    write_or_fail(file, "".join(lines).encode("utf-8", "surrogatepass"))
    return len(sentences)
