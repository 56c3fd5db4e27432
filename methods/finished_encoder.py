"""Parts of a ready-made encoder: checks of its recipe, its prompts, its pooling layer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.backbones.refusals import check_one_vector
from bench.base.sides import SIDES
from bench.method import Backbone, BenchError, Recipe
from bench.methods.pooling import POOLERS, Head

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


def kept_head(backbone: Backbone) -> Head:
    """Return the pooling layer, or SimCSE's head, that a checkpoint keeps.

    Raises BenchError if it has none.
    """
    head = Head.kept_by(backbone)
    if head is None or not hasattr(backbone.encoder, "pooler"):  # of another form in DeBERTa
        raise BenchError(
            f"{backbone.name} has no pooling layer, which pooling=mlp needs", "--set pooling=cls"
        )
    return head
