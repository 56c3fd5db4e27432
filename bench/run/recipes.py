"""Merges recipe layers, and knows where each value came from.

harness defaults < the backbone's values < the method's defaults < the recipe of the paper for this setting and backbone < variant < ``--set``

A method's recipes lie in ``recipes/<name>.toml`` beside its module: :mod:`bench.run.recipe_file` reads them.
"""

from __future__ import annotations

import difflib
import inspect
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bench.base.errors import BenchError, UnknownName
from bench.method import Method, Recipe, Value
from bench.method.budget import canonical
from bench.run.recipe_file import Entry, entries, with_file_variants

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
) -> tuple[Entry | None, str | None]:
    """The recipe for a backbone, or the nearest one and a line that says so: same family, then nearest size.

    Of two that are equally near, the one for the variant; a recipe without a variant stands for all. ``shape``: family and
    hidden size of the backbone, where its config says them; else they are guessed from its name.
    """
    fitting = [e for e in recipes if e.setting == setting and e.variant in ("", variant)]
    exact = [e for e in fitting if e.backbone == backbone]
    if exact:
        return max(exact, key=lambda e: e.variant == variant), None
    fitting = [
        e for e in fitting if e.values or e.corpus
    ]  # else it says only what a paper prints for its own backbone
    if not fitting:
        return None, None
    family, size = SIZES.get(backbone) or shape or _guess(backbone)

    def distance(entry: Entry) -> tuple[bool, int, bool]:
        other_family, other_size = SIZES.get(entry.backbone, _guess(entry.backbone))
        return (other_family != family, abs(other_size - size), entry.variant != variant)

    nearest = min((e for e in fitting if e.backbone != "builtin"), key=distance, default=fitting[0])
    return nearest, f"no recipe for {backbone}: the one for {nearest.backbone} is taken"


def whole_entry(
    method: type[Method],
    recipes: Sequence[Entry],
    setting: str,
    backbone: str,
    variant: str,
    *,
    trained: bool,
    shape: tuple[str, int] | None = None,
) -> tuple[Entry | None, str | None]:
    """The recipe that :func:`choose` finds; of what is trained above the backbone's own values, which stand alone where it finds none."""
    entry, line = choose(recipes, setting, backbone, variant, shape)
    beneath, line_beneath = (
        of_backbone(method, setting, backbone, shape) if trained else (None, None)
    )
    if entry is None or beneath is None:
        return (entry, line) if beneath is None else (beneath, line_beneath)
    return replace(entry, values={**beneath.values, **entry.values}), line


def of_backbone(
    method: type[Method], setting: str, backbone: str, shape: tuple[str, int] | None = None
) -> tuple[Entry | None, str | None]:
    """What belongs to the backbone (or to the nearest), but for the keys of which the method itself says something.

    So that two methods are not told apart by their learning rates. None, as the line, where the method trains with none of them.
    """
    keys = [key for key in harness_keys(method, trained=True) if key not in method.defaults]
    entry, line = choose(entries(BACKBONES, "backbones"), setting, backbone, "", shape)
    values = {key: value for key, value in entry.values.items() if key in keys} if entry else {}
    return (replace(entry, values=values), line) if entry and values else (None, None)


def _guess(backbone: str) -> tuple[str, int]:
    name = backbone.lower()
    return ("roberta" if "roberta" in name else "bert"), (1024 if "large" in name else 768)


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


ONE_PASS = (
    "max_seq_length",
    "dropout",
    "corpus_column",
)  # what a method reads that looks at its corpus once


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
    on_request = {
        **(ON_REQUEST if "epochs" in values else {}),
        **_sourced(method.optional, f"{method.name}'s default"),
    }
    known = {*values, *on_request}
    layers: list[Mapping[str, Value]] = [entry.values] if entry else []
    if variant:
        check_variant(method, variant)
        layers.append(_sourced(variants_of(method)[variant], f"variant {variant}"))
    for layer in [*layers, plan]:
        for key, value in layer.items():
            if key not in known:
                place = (
                    f"in variant {variant}"
                    if value.source == f"variant {variant}"
                    else "in a recipe"
                )
                raise UnknownName("recipe key", key, known, f"{place} of {method.name}")
            values[key] = value
    for key, text in overrides.items():
        if key in known:
            example = (values[key] if key in values else on_request[key]).value
            values[key] = Value(parse(key, text, example), "--set")
    return Recipe(_budgeted(values, overrides))


