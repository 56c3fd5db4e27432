"""Recipes: the files they are in, the layers they are merged from, and the source of every value.

harness defaults < the backbone's values < the method's defaults < the recipe of the paper for this setting and backbone < variant < ``--set``

A method's recipes are in ``recipes/<name>.toml`` next to its module, with the points on which paper and authors' code disagree::

    family = "contrastive"                       # optional: a filter of the pages; any word, or one that other methods use

    [[common]]                                   # shared by several recipes; setting, backbone and variant say which:
    setting = "supervised"                       # a name, a list of names, or left out for all
    corpus = "nli"
    [common.values]
    epochs = { value = 3, source = "run_sup_example.sh" }
    [common.facts]                               # stated by the source, but not a recipe key
    seed = { value = 42, source = "run_sup_example.sh" }

    [[recipe]]                                   # later tables win over earlier ones, a recipe's own values over common ones
    setting = "supervised"
    backbone = "bert-base-uncased"
    variant = ""                                 # optional: only for this variant
    expect = { suite = "sts", task = "Avg.", value = 81.57, source = "table 5" }
    note = "..."
    [recipe.values]
    batch_size = { value = 64, source = "README", note = "what another source says" }    # without `value`: none
    learning_rate = 3e-5                         # in your own file; shown as "no source"

    [[disagreement]]
    topic = "evaluation interval"
    paper = "every 250 steps"
    code = "every 125 steps"
    use = "125"

    [[space]]                                    # what bench search may change, with the source of each bound: bench.run.search
    [space.values]
    temperature = { values = [0.03, 0.05, 0.1], source = "table 4" }

    [variants.no-mlm]                            # a variant that the method's class does not declare: METHOD+no-mlm
    mlm = { value = false, source = "table 2" }

    [printed]                                    # its names in bench.references, if they differ: "" for a method without rows
    method = "first-last-avg"
    variants = { layer-shared = "layer-shared-prompt" }
"""

from __future__ import annotations

import difflib
import inspect
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert, structs

from bench.base.errors import BenchError, UnknownName
from bench.base.same_code import equivalent_code
from bench.method.contract import Method, Recipe, Value, canonical

NO_SOURCE = "no source"  # of a value for which the file names none
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
    file: str = ""  # where it stands


@dataclass(frozen=True)
class Disagreement:
    """What the paper says, what its authors' code does, and what is done here."""

    topic: str
    paper: str
    code: str
    use: str


class Space(Struct, frozen=True, forbid_unknown_fields=True):
    """:mod:`bench.run.search` says what the values mean."""

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
    disagreements: tuple[Disagreement, ...] = ()
    printed: dict[Literal["method", "variants"], Any] = {}
    family: str = ""
    spaces: tuple[Space, ...] = ()
    variants: dict[str, dict[str, Value]] = {}


@cache
def read(folder: Path, method: str) -> RecipeFile:
    """The recipe file of a method; empty if there is none. Raises BenchError, naming the file, if it is malformed."""
    file = folder / "recipes" / f"{method}.toml"
    if not file.exists():
        return RecipeFile()
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
        common, variants = tables.pop("common", []), tables.get("variants", {})
        convert([table.get("setting") for table in common], list[Settings])
        tables["recipe"] = [_whole(one, common, str(file)) for one in tables.get("recipe", [])]
        tables["variants"] = {name: _triples(values) for name, values in variants.items()}
        return convert(tables, RecipeFile)
    except UNREADABLE as error:
        raise BenchError(f"{file} is not a valid recipe file: {error}") from None


def _whole(
    recipe: Mapping[str, Any], common: Sequence[Mapping[str, Any]], file: str
) -> dict[str, Any]:
    """A recipe's table over the tables of ``common`` that apply to it; later ones win."""
    recipe = {"variant": "", **recipe}
    whole: dict[str, Any] = {"values": {}, "facts": {}}
    for table in (*common, recipe):
        if all(fits(table.get(key), recipe[key]) for key in ("setting", "backbone", "variant")):
            whole |= {
                **table,
                **{key: whole[key] | _triples(table.get(key, {})) for key in ("values", "facts")},
            }
    return {**whole, "file": file}


