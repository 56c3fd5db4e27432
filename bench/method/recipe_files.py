"""Recipe files of methods and backbones, and a file for one run (``bench run --recipe FILE``)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, convert

from bench.base.errors import BenchError, one_line
from bench.method.recipe import Value

NO_SOURCE = "no source"  # the source of a value if the file names none
UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""Raised by reading a file that is not a recipe."""
Names = str | list[str] | None
Setting = Literal["unsupervised", "supervised", "none"]
Settings = Setting | list[Setting] | None


class Entry(Struct, frozen=True, forbid_unknown_fields=True):
    """One recipe of a method's file, with the values that it shares."""

    setting: Setting
    backbone: str
    variant: str
    values: dict[str, Value] = {}
    corpus: str | None = None
    expect: dict[str, Any] | None = None
    note: str = ""
    facts: dict[str, Value] = {}
    # the file that it was read from
    file: str = ""


@dataclass(frozen=True)
class RecipeDisagreement:
    """A difference between a paper and its authors' code, and the choice made here."""

    topic: str
    paper: str
    code: str
    use: str


class SpaceTable(Struct, frozen=True, forbid_unknown_fields=True):
    """:mod:`bench.run.search` explains the values."""

    values: Annotated[dict[str, Any], Meta(min_length=1)]
    setting: Settings = None
    backbone: Names = None
    variant: Names = None


class RecipeFile(
    Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"recipes": "recipe", "disagreements": "disagreement", "spaces": "space"},
):
    recipes: tuple[Entry, ...] = ()
    disagreements: tuple[RecipeDisagreement, ...] = ()
    family: str = ""
    spaces: tuple[SpaceTable, ...] = ()
    variants: dict[str, dict[str, Value]] = {}


@cache
def read_recipes(folder: Path, method: str) -> RecipeFile:
    """Return the recipe file of a method; empty if there is none.

    Raises BenchError, naming the file, if it is malformed.
    """
    file = folder / "recipes" / f"{method}.toml"
    if not file.exists():
        return RecipeFile()
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
        common, variants = tables.pop("common", []), tables.get("variants", {})
        convert([table.get("setting") for table in common], list[Settings])
        tables["recipe"] = [_whole(table, common, str(file)) for table in tables.get("recipe", [])]
        tables["variants"] = {name: _triples(values) for name, values in variants.items()}
        return convert(tables, RecipeFile)
    except UNREADABLE as error:
        raise BenchError(f"{file} is not a valid recipe file: {error}") from None


def _whole(
    recipe: Mapping[str, Any], common: Sequence[Mapping[str, Any]], file: str
) -> dict[str, Any]:
    """Return a recipe's table over the tables of ``common`` that apply to it; later ones win."""
    recipe = {"variant": "", **recipe}
    whole: dict[str, Any] = {"values": {}, "facts": {}}
    for table in (*common, recipe):
        if all(
            fits_selector(table.get(key), recipe[key]) for key in ("setting", "backbone", "variant")
        ):
            whole |= {
                **table,
                **{key: whole[key] | _triples(table.get(key, {})) for key in ("values", "facts")},
            }
    return {**whole, "file": file}


def _triples(table: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return every ``key = value`` as ``key = { value, source, note }``."""
    values = {}
    for key, content in table.items():
        triple = {"value": None, "source": NO_SOURCE, "note": None}
        if isinstance(content, dict):
            triple |= content
        else:
            triple["value"] = content
        values[key] = triple
        if len(values[key]) > 3:
            raise ValueError(f"{key}: expected {{ value, source, note }}, or a value")
    return values


def fits_selector(names: str | Sequence[str] | None, name: str) -> bool:
    """Return True if a table with ``names`` as setting, backbone or variant applies to ``name``."""
    return names is None or name in ([names] if isinstance(names, str) else names)


class CustomRecipe(Struct, frozen=True, forbid_unknown_fields=True):
    """``method``, ``setting``, ``variant``, ``backbone``, ``corpus``, ``[values]`` as above and, if
    a search chose them, ``[search]``. The command or the method gives the missing ones.
    """

    method: str
    values: dict[str, Value]
    setting: Setting | None = None
    variant: str = ""
    backbone: str | None = None
    corpus: str | tuple[str, ...] | None = None
    search: dict[str, Any] = {}
    # the file that it was read from
    file: str = ""

    def check(self, seeds: Sequence[int], plugin: str) -> list[str]:
        """Return notes on the values of a search; ``plugin``: the identity of the method's code
        now.

        Raises BenchError for a seed of the search: its dev score chose the values.
        """
        name = self.search.get("name", "the search")
        used = set(seeds).intersection(self.search.get("seeds", []))
        if used:
            raise BenchError(
                f"seed {min(used)}: {name} chose these values by its scores on this seed, which "
                "are therefore biased",
                "--seeds 1-5, or other seeds that the search did not use",
            )
        if self.search.get("plugin", plugin) == plugin:
            return []
        return [f"the code of {self.method} has changed since {name}"]


def read_custom(file: Path) -> CustomRecipe:
    """Raise BenchError, naming the file, if it is not a recipe."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        if "run" in table:
            command = f"bench run --plan {quote(str(file))}"
            raise BenchError(f"{file} is a plan, and no recipe", command)
        if "values" not in table:
            raise ValueError("it has no [values]")
        table |= {"values": _triples(table["values"]), "file": str(file)}
        recipe = convert(table, CustomRecipe)
        convert(recipe.search.get("seeds", []), list[int])
    except FileNotFoundError:
        raise BenchError(
            f"--recipe {file}: no such file", "bench search METHOD writes one"
        ) from None
    except UNREADABLE as error:
        reason = f"is not a valid recipe: {one_line(error)}"
        if isinstance(error, OSError):
            reason = f"cannot be read: {error.strerror}"
        raise BenchError(
            f"--recipe {file} {reason}",
            "bench search METHOD writes one; docs/training.md describes the format",
        ) from None
    return recipe
