"""The options of ``bench run``, which other verbs share: the options of RunConfig, and those of
the command itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import click
from msgspec import NODEFAULT, inspect
from msgspec.structs import fields

from bench.base.errors import BenchError
from bench.base.text import comma_list
from bench.cli.options import VERBOSE_HELP
from bench.method.config import KINDS, OPTIONS, WHAT, RunConfig
from bench.run.options import read_fields
from bench.run.plan_toml import Plan
from bench.run.request import make_plan, name_methods

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


DEFAULTS = {field.name: field.default for field in fields(RunConfig)}


def field_option(name: str, text: str = "") -> Callable[..., Any]:
    """Return the option of a field of RunConfig, as a decorator.

    Its value is the text that was typed, or several texts, which :func:`plan_of` reads. ``text``:
    what help says in the place of the field's own words.
    """
    option, kind = OPTIONS[name], inspect.type_info(KINDS[name])
    metavar = option.metavar
    if isinstance(kind, inspect.LiteralType):
        choices = get_args(get_args(KINDS[name])[0])
        metavar = f"[{'|'.join(choices)}]"
    usual = option.default or _in_words(DEFAULTS[name])
    return grouped_option(
        option.group,
        option.name,
        name,
        is_flag=isinstance(kind, inspect.BoolType) or None,  # False: "-3m" would be no value
        multiple=_takes_several(kind),
        metavar=metavar,
        envvar=option.variable,
        show_envvar=option.variable is not None,
        help=text or (f"{option.help}  [default: {usual}]" if usual else option.help),
    )


def _takes_several(kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.UnionType):
        return any(_takes_several(part) for part in kind.types)
    return isinstance(kind, inspect.VarTupleType | inspect.DictType)


def _in_words(default: Any) -> str:
    """Return the default of a field as it is typed; "" for nothing."""
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    if default in (None, False, NODEFAULT):
        return ""
    return str(default)


COMMAND_OPTIONS = (
    grouped_option(
        WHAT,
        "--plan",
        "plan_file",
        type=FILE,
        help="Run a plan; METHOD chooses its runs, other options replace its values.",
    ),
    grouped_option(
        WHAT,
        "--paper",
        metavar="PAPER:TABLE",
        help="Run a paper's table or figure again (bench papers lists them); METHOD, --setting and "
        "--backbone choose its runs. A backbone that the table lacks replaces all of its own.",
    ),
    grouped_option(
        OUTPUT,
        "--dry-run",
        is_flag=True,
        help="Show what would be done: runs, steps, memory, recipes, what is fetched.",
    ),
    grouped_option(
        OUTPUT,
        "--all",
        "everything",
        is_flag=True,
        help="With --dry-run: every recipe value with its source, each download with its terms.",
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
    grouped_option(
        OUTPUT, "--plain", is_flag=True, help="Plain progress lines instead of a live display."
    ),
    grouped_option(OUTPUT, "--verbose", is_flag=True, help=VERBOSE_HELP),
    grouped_option(WORKERS, "--only", metavar="RUN_ID", help="Do only this run of the plan."),
    grouped_option(
        WORKERS, "--wait", is_flag=True, help="Wait for a run that another process does."
    ),
)
"""Options of ``bench run`` that are no field of RunConfig."""


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add all options of ``bench run`` to a command."""
    for decorate in reversed([*map(field_option, OPTIONS), *COMMAND_OPTIONS]):
        command = decorate(command)
    return command


def shared_options(*names: str) -> list[click.Parameter]:
    """Return these options of ``bench run``, for a verb that gives them the same meaning."""
    run = click.command()(run_options(lambda **_: None))
    return [param for param in run.params if param.name in names]


def plan_of(
    options: Mapping[str, Any],
    targets: Sequence[str] = (),
    plan_file: Path | None = None,
    paper: str | None = None,
) -> Plan:
    """Return the plan that a command means.

    ``options``: fields of RunConfig; those count that were typed, or set in the environment.
    ``targets``: names of methods, with commas, plugin files and recipe files. ``plan_file``: a
    plan; methods choose its runs, the others replace its values. ``paper``: a printed table.
    Raises BenchError.
    """
    context = click.get_current_context()
    typed = {}
    for name, value in options.items():
        source = context.get_parameter_source(name)
        if source is None or source is click.core.ParameterSource.DEFAULT:
            continue
        if value == "" or (isinstance(value, tuple) and "" in value):
            raise BenchError(f"{OPTIONS[name].name} is empty", "give it a value, or leave it out")
        typed[name] = value
    fields = read_fields(
        _in_parts(typed), as_option, strict=False, hint=f"{context.command_path} --help"
    )
    fields |= name_methods(targets, fields)
    return make_plan(fields, plan_file, paper or "")


def as_option(name: str, value: Any) -> str:
    """Return a field with its value as it is typed."""
    if name.startswith("set."):
        return f"--set {name.removeprefix('set.')}={value}"
    return f"{OPTIONS[name].name} {value}"


def _in_parts(typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return typed texts as values of RunConfig: lists with commas and KEY=VALUE in their parts."""
    values = dict(typed)
    if "methods" in typed:
        values["methods"] = comma_list(",".join(typed["methods"]))
    if "backbones" in typed:
        values |= read_backbones(comma_list(",".join(typed["backbones"])))
    if "seeds" in typed:
        values["seeds"] = ",".join(typed["seeds"])
    if len(typed.get("corpus", ())) == 1:
        values["corpus"] = typed["corpus"][0]
    if "overrides" in typed:
        values["overrides"] = read_set_values(typed["overrides"])
    return values


def read_set_values(pairs: Sequence[str]) -> dict[str, str]:
    """Read the texts KEY=VALUE of ``--set``. A value stays as it was typed; "A,B,C" is a series.

    Raises BenchError for a text without a key or without "=".
    """
    values = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        key = name.strip()
        if not equals or not name:
            raise BenchError(
                f"--set {pair}: expected KEY=VALUE", "for example --set batch_size=128"
            )
        if key not in ("prompt", "prompts"):  # a prompt such as "query: " ends in a blank
            value = value.strip()
        values[key] = value
    return values


def read_backbones(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the fields ``backbones`` and ``names``: NAME=FOLDER gives a backbone a name in tables.

    A text with "=" is a path if there is a file or folder of that name.
    """
    names, places = [], []
    for text in texts:
        name, equals, place = text.partition("=")
        if not equals or os.path.exists(text):
            name = place = text
        names.append(name)
        places.append(place)
    if names == places:  # also in the place of the names of a plan
        names = []
    return {"backbones": tuple(places), "names": tuple(names)}