def check_entries(method: type[Method], recipes: Sequence[Entry]) -> None:
    """Raises BenchError, naming the file, for a recipe of a setting or variant that the method lacks, and for a wrong value."""
    for entry in recipes:
        if entry.setting not in method.settings:
            raise UnknownName(
                "setting", entry.setting, method.settings, f"of {method.name} in {entry.file}"
            )
        if entry.variant and entry.variant not in variants_of(method):
            raise UnknownName(
                "variant", entry.variant, variants_of(method), f"of {method.name} in {entry.file}"
            )
        check_values(method, entry.values, entry.where)


def check_values(method: type[Method], values: Mapping[str, Value], where: str) -> None:
    """Raises BenchError, beginning with ``where``, for a key that no default has, or a value of another kind or out of range."""
    defaults = _sourced({**TRAINING, **ON_REQUEST, **method.defaults, **method.optional}, "")
    for key, value in values.items():
        if key not in defaults:
            raise UnknownName("recipe key", key, defaults, f"of {method.name} in {where}")
        if wrong := wrong_kind(key, value.value, defaults[key].value):
            raise BenchError(
                f"{where}: {key}: {wrong}",
                f"for example {key} = {{ value = {_example(key, defaults[key].value)}, source = ... }}",
            )


def _example(key: str, like: Any) -> str:
    like = (
        {
            "max_steps": 1000,
            "dropout": 0.1,
            "max_length": 64,
            "patience": 3,
            "budget": "500steps",
        }.get(key)
        if like is None
        else like
    )
    return json.dumps(like)


def wrong_kind(key: str, value: Any, like: Any) -> str:
    """What is wrong with a value from a file, of which ``like`` is the default: as for ``--set``, but no text stands for a number there."""
    if value is None and (like is None or isinstance(like, str) or key in MAY_BE_NONE):
        return ""
    if isinstance(like, bool):
        fits, kind = isinstance(value, bool), "true or false"
    elif isinstance(like, str) or key == "budget":
        fits, kind = isinstance(value, str), "a word"
    elif isinstance(like, int | float) or key in NUMBERS:
        whole = key in WHOLE or (isinstance(like, int) and key not in NUMBERS)
        fits, kind = (
            isinstance(value, int | float) and not isinstance(value, bool),
            "a whole number" if whole else "a number",
        )
    else:
        return ""
    if not fits:
        return f"expected {kind}, found {value!r}"
    try:
        parse(key, str(value), like)
    except BenchError as error:
        return f"{error.message.partition(': ')[2].removeprefix(f'{key} ')}, found {value}"
    return ""


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
    return with_file_variants(method.variants, folder, method.name)


def check_variant(method: type[Method], variant: str) -> None:
    if variant and variant not in variants_of(method):
        hint = f"{method.name} alone: the method as its paper has it"
        raise UnknownName("variant", variant, variants_of(method), f"of {method.name}", hint)


def _budgeted(values: dict[str, Value], overrides: Mapping[str, str]) -> dict[str, Value]:
    """The values, where a budget takes the place of the epochs. Raises BenchError where the command line gives both."""
    given = values.get("budget")
    if (
        given is None
        or given.value is None
        or ("epochs" in overrides and "budget" not in overrides)
    ):
        return {key: value for key, value in values.items() if key != "budget"}
    if "epochs" in overrides:
        raise BenchError(
            f"--budget {given.value} and --set epochs={overrides['epochs']}: each says how long to train",
            "give one",
        )
    return values | {
        "budget": replace(given, value=canonical(str(given.value))),
        "epochs": Value(None, "the budget says how long"),
    }


def check_overrides(
    overrides: Mapping[str, str], methods: Sequence[type[Method]], trained: bool
) -> None:
    """A key of ``--set`` must be known to at least one of the methods that it is meant for; one that other tools use for the same
    thing is translated in the message."""
    known: set[str] = {*TRAINING, *ON_REQUEST} if trained else {"dropout"}
    for method in methods:
        known |= {*method.defaults, *method.optional}
    of = f"of {', '.join(m.name for m in methods)}"
    for key, text in overrides.items():
        if key in known:
            _check_decimal_comma(key, text, methods)
            continue
        meant = meant_key(key, known)
        if meant is not None and meant.startswith("--"):
            hint = meant if " " in meant else f"{meant} {text}"
            raise BenchError(f"unknown recipe key '{key}' {of}; that is an option", hint)
        if meant is not None:
            text = f"unknown recipe key '{key}' {of}; here it is called {meant}"
            raise BenchError(text, f"--set {meant}={overrides[key]}")
        raise UnknownName("recipe key", key, known, of, f"bench methods {methods[0].name}")


