"""Low-rank adapters on a frozen encoder (LoRA, Hu et al. 2022), with the library peft.

The encoder stays a transformers model, and the adapters become modules of it: W x turns into
W x + (alpha / rank) B A x, with A (rank, in) drawn at random and B (out, rank) at 0. A method that
freezes nothing trains them and its own heads, without knowing of it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from bench.backbones.four_bit import is_four_bit
from bench.base.errors import BenchError
from bench.base.extras import install_hint, silence_advice

KEY = "lora_"
"""In the names of the tensors of an adapter, and of no other tensor."""
NAME = "default"
"""peft's name for the only adapter of a model."""
NOT_ADAPTED = ("lm_head", "pooler", "embed_out")
"""Layers behind the encoder's own, which no sentence vector goes through."""
ALL = "all"
"""The value of ``targets`` for every linear layer."""


@dataclass(frozen=True)
class AdapterSettings:
    """The shape of the adapters of an encoder."""

    rank: int
    alpha: float
    # of the adapters' inputs, while training
    dropout: float
    # "all" linear layers, or the last parts of their names, "q_proj+v_proj"
    targets: str = ALL


def check_installed() -> None:
    """Raise BenchError without peft."""
    if find_spec("peft") is None:
        raise BenchError("adapter=lora needs the package peft", install_hint("lora"))
    silence_advice()


def has_adapters(encoder: Any) -> bool:
    """Tell whether an encoder has adapters that are not merged into its weights."""
    return any(KEY in name for name, _ in encoder.named_parameters())


def add_adapters(encoder: Any, settings: AdapterSettings, seed: int) -> None:
    """Freeze an encoder and put adapters in float32 on it, also on weights in another format.

    ``seed`` alone fixes their initial weights. Raises BenchError if peft is missing, or if no
    linear layer has a name in ``targets``.
    """
    check_installed()
    import torch
    from peft import LoraConfig, inject_adapter_in_model

    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,  # type: ignore[arg-type]
        lora_dropout=settings.dropout,
        target_modules=find_layers(encoder, settings.targets),
        bias="none",
        fan_in_fan_out=_has_transposed_layers(encoder),
    )
    encoder.requires_grad_(False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        inject_adapter_in_model(config, encoder)
    encoder.train(encoder.training)  # also of the adapters' dropout
    for name, parameter in encoder.named_parameters():
        if KEY in name:  # a small update would be rounded away in half precision
            parameter.data = parameter.data.float()
            parameter.requires_grad_(True)


def find_layers(encoder: Any, targets: str) -> list[str]:
    """Return the names of the encoder's linear layers that ``targets`` means.

    Raises BenchError for a name that no layer has.
    """
    linear: list[str] = []
    for name, module in encoder.named_modules():
        is_behind = any(part in NOT_ADAPTED for part in name.split("."))
        if name and _is_linear(module) and not is_behind:
            linear.append(name)
    known = sorted({_last_part(name) for name in linear})
    wanted = known
    if targets != ALL:
        wanted = [part.strip() for part in targets.split("+")]
    for part in wanted:
        if part not in known:
            raise BenchError(
                f"lora_targets={targets}: this encoder has no linear layer named '{part}'",
                f"--set lora_targets=all, or some of these with + between them: {', '.join(known)}",
            )
    return [name for name in linear if _last_part(name) in wanted]


def _last_part(name: str) -> str:
    return name.rpartition(".")[2]


def _is_linear(module: Any) -> bool:
    from torch import nn
    from transformers.pytorch_utils import Conv1D

    return isinstance(module, nn.Linear | Conv1D)


def _has_transposed_layers(encoder: Any) -> bool:
    """Tell whether the layers keep W as (in, out): GPT-2's."""
    from transformers.pytorch_utils import Conv1D

    return any(isinstance(module, Conv1D) for module in encoder.modules())


@contextmanager
def without_adapters(encoder: Any) -> Iterator[None]:
    """Leave the adapters of an encoder out of its passes, while open."""
    layers: list[Any] = []
    if has_adapters(encoder):
        from peft.tuners.lora import LoraLayer

        layers = [module for module in encoder.modules() if isinstance(module, LoraLayer)]
    for layer in layers:
        layer._disable_adapters = True
    try:
        yield
    finally:
        for layer in layers:
            layer._disable_adapters = False


def merge_adapters(encoder: Any) -> None:
    """Add the adapters to the encoder's weights: W + (alpha / rank) B A, in float32.

    It is then a plain transformers model.
    """
    import torch
    from peft.tuners.lora import LoraLayer

    adapted: list[tuple[str, Any]] = []
    for name, module in encoder.named_modules():
        if isinstance(module, LoraLayer):
            adapted.append((name, module))
    for name, module in adapted:
        layer = module.get_base_layer()
        with torch.no_grad():
            weight = layer.weight.float()
            layer.weight.data = weight + module.get_delta_weight(NAME).to(weight)
        parent, _, last = name.rpartition(".")
        setattr(encoder.get_submodule(parent), last, layer)
    for left in ("peft_config", "_hf_peft_config_loaded"):
        vars(encoder).pop(left, None)


def plain_copy(encoder: Any) -> Any:
    """Return the encoder as a plain transformers model in float32.

    It is the encoder itself if it is one, else a copy with its adapters merged and its 4-bit
    weights unpacked.
    """
    import torch

    dtypes = {parameter.dtype for parameter in encoder.parameters()}
    if not has_adapters(encoder) and dtypes <= {torch.float32} and not is_four_bit(encoder):
        return encoder
    whole = copy.deepcopy(encoder).eval()
    if is_four_bit(whole):
        whole.dequantize()
    if has_adapters(whole):
        merge_adapters(whole)
    whole.float()
    whole.config.dtype = torch.float32
    whole._forward_hooks.clear()
    whole._forward_pre_hooks.clear()
    return whole
