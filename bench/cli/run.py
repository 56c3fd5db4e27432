"""``bench run``: the main job."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import BenchError
from bench.cli import show_error
from bench.cli.options import (
    allow_pickle_option,
    check_commas,
    comma_list,
    data_option,
    device_option,
    json_option,
    max_steps_option,
    offline_option,
    plain_option,
    plugin_option,
    precision_option,
    runs_option,
    save_seconds,
    warn,
)
from bench.cli.remote import check_here, run_elsewhere, settle_device
from bench.cli.run_all import FOR_EVER, run_all, show_result, tell_missing

if TYPE_CHECKING:
    from bench.method.ranks import Ranks
    from bench.run.plan import PlannedRun, Request
    from bench.run.plugins import Registry


# --- ``bench run`` as one of several processes that torchrun has started: rank 0 speaks, and the exit codes are told apart ---


def one_of_several(command: Callable[..., None]) -> Callable[..., None]:
    """A command with ``device`` among its arguments gets that of its process, and ``ranks``, see :func:`rank_process`."""

    @wraps(command)
    def wrapped(*, device: str, **arguments: Any) -> None:
        with rank_process(device) as (here, ranks):
            command(device=here, ranks=ranks, **arguments)

    return wrapped


@contextmanager
def rank_process(device: str) -> Iterator[tuple[str, Ranks | None]]:
    """The device of this process and its ranks; None where it was not started as one of several.

    As one of several the process ends with this context: gloo's threads can outlive the interpreter, which then aborts although
    everything was right. Only rank 0 prints; what another rank said is shown where it ends on its own.
    """
    from bench.run.executors.torchrun import LOST, is_launched

    if not is_launched():
        yield device, None
        return
    lead, code, ranks = os.environ["RANK"] == "0", 1, None
    said = sys.stderr if lead else io.StringIO()
    if not lead:
        sys.stdout = sys.stderr = said
    try:
        from bench.base.devices import choose_device
        from bench.method.ranks import join, rank_device

        device = rank_device(choose_device(device))
        ranks = join(device)
        yield device, ranks
        code = 0
    except click.exceptions.Exit as end:
        code = end.exit_code
    except BenchError as error:
        code = 0  # rank 0 tells of it
        if lead or ranks is None or ranks.broken:
            show_error(error, label="error" if lead else f"rank {os.environ['RANK']}")
            code = error.exit_code
        if not lead and ranks is not None and ranks.lost:
            code = LOST
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        traceback.print_exc()
    finally:
        if lead and ranks is not None and not ranks.broken:
            with suppress(BenchError):
                ranks.share(None)  # there is nothing more to train
        if code and isinstance(said, io.StringIO) and sys.__stderr__ is not None:
            sys.__stderr__.write(said.getvalue())
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is not None:
                stream.flush()
        os._exit(code)


def parse_seeds(text: str) -> tuple[int, ...]:
    """ "42" -> (42,); "1-5" -> (1, 2, 3, 4, 5); "1,7-8" -> (1, 7, 8). Raises BenchError for anything else."""
    seeds: list[int] = []
    try:
        for part in comma_list(text):
            first, dash, last = part.partition("-")
            numbers = range(int(first), int(last) + 1) if dash else [int(first)]
            if not numbers or len(numbers) > 1000:
                raise ValueError
            seeds += numbers
        if not seeds:
            raise ValueError
    except ValueError:
        raise BenchError(
            f"--seeds {text}: expected numbers or ranges",
            "--seeds 42, --seeds 1-5, or --seeds 1,3,7-9",
        ) from None
    return tuple(dict.fromkeys(seeds))


def parse_overrides(
    pairs: Sequence[str], max_steps: int | None, budget: str | None = None
) -> dict[str, str]:
    """``--set KEY=VALUE`` as a mapping, a value as it was typed (A,B,C is a series); ``--max-steps`` and ``--budget`` are the keys of these names."""
    overrides = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise BenchError(
                f"--set {pair}: expected KEY=VALUE", "for example --set batch_size=128"
            )
        key = key.strip()
        overrides[key] = (
            value if key in ("prompt", "prompts") else value.strip()
        )  # "query: " ends in a blank
    options = {"max_steps": max_steps, "budget": budget}
    return overrides | {key: str(value) for key, value in options.items() if value is not None}


class RunCommand(click.Command):
    """``bench run my_loss.py simcse``: methods and plugin files may stand without --method and --plugin. A file stands for every method
    that it defines, unless --method says which are run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        targets: tuple[str, ...] = ctx.params.pop("targets")
        files = [Path(target) for target in targets if target.endswith(".py")]
        if files:
            from bench.run.plugins import from_file
            from bench.score.suites import use_files

            ctx.params["plugins"] = (*ctx.params["plugins"], *files)
            use_files(ctx.params["plugins"])
        methods = ctx.params["methods"]
        check_commas("--method", methods)
        named = [methods] if methods else []
        for target in targets:
            if not target.endswith(".py"):
                check_commas("METHOD", target)
                named.append(target)
            elif not methods:
                named += [plugin.name for plugin in from_file(Path(target))]
        if targets:
            ctx.params["methods"] = ",".join(named)
            ctx.set_parameter_source(
                "methods", click.core.ParameterSource.COMMANDLINE
            )  # workers are told of it, too
        return rest


