"""Parts of a finished encoder: checks of its recipe, the rows that it reads, its pooling, and
encoding by its library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.method import (
    Backbone,
    BenchError,
    Features,
    Recipe,
    check_choice,
    check_one_vector,
)
from bench.methods.library_path import shorten
from bench.methods.pooling import POOLERS

POOLINGS = {"cls", "last", "mlp", "mean", *POOLERS}
LIBRARY_BATCH = 32  # sentence-transformers' own default


class PromptTooLong(BenchError):
    """A prompt that leaves no room for a sentence."""


class NoTransformer(BenchError):
    """A sentence-transformers folder that has word vectors, a router or the like in the place of a
    transformer.
    """


def check_pooling(recipe: Recipe, backbone: Path | None) -> None:
    """Raise BenchError for an unknown pooling, and if neither recipe nor folder names one."""
    if recipe.pooling not in {None, *POOLINGS}:
        raise BenchError(
            f"pooling={recipe.pooling} is unknown", f"choose from {', '.join(sorted(POOLINGS))}"
        )
    if recipe.pooling is not None or backbone is None:
        return
    if not (backbone / "modules.json").exists():
        raise BenchError(
            f"{backbone} is a plain transformers checkpoint: it does not say how to pool",
            "--set pooling=cls (unsupervised SimCSE), mlp (supervised SimCSE), mean, "
            "last (decoders), ...",
        )
    check_one_vector(backbone, str(backbone))


def check_padding(recipe: Recipe) -> None:
    """Raise BenchError for an unknown side, and if the pooling does not work with padding there."""
    if "padding" in recipe:
        check_choice(recipe, "padding", ("left", "right"))
    if recipe.get("padding") != "left":
        return
    if recipe.pooling is None:
        raise BenchError(
            "padding=left is for a plain checkpoint; this folder says itself how it pads",
            "leave padding out",
        )
    if recipe.pooling not in ("last", "mean", "avg"):
        raise BenchError(
            f"padding=left with pooling={recipe.pooling}", "--set pooling=last or mean"
        )


def default_prompt(model: Any) -> str:
    """Return the prompt that a SentenceTransformer uses by itself; "" if it has none."""
    return model.prompts.get(model.default_prompt_name or "", "") or ""


def unused_prompts_line(name: str, prompts: Mapping[str, str]) -> str:
    """Return the line about prompts of a model that are not used."""
    named = ", ".join(f"{key} ({shorten(text)})" for key, text in prompts.items())
    return (
        f"{name} names prompts that are not used: {named}; "
        "--prefix TEXT or --prompt TASK TEXT uses one"
    )


def encode_by_library(model: Any, texts: Sequence[str], prompt: str) -> np.ndarray:
    """Encode texts with a SentenceTransformer, which puts the prompt before each; (n, d) float32.

    Texts without a word are encoded together with a word: alone, a text without a token makes a
    batch without a column, which many models cannot read.
    """
    encode: Callable[..., Any] = model.encode
    blank: list[int] = []
    words: list[int] = []
    for row, text in enumerate(texts):
        if text.strip():
            words.append(row)
        else:
            blank.append(row)
    vectors: dict[int, Any] = {}
    options = {"prompt": prompt, "show_progress_bar": False}
    if words:
        encoded = encode([texts[row] for row in words], batch_size=LIBRARY_BATCH, **options)
        vectors |= zip(words, encoded, strict=True)
    if blank:
        with_word = [*[texts[row] for row in blank], "a"]
        encoded = encode(with_word, batch_size=len(with_word), **options)
        vectors |= zip(blank, encoded[:-1], strict=True)
    return np.stack([np.asarray(vectors[row], dtype=np.float32) for row in range(len(texts))])


def own_pooling(model: Any) -> str | None:
    """Return the pooling of a SentenceTransformer: "mean", "cls+max"; None if it has no Pooling."""
    for part in model:
        if type(part).__name__ != "Pooling":
            continue
        mode = getattr(part, "pooling_mode", None) or part.get_pooling_mode_str()
        return mode if isinstance(mode, str) else "+".join(mode)
    return None


def unpadded(features: Any) -> list[int]:
    """Return the token ids of a single text."""
    ids, mask = features["input_ids"][0], features["attention_mask"][0]
    return [int(token) for token in ids[mask.bool()]]


def with_a_column(features: Features, pad_id: int) -> Features:
    """Return features with at least one column, which is padding if no text has a token."""
    ids = features["input_ids"]
    if ids.shape[1]:
        return features
    return {
        "input_ids": torch.full((len(ids), 1), pad_id, dtype=ids.dtype),
        "attention_mask": torch.zeros((len(ids), 1), dtype=ids.dtype),
    }


def with_pooling_layer(backbone: Backbone) -> Any:
    """Return the encoder with the pooling layer of its checkpoint.

    Raises BenchError if it has none.
    """
    from transformers import AutoModel

    # in a sentence-transformers folder the transformer may be deeper
    folder = backbone.encoder.name_or_path
    encoder, info = AutoModel.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    is_new = any("pooler" in name for name in info["missing_keys"])
    if getattr(encoder, "pooler", None) is None or is_new:
        raise BenchError(
            f"{backbone.name} has no pooling layer, which pooling=mlp needs", "--set pooling=cls"
        )
    return encoder.eval()
