"""Encoder, tokenizer and tensors of an export, as every format has them."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.method import Portable

if TYPE_CHECKING:
    from torch import Tensor


def write_encoder(parts: Portable, folder: Path) -> None:
    """Encoder and tokenizer, as save_pretrained writes them: safetensors only."""
    parts.encoder.save_pretrained(folder)
    padding_tokenizer(parts.tokenizer).save_pretrained(folder)


def padding_tokenizer(tokenizer: Any) -> Any:
    """The tokenizer; if it has no padding token, as many decoders', a copy that pads with another
    special token of its own.

    Without one no library encodes two texts together. What stands at padding is not attended to, so
    that no vector changes.
    """
    if tokenizer.pad_token is not None:
        return tokenizer
    padded = copy.deepcopy(tokenizer)
    for name in ("eos_token", "unk_token", "bos_token"):
        if getattr(padded, name) is not None:
            padded.pad_token = getattr(padded, name)
            return padded
    padded.pad_token = padded.convert_ids_to_tokens(0)
    return padded


def takes_no_pooler(encoder: Any) -> bool:
    return "add_pooling_layer" in inspect.signature(type(encoder).__init__).parameters


def save_tensors(tensors: Mapping[str, Tensor], file: Path) -> None:
    """Float tensors as float32; nothing where there is none."""
    from safetensors.torch import save_file

    if tensors:
        save_file(
            {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()},
            file,
            metadata={"format": "pt"},
        )