def _check_decimal_comma(key: str, text: str, methods: Sequence[type[Method]]) -> None:
    """Raises BenchError for "0,05" where a comma separates the values of a series.

    A decimal comma is two whole numbers of which the first is 0 or the second begins with 0 ("0,05", "1,05"), for a key whose value is a
    fraction: "0,1" is a series of true and false, or of two counts, for any other. "0.03,0.05", "1,2,4" and "0.0,1" stay series.
    """
    first, _, second = text.partition(",")
    if not (first.isdigit() and second.isdigit()) or not (first == "0" or second[0] == "0"):
        return
    defaults = [
        getattr(value, "value", value)
        for method in methods
        if (value := {**method.defaults, **method.optional}.get(key)) is not None
    ]
    if (key in NUMBERS and key not in WHOLE) or any(isinstance(value, float) for value in defaults):
        raise BenchError(
            f"--set {key}={text}: is a decimal point meant? A comma separates the values of a series",
            f"--set {key}={first}.{second}; a series is --set {key}={first}.0,{int(second)}",
        )


OTHER_NAMES: Mapping[str, str] = {
    "lr": "learning_rate",
    "bs": "batch_size",
    "steps": "max_steps",
    "maxlen": "max_seq_length",
    "wd": "weight_decay",
    "tau": "temperature",
    "seed": "--seeds",
    "model": "--backbone",
    "dataset": "--corpus",
    "fp16": "--precision bf16",
    "gpus": "--on torchrun:N",
    "outputdir": "--runs",
}
"""What other tools call it, without underscores -> our recipe key or option."""


def plain_key(key: str) -> str:
    """Without case, hyphens and underscores: ``learningRate``, ``learning-rate`` and ``learning_rate`` are one name."""
    return "".join(c for c in key.lower() if c.isalnum())


def meant_key(key: str, known: Collection[str]) -> str | None:
    """The recipe key among ``known`` that is written differently, or the key or option that other tools call ``key``."""
    plain = plain_key(key)
    other = OTHER_NAMES.get(plain, "")
    same = (name for name in sorted(known) if plain == plain_key(name))
    return next(same, other if other.startswith("--") or other in known else None)


def meant_by_option(option: str) -> str | None:
    """The nearest to an unknown option: "--set learning_rate=VALUE" for --lr, "--seeds" for --seed; None where nothing is near."""
    of_encoders = ("pooling", "padding", "max_length", "dtype")  # what bench evaluate --set takes
    known = {*TRAINING, *ON_REQUEST, *OTHER_NAMES.values(), *of_encoders}
    name = option.lstrip("-").replace("-", "_")
    near = meant_key(name, known) or next(iter(difflib.get_close_matches(name, known, 1, 0.8)), "")
    if not near or near.startswith("--"):
        return near or None
    return f"--set {near}=VALUE"


# the smallest sensible value of each number
NUMBERS = {
    "batch_size": 1,
    "learning_rate": 0,
    "epochs": 0,
    "max_steps": 1,
    "max_seq_length": 3,
    "eval_steps": 1,
    "warmup_steps": 0,
    "weight_decay": 0,
    "max_grad_norm": 0,
    "dropout": 0,
    "max_length": 3,
    "warmup_ratio": 0,
    "patience": 1,
}
WHOLE = {
    "batch_size",
    "max_steps",
    "max_seq_length",
    "eval_steps",
    "warmup_steps",
    "max_length",
    "patience",
}
MAY_BE_NONE = {
    "budget",
    "max_steps",
    "max_grad_norm",
    "dropout",
    "max_length",
    "patience",
}  # of the numbers


def parse(key: str, text: str, like: Any) -> Any:
    """The value that ``text`` means, of the kind of the value that it replaces. Raises BenchError where it is none."""
    if text.lower() in {"none", "null", ""} and (
        like is None or isinstance(like, str) or key in MAY_BE_NONE
    ):
        return None
    if key == "budget":
        return canonical(text)
    try:
        if like is None and key not in NUMBERS:
            return _number_or_text(text)
        if isinstance(like, bool):
            return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[
                text.lower()
            ]
        if key in WHOLE or (isinstance(like, int) and key not in NUMBERS):
            value: Any = int(text)
        elif key in NUMBERS or isinstance(like, float):
            value = float(text)
            if not math.isfinite(value):
                raise ValueError
        else:
            return text
    except (ValueError, KeyError):
        kind = "a whole number" if key in WHOLE else "a number"
        if isinstance(like, bool):
            kind = "true or false"
        raise BenchError(
            f"--set {key}={text}: expected {kind}", f"for example --set {key}={like}"
        ) from None
    if key in NUMBERS and value < NUMBERS[key]:
        raise BenchError(f"--set {key}={text}: {key} must be at least {NUMBERS[key]}")
    if key in {"dropout", "warmup_ratio"} and value >= 1:
        raise BenchError(f"--set {key}={text}: {key} must be less than 1")
    return value


def _number_or_text(text: str) -> Any:
    """What a text means where the value that it replaces says nothing of its kind."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
