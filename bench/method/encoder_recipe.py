"""The values of a recipe that say how an encoder is held and trained, in their one form, and
``duplicates``.

They are in a recipe, and so in a fingerprint, only if they change something: ``adapter=none`` is
the recipe without the key. With an adapter, all of its values are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bench.backbones import Reference
from bench.base.errors import BenchError
from bench.method.contract import Method, how_fitted
from bench.method.encoder_values import LORA, SAME
from bench.method.own_vectors import own_backbone
from bench.method.recipe import Recipe, Value
from bench.method.recipe_defaults import ENCODER_VALUES, ENCODER_VALUES_UNTRAINED
from bench.records.record import is_given_by_user

OFF: Mapping[str, tuple[object, ...]] = {
    "adapter": (None,),
    "base_dtype": (None, "fp32"),
    "attention": (None, "causal"),
    "gradient_checkpointing": (False, None),
    "duplicates": (None, "keep"),
}
"""The values with which a key changes nothing."""
LORA_KEYS = tuple(key for key in ENCODER_VALUES if key.startswith("lora_"))


def encoder_keys(method: type[Method], *, trained: bool) -> dict[str, Value]:
    """Return the keys that a method may have, with their defaults.

    A method that brings its own vectors has none. One that says itself in which number format its
    weights are (``dtype``) has no ``base_dtype``.
    """
    if own_backbone(method) is not None:
        return {}
    takes_steps = trained and how_fitted(method) != "pass"
    names = tuple(ENCODER_VALUES) if takes_steps else ENCODER_VALUES_UNTRAINED
    if "dtype" in method.optional:
        names = tuple(name for name in names if name != "base_dtype")
    return {name: ENCODER_VALUES[name] for name in names}


def settle_encoder_values(values: Mapping[str, Value]) -> dict[str, Value]:
    """Return the values of a recipe without those that change nothing, and with every value of its
    adapter.

    Raises BenchError for a value of an adapter that a user gives for a recipe without one.
    """
    settled: dict[str, Value] = {}
    for key, value in values.items():
        if key not in OFF or value.value not in OFF[key]:
            settled[key] = value
    adapter = settled.get("adapter")
    if adapter is not None and adapter.value == LORA:
        for key in LORA_KEYS:
            settled.setdefault(key, ENCODER_VALUES[key])
        alpha = settled["lora_alpha"]
        if alpha.value is None:
            settled["lora_alpha"] = replace(alpha, value=2.0 * settled["lora_rank"].value)
        return settled
    for key in LORA_KEYS:
        value = settled.pop(key, ENCODER_VALUES[key])
        if is_given_by_user(value.source):
            _refuse_adapter_value(key, value, adapter)
    return settled


def _refuse_adapter_value(key: str, value: Value, adapter: Value | None) -> None:
    """Raise BenchError for a value of an adapter if the recipe adds none."""
    if adapter is None:
        raise BenchError(
            f"{key}={value.value} is about an adapter, and this recipe has none",
            "--set adapter=lora",
        )
    if adapter.value == SAME:
        raise BenchError(
            f"{key}={value.value}: adapter=same goes on with the adapter of the run that "
            "--backbone names, as it is",
            f"leave {key} out, or --set adapter=lora for a new one",
        )


def with_adapter_of_run(recipe: Recipe, backbone: Reference) -> Recipe:
    """Return a recipe with ``adapter=same``, with the values of the adapter that goes on.

    Other recipes are returned as they are. The weights are held and read as in the run before,
    unless the recipe says otherwise. Raises BenchError if the backbone is not a run with an
    adapter.
    """
    if recipe.get("adapter") != SAME:
        return recipe
    before = backbone.adapter_values()
    if not before:
        raise BenchError(
            f"adapter=same: {backbone.name} is not a run with an adapter",
            "--backbone RUN of a run with adapter=lora, or --set adapter=lora for a new one",
        )
    values = recipe.values_with_source()
    for key in (*LORA_KEYS, "base_dtype", "attention"):
        if key in before and key not in values:
            values[key] = Value(before[key], "the run that is the backbone")
    return Recipe(values)


def check_four_bit_ranks(recipe: Recipe, ranks: int) -> None:
    """Raise BenchError for a base in 4 bits that several processes would train on.

    They begin by copying the weights of the first process, and packed weights cannot be copied
    without their statistics.
    """
    if ranks > 1 and recipe.get("base_dtype") == "4bit":
        raise BenchError(
            f"base_dtype=4bit on {ranks} processes was never tried and is refused",
            "--set base_dtype=bf16 on several, or one process with --chunk N",
        )
