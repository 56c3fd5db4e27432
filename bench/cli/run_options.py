"""The options of ``bench run``, which other verbs share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import BenchError
from bench.cli.options import (
    comma_list,
    parse_overrides,
    parse_seeds,
    warn,
)
from bench.run.config import (
    RESOURCES,
    Plan,
    RunConfig,
    read_plan,
    with_recipes,
)
from bench.run.plugins import from_file
from bench.score.suites import split_names, use_files

if TYPE_CHECKING:
    pass

WHAT, HOW, FOLDERS, OUTPUT = "What is run", "How it is run", "Folders", "Output"
WORKERS = "For workers, which --on starts"


class GroupedOption(click.Option):
    def __init__(self, *names: Any, group: str, **more: Any) -> None:
        super().__init__(*names, **more)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose help shows its options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (row := param.get_help_record(ctx)):
                groups.setdefault(getattr(param, "group", OUTPUT), []).append(row)
        for group, rows in groups.items():
            with formatter.section(group):
                formatter.write_dl(rows)


def option(group: str, *names: str, **more: Any) -> Callable[..., Any]:
    return click.option(*names, cls=GroupedOption, group=group, **more)


hidden = partial(click.option, hidden=True)


def chunk_of(text: str) -> int | str:
    if text != "auto" and not (text.isdigit() and int(text)):
        raise BenchError(f"--chunk {text}: expected a number of rows, or auto", "--chunk 16")
    return text if text == "auto" else int(text)


FILE = click.Path(path_type=Path, dir_okay=False)
OPTIONS = (
    option(
        WHAT,
        "--backbone",
        "backbones",
        type=comma_list,
        metavar="TEXT",
        help="Hub names, folders, or builtin, separated by commas; NAME=FOLDER sets its name in tables.  [default: builtin]",
    ),
    option(
        WHAT,
        "--setting",
        type=click.Choice(["unsupervised", "supervised", "none"]),
        help="[default: the one with a recipe for the backbone]",
    ),
    option(
        WHAT,
        "--seeds",
        type=parse_seeds,
        metavar="TEXT",
        help="42, 1-5, or 1,3,7-9.  [default: 42]",
    ),
    option(
        WHAT,
        "--suite",
        "suites",
        multiple=True,
        metavar="SUITE",
        help="Suites, separated by commas, or all; SUITE:TASK for one task; a file of yours (pairs.tsv, classification:texts.csv). "
        "May be repeated.  [default: sts]",
    ),
    option(
        WHAT,
        "--text",
        type=lambda text: ",".join(comma_list(text)),
        metavar="TEXT",
        help="Text form of the sets that have several: tokenised, raw, tokenised,raw for both, any, other-<hash>.  "
        "[default: tokenised]",
    ),
    option(
        WHAT,
        "--corpus",
        help="Training text: a file, a name that recipes use (builtin, wiki1m, nli, nli-labelled, stsb-train, syncse-partial, syncse-scratch, target), "
        "hub:OWNER/NAME:COLUMN, or sha256:HASH of a text that is here.  [default: the recipe's]",
    ),
    option(
        WHAT,
        "--set",
        "pairs",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change a recipe value; KEY=A,B,C makes a run for each. compile=true compiles the encoder. May be repeated.",
    ),
    option(
        WHAT,
        "--budget",
        help="How long to train: 60steps, 2epochs, 10m, 2h, 1e6sentences, 3e7tokens, 2gpu-h.  [default: as the recipe says]",
    ),
    option(
        WHAT,
        "--plan",
        "plan_file",
        type=FILE,
        help="Run a plan; other options replace its values.",
    ),
    option(
        HOW,
        "--device",
        help="auto, cpu, cuda, cuda:1, mps; with --dry-run also A100, H100, RTX3090.  [default: auto]",
    ),
    option(
        HOW,
        "--precision",
        type=click.Choice(["auto", "fp32", "tf32", "bf16", "fp16"]),
        help="Precision of training; scores are always float32.  [default: auto]",
    ),
    option(
        HOW,
        "--chunk",
        type=chunk_of,
        metavar="N|auto",
        help="Rows of a batch in memory at a time, with the same gradient; auto: as many as fit.",
    ),
    option(
        HOW,
        "--on",
        metavar="TARGET",
        help="Where: torchrun:N (N processes share every batch), slurm:gpus=1,partition=gpu,time=4:00:00, ray:cpus=4,memory=16G, "
        "or commands (print a command for each run).  [default: here]",
    ),
    option(HOW, "--fresh", is_flag=True, help="Run again, even what is finished."),
    option(
        HOW,
        "--offline",
        is_flag=True,
        help="Open no network connection; anything missing is an error.",
    ),
    option(
        HOW,
        "--allow-pickle",
        is_flag=True,
        help="Accept backbones whose weights are a pickle; only its tensors are read.",
    ),
    option(
        FOLDERS,
        "--data",
        envvar="BENCH_DATA",
        show_envvar=True,
        help="Evaluation data: senteval/, senteval-moses/, train/, ...",
    ),
    option(
        FOLDERS,
        "--runs",
        envvar="BENCH_RUNS",
        show_envvar=True,
        help="Where runs are stored.  [default: ./runs]",
    ),
    option(
        OUTPUT,
        "--dry-run",
        is_flag=True,
        help="Show what would be done: runs, time, memory, recipes, what is fetched.",
    ),
    option(
        OUTPUT,
        "--all",
        "everything",
        is_flag=True,
        help="With --dry-run: every recipe value with its source, run ids, terms of use.",
    ),
    option(
        OUTPUT, "--to", type=FILE, help="With --dry-run: write the plan into a file, for --plan."
    ),
    option(
        OUTPUT,
        "--json",
        "as_json",
        is_flag=True,
        help="Print JSON and nothing else.",
    ),
)
SAME = (
    option(
        WHAT, "--method", "methods", type=comma_list, metavar="TEXT", help="The same as METHOD."
    ),
    option(
        WHAT, "--plugin", "plugins", multiple=True, metavar="FILE.py", help="The same as FILE.py."
    ),
    option(
        WHAT, "--recipe", "recipes", multiple=True, metavar="FILE", help="The same as RECIPE.toml."
    ),
    option(OUTPUT, "--plain", is_flag=True, help="Plain progress lines instead of a live display."),
    option(WORKERS, "--only", metavar="RUN_ID", help="Do only this run of the plan."),
    option(WORKERS, "--wait", is_flag=True, help="Wait for a run that another process does."),
)
"""Options that mean the same as an argument, and those for workers."""
COUNT = click.IntRange(min=1)
ON = "--on {on}"
OLD: Mapping[str, tuple[dict[str, Any], str]] = {
    "--variant": ({}, "METHOD+VARIANT"),
    "--name": ({"type": comma_list}, "--backbone NAME=FOLDER"),
    "--max-steps": ({"type": COUNT}, "--set max_steps={value}, or --budget {value}steps"),
    "--auto-batch": ({"is_flag": True}, "--chunk auto"),
    "--compile": ({"is_flag": True}, "--set compile=true"),
    "--executor": ({"type": click.Choice(["local", "torchrun", "slurm", "ray"])}, ON),
    "--gpus": ({"type": COUNT}, ON),
    "--cpus": ({"type": COUNT}, ON),
    "--memory": ({}, ON),
    "--parallel": ({"type": COUNT}, ON),
    "--retries": ({"type": click.IntRange(min=0)}, ON),
    "--slurm": ({"multiple": True}, ON),
    "--commands": ({"is_flag": False, "flag_value": "-"}, ON),
}
"""Options of the previous version -> how click reads them, and what to type now. They work in this version only."""


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds all options of ``bench run``; those of a RunConfig reach the command as keywords, for :func:`plan_of`."""
    old = [hidden(name, **more) for name, (more, _) in OLD.items()]
    for decorate in reversed([*OPTIONS, *SAME, *old]):
        command = decorate(command)
    return command


