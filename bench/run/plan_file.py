"""A plan: runs that answer a question, in a TOML file that ``bench run --plan FILE`` runs.

::

    question = "Does a lower temperature help SimCSE?"

    [common]                      # optional: of every run that does not say otherwise
    suites = ["check"]
    corpus = "builtin"

    [[run]]                       # the fields of bench.run.config.RunConfig
    methods = ["simcse"]
    seeds = [1, 2, 3]
    set = { temperature = [0.03, 0.05] }
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.base.errors import BenchError
from bench.base.files import write_or_fail
from bench.run.config import RunConfig, from_table, to_table
from bench.run.recipe_file import read_all_custom

SHARED = ("device", "on", "chunk", "compile", "fresh", "offline", "data", "runs", "plugins")
"""Fields that are of the command: the same in all runs of a plan."""


@dataclass(frozen=True)
class Plan:
    runs: tuple[RunConfig, ...]
    question: str = ""

    def __post_init__(self) -> None:
        """Raises BenchError where the runs disagree on what is of the whole command."""
        for key in SHARED:
            if len({getattr(config, key) for config in self.runs}) > 1:
                raise BenchError(
                    f"a plan has one value of {key} for all runs", "set it in [common]"
                )

    def replaced(self, **values: Any) -> Plan:
        """The plan with these fields in every run; recipe values are added to those of the runs."""
        added = values.pop("overrides", {})
        return replace(
            self,
            runs=tuple(
                replace(config, overrides={**config.overrides, **added}, **values)
                for config in self.runs
            ),
        )


def read_plan(file: Path) -> Plan:
    """Raises BenchError, naming the file, where it is not a plan."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        common, tables = content.pop("common", {}), content.pop("run", [])
        question = content.pop("question", "")
        if content or not tables:
            raise ValueError(f"expected [[run]], [common], question; found {', '.join(content)}")
        merged = [_merged(common, table) for table in tables]
        runs = tuple(with_recipes(from_table(table), table) for table in merged)
    except OSError as error:
        raise BenchError(f"--plan {file}: {error.strerror or error}") from None
    except (ValueError, TypeError, AttributeError) as error:
        hint = "bench run ... --dry-run --to FILE writes one"
        raise BenchError(f"--plan {file}: {error}", hint) from None
    return Plan(runs, str(question))


def _merged(common: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """A run's table over the common one; of ``set`` value by value."""
    values = {**common.get("set", {}), **table["set"]} if "set" in table else common.get("set", {})
    return {**common, **table, "set": values}


def write_plan(file: Path, plan: Plan) -> None:
    """Raises BenchError where it cannot be written."""
    lines = [f"question = {_toml(plan.question)}"] if plan.question else []
    for table in map(to_table, plan.runs):
        lines += ["", "[[run]]", *toml_lines(table)]
    write_or_fail(file, ("\n".join(lines).strip() + "\n").encode())


def toml_lines(values: Mapping[str, Any]) -> list[str]:
    """Lines of TOML, which writes texts, numbers, truth values and lists as JSON does. None is left out."""
    return [f"{key} = {_toml(value)}" for key, value in values.items() if value is not None]


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(toml_lines(value))} }}"
    return json.dumps(value, ensure_ascii=False)


def with_recipes(config: RunConfig, typed: Container[str]) -> RunConfig:
    """The config, where its recipe files say method, backbone, setting, variant and corpus unless these were ``typed``.

    Raises BenchError for a file of another method, and where the files do not agree on what an option has to say then.
    """
    if not config.recipes:
        return config
    recipes = read_all_custom(config.recipes)
    named = dict(config.named)
    if strange := recipes.keys() - (named or recipes).keys():
        text = f"a file is of {min(strange)}, and the command names {', '.join(config.methods)}"
        raise BenchError(f"--recipe: {text}", "leave the method out")
    values: dict[str, Any] = {"methods": config.methods or tuple(recipes)}
    for key in ("backbone", "setting", "variant", "corpus"):
        name = "backbones" if key == "backbone" else key
        if name in typed or (key == "variant" and any(named.values())):
            continue
        first, *others = {getattr(recipe, key) for recipe in recipes.values()}
        if others:
            text = f"--recipe: the files do not agree on the {key}"
            raise BenchError(text, f"--{key} NAME, or a command for each")
        if first:
            values[name] = (first,) if key == "backbone" else first
    return replace(config, **values)
