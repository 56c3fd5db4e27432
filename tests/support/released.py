"""Checkpoints as authors released them, made of random weights: the tensors have the names of the
authors' classes.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

SAVED = "model.safetensors"


def promcse_checkpoint(
    backbone: str, folder: Path, *, length: int = 5, head: bool = True, seed: int = 3
) -> tuple[str, dict[str, Tensor]]:
    """A folder as ``save_pretrained`` of PromCSE's BertForCL or RobertaForCL writes it, on the
    encoder of ``backbone``, and the tensors that it adds: ``prefix_encoder.embedding.weight``
    (P, 2LH) and the head ``mlp.dense``.
    """
    from transformers import AutoModel

    model: Any = AutoModel.from_pretrained(backbone, add_pooling_layer=False)
    layers, width = model.config.num_hidden_layers, model.config.hidden_size
    drawn = torch.Generator().manual_seed(seed)
    prefix = torch.randn(length, 2 * layers * width, generator=drawn)
    added = {"prefix_encoder.embedding.weight": prefix}
    if head:
        added["mlp.dense.weight"] = 0.3 * torch.randn(width, width, generator=drawn)
        added["mlp.dense.bias"] = 0.3 * torch.randn(width, generator=drawn)
    family = model.config.model_type
    state = {f"{family}.{name}": tensor.clone() for name, tensor in model.state_dict().items()}
    return saved(backbone, folder, state | added), added


def with_tensors(backbone: str, folder: Path, more: dict[str, Tensor]) -> str:
    """Copy a model folder and add tensors to it."""
    return saved(backbone, folder, load_file(Path(backbone) / SAVED) | more)


def saved(backbone: str, folder: Path, state: dict[str, Tensor]) -> str:
    shutil.copytree(backbone, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    save_file(state, folder / SAVED, metadata={"format": "pt"})
    return str(folder)
