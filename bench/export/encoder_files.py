"""Write the parts that every export format has: encoder, tokenizer, tensors."""

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
    """Write encoder and tokenizer as save_pretrained does, in safetensors only."""
    parts.encoder.save_pretrained(folder)
    padding_tokenizer(parts.tokenizer).save_pretrained(folder)


def padding_tokenizer(tokenizer: Any) -> Any:
    """Return a tokenizer with a padding token.

    Many decoders have none, and then no library encodes two texts together. They get a copy that
    pads with another special token of their own. Padding is not attended to, so no vector changes.
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
    """Tell whether the encoder's class can be made without a pooling layer."""
    return "add_pooling_layer" in inspect.signature(type(encoder).__init__).parameters


def save_tensors(tensors: Mapping[str, Tensor], file: Path) -> None:
    """Write tensors into a file; no tensors, no file."""
    from safetensors.torch import save_file

    if tensors:
        save_file(
            {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()},
            file,
            metadata={"format": "pt"},
        )
