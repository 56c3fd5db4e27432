"""The options of ``bench run``, as a plan."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.base.errors import BenchError
from bench.base.typed import convert_typed
from bench.data.reading import SUFFIXES, format_of
from bench.method.plugins import from_file
from bench.run.config import FIELDS, Plan, RunConfig, with_recipes
from bench.run.values import comma_list, parse_overrides
from bench.score.suites import split_names, use_files


def plan_from_options(
    targets: Sequence[str], typed: Mapping[str, Any], plan_file: Path | None = None
) -> Plan:
    """Return the plan that the arguments and the typed options of ``bench run`` mean.

    ``targets``: names of methods, with commas, plugin files and recipe files. ``typed``: option ->
    its value; fields of a RunConfig, and "pairs", the texts KEY=VALUE of ``--set``. ``plan_file``:
    a plan; the options replace its values. Registers the suites of plugin files. Raises
    BenchError.
    """
    values = {key: value for key, value in typed.items() if key in FIELDS}
    values |= _named_backbones(typed.get("backbones", ()))
    overrides = parse_overrides(typed.get("pairs", ()))
    if "compile" in overrides:  # no recipe value: it is the same for all runs of a command
        text = overrides.pop("compile")
        try:
            values["compile"] = convert_typed(text, bool, strict=False)
        except ValueError as error:
            raise BenchError(
                f"--set compile={text}: {error}", "it is the same for all runs of a command"
            ) from None
    if overrides:
        values["overrides"] = overrides
    for key, suffix in (("plugins", ".py"), ("recipes", ".toml")):
        files = [*values.get(key, ()), *(name for name in targets if name.endswith(suffix))]
        if files:
            values[key] = tuple(files)
    use_files([Path(file) for file in values.get("plugins", ())])
    if "suites" in typed:  # now the suites of plugin files are known
        values["suites"] = split_names(",".join(typed["suites"]))
    methods = _named_methods(targets, values.get("methods"))
    if methods:
        values["methods"] = methods
    if plan_file is None:
        return Plan(tuple(with_recipes(RunConfig(**values), values)))
    plan = Plan.read(plan_file).with_values(**values)
    use_files([Path(file) for file in plan.runs[0].plugins])
    runs = [replace(run, suites=split_names(",".join(run.suites))) for run in plan.runs]
    return replace(plan, runs=tuple(runs))


def _named_methods(targets: Sequence[str], named: Sequence[str] | None) -> tuple[str, ...]:
    """Return the methods of ``--method`` and of the targets.

    ``named``: the methods of ``--method``; None if it was not typed, and then a plugin file among
    the targets means all methods that it defines.
    """
    methods = list(named or ())
    for target in targets:
        if target.endswith(".toml"):
            continue
        if format_of(target) in SUFFIXES:
            raise BenchError(
                f"{target} is a text, and no method, plugin file or recipe",
                f"--corpus {target} trains on it, --suite {target} scores on it",
            )
        if not target.endswith(".py"):
            methods += comma_list(target)
        elif named is None:
            methods += [plugin.name for plugin in from_file(Path(target))]
    return tuple(methods)


def _named_backbones(texts: Sequence[str]) -> dict[str, Any]:
    """Return the fields ``backbones`` and ``names``: NAME=FOLDER gives a backbone a name in tables.

    A text with "=" is a path if there is a file or folder of that name.
    """
    if not texts:
        return {}
    titles, places = [], []
    for text in texts:
        title, equals, place = text.partition("=")
        if not equals or os.path.exists(text):
            title = place = text
        titles.append(title)
        places.append(place)
    if titles == places:
        return {"backbones": tuple(places)}
    return {"backbones": tuple(places), "names": tuple(titles)}
