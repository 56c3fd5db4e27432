"""Merges recipe layers, and knows where each value came from.

harness defaults < the backbone's values < the method's defaults < the recipe of the paper for this setting and backbone < variant < ``--set``

A method's recipes lie in ``recipes/<name>.toml`` beside its module: :mod:`bench.run.recipe_file` reads them.
"""

from __future__ import annotations

import difflib
import inspect
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
from msgspec import Meta, structs

from bench.base.errors import BenchError, UnknownName
from bench.method import Method, Recipe, Value
from bench.method.contract import canonical
from bench.run.recipe_file import Entry, read

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
}  # in a recipe only where something gives them, so that a recipe without them has the fingerprint that it always had
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
    """The recipe for a backbone, or of the nearest one that has any: same family, then nearest size.

    Of two that are equally near, the one for the variant; a recipe without a variant stands for all. ``shape``: family and
    hidden size of the backbone, where its config says them; else they are guessed from its name.
    """
    fitting = [e for e in recipes if e.setting == setting and e.variant in ("", variant)]
    exact = [e for e in fitting if e.backbone == backbone]
    if exact:
        return max(exact, key=lambda e: e.variant == variant)
    # one without values says only what a paper prints for its own backbone
    fitting = [e for e in fitting if e.values or e.corpus]
    family, size = SIZES.get(backbone) or shape or _guess(backbone)

    def distance(entry: Entry) -> tuple[bool, bool, int, bool]:
        other_family, other_size = SIZES.get(entry.backbone, _guess(entry.backbone))
        far = abs(other_size - size)
        small = entry.backbone == "builtin"  # the last resort
        return (small, other_family != family, far, entry.variant != variant)

    return min(fitting, key=distance, default=None)


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
    """The recipe that :func:`choose` finds. What is trained has the backbone's values beneath it, but for keys of which the method itself
    says something: so two methods do not differ in their learning rates alone."""
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
    """Settings with a recipe for this backbone; those of the variant itself, if it has any anywhere.

    First come those whose recipe has a number that the paper prints (``expect``); among equals unsupervised.
    """
    of_variant = [e for e in recipes if variant and e.variant == variant]
    here = [
        e for e in of_variant or recipes if e.backbone == backbone and e.variant in ("", variant)
    ] or of_variant
    printed = {e.setting for e in here if e.expect and e.variant == variant}
    settings = [s for s in ("unsupervised", "supervised") if any(e.setting == s for e in here)]
    return sorted(settings, key=lambda setting: setting not in printed)


# what a method reads that looks at its corpus once
ONE_PASS = ("max_seq_length", "dropout", "corpus_column")


def harness_keys(method: type[Method], trained: bool) -> tuple[str, ...]:
    """The harness's own recipe keys that mean something to a method, trained (or fitted) or not."""
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
    plan: Mapping[str, Value] = MappingProxyType({}),
) -> Recipe:
    """The whole recipe of one run. Raises UnknownName for a key that nobody declared.

    ``plan`` is what the command line implies, ``overrides`` are the strings of ``--set``.
    """
    values = {key: TRAINING[key] for key in harness_keys(method, trained)}
    values |= _sourced(method.defaults, f"{method.name}'s default")
    on_request = _sourced(method.optional, f"{method.name}'s default")
    known = {**(ON_REQUEST if "epochs" in values else {}), **on_request, **values}
    layers = [entry.values if entry else {}, plan]
    if variant:
        check_variant(method, variant)
        layers.insert(1, _sourced(variants_of(method)[variant], f"variant {variant}"))
    for layer in layers:
        for key in layer:
            if key not in known:
                place = f"in {layer[key].source}" if variant else "in a recipe"
                raise UnknownName("recipe key", key, known, f"{place} of {method.name}")
        values |= layer
    for key, text in overrides.items():
        if key in known:
            like = {**known, **values}[key].value
            values[key] = Value(parse(key, text, like), "--set")
    return Recipe(_budgeted(values, overrides))


def _budgeted(values: dict[str, Value], overrides: Mapping[str, str]) -> dict[str, Value]:
    """The values, where a budget takes the place of the epochs. Raises BenchError where the command line gives both."""
    budget = values.pop("budget", Value(None, ""))
    if budget.value is None or ("epochs" in overrides and "budget" not in overrides):
        return values
    if "epochs" in overrides:
        raise BenchError(
            f"--budget {budget.value} and --set epochs={overrides['epochs']}: each says how long to train",
            "give one",
        )
    return values | {
        "budget": replace(budget, value=canonical(str(budget.value))),
        "epochs": Value(None, "the budget says how long"),
    }


def _sourced(values: Mapping[str, Any], source: str) -> dict[str, Value]:
    """With ``source`` where a value names none."""
    return {
        key: value if isinstance(value, Value) else Value(value, source)
        for key, value in values.items()
    }


def variants_of(method: type[Method]) -> Mapping[str, Mapping[str, Any]]:
    """Name -> recipe values of every variant: those that the method declares, and those of its recipe file.

    A class that no file defines has only the former.
    """
    try:
        folder = Path(inspect.getfile(method)).parent
    except (TypeError, OSError):  # typed into an interpreter
        return method.variants
    of_file = read(folder, method.name).variants
    if twice := sorted(method.variants.keys() & of_file.keys()):
        raise BenchError(
            f"{folder / 'recipes' / f'{method.name}.toml'}: [variants.{twice[0]}]: {method.name} declares a variant of that name itself",
            "another name",
        )
    return {**method.variants, **of_file}


