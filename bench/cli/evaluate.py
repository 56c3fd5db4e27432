"""``bench evaluate``: finished encoders, scored; each makes the record that ``bench run`` makes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.base.errors import BenchError, NotAModel, UnknownName
from bench.cli.options import (
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
from bench.cli.run_all import run_all, show_missing, show_result

if TYPE_CHECKING:
    from bench.backbones import Reference
    from bench.cli.planning import Make, Planned
    from bench.data.sets import DataFolder
    from bench.run.config import RunConfig
    from bench.run.models import Model
    from bench.run.plan import PlannedRun
    from bench.runs import RunsFolder


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
@click.option(
    "--allow-pickle",
    is_flag=True,
    help="Take models whose weights are a pickle: its tensors are read, nothing else.",
)
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
    from bench.base import devices
    from bench.cli.planning import Planned, show_plan
    from bench.cli.progress import reporting
    from bench.data.fetching import offline_now
    from bench.data.sets import DataFolder
    from bench.run.config import RunConfig
    from bench.run.models import ADDRESSES, ServerOptions, check_model, find_model
    from bench.runs import RunsFolder
    from bench.score.suites import expand_suites, split_names

    wanted, titles, store = split_names(suites), comma_list(names), RunsFolder(runs)
    forms = ",".join(comma_list(text))
    check_words(models, titles, wanted, forms, prompts, list_sentences)
    DataFolder(data).check_root()
    offline = offline or offline_now()
    if list_sentences is not None:
        click.echo(
            f"{write_sentences(list_sentences, wanted, forms, DataFolder(data, offline=offline)):,} sentences: {list_sentences}"
        )
        return
    server = ServerOptions(server_model, batch, dimensions, key_env)
    values = parse_overrides(pairs)
    servers = [model for model in models if model.startswith(ADDRESSES)]
    encoders = [
        find_model(
            model,
            runs=store,
            name=titles[i] if titles else "",
            prompt=prefix,
            prompts=dict(prompts),
            values=values,
            server=server if model in servers or not servers else None,
        )
        for i, model in enumerate(models)
    ]
    for encoder in encoders:
        check_found(encoder, plugins)
        if encoder.run is not None and fresh:
            raise BenchError(
                f"--fresh: {encoder.given} is a run, which would be trained anew",
                "leave --fresh out",
            )
    device = devices.choose_device(device)
    plans = [
        plan_model(
            encoder,
            wanted,
            forms,
            data,
            offline=offline,
            allow_pickle=allow_pickle,
            only_look=dry_run,
            plugins=plugins,
        )
        for encoder in encoders
    ]
    planned = [run for plan in plans for run in plan.runs]
    missing = show_missing(planned)
    check_distinct(planned, models)
    costs = [line for run in planned if not run.provisional and (line := check_model(run))]
    for line in costs:
        click.echo(line, err=True)
    if dry_run:
        pending = tuple(item for plan in plans for item in plan.to_fetch)
        config = RunConfig(device=device, data=str(data) if data else None)
        show_plan(Planned(tuple(planned), pending), store, config, as_json, everything=True)
        raise click.exceptions.Exit(missing)
    records, worst = [], missing
    options = RunConfig(device=device, offline=offline, fresh=fresh)
    with reporting(plain or as_json) as reporter:
        for encoder, plan in zip(encoders, plans, strict=True):
            made, code = run_all(plan.runs, folder_of(encoder, store), options, reporter, as_json)
            records += made
            worst = max(worst, code)
    if not as_json and records:
        show_result(records, store, expand_suites(wanted))
    raise click.exceptions.Exit(worst)


def check_words(
    models: Sequence[str],
    titles: Sequence[str],
    suites: Sequence[str],
    text: str,
    prompts: Sequence[tuple[str, str]],
    listing: Path | None,
) -> None:
    """Raises BenchError for what is wrong with the words of a command alone."""
    from bench.run.config import RunConfig
    from bench.run.plan import check_names
    from bench.score.suites import expand_suites, suite

    if bool(models) == (listing is not None):
        raise BenchError(
            "no model was named"
            if listing is None
            else "--list-sentences writes sentences and scores no model",
            "bench evaluate MODEL --suite sts; or --list-sentences FILE alone",
        )
    names = len(set(titles))
    if titles and not len(titles) == names == len(models):
        raise BenchError(
            f"--name {','.join(titles)}: {names} names for {len(models)} models",
            "one name for each, in their order",
        )
    check_names(RunConfig(methods=("",), suites=tuple(suites), text=text))
    scored = expand_suites(suites) if prompts else ()
    known = [name.partition(":")[0] for name in scored]
    known += [task.name for name in scored for task in suite(name).tasks]
    for name, _ in prompts:
        if name not in known:
            hint = "bench suites NAME lists its tasks"
            raise UnknownName("task", name, known, "among what is scored", hint)


def check_found(model: Model, plugins: Sequence[Path]) -> None:
    """Raises BenchError, before torch is loaded, for a name, a folder or a setting that cannot be."""
    from bench.run.config import RunConfig
    from bench.run.models import MODELS
    from bench.run.plan import check_config

    if model.plugin is not None or model.run is not None:
        return
    try:
        check_config(
            RunConfig(
                methods=(model.method,),
                backbones=(model.backbone,),
                overrides=model.overrides,
                plugins=tuple(map(str, plugins)),
            )
        )
    except UnknownName as error:
        raise (
            NotAModel(f"MODEL {model.given}: no such model", MODELS)
            if error.kind == "backbone"
            else error
        ) from None


def check_distinct(planned: Sequence[PlannedRun], models: Sequence[str]) -> None:
    """Raises BenchError where two arguments are one model."""
    ids = [run.run_id for run in planned if not run.provisional]
    twice = next((id_ for id_ in ids if ids.count(id_) > 1), None)
    if twice is not None:
        raise BenchError(
            f"two of {', '.join(models)} are the same model ({twice})", "name each model once"
        )


def folder_of(model: Model, store: RunsFolder) -> RunsFolder:
    """The runs folder in which the model's record stands: a run that was named stays where it is."""
    from bench.runs import RunsFolder

    return store if model.run is None else RunsFolder(model.run.resolve().parent)


