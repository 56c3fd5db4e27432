"""Parts of a ready-made encoder: checks of its recipe, its prompts, its pooling layer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from bench.backbones.refusals import check_one_vector
from bench.base.sides import SIDES
from bench.method import Backbone, BenchError, Recipe
from bench.methods.pooling import POOLERS

POOLINGS = {"cls", "last", "mlp", "mean", *POOLERS}


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


def default_prompt(model: Any) -> str:
    """Return the prompt that a SentenceTransformer uses by itself; "" if it has none."""
    return model.prompts.get(model.default_prompt_name or "", "") or ""


def unused_prompts_line(name: str, prompts: Mapping[str, str]) -> str:
    """Return the line about prompts of a model that are not used."""
    named = ", ".join(f"{key} ({shorten(text)})" for key, text in prompts.items())
    line = (
        f"{name} names prompts that are not used: {named}; "
        "--prefix TEXT or --prompt TASK TEXT uses one"
    )
    if set(SIDES) & prompts.keys():
        line += "; retrieval takes those for query and document"
    return line


def shorten(text: str) -> str:
    """Put a text in quotation marks and shorten it for a line of output."""
    return repr(text if len(text) <= 40 else text[:40] + "...")


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
