"""Recipes: the files they are in, the layers they are merged from, and the source of every value.

harness defaults < the backbone's values < the method's defaults < the recipe of the paper for this
setting and backbone < variant < ``--set``

A method's recipes are in ``recipes/<name>.toml`` next to its module, with the differences between
the paper and the authors' code::

    family = "contrastive"           # optional: a heading of `bench methods`; any word

    # shared by several recipes; setting, backbone and variant say which: a name, a list of names,
    # or left out for all
    [[common]]
    setting = "supervised"
    corpus = "nli"
    [common.values]
    epochs = { value = 3, source = "run_sup_example.sh" }
    [common.facts]                   # stated by the source, but not a recipe key
    seed = { value = 42, source = "run_sup_example.sh" }

    # later tables win over earlier ones, a recipe's own values over common ones
    [[recipe]]
    setting = "supervised"
    backbone = "bert-base-uncased"
    variant = ""                     # optional: only for this variant
    expect = { suite = "sts", task = "Avg.", value = 81.57, source = "table 5" }
    note = "..."
    [recipe.values]
    # without `value`: none
    batch_size = { value = 64, source = "README", note = "what another source says" }
    learning_rate = 3e-5             # in your own file; shown as "no source"

    [[disagreement]]
    topic = "evaluation interval"
    paper = "every 250 steps"
    code = "every 125 steps"
    use = "125"

    # what bench search may change, with the source of each bound: bench.run.search
    [[space]]
    [space.values]
    temperature = { values = [0.03, 0.05, 0.1], source = "table 4" }

    # a variant that the method's class does not declare: METHOD+no-mlm
    [variants.no-mlm]
    mlm = { value = false, source = "table 2" }
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import structs

from bench.base.errors import BenchError, UnknownName
from bench.method.budget import canonical_budget
from bench.method.contract import Method
from bench.method.encoder_recipe import encoder_keys, settle_encoder_values
from bench.method.recipe import Recipe, Value, check_choice
from bench.method.recipe_defaults import (
    BACKBONES,
    ON_REQUEST,
    TRAINING,
    TRAINING_CHOICES,
    harness_keys,
)
from bench.method.recipe_files import Entry, read_recipes
from bench.method.recipe_types import parse_value

# family -> hidden size: what "nearest" means among the backbones that the papers used
SIZES = {
    "builtin": ("bert", 256),
    "bert-base-uncased": ("bert", 768),
    "bert-large-uncased": ("bert", 1024),
    "roberta-base": ("roberta", 768),
    "roberta-large": ("roberta", 1024),
}


def choose_entry(
    recipes: Sequence[Entry],
    setting: str,
    backbone: str,
    variant: str,
    shape: tuple[str, int] | None = None,
) -> Entry | None:
    """Return the recipe for a backbone, or for the nearest one that has a recipe: same family, then
    nearest size.

    If two are equally near, the one for the variant; a recipe without a variant holds for all.
    ``shape``: family and hidden size of the backbone, if its config has them; else they are guessed
    from its name.
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

    fitting = []
    for entry in recipes:
        if entry.setting != setting or entry.variant not in ("", variant):
            continue
        # an entry without values only has the number that a paper prints for its own backbone
        if entry.backbone == backbone or entry.values or entry.corpus:
            fitting.append(entry)
    return min(fitting, key=distance, default=None)


DECODERS = re.compile(r"(?:^|[/_-])(llama|qwen|mistral|gemma|opt|gpt|pythia)(?=[\d._-])")
"""Names of decoders on the hub, for recipes of backbones that are not on this machine."""


