"""Checks of a method, its backbone and its corpus before a training begins."""

from __future__ import annotations

from typing import Any

from bench.base.errors import BenchError
from bench.method.budget import total_steps
from bench.method.contract import Method
from bench.method.recipe import Recipe

ALIKE = ("A man is playing a guitar .", "A man is eating an apple .")
"""Two sentences with the same beginning: in a causal model, their first tokens have the same
state.
"""
FIRST_TOKEN = ("cls", "cls_avg", "mlp")
"""The poolings that take the first token."""


def reads_first_token(cls: type[Method], recipe: Recipe) -> bool:
    """Return True if the first token's state represents a sentence, by the method or its recipe."""
    return cls.first_token or bool(_pooling_of_first(recipe))


def _pooling_of_first(recipe: Recipe) -> list[str]:
    """Return the keys of a recipe that pool the first token."""
    return [key for key in ("pooling", "pooling_at_test") if recipe.get(key) in FIRST_TOKEN]


def check_direction(cls: type[Method], recipe: Recipe, backbone: str, *, causal: bool) -> None:
    """Raise BenchError if the first token represents the sentence and the backbone is causal.

    The first token of a causal backbone sees none of the others.
    """
    if not causal or not reads_first_token(cls, recipe):
        return
    hint = " ".join(f"--set {key}=avg" for key in _pooling_of_first(recipe))
    if not hint:
        hint = (
            "take a backbone that reads both ways, such as BERT; or bench run simcse --set "
            "pooling=avg"
        )
    raise BenchError(
        f"{cls.name} takes the state of the first token for the sentence, "
        f"and {backbone} is causal: "
        "its first token sees none of the others",
        hint,
    )


def check_noise(
    cls: type[Method], setting: str, recipe: Recipe, backbone: str, *, dropout: float
) -> None:
    """Raise BenchError if dropout alone makes two views of a sentence differ, and the backbone's
    own ``dropout`` is 0.
    """
    if dropout == 0 and setting in cls.by_dropout and recipe["dropout"] is None:
        why = "it makes the two views of a sentence differ"
        hint = "--set dropout=0.1 (or --set dropout=0, to train without it)"
        if recipe.get("adapter") is not None:
            # measured on random decoders: cosine 0.997 at lora_dropout=0.05, 0.979 at 0.3
            why += "; that of an adapter hardly does, and at first not at all"
            hint = "--set dropout=0.1 (or --set dropout=0, to train with only lora_dropout)"
        raise BenchError(f"the dropout of {backbone} is 0, and {cls.name} needs some: {why}", hint)


def check_beyond_first_token(method: Any) -> None:
    """Raise BenchError if a method on a causal backbone gives two sentences with the same beginning
    the same vector.
    """
    first, second = method.encode(list(ALIKE))
    if (first == second).all():
        raise BenchError(
            f"{method.name} gives every sentence the vector of its first word "
            f"on {method.backbone.name}, which is causal: its first token sees none of the others",
            "pool over all tokens, or take a backbone that reads both ways, such as BERT",
        )


def check_last_batch(name: str, recipe: Recipe, rows: int, least: int) -> None:
    """Raise BenchError if a training on ``rows`` rows has a batch of fewer than ``least``.

    A method's ``fit`` calls it if its loss needs several rows.
    """
    size = recipe.batch_size
    if recipe.get("duplicates") == "drop" and not recipe.drop_last:
        raise BenchError(
            "duplicates=drop leaves batches of any size at the end of an epoch: the loss of "
            f"{name} needs {least} rows at least",
            "--set drop_last=true leaves them out",
        )
    last = rows % size or size
    whole = rows // size
    if recipe.drop_last and whole:
        last = size
    smallest = min(last, size)
    if smallest >= least:
        return
    steps = total_steps(recipe, rows)
    if last != size and steps is not None and steps <= whole:
        return  # it ends before
    if last == size:
        raise BenchError(
            f"batches of {size} rows: the loss of {name} needs {least} rows at least",
            f"--set batch_size={least} or more",
        )
    what = f"{rows} rows in batches of {size} leave a last batch of {last}"
    raise BenchError(
        f"{what}: the loss of {name} needs {least} rows at least",
        "--set drop_last=true leaves that batch out" if whole else "take a corpus of more rows",
    )
