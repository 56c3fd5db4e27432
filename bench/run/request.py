"""Make the plan that a command or a call asks for."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec.structs import replace as replace_config

from bench.base.errors import BenchError
from bench.base.text import comma_list
from bench.data.reading import SUFFIXES, format_of
from bench.method.config import RunConfig
from bench.method.plugins import Plugin, discover, from_file, register_class
from bench.papers import find_part
from bench.run.paper_plan import plan_of_part
from bench.run.plan_toml import Plan, with_recipes
from bench.score.suites import split_suites, use_files


def make_plan(fields: Mapping[str, Any], file: Path | None = None, paper: str = "") -> Plan:
    """Return the plan of the fields of RunConfig that a command or a call gives.

    ``file``: a plan; methods choose its runs, other fields replace its values. ``paper``: a printed
    table or figure, "promcse:2", see :func:`plan_of_part`. Registers the suites of plugin files. Raises BenchError.
    """
    _check_one_length(fields)
    if file is not None and paper:
        raise BenchError("--plan cannot be combined with --paper", f"leave --paper {paper} out")
    if paper:
        plan = plan_of_part(find_part(paper), fields)
    elif file is None:
        plan = Plan(tuple(with_recipes(RunConfig(**fields), fields)))
    else:
        others = {name: value for name, value in fields.items() if name != "methods"}
        plan = Plan.read(file).of_methods(fields.get("methods", ())).with_given(others)
    plugins = [Path(name) for name in plan.runs[0].plugins]
    if plugins:  # a notebook keeps the suites of an earlier call
        use_files(plugins)
    # now the suites of plugin files are known
    runs = [
        replace_config(config, suites=split_suites(",".join(config.suites))) for config in plan.runs
    ]
    return replace(plan, runs=tuple(runs))


def _check_one_length(fields: Mapping[str, Any]) -> None:
    """Raise BenchError if --budget and --set give the same value."""
    budget = fields.get("budget")
    overrides = fields.get("overrides", {})
    key = RunConfig(budget=budget).budget_key
    if budget is not None and key in overrides:
        raise BenchError(
            f"--budget {budget} and --set {key}={overrides[key]}: each says how long to train",
            "give one",
        )


def name_methods(targets: Sequence[Any], fields: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the fields of RunConfig that the targets of a command or a call name: methods, plugin
    files and recipe files, after those that ``fields`` has.

    A target is a name of a method, or several with commas; a class; a Python file, which means all
    methods that it defines, unless ``fields`` names methods; or a recipe file. Raises BenchError
    for anything else, and for a class and a file that define methods of one name.
    """
    methods = list(fields.get("methods", ()))
    plugins = list(fields.get("plugins", ()))
    recipes = list(fields.get("recipes", ()))
    classes = []
    for target in targets:
        if not isinstance(target, str | os.PathLike):
            classes.append(register_class(target))
            methods.append(classes[-1].name)
            continue
        text = os.fspath(target)
        if text.endswith(".toml"):
            recipes.append(text)
        elif text.endswith(".py"):
            plugins.append(text)
            if "methods" not in fields:
                methods += [plugin.name for plugin in from_file(Path(text))]
        elif format_of(text) in SUFFIXES:
            raise BenchError(
                f"{text} is a text, and no method, plugin file or recipe",
                f"bench run METHOD --corpus {shlex.quote(text)} trains on it",
            )
        else:
            methods += comma_list(text)
    _check_classes(classes, plugins)
    named = {"methods": methods, "plugins": plugins, "recipes": recipes}
    return {key: tuple(dict.fromkeys(names)) for key, names in named.items() if names}


def _check_classes(classes: Sequence[Plugin], files: Sequence[str]) -> None:
    """Raise BenchError for a class and a file that define methods of one name."""
    if not classes:
        return
    registry = discover([Path(file) for file in dict.fromkeys(files)])
    for plugin in classes:
        if registry[plugin.name].cls is not plugin.cls:
            raise BenchError(
                f"{registry[plugin.name].package} defines the method '{plugin.name}', "
                f"and so does {plugin.package}",
                f"choose another name in {plugin.package}: name = 'my-{plugin.name}'",
            )
