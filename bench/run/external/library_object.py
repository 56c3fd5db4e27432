"""The facts about a SentenceTransformer object: its hash, and its part of a record."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from bench.records.record import public_name

UNLIMITED = 1_000_000
"""More tokens than any model reads."""


def hash_of_library(model: Any) -> str:
    """Return the sha256 of the weights and all settings of a SentenceTransformer."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\0".encode())
        content = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
        digest.update(content.numpy().tobytes())
    settings = [
        [type(part).__name__ for part in model],
        [getattr(part, "get_config_dict", dict)() for part in model],
        model.prompts,
        model.default_prompt_name,
        model.max_seq_length,
    ]
    # an object that is not cut keeps the identity that it had before this setting was hashed
    if model.truncate_dim is not None:
        settings.append(model.truncate_dim)
    digest.update(json.dumps(settings, sort_keys=True, default=str).encode())
    return digest.hexdigest()


def facts_of_library(model: Any) -> dict[str, Any]:
    """Return the facts that a record keeps about a SentenceTransformer."""
    from bench.backbones.sentence_transformer import pooling_of  # it loads torch

    encoder = getattr(model[0], "model", None) or getattr(model[0], "auto_model", None)
    config = getattr(encoder, "config", None)
    source = str(getattr(config, "_name_or_path", "") or "")
    dtype = str(next(model.parameters()).dtype).removeprefix("torch.")
    short = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
    return {
        "modules": [type(part).__name__ for part in model],
        "pooling": pooling_of(model),
        "dtype": short.get(dtype, dtype),
        "max_tokens": _longest_text(model.max_seq_length),
        "own_prompt": model.prompts.get(model.default_prompt_name or "", "") or "",
        "loaded_from": public_name(source) if source else None,
        "loaded_revision": getattr(config, "_commit_hash", None),
    }


def _longest_text(tokens: float | None) -> int | None:
    """Return the tokens of the longest text; None without a limit.

    Word vectors have an infinite one, and some tokenizers say 1e30.
    """
    if tokens is None or not tokens < UNLIMITED:
        return None
    return int(tokens)