def shared_options(*names: str) -> list[click.Parameter]:
    """These options of ``bench run``, for a verb in which they mean the same."""
    return [
        param
        for param in click.command()(run_options(lambda **_: None)).params
        if param.name in names
    ]


def plan_of(targets: Sequence[str], plan_file: Path | None, options: Mapping[str, Any]) -> Plan:
    """The plan that the arguments and the options of ``bench run`` mean. Raises BenchError."""
    source = click.get_current_context().get_parameter_source
    typed = {
        key: value
        for key, value in options.items()
        if source(key) not in (None, click.core.ParameterSource.DEFAULT)
    }
    values = {key: typed[key] for key in typed.keys() & RunConfig.__dataclass_fields__.keys()}
    values |= _renamed(typed) | _backbones(typed.get("backbones", ()))
    steps = [f"max_steps={typed['max_steps']}"] if "max_steps" in typed else []
    if overrides := parse_overrides([*typed.get("pairs", ()), *steps]):
        if "compile" in overrides:
            values["compile"] = overrides.pop("compile").lower() in ("true", "1", "yes")
        values["overrides"] = overrides
    for key, suffix in (("plugins", ".py"), ("recipes", ".toml")):
        if files := (*values.get(key, ()), *(t for t in targets if t.endswith(suffix))):
            values[key] = files
    use_files([Path(file) for file in values.get("plugins", ())])
    if "suites" in typed:  # when the suites of plugin files are known
        values["suites"] = split_names(",".join(typed["suites"]))
    methods = [*values.get("methods", ())]
    for target in targets:
        if not target.endswith((".py", ".toml")):
            methods += comma_list(target)
        elif target.endswith(".py") and "methods" not in values:  # every method of the file
            methods += [plugin.name for plugin in from_file(Path(target))]
    if methods:
        values["methods"] = tuple(methods)
    if plan_file is None:
        return Plan(tuple(with_recipes(RunConfig(**values), values)))
    plan = read_plan(plan_file).replaced(**values)
    use_files([Path(file) for file in plan.runs[0].plugins])
    return plan


def _backbones(names: Sequence[str]) -> dict[str, Any]:
    """``NAME=FOLDER`` gives a backbone the name that tables print."""
    pairs = [
        (title, place) if equals and not os.path.exists(name) else (name, name)
        for name in names
        for title, equals, place in [name.partition("=")]
    ]
    values = {"backbones": tuple(place for _, place in pairs)} if pairs else {}
    if any(title != place for title, place in pairs):
        values["names"] = tuple(title for title, _ in pairs)
    return values


def _renamed(typed: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a RunConfig from options under their old names; prints a line with the new name of each."""
    values: dict[str, Any] = {"names": typed["name"]} if "name" in typed else {}
    if "auto_batch" in typed:
        values["chunk"] = "auto"
    used = {name: typed[key] for name in OLD if (key := name[2:].replace("-", "_")) in typed}
    if any(OLD[name][1] == ON for name in used):
        engine = typed.get("executor", "here").replace("local", "here")
        parts = [f"{key}={typed[key]}" for key in RESOURCES if key in typed]
        if "commands" in typed:
            engine = "commands"
            parts += [f"file={typed['commands']}"] if typed["commands"] != "-" else []
        values["on"] = f"{engine}:{','.join([*parts, *typed.get('slurm', ())])}".removesuffix(":")
    for name, value in used.items() if "LOCAL_RANK" not in os.environ else ():
        now = OLD[name][1].format(value=value, on=values.get("on"))
        warn(f"{name}: now {now}; the old name works in this version only")
    return values
