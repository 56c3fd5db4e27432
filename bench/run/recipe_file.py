"""Reads ``recipes/<name>.toml`` beside a method: its recipes, and where its paper and its authors' code disagree.

::

    family = "contrastive"                       # optional: a filter of the pages; a word of your own, or one that others have

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
    learning_rate = 3e-5                         # in a file of your own; shown as "no source"

    [[disagreement]]
    topic = "evaluation interval"
    paper = "every 250 steps"
    code = "every 125 steps"
    use = "125"

    [[space]]                                    # what bench search may change, with the source of each bound: bench.run.search
    [space.values]
    temperature = { values = [0.03, 0.05, 0.1], source = "table 4" }

    [variants.no-mlm]                            # a variant that the method does not declare itself: METHOD+no-mlm
    mlm = { value = false, source = "table 2" }

    [printed]                                    # where bench.references has other names for it: "" for a method without rows
    method = "first-last-avg"
    variants = { layer-shared = "layer-shared-prompt" }
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from bench.base.errors import BenchError
from bench.method.contract import Value

NO_SOURCE = "no source"  # of a value of which the file does not say where it comes from
UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What reading a file raises that is not a recipe."""
Names = str | list[str] | None
Setting = Literal["unsupervised", "supervised", "none"]
Settings = Setting | list[Setting] | None


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One recipe of a method's file, with what it shares."""

    setting: Setting
    backbone: str
    variant: str
    values: dict[str, Value] = {}
    corpus: str | None = None
    expect: dict[str, Any] | None = None
    note: str = ""
    facts: dict[str, Value] = {}
    file: str = ""  # where it stands

    @property
    def where(self) -> str:
        """For a message: the file and which of its recipes."""
        return f"{self.file}: recipe for {self.setting}, {self.backbone}{f', {self.variant}' if self.variant else ''}"


@dataclass(frozen=True)
class Disagreement:
    """What the paper says, what its authors' code does, and what is done here."""

    topic: str
    paper: str
    code: str
    use: str


class Space(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """:mod:`bench.run.search` says what the values mean."""

    values: Annotated[dict[str, Any], msgspec.Meta(min_length=1)]
    setting: Settings = None
    backbone: Names = None
    variant: Names = None


class RecipeFile(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"recipes": "recipe", "disagreements": "disagreement", "spaces": "space"},
):
    recipes: tuple[Entry, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    printed: dict[Literal["method", "variants"], Any] = {}
    family: str = ""
    spaces: tuple[Space, ...] = ()
    variants: dict[str, dict[str, Value]] = {}


@cache
def read(folder: Path, method: str) -> RecipeFile:
    """The file that lies beside a method; empty where there is none. Raises BenchError, naming the file, where it is malformed."""
    file = folder / "recipes" / f"{method}.toml"
    if not file.exists():
        return RecipeFile()
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
        common = tables.pop("common", [])
        msgspec.convert([table.get("setting") for table in common], list[Settings])
        tables["recipe"] = [_whole(one, common, str(file)) for one in tables.get("recipe", [])]
        variants = tables.get("variants", {})
        tables["variants"] = {name: _sourced(values) for name, values in variants.items()}
        return msgspec.convert(tables, RecipeFile)
    except UNREADABLE as error:
        raise BenchError(f"{file} is no recipe file: {error}") from None


def _whole(
    recipe: Mapping[str, Any], common: Sequence[Mapping[str, Any]], file: str
) -> dict[str, Any]:
    """A recipe's table over those of ``common`` that are for it; later ones win."""
    recipe = {"variant": "", **recipe}
    shared = [
        table
        for table in common
        if all(fits(table.get(key), recipe[key]) for key in ("setting", "backbone", "variant"))
    ]
    whole: dict[str, Any] = {"values": {}, "facts": {}}
    for table in (*shared, recipe):
        both = {key: whole[key] | _sourced(table.get(key, {})) for key in ("values", "facts")}
        whole |= {**table, **both}
    return {**whole, "file": file}


def _sourced(table: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """``key = value`` as ``key = { value, source, note }``, whole."""
    values = {}
    for key, content in table.items():
        entry = content if isinstance(content, dict) else {"value": content}
        values[key] = {"value": None, "source": NO_SOURCE, "note": None, **entry}
        if len(values[key]) > 3:
            raise ValueError(f"{key}: expected {{ value, source, note }}, or a value")
    return values


def fits(names: str | Sequence[str] | None, name: str) -> bool:
    """Is a table that has ``names`` as its setting, backbone or variant for ``name``?"""
    return names is None or name in ([names] if isinstance(names, str) else names)


# --- one recipe that was written elsewhere: what `bench run --recipe FILE` takes ---


class CustomRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``method``, ``setting``, ``variant``, ``backbone``, ``corpus``, ``[values]`` as above and, where a search found them,
    ``[search]``: what is missing is as the command or the method has it."""

    method: str
    values: dict[str, Value]
    setting: Setting | None = None
    variant: str = ""
    backbone: str | None = None
    corpus: str | None = None
    search: dict[str, Any] = {}
    file: str = ""  # where it stands

    def check(self, seeds: Sequence[int], plugin: str) -> list[str]:
        """Notes on what a search found, ``plugin`` being the hash of the method's code today. Raises BenchError for a seed of the search:
        its dev score chose the values."""
        name = self.search.get("name", "the search")
        if used := set(seeds).intersection(self.search.get("seeds", [])):
            raise BenchError(
                f"seed {min(used)} is one on which {name} chose these values, so that its score would be the best of many",
                "--seeds 1-5, or others that the search did not use",
            )
        changed = self.search.get("plugin", plugin) != plugin
        return [f"the code of {self.method} has changed since {name}"] if changed else []


def read_custom(file: Path) -> CustomRecipe:
    """Raises BenchError, naming the file, for one that is none."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        table |= {"values": _sourced(table["values"]), "file": str(file)}
        recipe = msgspec.convert(table, CustomRecipe)
        msgspec.convert(recipe.search.get("seeds", []), list[int])
    except UNREADABLE as error:
        hint = "bench search writes one for each method; docs/search.md has its form"
        raise BenchError(f"--recipe {file} is no recipe: {error}", hint) from None
    return recipe