def _triples(table: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Every ``key = value`` as ``key = { value, source, note }``."""
    values = {}
    for key, content in table.items():
        values[key] = {
            "value": None,
            "source": NO_SOURCE,
            "note": None,
            **(content if isinstance(content, dict) else {"value": content}),
        }
        if len(values[key]) > 3:
            raise ValueError(f"{key}: expected {{ value, source, note }}, or a value")
    return values


def fits(names: str | Sequence[str] | None, name: str) -> bool:
    """Does a table with ``names`` as its setting, backbone or variant apply to ``name``?"""
    return names is None or name in ([names] if isinstance(names, str) else names)


# --- a recipe file for one run: `bench run --recipe FILE` ---


class CustomRecipe(Struct, frozen=True, forbid_unknown_fields=True):
    """``method``, ``setting``, ``variant``, ``backbone``, ``corpus``, ``[values]`` as above and, if a search chose them, ``[search]``.
    The command or the method gives what is missing."""

    method: str
    values: dict[str, Value]
    setting: Setting | None = None
    variant: str = ""
    backbone: str | None = None
    corpus: str | None = None
    search: dict[str, Any] = {}
    file: str = ""  # where it stands

    def check(self, seeds: Sequence[int], plugin: str) -> list[str]:
        """Notes on the values of a search; ``plugin`` is the hash of the method's code now. Raises BenchError for a seed of the search, whose
        dev score chose the values."""
        name = self.search.get("name", "the search")
        if used := set(seeds).intersection(self.search.get("seeds", [])):
            raise BenchError(
                f"seed {min(used)}: {name} chose these values by its scores on this seed, which are therefore biased",
                "--seeds 1-5, or other seeds that the search did not use",
            )
        return (
            []
            if equivalent_code(self.search.get("plugin", plugin)) == equivalent_code(plugin)
            else [f"the code of {self.method} has changed since {name}"]
        )


def read_custom(file: Path) -> CustomRecipe:
    """Raises BenchError, naming the file, if it is not a recipe."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        table |= {"values": _triples(table["values"]), "file": str(file)}
        recipe = convert(table, CustomRecipe)
        convert(recipe.search.get("seeds", []), list[int])
    except UNREADABLE as error:
        raise BenchError(
            f"--recipe {file} is not a valid recipe: {error}",
            "bench search writes one for each method; docs/search.md describes the format",
        ) from None
    return recipe


SHARED = "the papers' common loop (SimCSE train.py)"
BACKBONES = (
    Path(__file__).parents[1] / "builtin"
)  # whose recipes/backbones.toml holds what belongs to a backbone

TRAINING: Mapping[str, Value] = {
    "batch_size": Value(64, "harness default"),
    "learning_rate": Value(3e-5, "harness default"),
    "epochs": Value(1, "harness default"),
    "max_steps": Value(None, "harness default: as many as the epochs have"),
    "max_seq_length": Value(32, SHARED + "; special tokens included"),
    "eval_steps": Value(125, SHARED, "SimCSE's paper, appendix A, says 250"),
    "select_on": Value("STS-B dev", SHARED + ": best Spearman, strictly better, one checkpoint"),
    "warmup_steps": Value(0, SHARED),
    "weight_decay": Value(0.0, SHARED),
    "max_grad_norm": Value(1.0, SHARED),
    "dropout": Value(None, "the backbone's own config"),
    "warmup_ratio": Value(0.0, SHARED),
    "schedule": Value("linear", SHARED),
    "drop_last": Value(False, SHARED),
    "patience": Value(None, SHARED),
    "corpus_column": Value(None, "harness default: the corpus as it is"),
}  # the harness's own keys: what bench.training reads
ON_REQUEST: Mapping[str, Value] = {
    "budget": Value(None, "harness default: as long as the epochs say"),
}  # in a recipe only if something sets them, so that the fingerprint of a recipe without them stays the same
HELP: Mapping[str, str] = {
    "batch_size": "rows of the corpus in one optimiser step; also how many candidates an anchor sees",
    "learning_rate": "AdamW's first rate; falls linearly to 0",
    "epochs": "passes over the corpus",
    "max_steps": "optimiser steps at most; the schedule ends there",
    "max_seq_length": "tokens of a training sentence, special tokens included",
    "eval_steps": "steps between two dev scores",
    "select_on": "'STS-B dev', 'sts-dev-clean' (no pair that a test set has), 'captions dev', or 'last' to keep the last step",
    "warmup_steps": "steps in which the rate rises from 0",
    "weight_decay": "AdamW's, not on biases and layer norms",
    "max_grad_norm": "global norm to which gradients are clipped",
    "dropout": "hidden and attention dropout of the backbone",
    "warmup_ratio": "the same as a share of all steps, where warmup_steps is 0",
    "schedule": "of the rate after the warm-up: 'linear' to 0, or 'constant'",
    "drop_last": "leave the last short batch of an epoch out",
    "patience": "dev scores in a row without improvement until training stops; none: never",
    "budget": "how long to train, in place of the epochs: 10m, 2h, 5000steps, 1e6sentences, 3e7tokens, 2gpu-h",
    "corpus_column": "train on one column of a wider corpus ('sent0'), or on every cell as a sentence ('all')",
}


# family -> hidden size: what "nearest" means among the backbones that the papers used
SIZES = {
    "builtin": ("bert", 256),
    "bert-base-uncased": ("bert", 768),
    "bert-large-uncased": ("bert", 1024),
    "roberta-base": ("roberta", 768),
    "roberta-large": ("roberta", 1024),
}


def choose(
    recipes: Sequence[Entry],
    setting: str,
    backbone: str,
    variant: str,
    shape: tuple[str, int] | None = None,
) -> Entry | None:
    """The recipe for a backbone, or for the nearest one that has a recipe: same family, then nearest size.

    Of two that are equally near, the one for the variant; a recipe without a variant holds for all. ``shape``: family and hidden
    size of the backbone, if its config has them; else they are guessed from its name.
    """
    family, size = SIZES.get(backbone) or shape or _guess(backbone)

    def distance(entry: Entry) -> tuple[bool, bool, bool, int, bool]:
        other_family, other_size = SIZES.get(entry.backbone, _guess(entry.backbone))
        return (
            entry.backbone != backbone,
            entry.backbone == "builtin",  # the last resort
            other_family != family,
            abs(other_size - size),
            entry.variant != variant,
        )

    return min(
        (
            entry
            for entry in recipes
            if entry.setting == setting and entry.variant in ("", variant)
            # one without values says only what a paper prints for its own backbone
            if entry.backbone == backbone or entry.values or entry.corpus
        ),
        key=distance,
        default=None,
    )


def _guess(backbone: str) -> tuple[str, int]:
    name = backbone.lower()
    return ("roberta" if "roberta" in name else "bert"), (1024 if "large" in name else 768)


def whole_entry(
    method: type[Method],
    recipes: Sequence[Entry],
    setting: str,
    backbone: str,
    variant: str,
    *,
    trained: bool,
    shape: tuple[str, int] | None = None,
) -> Entry | None:
    """The recipe that :func:`choose` finds. If it is trained, the backbone's values are beneath it, except for keys that the method
    sets itself: so two methods do not differ in their learning rates alone."""
    entry = choose(recipes, setting, backbone, variant, shape)
    if not trained:
        return entry
    beneath = choose(read(BACKBONES, "backbones").recipes, setting, backbone, "", shape)
    keys = set(harness_keys(method, trained=True)) - method.defaults.keys()
    values = {key: beneath.values[key] for key in beneath.values if key in keys} if beneath else {}
    if entry is None:
        return structs.replace(beneath, values=values) if beneath and values else None
    return structs.replace(entry, values=values | entry.values)


def settings_with_recipe(recipes: Sequence[Entry], backbone: str, variant: str) -> list[str]:
    """Settings with a recipe for this backbone; only the variant's, if it has recipes for any backbone.

    Settings whose recipe has a number that the paper prints (``expect``) come first; among equals, unsupervised.
    """
    of_variant = [e for e in recipes if variant and e.variant == variant]
    here = [
        e for e in of_variant or recipes if e.backbone == backbone and e.variant in ("", variant)
    ] or of_variant
    printed = {e.setting for e in here if e.expect and e.variant == variant}
    return sorted(
        (s for s in ("unsupervised", "supervised") if any(e.setting == s for e in here)),
        key=lambda setting: setting not in printed,
    )


# the keys of a method that reads its corpus once
ONE_PASS = ("max_seq_length", "dropout", "corpus_column")


def harness_keys(method: type[Method], trained: bool) -> tuple[str, ...]:
    """The harness's recipe keys that a method uses, if it is trained (or fitted) or not."""
    if trained:
        return ONE_PASS if method.fitted == "pass" else tuple(TRAINING)
    return ("dropout",) if method.own_backbone is None else ()


def merge(
    method: type[Method],
    entry: Entry | None,
    variant: str,
    overrides: Mapping[str, str],
    *,
    trained: bool,
    plan: Mapping[str, Value] = {},
) -> Recipe:
    """The whole recipe of one run. Raises UnknownName for a key that is not declared.

    ``plan`` is what the command line implies, ``overrides`` are the strings of ``--set``.
    """
    values = {
        **{key: TRAINING[key] for key in harness_keys(method, trained)},
        **_sourced(method.defaults, f"{method.name}'s default"),
    }
    known = {
        **(ON_REQUEST if "epochs" in values else {}),
        **_sourced(method.optional, f"{method.name}'s default"),
        **values,
    }
    layers = [entry.values if entry else {}, plan]
    if variant:
        check_variant(method, variant)
        layers.insert(1, _sourced(variants_of(method)[variant], f"variant {variant}"))
    for layer in layers:
        for key in layer:
            if key not in known:
                raise UnknownName(
                    "recipe key",
                    key,
                    known,
                    f"in {layer[key].source if variant else 'a recipe'} of {method.name}",
                )
        values |= layer
    for key, text in overrides.items():
        if key in known:
            values[key] = Value(parse(key, text, {**known, **values}[key].value), "--set")
    budget = values.pop("budget", Value(None, ""))
    if budget.value is not None and ("budget" in overrides or "epochs" not in overrides):
        if "epochs" in overrides:
            raise BenchError(
                f"--budget {budget.value} and --set epochs={overrides['epochs']}: each says how long to train",
                "give one",
            )
        values["budget"] = replace(budget, value=canonical(str(budget.value)))
        values["epochs"] = Value(None, "the budget says how long")
    return Recipe(values)


def _sourced(values: Mapping[str, Any], source: str) -> dict[str, Value]:
    """The values, with ``source`` for those that name none."""
    return {
        key: value if isinstance(value, Value) else Value(value, source)
        for key, value in values.items()
    }


def variants_of(method: type[Method]) -> Mapping[str, Mapping[str, Any]]:
    """Name -> recipe values of every variant: those that the method declares, and those of its recipe file.

    A class without a file has only the former.
    """
    try:
        folder = Path(inspect.getfile(method)).parent
    except (TypeError, OSError):  # typed into an interpreter
        return method.variants
    of_file = read(folder, method.name).variants
    if twice := sorted(method.variants.keys() & of_file.keys()):
        raise BenchError(
            f"{folder / 'recipes' / f'{method.name}.toml'}: [variants.{twice[0]}]: {method.name} declares a variant of that name, too",
            "choose another name in the recipe file",
        )
    return {**method.variants, **of_file}


def check_variant(method: type[Method], variant: str) -> None:
    if variant and variant not in variants_of(method):
        raise UnknownName(
            "variant",
            variant,
            variants_of(method),
            f"of {method.name}",
            f"{method.name} alone: the method as its paper has it",
        )


# --- checks ---


def check_entries(method: type[Method], recipes: Sequence[Entry]) -> None:
    """Raises BenchError, naming the file, for a recipe whose setting or variant the method lacks, and for a wrong value."""
    for entry in recipes:
        where = f"of {method.name} in {entry.file}"
        if entry.setting not in method.settings:
            raise UnknownName("setting", entry.setting, method.settings, where)
        if entry.variant and entry.variant not in variants_of(method):
            raise UnknownName("variant", entry.variant, variants_of(method), where)
        check_values(
            method,
            entry.values,
            f"{entry.file}: recipe for "
            + ", ".join(filter(None, [entry.setting, entry.backbone, entry.variant])),
        )


def check_values(method: type[Method], values: Mapping[str, Value], where: str) -> None:
    """Raises BenchError, beginning with ``where``, for a key without a default, or a value of the wrong type or out of range."""
    defaults = _sourced({**TRAINING, **ON_REQUEST, **method.defaults, **method.optional}, "")
    for key, value in values.items():
        if key not in defaults:
            raise UnknownName("recipe key", key, defaults, f"of {method.name} in {where}")
        if wrong := wrong_kind(key, value.value, defaults[key].value):
            raise BenchError(f"{where}: {key}: {wrong}", f"bench methods {method.name}")


def check_overrides(
    overrides: Mapping[str, str], methods: Sequence[type[Method]], trained: bool
) -> None:
    """Raises BenchError for a key of ``--set`` that none of the methods has, and for a decimal comma."""
    known = {**TRAINING, **ON_REQUEST} if trained else {"dropout": TRAINING["dropout"]}
    for method in methods:
        known |= _sourced({**method.defaults, **method.optional}, "")
    for key, text in overrides.items():
        if key not in known:
            raise UnknownName(
                "recipe key",
                key,
                known,
                f"of {', '.join(method.name for method in methods)}",
                setter(key) or f"bench methods {methods[0].name}",
            )
        if (key in FRACTIONS or isinstance(known[key].value, float)) and re.fullmatch(
            r"0,\d+|\d+,0\d*", text
        ):
            raise BenchError(
                f"--set {key}={text}: a comma separates the values of a series; did you mean a decimal point?",
                f"--set {key}={text.replace(',', '.')}; in a series, write each number with a point",
            )


OTHER_NAMES: Mapping[str, str] = {
    "lr": "--set learning_rate=VALUE",
    "bs": "--set batch_size=VALUE",
    "steps": "--set max_steps=VALUE",
    "maxlen": "--set max_seq_length=VALUE",
    "wd": "--set weight_decay=VALUE",
    "tau": "--set temperature=VALUE",
    "seed": "--seeds N",
    "model": "--backbone NAME",
    "dataset": "--corpus FILE",
    "fp16": "--precision bf16",
    "gpus": "--on torchrun:N",
    "outputdir": "--runs FOLDER",
}
"""The name in other tools, as :func:`plain_key` gives it -> what sets it here."""
OF_ENCODERS = ("pooling", "padding", "max_length", "dtype")  # what bench evaluate --set takes


def plain_key(key: str) -> str:
    """A name without case, hyphens and underscores: ``learningRate``, ``learning-rate`` and ``learning_rate`` are the same."""
    return "".join(c for c in key.lower() if c.isalnum())


def setter(name: str) -> str:
    """The option for a name of another tool or a misspelled one: "--set learning_rate=VALUE", "--seeds N"; "" if nothing is near."""
    known = {plain_key(key): key for key in (*TRAINING, *ON_REQUEST, *OF_ENCODERS)}
    near = difflib.get_close_matches(plain_key(name), known, 1, 0.8)
    return OTHER_NAMES.get(plain_key(name)) or (f"--set {known[near[0]]}=VALUE" if near else "")


# --- types of recipe values ---

WHOLE: Mapping[str, Any] = {
    "batch_size": Annotated[int, Meta(ge=1)],
    "max_steps": Annotated[int, Meta(ge=1)] | None,
    "max_seq_length": Annotated[int, Meta(ge=3)],
    "eval_steps": Annotated[int, Meta(ge=1)],
    "warmup_steps": Annotated[int, Meta(ge=0)],
    "max_length": Annotated[int, Meta(ge=3)] | None,
    "patience": Annotated[int, Meta(ge=1)] | None,
}
FRACTIONS: Mapping[str, Any] = {
    "learning_rate": Annotated[float, Meta(ge=0)],
    "epochs": Annotated[float, Meta(ge=0)],
    "weight_decay": Annotated[float, Meta(ge=0)],
    "max_grad_norm": Annotated[float, Meta(ge=0)] | None,
    "dropout": Annotated[float, Meta(ge=0, lt=1)] | None,
    "warmup_ratio": Annotated[float, Meta(ge=0, lt=1)],
}
KINDS: Mapping[str, Any] = {**WHOLE, **FRACTIONS, "budget": str | None}
"""Types for msgspec; any other key has the type of its default."""
IN_ENGLISH = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
}


