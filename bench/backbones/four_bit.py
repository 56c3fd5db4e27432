"""Weights in 4 bits (NF4 with double quantisation, Dettmers et al. 2023), by transformers and
bitsandbytes.

Only the linear layers of an encoder are in 4 bits; word embeddings, norms and biases are float32,
and so are the layers that transformers keeps in float32 for a family (T5's ``wo``). A product is
computed in float32, or in the type of autocast, so the values of the weights are the same on every
device and in every precision.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from bench.backbones.encoder_class import without_pooling_layer
from bench.base.errors import BenchError
from bench.base.extras import install_hint, silence_advice

PACKAGES = ("accelerate", "bitsandbytes")
"""What transformers needs to read weights into 4 bits."""


def check_four_bit_installed() -> None:
    """Raise BenchError if a package is missing."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise BenchError(
            f"base_dtype=4bit needs the package {' and '.join(missing)}", install_hint("4bit")
        )
    silence_advice()


def four_bit_options() -> dict[str, Any]:
    """Return the options of ``from_pretrained`` that put an encoder's linear layers into 4 bits.

    Raises BenchError if a package is missing.
    """
    check_four_bit_installed()
    import torch
    from transformers import BitsAndBytesConfig

    return {
        "quantization_config": BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.float32,
            # without a list, the last layer would stay whole: it is taken for a head
            llm_int8_skip_modules=[],
        ),
        "dtype": torch.float32,
        # always on the CPU, so that the values do not depend on the device of a run
        "device_map": {"": "cpu"},
    }


def in_four_bits(encoder: Any) -> Any:
    """Return a copy of an encoder in memory with its weights in 4 bits.

    Raises BenchError as :func:`prepare_layers`.
    """
    held = without_pooling_layer(
        type(encoder).from_pretrained,
        None,
        config=encoder.config,
        state_dict=encoder.state_dict(),
        **four_bit_options(),
    )
    prepare_layers(held)
    return held.eval()


def prepare_layers(encoder: Any) -> None:
    """Make layers that were read into 4 bits compute in float32 on every CPU.

    Raises BenchError for layers that keep W as (in, out), such as GPT-2's: transformers unpacks
    them as (out, in), and what is saved could not be read again.
    """
    from transformers.pytorch_utils import Conv1D

    for name, module in encoder.named_modules():
        if type(module).__name__ != "Linear4bit":
            continue
        if module.source_cls is Conv1D:
            raise BenchError(
                f"base_dtype=4bit: {name} of this encoder is no linear layer but a transposed one, "
                "which would be unpacked the wrong way round",
                "--set base_dtype=bf16",
            )
        # the packing for a CPU without gradients computes in bfloat16, and would have to be undone
        # before each training step
        module.support_avx512bf16_for_cpu = False


def is_four_bit(encoder: Any) -> bool:
    """Tell whether some layers of an encoder have weights in 4 bits."""
    return getattr(encoder, "quantization_method", None) == "bitsandbytes"
