"""The options of ``bench run``, which other verbs share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from bench.base.devices import Precision
from bench.base.typed import Count
from bench.cli.typed_option import Typed, typed
from bench.run.seeds import parse_seeds
from bench.run.values import comma_list

WHAT = "What is run"
HOW = "How it is run"
FOLDERS = "Folders"
OUTPUT = "Output"
WORKERS = "For workers, which --on starts"


class GroupedOption(click.Option):
    """An option that help shows below the heading ``group``."""

    def __init__(self, *names: Any, group: str, **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.group = group


class GroupedCommand(click.Command):
    """A command with help that shows its options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if not isinstance(param, click.Option):
                continue
            row = param.get_help_record(ctx)
            if row:
                groups.setdefault(getattr(param, "group", OUTPUT), []).append(row)
        for group, rows in groups.items():
            with formatter.section(group):
                formatter.write_dl(rows)


def grouped_option(group: str, *names: str, **settings: Any) -> Callable[..., Any]:
    """Return a decorator like ``click.option``, with the heading of the option."""
    return click.option(*names, cls=GroupedOption, group=group, **settings)


FILE = click.Path(path_type=Path, dir_okay=False)


def _one_or_several(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> str | tuple[str, ...] | None:
    """Return the value of an option that may be repeated: alone if it was given once.

    None if it was not given.
    """
    if not values:
        return None
    if len(values) == 1:
        return values[0]
    return values


MAIN_OPTIONS = (
    grouped_option(
        WHAT,
        "--backbone",
        "backbones",
        type=comma_list,
        metavar="TEXT",
        help="Hub names, folders, or builtin, separated by commas; NAME=FOLDER sets its name in "
        "tables.  [default: builtin]",
    ),
    grouped_option(
        WHAT,
        "--setting",
        help="unsupervised, supervised or none.  [default: the setting that the paper reports for "
        "this backbone]",
    ),
    grouped_option(
        WHAT,
        "--seeds",
        type=Typed(parse_seeds),
        metavar="TEXT",
        help="42, 1-5, or 1,3,7-9.  [default: 42]",
    ),
    grouped_option(
        WHAT,
        "--suite",
        "suites",
        multiple=True,
        metavar="SUITE",
        help="Suites, separated by commas, or all; SUITE:TASK for one task; "
        "SUITE:PROTOCOL, as sts:senteval-all-raw/1, for another protocol; a file of yours "
        "(pairs.tsv, classification:texts.csv). "
        "May be repeated.  [default: sts]",
    ),
    grouped_option(
        WHAT,
        "--corpus",
        multiple=True,
        callback=_one_or_several,
        metavar="FILE[:COLUMN,COLUMN]",
        help="Training text: a file, with the columns to read, or a folder of save_to_disk; a name "
        "that recipes use (builtin, wiki1m, nli, nli-labelled, stsb-train, syncse-partial, "
        "syncse-scratch, target); hub:OWNER/NAME:COLUMN; or sha256:HASH of a text that is here. "
        "May be repeated, or A,B: trained on together.  [default: the recipe's]",
    ),
    grouped_option(
        WHAT,
        "--set",
        "pairs",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change a recipe value; KEY=A,B,C makes a run for each. compile=true compiles the "
        "encoder. May be repeated.",
    ),
    grouped_option(
        WHAT,
        "--budget",
        help="How long to train: 60steps, 2epochs, 10m, 2h, 1e6sentences, 3e7tokens, 2gpu-h.  "
        "[default: as the recipe says]",
    ),
    grouped_option(
        WHAT,
        "--plan",
        "plan_file",
        type=FILE,
        help="Run a plan; other options replace its values.",
    ),
    grouped_option(
        HOW,
        "--device",
        help="auto, cpu, cuda, cuda:1, mps.  [default: auto]",
    ),
    grouped_option(
        HOW,
        "--precision",
        type=typed(Precision),
        help="Precision of training; scores are always float32.  [default: auto]",
    ),
    grouped_option(
        HOW,
        "--chunk",
        type=typed(Count),
        metavar="N",
        help="Rows of a batch in memory at a time, with the same gradient.",
    ),
    grouped_option(
        HOW,
        "--on",
        metavar="TARGET",
        help="Where: torchrun:N (N processes share every batch), local:N (N runs at once), "
        "slurm:gpus=1,partition=gpu,time=4:00:00, "
        "or commands (print a command for each run).  [default: here]",
    ),
    grouped_option(HOW, "--fresh", is_flag=True, help="Repeat finished runs."),
    grouped_option(
        HOW,
        "--offline",
        is_flag=True,
        help="Open no network connection; anything missing is an error.",
    ),
    grouped_option(
        HOW,
        "--allow-pickle",
        is_flag=True,
        help="Accept backbones whose weights are a pickle; only its tensors are read.",
    ),
    grouped_option(
        FOLDERS,
        "--data",
        envvar="BENCH_DATA",
        show_envvar=True,
        help="Evaluation data: senteval/, senteval-moses/, train/, ...",
    ),
    grouped_option(
        FOLDERS,
        "--runs",
        envvar="BENCH_RUNS",
        show_envvar=True,
        help="Where runs are stored.  [default: ./runs]",
    ),
    grouped_option(
        OUTPUT,
        "--dry-run",
        is_flag=True,
        help="Show what would be done: runs, time, memory, recipes, what is fetched.",
    ),
    grouped_option(
        OUTPUT,
        "--all",
        "everything",
        is_flag=True,
        help="With --dry-run: every recipe value with its source, run ids, terms of use.",
    ),
    grouped_option(
        OUTPUT, "--to", type=FILE, help="With --dry-run: write the plan into a file, for --plan."
    ),
    grouped_option(
        OUTPUT,
        "--json",
        "as_json",
        is_flag=True,
        help="Print JSON and nothing else.",
    ),
)
OTHER_OPTIONS = (
    grouped_option(
        WHAT, "--method", "methods", type=comma_list, metavar="TEXT", help="The same as METHOD."
    ),
    grouped_option(
        WHAT, "--plugin", "plugins", multiple=True, metavar="FILE.py", help="The same as FILE.py."
    ),
    grouped_option(
        WHAT, "--recipe", "recipes", multiple=True, metavar="FILE", help="The same as RECIPE.toml."
    ),
    grouped_option(
        OUTPUT, "--plain", is_flag=True, help="Plain progress lines instead of a live display."
    ),
    grouped_option(WORKERS, "--only", metavar="RUN_ID", help="Do only this run of the plan."),
    grouped_option(
        WORKERS, "--wait", is_flag=True, help="Wait for a run that another process does."
    ),
)
"""Options that mean the same as an argument, and those for workers."""


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add all options of ``bench run`` to a command."""
    for decorate in reversed([*MAIN_OPTIONS, *OTHER_OPTIONS]):
        command = decorate(command)
    return command


def shared_options(*names: str) -> list[click.Parameter]:
    """Return these options of ``bench run``, for a verb that gives them the same meaning."""
    run = click.command()(run_options(lambda **_: None))
    return [param for param in run.params if param.name in names]


def typed_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that the user typed or set in the environment, without defaults."""
    context = click.get_current_context()
    typed = {}
    for name, value in options.items():
        source = context.get_parameter_source(name)
        if source is not None and source is not click.core.ParameterSource.DEFAULT:
            typed[name] = value
    return typed
