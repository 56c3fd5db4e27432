"""The layers of an encoder of any family, and the place in a layer where its heads are joined.

Names differ between families; both are found by name, and a family without any of the names is
refused with one line.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from bench.method import BenchError

LAYERS = (
    "layers",
    "h",
    "decoder.layers",
    "encoder.layer",
    "encoder.layers",
    "transformer.layer",
    "encoder.block",
)
"""Where an encoder keeps its layers: Llama and its kin, GPT-2, OPT, BERT, ..., DistilBERT, T5."""
OUTPUTS = (
    "self_attn.o_proj",
    "self_attn.out_proj",
    "attention.dense",
    "attn.c_proj",
    "attention.output.dense",
    "attn.Wo",
    "attention.out_lin",
    "attention.attn.o",
    "layer.0.SelfAttention.o",
)
"""Where a layer multiplies its joined heads: Llama and its kin, OPT, GPT-NeoX, GPT-2, BERT, ..."""


def encoder_layers(encoder: Any) -> list[nn.Module]:
    """Return the layers in order. Raises BenchError if none of the known names has them."""
    for name in LAYERS:
        found = submodule(encoder, name)
        if isinstance(found, nn.ModuleList):
            return list(found)
    raise BenchError(
        f"the layers of {type(encoder).__name__} are not known here",
        "take a backbone of docs/backbones.md",
    )


def number_of_state(state: int, layers: int) -> int:
    """Return the number of a hidden state from 0, the embeddings; negative ones count from the last
    of ``layers`` + 1.
    """
    return state + layers + 1 if state < 0 else state


def check_reads_a_layer(encoder: Any, state: int) -> None:
    """Raise BenchError if hidden state number ``state`` is the embeddings, which no layer changes."""
    if number_of_state(state, len(encoder_layers(encoder))) == 0:
        raise BenchError(
            f"layer={state} reads the embeddings, before any layer is changed", "--set layer=-1"
        )


FINAL_NORMS = ("norm", "final_norm", "ln_f", "final_layer_norm", "decoder.final_layer_norm")
"""Where an encoder has the norm behind its last layer, if it has one."""


def freeze_above(encoder: Any, state: int) -> None:
    """Freeze what is above hidden state number ``state`` (0: the embeddings): no gradient gets
    there. Layers that are not known here stay as they are.
    """
    try:
        layers = encoder_layers(encoder)
    except BenchError:
        return
    state = number_of_state(state, len(layers))
    if state >= len(layers):
        return
    above = layers[state:]
    for name in FINAL_NORMS:
        norm = submodule(encoder, name)
        if norm is not None:
            above.append(norm)
    for module in above:
        module.requires_grad_(False)


def output_projection(layer: nn.Module) -> nn.Module:
    """Return the map that a layer applies to its joined heads. Raises BenchError if it is not
    known.
    """
    for name in OUTPUTS:
        found = submodule(layer, name)
        if found is not None:
            return found
    raise BenchError(
        f"the output projection of {type(layer).__name__} is not known here",
        "take a backbone of docs/backbones.md",
    )


def submodule(module: nn.Module, path: str) -> nn.Module | None:
    """Return the module at a path of names; None if there is none."""
    found: Any = module
    for name in path.split("."):
        found = getattr(found, name, None)
    return found if isinstance(found, nn.Module) else None
