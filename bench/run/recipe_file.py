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

    [[space]]                                    # what bench search may change, with the source of each bound: bench.run.search.space
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
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from bench.base.errors import BenchError, UnknownName
from bench.method.contract import SETTINGS, Value

MALFORMED = (
    tomllib.TOMLDecodeError,
    KeyError,
    AttributeError,
    TypeError,
    ValueError,
    RecursionError,
)
"""What reading a file that is not a recipe raises."""


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


@dataclass(frozen=True)
class RecipeFile:
    recipes: tuple[Entry, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    printed: Mapping[str, Any] = field(default_factory=dict)
    family: str = ""
    spaces: tuple[
        Mapping[str, Any], ...
    ] = ()  # as they stand there: bench.run.search.space says what they mean
    variants: Mapping[str, Mapping[str, Value]] = field(
        default_factory=dict
    )  # beside those that the class declares


KEYS = {field.name for field in fields(Entry)} - {"file"}
NO_SOURCE = "no source"  # of a value of which the file does not say where it comes from


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
        printed, family, spaces = (
            tables.pop("printed", {}),
            tables.pop("family", ""),
            tables.pop("space", []),
        )
        variants = {name: _values(table) for name, table in tables.pop("variants", {}).items()}
        unknown = set(tables).union(*common, *own, *spaces) - KEYS | set(printed) - {
            "method",
            "variants",
        }
        if unknown:
            raise ValueError(f"unknown table or key {', '.join(sorted(unknown))}")
        for table in (*common, *own, *spaces):
            _check_settings(table.get("setting"), file)
        for table in own:
            if missing := {"setting", "backbone"} - table.keys():
                raise ValueError(f"a [[recipe]] says no {' and no '.join(sorted(missing))}")
        if not isinstance(family, str):
            raise ValueError(f"family is {family!r}, not a word")
        return RecipeFile(
            tuple(_entry(table, common, str(file)) for table in own),
            disagreements,
            printed,
            family,
            tuple(spaces),
            variants,
        )
    except MALFORMED as error:
        raise BenchError(f"{file} is no recipe file: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """A ValueError of this file is a sentence; of other errors the type says most."""
    return (
        str(error)
        if type(error) in (ValueError, tomllib.TOMLDecodeError)
        else f"{type(error).__name__}: {error}"
    )


def _check_settings(wanted: object, file: Path) -> None:
    for setting in wanted if isinstance(wanted, list) else [] if wanted is None else [wanted]:
        if setting not in SETTINGS:
            raise UnknownName("setting", str(setting), SETTINGS, f"in {file}")


def _entry(table: Mapping[str, Any], common: list[Mapping[str, Any]], file: str) -> Entry:
    here = {"variant": "", **table}
    which = {key: here[key] for key in ("setting", "backbone", "variant")}
    values: dict[str, Value] = {}
    facts: dict[str, Value] = {}
    merged: dict[str, Any] = {"corpus": None, "expect": None, "note": ""}
    for layer in [
        *(
            shared
            for shared in common
            if all(fits(shared.get(key), name) for key, name in which.items())
        ),
        here,
    ]:
        values |= _values(layer.get("values", {}))
        facts |= _values(layer.get("facts", {}))
        merged |= {key: layer[key] for key in merged if key in layer}
    return Entry(**which, values=values, facts=facts, file=file, **merged)


def _values(table: Mapping[str, Any]) -> dict[str, Value]:
    """Of ``key = { value, source, note }``, or ``key = value``. Raises ValueError for anything else; the kind of a value is that of the
    method's default (bench.run.recipes.check_values)."""
    if not isinstance(table, Mapping):
        raise ValueError(f"expected a table of recipe values, found {table!r}")
    values = {}
    for key, given in table.items():
        entry = given if isinstance(given, Mapping) else {"value": given}
        if unknown := entry.keys() - {"value", "source", "note"}:
            raise ValueError(
                f"{key} has {', '.join(sorted(unknown))}; expected {{ value, source, note }}, or a value"
            )
        source = entry.get("source", NO_SOURCE)
        if not isinstance(source, str):
            raise ValueError(f"the source of {key} is {source!r}, not a text")
        values[key] = Value(entry.get("value"), source, entry.get("note"))
    return values


def fits(wanted: str | list[str] | None, name: str) -> bool:
    """Is a table that says ``wanted`` of its setting, backbone or variant for ``name``?"""
    return wanted is None or name == wanted or (isinstance(wanted, list) and name in wanted)


def entries(folder: Path, method: str) -> tuple[Entry, ...]:
    """The recipes that lie beside a method. Raises BenchError, naming the file, where one is malformed."""
    return read(folder, method).recipes


def with_file_variants(
    declared: Mapping[str, Mapping[str, Any]], folder: Path, method: str
) -> dict[str, Mapping[str, Any]]:
    """The variants that a method ``declared``, and those of its recipe file. Raises BenchError for a name that both have."""
    of_file = read(folder, method).variants
    if twice := sorted(declared.keys() & of_file.keys()):
        raise BenchError(
            f"{folder / 'recipes' / f'{method}.toml'}: [variants.{twice[0]}]: {method} declares a variant of that name itself",
            "another name",
        )
    return {**declared, **of_file}


# --- one recipe that was found or written elsewhere: what `bench run --recipe FILE` takes ---


@dataclass(frozen=True)
class GivenRecipe:
    """A file with ``method``, ``setting``, ``variant``, ``backbone``, ``corpus``, ``[values]`` as above and, where a search found them,
    ``[search]``: what is left out is as the command or the method has it."""

    method: str
    values: Mapping[str, Value]
    setting: str | None = None
    variant: str = ""
    backbone: str | None = None
    corpus: str | None = None
    search: Mapping[str, Any] = field(default_factory=dict)
    file: str = ""  # where it stands

    def check(self, seeds: Sequence[int], plugin: str) -> list[str]:
        """Notes on what a search found, ``plugin`` being the hash of the method's code today. Raises BenchError for a seed of the search:
        its dev score chose the values."""
        name, used = self.search.get("name", "the search"), self.search.get("seeds", [])
        if own := [seed for seed in seeds if seed in used]:
            raise BenchError(
                f"seed {own[0]} is one on which {name} chose these values, so that its score would be the best of many",
                "--seeds 1-5, or others that the search did not use",
            )
        before = str(self.search.get("plugin", plugin))
        return (
            []
            if before == plugin
            else [
                f"the code of {self.method} has changed since {name}: {before[:8]} then, {plugin[:8]} now"
            ]
        )


def read_given(file: Path) -> GivenRecipe:
    """Raises BenchError, naming the file, for one that is none."""
    hint = "bench search writes one for each method; docs/search.md has its form"
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        if unknown := content.keys() - {
            "method",
            "setting",
            "variant",
            "backbone",
            "corpus",
            "values",
            "search",
        }:
            raise ValueError(f"unknown key {', '.join(sorted(unknown))}")
        if missing := {"method", "values"} - content.keys():
            raise ValueError(f"it has no {' and no '.join(sorted(missing))}")
        _check_settings(content.get("setting"), file)
        given = GivenRecipe(values=_values(content.pop("values")), file=str(file), **content)
        for key in ("method", *(key for key in content if key != "search")):
            if not isinstance(getattr(given, key), str):
                raise ValueError(f"{key} is no text")
        if not isinstance(given.search, Mapping) or not isinstance(
            given.search.get("seeds", []), list
        ):
            raise ValueError("search is no table of a search")
    except OSError as error:
        raise BenchError(f"--recipe {file}: {error.strerror or error}", hint) from None
    except MALFORMED as error:
        raise BenchError(f"--recipe {file} is no recipe: {_reason(error)}", hint) from None
    return given


def read_all_given(files: Sequence[str]) -> dict[str, GivenRecipe]:
    """By method. Raises BenchError for two of one method."""
    by_method: dict[str, GivenRecipe] = {}
    for file in files:
        given = read_given(Path(file))
        if given.method in by_method:
            raise BenchError(
                f"--recipe {file}: another file is of {given.method}, too",
                "one recipe a method; the other in a command of its own",
            )
        by_method[given.method] = given
    return by_method
