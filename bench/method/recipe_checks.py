"""Checks of recipe keys and values, with the nearest name in the message."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence

from bench.base.errors import BenchError, UnknownName
from bench.base.text import list_names
from bench.method.contract import Method, how_fitted
from bench.method.encoder_recipe import encoder_keys
from bench.method.recipe import Value
from bench.method.recipe_defaults import ENCODER_VALUES, ON_REQUEST, TRAINING, harness_keys
from bench.method.recipe_files import Entry
from bench.method.recipe_types import FRACTIONS, wrong_kind
from bench.method.recipes import sourced, variants_of


def check_entries(method: type[Method], recipes: Sequence[Entry]) -> None:
    """Raise BenchError, naming the file, for a recipe with a setting or variant that the method
    lacks, and for a wrong value.
    """
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
    """Raise BenchError, beginning with ``where``, for a key without a default, or a value of the
    wrong type or out of range.
    """
    defaults = sourced(
        {**TRAINING, **ON_REQUEST, **ENCODER_VALUES, **method.defaults, **method.optional}, ""
    )
    for key, value in values.items():
        if key not in defaults:
            raise UnknownName("recipe key", key, defaults, f"of {method.name} in {where}")
        wrong = wrong_kind(key, value.value, defaults[key].value)
        if wrong:
            raise BenchError(f"{where}: {key}: {wrong}", f"bench methods {method.name}")


def check_overrides(
    overrides: Mapping[str, str], methods: Sequence[type[Method]], trained: bool
) -> None:
    """Raise BenchError for a key of ``--set`` that no method has, for a decimal comma, and for a
    value of a training if no method has one (``trained``; one that is fitted in a pass has few).
    """
    known: dict[str, Value] = {}
    for method in methods:
        if trained:
            known |= {key: TRAINING[key] for key in harness_keys(method, trained)}
        if trained and how_fitted(method) != "pass":
            known |= ON_REQUEST
        known |= encoder_keys(method, trained=trained)
        known |= sourced({**method.defaults, **method.optional}, "")
    for key, text in overrides.items():
        if key not in known and key in {**TRAINING, **ON_REQUEST, **ENCODER_VALUES}:
            raise trains_nothing(f"{key}={text}", [method.name for method in methods])
        if key not in known:
            hint = setter(key)
            if not hint or hint.startswith(f"--set {key}="):  # a key that only other methods have
                hint = f"bench methods {methods[0].name}"
            names = ", ".join(method.name for method in methods)
            raise UnknownName("recipe key", key, known, f"of {names}", hint)
        if (key in FRACTIONS or isinstance(known[key].value, float)) and re.fullmatch(
            r"0,\d+|\d+,0\d*", text
        ):
            raise BenchError(
                f"--set {key}={text}: a comma separates the values of a series; did you mean a "
                "decimal point?",
                f"--set {key}={text.replace(',', '.')}; in a series, write each number with a "
                "point",
            )


def trains_nothing(option: str, methods: Sequence[str]) -> BenchError:
    """Return the error for an option of a training, given to methods that have none."""
    names = list_names(list(dict.fromkeys(methods)))
    verb = "trains" if len(set(methods)) == 1 else "train"
    return BenchError(
        f"{option}: {names} {verb} nothing", "leave it out; bench methods lists what is trained"
    )


OTHER_NAMES: Mapping[str, str] = {
    "lr": "--set learning_rate=VALUE",
    "bs": "--set batch_size=VALUE",
    "steps": "--set max_steps=VALUE",
    "maxlen": "--set max_seq_length=VALUE",
    "maxlength": "--set max_seq_length=VALUE",
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
OF_ENCODERS = ("pooling", "max_length", "dtype")
"""Keys of ``bench evaluate --set``: they say how a ready-made encoder is read, and belong to no
method.
"""


def plain_key(key: str) -> str:
    """Return a name without case, hyphens and underscores: ``learningRate``, ``learning-rate`` and
    ``learning_rate`` are the same.
    """
    return "".join(c for c in key.lower() if c.isalnum())


def setter(name: str, *, trains: bool = True) -> str:
    """Return the option for a name of another tool or a misspelled one: "--set
    learning_rate=VALUE", "--seeds N"; "" if nothing is near.

    ``trains``: False for a command that only reads finished encoders.
    """
    keys: Sequence[str] = OF_ENCODERS
    if trains:
        keys = (*TRAINING, *ON_REQUEST, *ENCODER_VALUES, *OF_ENCODERS)
    known = {plain_key(key): key for key in keys}
    name = plain_key(name)
    others = OTHER_NAMES
    if not trains:
        others = {key: option for key, option in others.items() if not option.startswith("--set")}
    if name in others:
        return others[name]
    near = difflib.get_close_matches(name, known, 1, 0.8)
    if near:
        return f"--set {known[near[0]]}=VALUE"
    return ""
