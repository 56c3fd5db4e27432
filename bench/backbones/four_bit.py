"""Weights in 4 bits (NF4 with double quantisation, Dettmers et al. 2023), with bitsandbytes.

Only the linear layers of an encoder are in 4 bits; word embeddings, norms and biases are float32,
as peft prepares a model for training. A product is computed in float32, or in the type of autocast:
so the values of the weights are the same on every device and in every precision.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from bench.base.errors import BenchError
from bench.base.extras import install_hint, silence_advice


def check_four_bit_installed() -> None:
    """Raise BenchError without bitsandbytes."""
    if find_spec("bitsandbytes") is None:
        raise BenchError("base_dtype=4bit needs the package bitsandbytes", install_hint("4bit"))
    silence_advice()


def is_four_bit(encoder: Any) -> bool:
    """Tell whether some layers of an encoder have weights in 4 bits."""
    return bool(getattr(encoder, "is_loaded_in_4bit", False))


def quantise(encoder: Any) -> None:
    """Put the weights of an encoder's linear layers into 4 bits, in place, on the CPU.

    They are then frozen; everything else becomes float32. Raises BenchError without bitsandbytes,
    and for a model of another kind of layers (GPT-2's).
    """
    check_four_bit_installed()
    from torch import nn

    linear = [name for name, module in encoder.named_modules() if isinstance(module, nn.Linear)]
    if not linear:
        raise BenchError(
            "base_dtype=4bit: this encoder has no layer that bitsandbytes knows",
            "--set base_dtype=bf16",
        )
    for name in linear:
        parent, _, last = name.rpartition(".")
        layer = encoder.get_submodule(name)
        setattr(encoder.get_submodule(parent), last, _four_bit_layer(layer))
    encoder.float()  # what is left: word embeddings, norms, biases
    # peft asks for it, to put its adapters on such layers
    encoder.is_loaded_in_4bit = True


def _four_bit_layer(layer: Any) -> Any:
    """Return a layer with the same weights in 4 bits."""
    import bitsandbytes as bnb
    import torch

    made = bnb.nn.Linear4bit(
        layer.in_features,
        layer.out_features,
        bias=layer.bias is not None,
        compute_dtype=torch.float32,
        compress_statistics=True,
        quant_type="nf4",
        device="meta",
    )
    # always on the CPU, so that the values do not depend on the device of a run
    packed: Any = bnb.nn.Params4bit(
        layer.weight.detach().contiguous(),
        requires_grad=False,
        compress_statistics=True,
        quant_type="nf4",
    )
    packed = packed.to("cpu")
    packed.quant_state.dtype = torch.float32
    made.weight = packed
    # the packing for a CPU without gradients would have to be undone before each training step
    made.support_avx512bf16_for_cpu = False
    if layer.bias is not None:
        made.bias = torch.nn.Parameter(layer.bias.detach(), requires_grad=False)
    return made


def with_full_weights(layer: Any) -> Any:
    """Return a layer with weights in 4 bits as a plain one in float32, with the same values.

    Any other layer is returned as it is.
    """
    if type(layer).__name__ != "Linear4bit":
        return layer
    import bitsandbytes as bnb
    import torch

    weight = bnb.functional.dequantize_4bit(layer.weight.data, layer.weight.quant_state).float()
    plain = torch.nn.Linear(layer.in_features, layer.out_features, bias=False, device="meta")
    plain.weight = torch.nn.Parameter(weight, requires_grad=False)
    plain.bias = layer.bias
    return plain


def round_to_four_bits(encoder: Any) -> None:
    """Give an encoder in float32 the values that its weights have in 4 bits."""
    quantise(encoder)
    for name, module in list(encoder.named_modules()):
        plain = with_full_weights(module)
        if plain is not module:
            parent, _, last = name.rpartition(".")
            setattr(encoder.get_submodule(parent), last, plain)
    vars(encoder).pop("is_loaded_in_4bit", None)