def plan_model(
    model: Model,
    suites: Sequence[str],
    text: str,
    data: Path | None,
    *,
    offline: bool,
    plugins: Sequence[Path],
    allow_pickle: bool = False,
    only_look: bool = False,
) -> Planned:
    """The run of one model on these suites, with what it needs on this machine."""
    from bench.cli.planning import prepare
    from bench.run import plan
    from bench.run.config import RunConfig
    from bench.run.plugins import Registry, discover

    config = RunConfig(
        methods=(model.method,),
        backbones=(model.backbone or str(model.run),),
        setting=plan.NOT_TRAINED if model.run is None else None,
        names=(model.title,) if model.title else (),
        suites=tuple(suites),
        text=text,
        overrides=model.overrides,
        precision="fp32",
        allow_pickle=allow_pickle,
        offline=offline,
        data=str(data) if data else None,
    )
    make: Make
    if model.run is not None:
        make = partial(_of_run, model.run, model.title, plugins, config)
    else:
        registry = (
            discover(plugins)
            if model.plugin is None
            else Registry({model.plugin.name: model.plugin}, ())
        )
        make = partial(plan.make, config, registry)
    return prepare(make, config, only_look=only_look)


def _of_run(
    folder: Path,
    title: str,
    plugins: Sequence[Path],
    config: RunConfig,
    data: DataFolder,
    ready: Callable[[Reference], Reference],
) -> list[PlannedRun]:
    from bench.run import plan
    from bench.run.trained_run import backbone_of, find_run
    from bench.runs import RunsFolder

    run = find_run(str(folder), RunsFolder(folder.resolve().parent), plugins)
    backbone = backbone_of(run.record, run.plugin)
    backbone = backbone if run.plugin.cls.own_backbone else ready(backbone)
    title = title or str(run.record.provenance.backbone.title or "")
    titled = replace(backbone, title=title)
    planned = plan.of_run(run.record, run.plugin, run.recipe, titled, config, data)
    if planned.run_id != run.record.run_id:
        raise BenchError(
            f"{folder} was renamed: its record says {run.record.run_id}",
            "give the folder its name back",
        )
    return [planned]


def write_sentences(file: Path, suites: Sequence[str], text: str, data: DataFolder) -> int:
    """One JSON object a line, {"sentence": ...}: the distinct sentences of every task, as they are encoded. Returns how many."""
    from bench.base.files import write_whole
    from bench.run.plan import scored_sentences_of

    sentences = scored_sentences_of(suites, text, data)
    lines = "".join(
        json.dumps({"sentence": sentence}, ensure_ascii=False) + "\n" for sentence in sentences
    )
    write_whole(file, lines.encode("utf-8", "surrogatepass"))
    return len(sentences)
