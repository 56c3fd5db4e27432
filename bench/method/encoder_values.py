"""The recipe values of every method that say how its encoder is held, read and trained.

They change the encoder before a method is built on it, so that no method knows of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError
from bench.method.context import Context, seed_for
from bench.method.recipe import Recipe

if TYPE_CHECKING:
    from bench.backbones import Reference
    from bench.backbones.adapters import AdapterSettings
    from bench.backbones.model import Backbone
    from bench.method.contract import Method

LORA = "lora"
"""A new adapter."""
SAME = "same"
"""The adapter of the run that is the backbone goes on."""
BOTH_WAYS = "bidirectional"
CHOICES: Mapping[str, tuple[str, ...]] = {
    "adapter": (LORA, SAME),
    "base_dtype": ("fp32", "bf16", "4bit"),
    "attention": ("causal", BOTH_WAYS),
}
"""The values of each key that has a name for a value."""


def adapter_settings(recipe: Mapping[str, Any]) -> AdapterSettings:
    """Return the shape of the adapters of a recipe that has some."""
    from bench.backbones.adapters import AdapterSettings

    return AdapterSettings(
        rank=int(recipe["lora_rank"]),
        alpha=float(recipe["lora_alpha"]),
        dropout=float(recipe["lora_dropout"]),
        targets=str(recipe["lora_targets"]),
    )


def check_encoder_values(cls: type[Method], recipe: Mapping[str, Any], *, learns: bool) -> None:
    """Raise BenchError for values that do not fit together, or a package that they need and that
    is missing.

    ``learns``: the method is trained.
    """
    from bench.backbones.adapters import check_installed
    from bench.backbones.four_bit import check_four_bit_installed

    for key, choices in CHOICES.items():
        if recipe.get(key) is not None and recipe[key] not in choices:
            raise BenchError(
                f"{key}={recipe[key]} is unknown", f"choose from {', '.join((*choices, 'none'))}"
            )
    adapted = recipe.get("adapter") is not None
    narrow = recipe.get("base_dtype") not in (None, "fp32")
    if adapted and cls.encoder_is_frozen:
        raise BenchError(
            f"adapter={recipe['adapter']}: {cls.name} freezes its encoder, so an adapter would "
            "not train",
            "leave adapter out, or take a method that trains the encoder",
        )
    if narrow and learns and not adapted and not cls.encoder_is_frozen:
        raise BenchError(
            f"base_dtype={recipe['base_dtype']} is for an encoder that does not train itself: "
            f"{cls.name} would train weights that are too coarse for its updates",
            "--set adapter=lora, or --set base_dtype=fp32 --precision bf16",
        )
    if adapted:
        check_installed()
    if recipe.get("base_dtype") == "4bit":
        check_four_bit_installed()


def load_encoder(
    reference: Reference,
    recipe: Recipe,
    context: Context,
    *,
    dtype: str | None = None,
    reads: tuple[str, ...] = (),
) -> Backbone:
    """Load a backbone as the recipe says. Raises NotAModel if it is not available.

    ``dtype``: the number format of its weights, if it is not the recipe's. ``reads``: the first
    parts of the names of tensors that the caller reads besides the encoder and heads.
    """
    from bench.backbones import load

    return load(
        reference,
        dropout=recipe.get("dropout"),
        offline=context.offline,
        dtype=dtype or str(recipe.get("base_dtype") or "fp32"),
        reads=reads,
        merge=recipe.get("adapter") != SAME,
    )


def prepare_encoder(backbone: Backbone, recipe: Mapping[str, Any], seed: int) -> None:
    """Change a backbone's encoder as the recipe says, before a method is built on it.

    ``seed``: the run's seed, which fixes the initial weights of an adapter. Raises BenchError for
    an encoder that cannot do as the recipe asks.
    """
    from bench.backbones.adapters import add_adapters
    from bench.backbones.bidirectional import look_both_ways
    from bench.backbones.held_in import hold_in

    encoder = backbone.encoder
    if recipe.get("attention") == BOTH_WAYS:
        look_both_ways(encoder, backbone.name)
        vars(backbone).pop("reads_ahead", None)  # it was measured before
    if recipe.get("base_dtype") not in (None, "fp32"):
        hold_in(encoder, str(recipe["base_dtype"]))
    if recipe.get("adapter") is not None:
        add_adapters(encoder, adapter_settings(recipe), seed_for(seed, "adapter"))
        forget_cache(encoder)
    if recipe.get("adapter") == SAME:
        take_adapters_of_run(backbone)
    if recipe.get("gradient_checkpointing"):
        recompute_activations(encoder, backbone.name)


def take_adapters_of_run(backbone: Backbone) -> None:
    """Give the adapters the weights that the run, which is the backbone, has trained."""
    from bench.backbones.tensors import tensors_of

    assert backbone.trained is not None
    backbone.encoder.load_state_dict(tensors_of(backbone.trained, "encoder."), strict=False)


def forget_cache(encoder: Any) -> None:
    """Keep no keys and values of a pass, which only generating text needs."""
    if getattr(encoder.config, "use_cache", False):
        encoder.config.use_cache = False


def recompute_activations(encoder: Any, name: str) -> None:
    """Keep only the input of each layer, and compute its activations again in the backward pass.

    Dropout masks are the same in both passes. Raises BenchError if a family cannot.
    """
    if not getattr(encoder, "supports_gradient_checkpointing", False):
        raise BenchError(
            f"gradient_checkpointing=true: transformers does not support it for {name}",
            "leave it out; --chunk N holds the activations of N rows at a time",
        )
    forget_cache(encoder)
    # the same under its name in transformers 5.23 and its earlier one
    enable = getattr(encoder, "activation_checkpointing_enable", None)
    enable = enable or encoder.gradient_checkpointing_enable
    enable({"use_reentrant": False})


def check_values_arrived(method: Any, encoder: Any, *, learns: bool) -> None:
    """Raise BenchError if a method does not use the encoder that was prepared for it, or does not
    train the adapters on it.
    """
    used = getattr(method, "encoder", None)  # a method may keep its encoder elsewhere
    recipe = getattr(method, "recipe", {})
    trains = used is not None and any(p.requires_grad for p in used.parameters())
    if recipe.get("adapter") is not None and learns and not trains:
        raise BenchError(
            f"{method.name} freezes its encoder, so an adapter would not train",
            "leave adapter out, or take a method that trains the encoder",
        )
    for key in CHOICES:
        if recipe.get(key) is not None and used is not encoder:
            raise BenchError(
                f"{key}={recipe[key]} does not reach {method.backbone.name}, which "
                "sentence-transformers loads by itself",
                f"leave {key} out, or name the pooling: --set pooling=mean",
            )