def _guess(backbone: str) -> tuple[str, int]:
    name = backbone.lower()
    if DECODERS.search(name):
        return "decoder", 2048
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
    """Return the recipe that :func:`choose_entry` finds.

    If it is trained, the backbone's values are beneath it, except for keys that the method sets
    itself: so two methods do not differ only in their learning rates.
    """
    entry = choose_entry(recipes, setting, backbone, variant, shape)
    if not trained:
        return entry
    beneath = choose_entry(
        read_recipes(BACKBONES, "backbones").recipes, setting, backbone, "", shape
    )
    keys = set(harness_keys(method, trained=True)) - method.defaults.keys()
    values = {key: beneath.values[key] for key in beneath.values if key in keys} if beneath else {}
    if entry is None:
        return structs.replace(beneath, values=values) if beneath and values else None
    return structs.replace(entry, values=values | entry.values)


def settings_with_recipe(recipes: Sequence[Entry], backbone: str, variant: str) -> list[str]:
    """List the settings with a recipe for this backbone; only the variant's, if it has recipes for
    any backbone.

    Settings with a printed number in their recipe (``expect``) come first; among equals,
    unsupervised.
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


def merge_recipe(
    method: type[Method],
    entry: Entry | None,
    variant: str,
    overrides: Mapping[str, str],
    *,
    trained: bool,
    plan: Mapping[str, Value] = {},
) -> Recipe:
    """Merge the whole recipe of one run. Raises UnknownName for a key that is not declared, and
    BenchError for an unknown value of a key that has names for its values.

    ``plan``: values that the command line implies; ``overrides``: the strings of ``--set``.
    """
    values = {
        **{key: TRAINING[key] for key in harness_keys(method, trained)},
        **sourced(method.defaults, f"{method.name}'s default"),
    }
    known = {
        **(ON_REQUEST if "epochs" in values else {}),
        **encoder_keys(method, trained="epochs" in values),
        **sourced(method.optional, f"{method.name}'s default"),
        **values,
    }
    layers = [entry.values if entry else {}, plan]
    if variant:
        check_variant(method, variant)
        layers.insert(1, sourced(variants_of(method)[variant], f"variant {variant}"))
    for layer in layers:
        for key in layer:
            if key not in known:
                where = layer[key].source if variant else "a recipe"
                raise UnknownName("recipe key", key, known, f"in {where} of {method.name}")
        values |= layer
    for key, text in overrides.items():
        if key in known:
            default = values.get(key, known[key]).value
            values[key] = Value(parse_value(key, text, default), "--set")
    budget = values.pop("budget", Value(None, ""))
    if budget.value is not None and ("budget" in overrides or "epochs" not in overrides):
        if "epochs" in overrides:
            raise BenchError(
                f"--budget {budget.value} and --set epochs={overrides['epochs']}: each says how "
                "long to train",
                "give one",
            )
        values["budget"] = replace(budget, value=canonical_budget(str(budget.value)))
        values["epochs"] = Value(None, "the budget says how long")
    recipe = Recipe(settle_encoder_values(values))
    for key, choices in TRAINING_CHOICES.items():
        if key in recipe:
            check_choice(recipe, key, choices)
    return recipe


def sourced(values: Mapping[str, Any], source: str) -> dict[str, Value]:
    """Return the values, with ``source`` for values that name none."""
    with_source = {}
    for key, value in values.items():
        with_source[key] = value if isinstance(value, Value) else Value(value, source)
    return with_source


def variants_of(method: type[Method]) -> Mapping[str, Mapping[str, Any]]:
    """Return name -> recipe values of every variant, declared by the method or in its recipe file.

    A class without a file has only the former.
    """
    try:
        folder = Path(inspect.getfile(method)).parent
    except (TypeError, OSError):  # typed into an interpreter
        return method.variants
    of_file = read_recipes(folder, method.name).variants
    twice = sorted(method.variants.keys() & of_file.keys())
    if twice:
        raise BenchError(
            f"{folder / 'recipes' / f'{method.name}.toml'}: [variants.{twice[0]}]: {method.name} "
            "declares a variant of that name, too",
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
            f"{method.name} without a variant: the method as its paper has it",
        )
