"""What a run would take on a GPU: arithmetic from shapes and step counts, no measurement."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bench.backbones import resolve
from bench.base.errors import BenchError

if TYPE_CHECKING:
    from bench.method import Method, Recipe

GPU_SPEED = 100e12
"""Floating point operations a second: a third of what an A100 can do in half precision. Assumed; no GPU was measured."""
STEP_SECONDS = 0.015
"""The least that a training step takes, however small: starting its kernels. Assumed."""
ASSUMED = (
    "arithmetic for one GPU that reaches 100 TFLOP/s and takes 15 ms a step at least; none was measured, scoring is not in it"
)

ROWS = {"wiki1m": (1_000_000, 2), "nli": (275_601, 3), "nli-labelled": (942_000, 2), "target": (89_192, 2), "builtin": (4_000, 2)}
"""Rows of the recipes' corpora, and sentences that a step encodes of each: two views of one, or three of a triplet."""
DEV_SENTENCES = 3_000  # of STS-B dev, scored every ``eval_steps``


def gpu_hours(cls: type[Method], recipe: Recipe, backbone: str, corpus: str | None, rows: int | None = None) -> float | None:
    """Hours of one training, dev scores included; None where nothing is trained or the backbone's shape is not known.

    ``rows``: of the corpus, where it is another one than the recipe's own.
    """
    shape = _shape(backbone)
    known, views = ROWS.get(corpus or "", (None, 2))
    rows = rows or known or (recipe["max_steps"] * recipe["batch_size"] if recipe.get("max_steps") else None)
    if shape is None or rows is None or "max_seq_length" not in recipe:
        return None
    layers, hidden, inner = shape
    parameters = layers * (4 * hidden * hidden + 2 * hidden * inner)
    tokens = views * recipe.max_seq_length
    if cls.fitted != "pass" and recipe.epochs is None:
        return None  # as long as its budget says
    if cls.fitted == "pass":
        return 2 * parameters * rows * tokens / GPU_SPEED / 3600
    steps = math.ceil(recipe.epochs * math.ceil(rows / recipe.batch_size))
    steps = min(steps, recipe.max_steps) if recipe.max_steps else steps
    training = 6 * parameters * steps * recipe.batch_size * tokens / GPU_SPEED
    scoring = 0.0
    if recipe.select_on != "last":
        scoring = steps / recipe.eval_steps * 2 * parameters * DEV_SENTENCES * recipe.max_seq_length / GPU_SPEED
    return (max(training, steps * STEP_SECONDS) + scoring) / 3600


def _shape(backbone: str) -> tuple[int, int, int] | None:
    try:
        config = resolve(backbone).sizes()
    except (BenchError, OSError, ValueError):
        config = {}
    if "num_hidden_layers" in config and "hidden_size" in config:
        hidden = int(config["hidden_size"])
        return int(config["num_hidden_layers"]), hidden, int(config.get("intermediate_size", 4 * hidden))
    return None
