"""From how many steps on ``--set compile=true`` pays on a GPU, by assumption and arithmetic.

Nothing of it was measured on a GPU: ``benchmarks/card.py measure`` does (right.compiled,
speed.64-compiled).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bench.run.cards import STEP_SECONDS, speed_of
from bench.run.estimates import known_steps, shape_of, training_seconds
from bench.run.planned import PlannedRun

LAYER_SECONDS = 2.5
"""Seconds to compile one layer for one shape, forward and backward.

Assumed, not measured on a GPU: 30 s for the 12 layers of BERT-base. Tracing alone, without
generating code for a GPU, took 0.6 s a layer on one core of a CPU.
"""
SAVED = 0.25
"""Share of a step that compiled code saves. Assumed, not measured on a GPU."""
LENGTHS = 8
"""Lengths on a GPU are multiples of it."""


@dataclass(frozen=True)
class CompileCost:
    """The cost of compiling the encoder of one run, and when it is earned back."""

    # shapes of batches, at most
    shapes: int
    # to compile all of them
    seconds: float
    # after so many steps as much time is saved
    steps: int


def compile_cost(run: PlannedRun, device: str) -> CompileCost | None:
    """Return what compiling costs a run on a GPU; None if it is not known, and on a CPU."""
    shape = shape_of(run)
    if run.corpus is None or shape is None or not device.startswith("cuda"):
        return None
    recipe = run.recipe
    if "max_seq_length" not in recipe or "batch_size" not in recipe:
        return None
    rows = len(run.corpus) or None
    steps = known_steps(recipe, rows) or 1
    speed, _ = speed_of(device, run.precision)
    step = max(STEP_SECONDS, training_seconds(run, shape, rows, steps, speed) / steps)
    shapes = math.ceil(recipe.max_seq_length / LENGTHS)
    if rows and rows % recipe.batch_size and not recipe.drop_last:
        # the last batch of an epoch has fewer rows
        shapes *= 2
    seconds = shapes * shape.layers * LAYER_SECONDS
    return CompileCost(shapes, seconds, math.ceil(seconds / (SAVED * step)))
