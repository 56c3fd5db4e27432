"""The tensors of adapters in a file, and how they are added to the weights of an encoder.

Two kinds of files are read: the checkpoint of a run, and the folder of an adapter that peft saved.
peft itself is not needed for it: W + scale * B A.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.backbones.adapter_folder import MERGE_FIRST
from bench.backbones.heads import is_head
from bench.backbones.refusals import ADAPTER, read_settings
from bench.backbones.tensors import tensor_names, tensors_of
from bench.base.errors import NotAModel
from bench.base.reading import RECORD_BYTES, read_plain_file

if TYPE_CHECKING:
    from torch import Tensor, nn

OF_A = re.compile(r"(.+)\.lora_A(?:\.default)?\.weight")
OF_B = re.compile(r"(.+)\.lora_B(?:\.default)?\.weight")
PEFT_PREFIX = "base_model.model."
CHANGED_BASE = ("pissa", "olora", "corda", "loftq")
"""Beginnings of peft's ``init_lora_weights`` with which the base's weights were changed, too."""


def holds_adapters(file: Path) -> bool:
    """Tell whether the checkpoint of a run holds adapters in the place of a whole encoder."""
    return any(name.startswith("encoder.") and OF_A.fullmatch(name) for name in tensor_names(file))


def read_adapter_values(file: Path) -> dict[str, Any]:
    """Read the recipe of the run that wrote a checkpoint; empty for an adapter of peft.

    Raises NotAModel if it cannot be read.
    """
    about = file.with_name("method.json")
    if not about.is_file():
        return {}
    try:
        recipe = json.loads(read_plain_file(about, RECORD_BYTES))["recipe"]
        return dict(recipe)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotAModel(f"{about} is damaged: {error}", "give another run") from None


def merge_run(encoder: nn.Module, file: Path, values: Mapping[str, Any]) -> None:
    """Add the adapters in the checkpoint of a run to an encoder in float32.

    ``values``: the recipe of that run. Raises NotAModel if they do not fit.
    """
    scale = float(values["lora_alpha"]) / int(values["lora_rank"])
    pairs = _pairs_of(tensors_of(file, "encoder."), file)
    modules = dict(encoder.named_modules())
    for name, (down, up) in pairs.items():
        if name not in modules:
            raise NotAModel(
                f"{file} has an adapter for {name}, which its backbone has not",
                "bring the revision that the run was trained on to this machine",
            )
        _add(modules[name], down, up, scale, f"{file}: {name}")


def merge_folder(encoder: Any, folder: Path, weights: Path) -> None:
    """Add the adapter of a folder that peft saved to an encoder in float32.

    Adapters of layers behind the encoder, such as ``lm_head``, are left out. Raises NotAModel for
    anything but low-rank matrices of linear layers.
    """
    settings = read_settings(folder / ADAPTER)
    _check_kind(folder, settings)
    modules = dict(encoder.named_modules())
    merged = 0
    for name, (down, up) in _pairs_of(tensors_of(weights, ""), weights).items():
        inside = _name_in(modules, name)
        if inside is None:
            plain = name.removeprefix(PEFT_PREFIX)
            if is_head(plain, encoder.config):
                continue
            raise NotAModel(
                f"{weights} has an adapter for {plain}, which the base does not have",
                f"look at base_model_name_or_path in {folder / ADAPTER}",
            )
        scale = _scale_of(settings, name.removeprefix(PEFT_PREFIX), len(down))
        _add(modules[inside], down, up, scale, f"{weights}: {name}")
        merged += 1
    if merged == 0:
        raise NotAModel(f"{weights} holds no adapter of a layer of the encoder", MERGE_FIRST)


def _check_kind(folder: Path, settings: Mapping[str, Any]) -> None:
    """Raise NotAModel for an adapter that is more than W + scale * B A."""
    kind = str(settings.get("peft_type", "")).upper()
    start = settings.get("init_lora_weights")
    problem = ""
    if kind != "LORA":
        problem = f"an adapter of the kind {kind or 'unknown'}"
    elif settings.get("use_dora"):
        problem = "an adapter with DoRA"
    elif settings.get("layer_replication"):
        problem = "an adapter that repeats layers of its base"
    elif isinstance(start, str) and start.startswith(CHANGED_BASE):
        problem = f"an adapter that began with a changed base (init_lora_weights={start})"
    if problem:
        base = settings.get("base_model_name_or_path")
        raise NotAModel(
            f"{folder} is {problem} of {base}; only plain LoRA can be merged here", MERGE_FIRST
        )


def _pairs_of(tensors: Mapping[str, Tensor], file: Path) -> dict[str, tuple[Tensor, Tensor]]:
    """Return the matrices A (rank, in) and B (out, rank) of each layer's name.

    Raises NotAModel for a tensor of another kind, and for a matrix without its other one.
    """
    downs: dict[str, Tensor] = {}
    ups: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        of_a, of_b = OF_A.fullmatch(name), OF_B.fullmatch(name)
        if of_a is not None:
            downs[of_a[1]] = tensor.float()
        elif of_b is not None:
            ups[of_b[1]] = tensor.float()
        else:
            raise NotAModel(
                f"{file} holds {name}, which is no low-rank matrix of a linear layer", MERGE_FIRST
            )
    if downs.keys() != ups.keys():
        alone = min(downs.keys() ^ ups.keys())
        raise NotAModel(f"{file} holds only one of the two matrices of {alone}", "copy it again")
    return {name: (downs[name], ups[name]) for name in downs}


def _name_in(modules: Mapping[str, nn.Module], name: str) -> str | None:
    """Return the encoder's own name of a layer that peft names from a whole model."""
    rest = name.removeprefix(PEFT_PREFIX)
    while rest:
        if rest in modules:
            return rest
        rest = rest.partition(".")[2]
    return None


def _scale_of(settings: Mapping[str, Any], name: str, rank: int) -> float:
    """Return the factor of B A: alpha / rank, with peft's exceptions for single layers."""
    alpha = float(settings.get("lora_alpha", 8))
    for pattern, value in (settings.get("alpha_pattern") or {}).items():
        if re.match(rf"(.*\.)?({pattern})$", name):
            alpha = float(value)
            break
    if settings.get("use_rslora"):
        return alpha / math.sqrt(rank)
    return alpha / rank


def _add(layer: Any, down: Tensor, up: Tensor, scale: float, where: str) -> None:
    """Add scale * B A to a layer's weights. Raises NotAModel if the shapes do not fit."""
    import torch
    from transformers.pytorch_utils import Conv1D

    weight = getattr(layer, "weight", None)
    change = scale * (up @ down)
    if isinstance(layer, Conv1D):  # GPT-2's keep W as (in, out)
        change = change.T
    if weight is None or weight.shape != change.shape:
        raise NotAModel(f"{where} does not fit the layer of the base", "give the right base")
    with torch.no_grad():
        weight += change.to(weight)