@click.command(cls=RunCommand)
@click.argument("targets", metavar="[METHOD or FILE.py]...", nargs=-1)
@click.option(
    "--method",
    "methods",
    help="Methods, separated by commas (see bench methods); they may stand without --method.",
)
@click.option(
    "--recipe",
    "recipes",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    help="A recipe file, as bench search writes it: method, backbone, setting and values, where no option says another. May be repeated.",
)
@click.option(
    "--backbone",
    "backbones",
    default="builtin",
    show_default=True,
    help="Hub names, folders, or builtin; separated by commas.",
)
@click.option(
    "--name",
    "names",
    help="What tables call the backbones, separated by commas.  [default: as card or folder say]",
)
@click.option(
    "--setting",
    type=click.Choice(["unsupervised", "supervised", "none"]),
    help="Default: the one with a recipe for the backbone.",
)
@click.option("--variant", default="", help="A variant of the method (see bench methods NAME).")
@click.option("--seeds", default="42", show_default=True, help="42, 1-5, or 1,3,7-9.")
@click.option(
    "--suite",
    "suites",
    default="sts",
    show_default=True,
    help="Suites, separated by commas, or all; mteb:TASK,TASK for tasks of mteb (see bench suites).",
)
@click.option(
    "--corpus",
    help="Training text: a file, a name that recipes use (builtin, wiki1m, nli, nli-labelled, target), hub:OWNER/NAME:COLUMN of a "
    "hub data set, or sha256:HASH of a text that is here under any name.  [default: the recipe's own]",
)
@click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a recipe value; KEY=A,B,C makes a run for each. May be repeated.",
)
@max_steps_option
@click.option(
    "--budget",
    help="How long to train, in place of the recipe's epochs: 10m, 2h, 5000steps, 1e6sentences, 3e7tokens, 2gpu-h.",
)
@click.option(
    "--chunk",
    type=click.IntRange(min=1),
    help="Hold so many rows of a batch in memory at a time; the gradient is that of the whole batch.",
)
@click.option(
    "--auto-batch",
    is_flag=True,
    help="Where a batch does not fit into memory, find by trying what does.",
)
@click.option(
    "--compile",
    "compiled",
    is_flag=True,
    help="Compile the encoder for training (torch.compile); if that fails, train without.",
)
@click.option(
    "--text",
    default="tokenised",
    show_default=True,
    help="Text form of the sets that have several: tokenised, raw, tokenised,raw for both, any, other-<hash>.",
)
@device_option
@precision_option("Of training; scores are always float32.")
@click.option(
    "--executor",
    type=click.Choice(["local", "torchrun", "slurm", "ray"]),
    default="local",
    show_default=True,
    help="torchrun: several processes share every batch, one for each GPU. slurm, ray: every run is queued there.",
)
@click.option(
    "--gpus",
    type=click.IntRange(min=1),
    help="How many, with --executor torchrun [default: all]; on other machines for each run [default: none].",
)
@click.option("--cpus", type=click.IntRange(min=1), help="Cores for each run on other machines.")
@click.option("--memory", help="Memory for each run on other machines: 16G.")
@click.option(
    "--parallel",
    type=click.IntRange(min=1),
    help="Runs on other machines at once.  [default: as many as fit]",
)
@click.option(
    "--retries",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="Of a run whose worker was killed.",
)
@click.option(
    "--slurm",
    multiple=True,
    metavar="KEY=VALUE,...",
    help="Options of sbatch: partition=gpu,time=4:00:00. May be repeated.",
)
@click.option(
    "--commands",
    metavar="FILE",
    is_flag=False,
    flag_value="-",
    help="Write one self-contained shell command for each run, for any other scheduler, and run nothing. Without FILE: print them.",
)
@click.option(
    "--only",
    metavar="RUN_ID",
    help="Of the plan this run alone: what a worker on another machine is called with.",
)
@click.option("--fresh", is_flag=True, help="Do it again, even what is done.")
@click.option("--wait", is_flag=True, help="If another process works on a run, wait for it.")
@offline_option
@allow_pickle_option
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show what would be done: runs, time, memory, recipes, what is fetched. --device A100, H100 or RTX3090 plans for a card that "
    "is not here.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="With --dry-run: every recipe value with its source, run ids, terms of use.",
)
@data_option
@runs_option
@plugin_option
@json_option
@plain_option
@one_of_several
def run(
    methods: str | None,
    recipes: tuple[Path, ...],
    backbones: str,
    names: str | None,
    setting: str | None,
    variant: str,
    seeds: str,
    suites: str,
    corpus: str | None,
    pairs: tuple[str, ...],
    max_steps: int | None,
    budget: str | None,
    chunk: int | None,
    auto_batch: bool,
    compiled: bool,
    text: str,
    device: str,
    precision: str,
    executor: str,
    gpus: int | None,
    cpus: int | None,
    memory: str | None,
    parallel: int | None,
    retries: int,
    slurm: tuple[str, ...],
    commands: str | None,
    only: str | None,
    fresh: bool,
    wait: bool,
    offline: bool,
    allow_pickle: bool,
    dry_run: bool,
    everything: bool,
    data: Path | None,
    runs: Path | None,
    plugins: tuple[Path, ...],
    as_json: bool,
    plain: bool,
    ranks: Ranks | None,
) -> None:
    """Train methods and score them; one record per run in the runs folder.

    Run again, what is done is not repeated, and what was interrupted goes on.

    \b
    Example:  bench run simcse --suite sts --data DIR --corpus wiki.txt.xz
              bench run my_loss.py simcse --suite check --corpus builtin
    """
    from bench.cli.planning import check_nothing_to_fetch, plan_and_fetch, show_plan
    from bench.cli.progress import downloads, reporting
    from bench.data.fetching import offline_now
    from bench.data.sets import DataFolder
    from bench.run import plan
    from bench.run.executors.build import Options
    from bench.run.executors.torchrun import launch
    from bench.run.jobs import ENGINES, Resources, engine, job_here
    from bench.run.jobs import only as only_run
    from bench.run.recipes import series
    from bench.runs import RunsFolder
    from bench.score.suites import expand_suites, split_names

    for option, text_of in (("--backbone", backbones), ("--suite", suites), ("--seeds", seeds)):
        check_commas(option, text_of)
    job = job_here() if only is not None else None
    overrides, every = parse_overrides(pairs, max_steps, budget), save_seconds()
    request = plan.Request(
        methods=comma_list(methods),
        backbones=comma_list(backbones),
        names=comma_list(names),
        setting=setting,
        variant=variant,
        seeds=parse_seeds(seeds),
        suites=split_names(suites),
        text=",".join(comma_list(text)),
        corpus=corpus,
        overrides=overrides,
        allow_pickle=allow_pickle,
    )
    request = with_recipes(request, recipes)
    plan.check_request(request, plugins)
    DataFolder(data).check_root()  # before anything large is loaded
    elsewhere = commands is not None or executor in ENGINES
    asked = {
        "--cpus": cpus,
        "--memory": memory,
        "--parallel": parallel,
        "--slurm": slurm or None,
    }
    check_elsewhere(elsewhere, executor, commands, dry_run, only, asked)
    if elsewhere:
        device, precision, gpus = settle_device(device, precision, gpus)
    resources = Resources(gpus, cpus, memory, parallel, retries, parse_slurm(slurm))
    if elsewhere:
        if executor in ENGINES:
            engine(executor).check(resources, connect=not dry_run)
        count = gpus or 1
    else:
        device, precision, count = settled_here(
            device, precision, executor, gpus, ranks, only_look=dry_run
        )
        if only is not None:
            check_here(device, precision)
    for values in series(overrides):
        check_budget(values.get("budget"), device)
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
    whole = ranks.in_turn(make) if ranks else make()
    planned = whole.runs if only is None else (only_run(whole.runs, only),)
    if chunk is not None:
        check_chunks(planned, chunk)
    if count > 1 and not ranks and not dry_run and not elsewhere:
        raise click.exceptions.Exit(launch(sys.argv[1:], count))
    missing = tell_missing(planned)
    store = RunsFolder(runs)
    if elsewhere:
        if offline and dry_run:
            check_nothing_to_fetch(whole.to_fetch)
        with reporting(True) as reporter:
            code = run_elsewhere(
                click.get_current_context(),
                planned,
                store,
                resources,
                device=device,
                precision=precision,
                plugins=plugins,
                fresh=fresh,
                dry_run=dry_run,
                commands=commands,
                reporter=reporter,
            )
        raise click.exceptions.Exit(max(code, missing))
    if dry_run:
        show_plan(
            planned,
            whole.to_fetch,
            store,
            device,
            as_json,
            chunk=chunk,
            data=data,
            everything=everything,
        )
        if offline:
            check_nothing_to_fetch(whole.to_fetch)
        raise click.exceptions.Exit(missing)
    options = Options(
        device=device,
        offline=offline,
        fresh=fresh,
        wait_seconds=FOR_EVER if wait else 0.0,
        save_seconds=every,
        chunk=chunk,
        auto_batch=auto_batch,
        compiled=compiled,
        ranks=ranks,
        job=job,
    )
    if ranks and not ranks.lead:
        from bench.run.executors.multi_rank import follow

        raise click.exceptions.Exit(
            follow({run.run_id: (run, store) for run in planned}.__getitem__, options, ranks)
        )
    with reporting(plain or as_json) as reporter:
        records, code = run_all(planned, store, options, reporter, as_json)
    if not as_json and records:
        show_result(records, store, expand_suites(request.suites))
    raise click.exceptions.Exit(max(code, missing))


