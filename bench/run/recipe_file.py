"""Reads ``recipes/<name>.toml`` beside a method: its recipes, and where its paper and its authors' code disagree.

::

    [[common]]                                   # what several recipes share; setting, backbone and variant say which ones:
    setting = "supervised"                       # a name, a list of names, or left out for all
    corpus = "nli"
    [common.values]
    epochs = { value = 3, source = "run_sup_example.sh" }
    [common.facts]                               # what no recipe key changes, kept because the source says it
    seed = { value = 42, source = "run_sup_example.sh" }

    [[recipe]]                                   # later tables win over earlier ones, a recipe's own values over common ones
    setting = "supervised"
    backbone = "bert-base-uncased"
    variant = ""                                 # optional: only for this variant
    expect = { suite = "sts", task = "Avg.", value = 81.57, source = "table 5" }
    note = "..."
    [recipe.values]
    batch_size = { value = 64, source = "README", note = "what another source says" }    # without `value`: none

    [[disagreement]]
    topic = "evaluation interval"
    paper = "every 250 steps"
    code = "every 125 steps"
    use = "125"

    [printed]                                    # where bench.references has other names for it: "" for a method without rows
    method = "first-last-avg"
    variants = { layer-shared = "layer-shared-prompt" }
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from bench.base.errors import BenchError
from bench.method import Value


@dataclass(frozen=True)
class Entry:
    """One recipe of a method's file, with what it shares."""

    setting: str
    backbone: str
    variant: str
    values: Mapping[str, Value]
    corpus: str | None
    expect: Mapping[str, Any] | None
    note: str = ""
    facts: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Disagreement:
    """What the paper says, what its authors' code does, and what is done here."""

    topic: str
    paper: str
    code: str
    use: str


@dataclass(frozen=True)
class RecipeFile:
    recipes: tuple[Entry, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    printed: Mapping[str, Any] = field(default_factory=dict)


KEYS = {field.name for field in fields(Entry)}
WHICH = ("setting", "backbone", "variant")


@cache
def read(folder: Path, method: str) -> RecipeFile:
    """The file that lies beside a method; empty where there is none. Raises BenchError, naming the file, where it is malformed."""
    file = folder / "recipes" / f"{method}.toml"
    if not file.exists():
        return RecipeFile()
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
        common, own = tables.pop("common", []), tables.pop("recipe", [])
        disagreements = tuple(Disagreement(**table) for table in tables.pop("disagreement", []))
        printed = tables.pop("printed", {})
        unknown = set(tables).union(*common, *own) - KEYS | set(printed) - {"method", "variants"}
        if unknown:
            raise ValueError(f"unknown table or key {', '.join(sorted(unknown))}")
        return RecipeFile(tuple(_entry(table, common) for table in own), disagreements, printed)
    except (tomllib.TOMLDecodeError, KeyError, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise BenchError(f"{file} is no recipe file: {type(error).__name__}: {error}") from None


def _entry(table: Mapping[str, Any], common: list[Mapping[str, Any]]) -> Entry:
    here = {"variant": "", **table}
    which = {key: here[key] for key in WHICH}
    values: dict[str, Value] = {}
    facts: dict[str, Value] = {}
    merged: dict[str, Any] = {"corpus": None, "expect": None, "note": ""}
    for layer in [*(shared for shared in common if all(_fits(shared.get(key), name) for key, name in which.items())), here]:
        values |= {key: Value(v.get("value"), v["source"], v.get("note")) for key, v in layer.get("values", {}).items()}
        facts |= {key: Value(v["value"], v["source"], v.get("note")) for key, v in layer.get("facts", {}).items()}
        merged |= {key: layer[key] for key in merged if key in layer}
    return Entry(**which, values=values, facts=facts, **merged)


def _fits(wanted: str | list[str] | None, name: str) -> bool:
    return wanted is None or name == wanted or (isinstance(wanted, list) and name in wanted)


def entries(folder: Path, method: str) -> tuple[Entry, ...]:
    """The recipes that lie beside a method. Raises BenchError, naming the file, where one is malformed."""
    return read(folder, method).recipes