def check_variant(method: type[Method], variant: str) -> None:
    if variant and variant not in variants_of(method):
        hint = f"{method.name} alone: the method as its paper has it"
        raise UnknownName("variant", variant, variants_of(method), f"of {method.name}", hint)


# --- checks ---


def check_entries(method: type[Method], recipes: Sequence[Entry]) -> None:
    """Raises BenchError, naming the file, for a recipe of a setting or variant that the method lacks, and for a wrong value."""
    for entry in recipes:
        where = f"of {method.name} in {entry.file}"
        if entry.setting not in method.settings:
            raise UnknownName("setting", entry.setting, method.settings, where)
        if entry.variant and entry.variant not in variants_of(method):
            raise UnknownName("variant", entry.variant, variants_of(method), where)
        check_values(method, entry.values, entry.where)


def check_values(method: type[Method], values: Mapping[str, Value], where: str) -> None:
    """Raises BenchError, beginning with ``where``, for a key that no default has, or a value of another kind or out of range."""
    defaults = _sourced({**TRAINING, **ON_REQUEST, **method.defaults, **method.optional}, "")
    for key, value in values.items():
        if key not in defaults:
            raise UnknownName("recipe key", key, defaults, f"of {method.name} in {where}")
        if wrong := wrong_kind(key, value.value, defaults[key].value):
            raise BenchError(f"{where}: {key}: {wrong}", f"bench methods {method.name}")


def check_overrides(
    overrides: Mapping[str, str], methods: Sequence[type[Method]], trained: bool
) -> None:
    """A key of ``--set`` must be known to at least one of the methods that it is meant for."""
    known = {**TRAINING, **ON_REQUEST} if trained else {"dropout": TRAINING["dropout"]}
    for method in methods:
        known |= _sourced({**method.defaults, **method.optional}, "")
    for key, text in overrides.items():
        if key not in known:
            of = f"of {', '.join(method.name for method in methods)}"
            hint = setter(key) or f"bench methods {methods[0].name}"
            raise UnknownName("recipe key", key, known, of, hint)
        fraction = key in FRACTIONS or isinstance(known[key].value, float)
        if fraction and re.fullmatch(r"0,\d+|\d+,0\d*", text):
            raise BenchError(
                f"--set {key}={text}: is a decimal point meant? A comma separates the values of a series",
                f"--set {key}={text.replace(',', '.')}; a series has a point in each number",
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
"""What other tools call it, as :func:`plain_key` -> what sets it here."""
OF_ENCODERS = ("pooling", "padding", "max_length", "dtype")  # what bench evaluate --set takes


def plain_key(key: str) -> str:
    """Without case, hyphens and underscores: ``learningRate``, ``learning-rate`` and ``learning_rate`` are one name."""
    return "".join(c for c in key.lower() if c.isalnum())


def setter(name: str) -> str:
    """What sets a thing that other tools, or a slip, call ``name``: "--set learning_rate=VALUE", "--seeds N"; "" where nothing is near."""
    known = {plain_key(key): key for key in (*TRAINING, *ON_REQUEST, *OF_ENCODERS)}
    near = difflib.get_close_matches(plain_key(name), known, 1, 0.8)
    return OTHER_NAMES.get(plain_key(name)) or (f"--set {known[near[0]]}=VALUE" if near else "")


# --- what a recipe value may be ---

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
"""The types of msgspec; of any other key the kind is that of its default."""
IN_ENGLISH = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
}


def _kind(key: str, like: Any) -> Any:
    of_default = str | None if isinstance(like, str) else Any if like is None else type(like)
    return KINDS.get(key, of_default)


def parse(key: str, text: str, like: Any) -> Any:
    """The value that ``text`` means, of the kind of ``like``, the value that it replaces. Raises BenchError where it is none."""
    kind = _kind(key, like)
    if text.lower() in {"none", "null", ""} and not _wrong(None, kind):
        return None
    if kind is Any:
        with suppress(ValueError):
            return msgspec.convert(text, int | float, strict=False)
        return text
    if wrong := _wrong(text, kind, strict=False):
        hint = None if like is None else f"for example --set {key}={like}"
        raise BenchError(f"--set {key}={text}: {wrong}", hint)
    return msgspec.convert(text, kind, strict=False)


def wrong_kind(key: str, value: Any, like: Any) -> str:
    """What is wrong with a value from a file, of which ``like`` is the default; "" where nothing is."""
    wrong = _wrong(value, _kind(key, like))
    return f"{wrong}, found {value!r}" if wrong else ""


def _wrong(value: Any, kind: Any, *, strict: bool = True) -> str:
    try:
        converted = msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        expected = str(error).partition(", got")[0].replace(" | null", "").replace("`", "")
        return re.sub(r"\w+", lambda word: IN_ENGLISH.get(word[0], word[0].lower()), expected)
    finite = not isinstance(converted, float) or math.isfinite(converted)
    return "" if finite else "expected a number"