def parse_slurm(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """ "partition=gpu,time=4:00:00" as pairs; what has no "=" belongs to the value before it ("nodelist=a,b")."""
    pairs: list[tuple[str, str]] = []
    for text in texts:
        for i, part in enumerate(text.split(",")):
            key, equals, value = part.partition("=")
            if equals and key.strip().replace("-", "").isalnum():
                pairs.append((key.strip().lstrip("-"), value))
            elif i:
                pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]},{part}")
            else:
                raise BenchError(
                    f"--slurm {text}: expected KEY=VALUE", "--slurm partition=gpu,time=4:00:00"
                )
    return tuple(pairs)


def settled_here(
    device: str,
    precision: str,
    executor: str,
    gpus: int | None,
    ranks: Ranks | None,
    *,
    only_look: bool = False,
) -> tuple[str, str, int]:
    """The device, the precision and the number of processes that runs on this machine have. Raises BenchError.

    ``only_look``: for a plan, which may be for a card that is not here.
    """
    from bench.base import devices
    from bench.run.estimates import card_named, planned_device
    from bench.run.executors.torchrun import ranks_asked

    if executor == "local":
        ranks_asked(executor, gpus, device)
    if only_look and card_named(device := planned_device(device)) is not None:
        return device, "bf16" if precision == "auto" else precision, gpus or 1
    if card_named(device) is not None:
        raise BenchError(
            f"--device {device}: a card by its name is for a plan",
            "--dry-run plans for it; --device cuda trains on a GPU",
        )
    device = devices.choose_device(device)
    count = ranks_asked(executor, gpus, device)
    settle = partial(devices.choose_precision, precision, device)
    return device, ranks.first(settle) if ranks else settle(), count  # the ranks of a run agree