def _kind(key: str, like: Any) -> Any:
    return KINDS.get(
        key, Any if like is None else str | None if isinstance(like, str) else type(like)
    )


def parse(key: str, text: str, like: Any) -> Any:
    """The value of ``text``, with the type of ``like``, the value that it replaces. Raises BenchError if it has another type."""
    kind = _kind(key, like)
    if text.lower() in {"none", "null", ""} and not _wrong(None, kind):
        return None
    if kind is Any:
        with suppress(ValueError):
            return convert(text, int | float, strict=False)
        return text
    if wrong := _wrong(text, kind, strict=False):
        raise BenchError(
            f"--set {key}={text}: {wrong}",
            None if like is None else f"for example --set {key}={like}",
        )
    return convert(text, kind, strict=False)


def wrong_kind(key: str, value: Any, like: Any) -> str:
    """What is wrong with a value from a file whose default is ``like``; "" if nothing is."""
    wrong = _wrong(value, _kind(key, like))
    return f"{wrong}, found {value!r}" if wrong else ""


def _wrong(value: Any, kind: Any, *, strict: bool = True) -> str:
    try:
        converted = convert(value, kind, strict=strict)
    except ValidationError as error:
        expected = str(error).partition(", got")[0].replace(" | null", "").replace("`", "")
        return re.sub(r"\w+", lambda word: IN_ENGLISH.get(word[0], word[0].lower()), expected)
    return (
        "expected a number" if isinstance(converted, float) and not math.isfinite(converted) else ""
    )