def check_elsewhere(
    elsewhere: bool,
    executor: str,
    commands: str | None,
    dry_run: bool,
    only: str | None,
    requested: dict[str, Any],
) -> None:
    """Raises BenchError for options that do not go together."""
    if commands is not None and executor not in ("local", "torchrun"):
        raise BenchError(
            f"--commands cannot be combined with --executor {executor}",
            "leave one of them out; --commands is for other schedulers",
        )
    if commands is not None and dry_run:
        raise BenchError("--commands runs nothing by itself", "leave --dry-run out")
    if only is not None and elsewhere:
        raise BenchError(
            "--only is an option of workers, which run on their own machine",
            "--executor local, or leave --only out",
        )
    for option, value in requested.items():
        if value is not None and not elsewhere:
            raise BenchError(
                f"{option} is for runs on other machines",
                "--executor slurm, --executor ray, or --commands",
            )
    if requested["--slurm"] is not None and executor != "slurm":
        raise BenchError("--slurm gives options to sbatch", "--executor slurm")


def with_recipes(request: Request, files: Sequence[Path]) -> Request:
    """The request with recipes from files; they say method, backbone, setting, variant and corpus where no option does."""
    from bench.run.plan import split_variant
    from bench.run.recipe_file import read_all_given, said_by_all

    if not files:
        return request
    given, source = read_all_given(files), click.get_current_context().get_parameter_source
    named = dict(map(split_variant, request.methods))
    if strange := [name for name in given if named and name not in named]:
        raise BenchError(
            f"--recipe: a file is of {strange[0]}, and --method names {', '.join(request.methods)}",
            "leave --method out",
        )
    backbone = (
        said_by_all(given, "backbone")
        if source("backbones") == click.core.ParameterSource.DEFAULT
        else None
    )
    return replace(
        request,
        given=given,
        methods=request.methods or tuple(given),
        backbones=(backbone,) if backbone else request.backbones,
        setting=request.setting or said_by_all(given, "setting"),
        variant=request.variant
        or ("" if any(named.values()) else said_by_all(given, "variant") or ""),
        corpus=request.corpus or said_by_all(given, "corpus"),
    )


def known_methods(files: Sequence[Path]) -> Registry:
    """The methods there are, with those of ``files``; a line for each that could not be loaded goes to standard error."""
    from bench.run.plugins import discover

    registry = discover(files)
    for warning in registry.warnings:
        warn(f"warning: {warning}")
    return registry


def check_budget(budget: str | None, device: str) -> None:
    """Raises BenchError for a budget that is none, and for GPU time where there is no GPU."""
    from bench.method.budget import GPU_SECONDS, parse

    if (
        budget
        and budget.lower() != "none"
        and parse(budget).unit == GPU_SECONDS
        and not device.startswith("cuda")
    ):
        raise BenchError(
            f"--budget {budget}: this run is on {device}, which is no GPU",
            f"--budget {budget.replace('gpu-', '')}, or --device cuda",
        )


def check_chunks(planned: Sequence[PlannedRun], chunk: int) -> None:
    """Raises BenchError where a method that trains cannot take a batch in parts."""
    from bench.training.gradient import check_chunk

    for run in planned:
        if run.corpus is not None and run.plugin.cls.fitted != "pass":
            check_chunk(run.plugin.cls, chunk)
