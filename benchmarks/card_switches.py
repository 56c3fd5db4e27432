"""The switches that change how a step is computed, beside the plain step on one card.

They are off until a card has shown that losses stay equal: ``step=graph``, ``compile=true`` and
``unpadded=true``.
"""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

import numpy as np
from card_models import Case, Place, built, copied, methods_of, random_backbone, rows_for
from card_right import BOUNDS
from card_steps import LENGTH, WARM_UP, Found, Training, default_precision, free_memory, full_rows

COMPARED = 5
"""Steps with losses that are compared, after those that a graph waits for."""
GRAPH_BOUND = 0.005
"""Largest difference of a loss between graph and plain step, as a share of the largest loss.

Both draw the same dropout; a graph's learning rate is rounded to float32.
"""


def switched_context(place: Place, switch: str) -> dict[str, Any]:
    """Return the fields of a Context that turn a switch on; a CPU has buffers in place of graphs.

    ``switch``: "eager", "graph", "compiled" or "unpadded".
    """
    if switch == "graph":
        return {"step": "graph" if place.on_gpu else "static"}
    if switch in ("compiled", "unpadded"):
        return {switch: True}
    return {}


def is_on(training: Training, switch: str) -> bool:
    """Say if a training computed its steps as the switch says, and did not fall back."""
    trainer = training.trainer
    if switch == "graph":
        return trainer.static is not None and trainer.static.describe() in ("graph", "static")
    if switch == "unpadded":
        packing = trainer.method.packing
        return packing is not None and packing.active and packing.passes > 0
    if switch == "compiled":
        return trainer.is_compiled is not None and trainer.is_compiled()
    return True


def unswitched_method(place: Place, rows: int, *, dropout: float | None) -> Any:
    """Return SimCSE on random weights of BERT-base's shape; ``dropout``: None is the model's own.

    Compiled code and passes without padding draw other masks: without dropout they can be compared.
    """
    import torch

    backbone = random_backbone("bert-base", replace(place, device="cpu"))
    if dropout is not None:
        for module in backbone.encoder.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = dropout
            if hasattr(module, "config"):
                module.config.attention_probs_dropout_prob = dropout
    values = {"batch_size": rows, "max_steps": 10**4, "max_seq_length": LENGTH}
    case = Case(methods_of("simcse")[0], "unsupervised", "")
    return built(case, place, backbone, select_on="last", **values)


def training_with(
    method: Any, place: Place, switch: str, steps: int, *, is_padded: bool
) -> Training:
    """Begin a training of a copy of the method, with a switch on and batches for ``steps``.

    ``is_padded``: sentences of their own lengths, up to ``LENGTH`` tokens; else all have so many.
    """
    twin = copied(
        method, place, place.device, default_precision(place), **switched_context(place, switch)
    )
    rows = steps * twin.recipe.batch_size
    if is_padded:
        return Training(twin, rows_for(twin, "sentences", rows))
    return Training(twin, full_rows(rows))


def losses_with(
    method: Any, place: Place, switch: str, steps: int, *, is_padded: bool
) -> tuple[list[float], bool]:
    """Return the losses of the last ``COMPARED`` of ``steps`` steps, and if the switch was on."""
    training = training_with(method, place, switch, steps + 1, is_padded=is_padded)
    training.steps(steps)
    training.close()
    losses = [float(losses["loss"]) for losses in training.trainer.window]
    return losses[-COMPARED:], is_on(training, switch)


def compared_steps(place: Place, switch: str) -> Found:
    """Compare five steps with a switch on with those of the plain step on the same device."""
    from bench.training.static_step import WARM_UP as EAGER

    exact_draws = switch == "graph"
    ready = unswitched_method(place, place.size(16, 4), dropout=None if exact_draws else 0.0)
    is_padded = switch == "unpadded"
    plain, _ = losses_with(ready, place, "eager", EAGER + COMPARED, is_padded=is_padded)
    other, on = losses_with(ready, place, switch, EAGER + COMPARED, is_padded=is_padded)
    off = float(np.abs(np.array(plain) - np.array(other)).max() / np.abs(plain).max())
    bound = GRAPH_BOUND if exact_draws else BOUNDS["bf16"][0]
    value = f"losses off by {off:.1e}" + ("" if on else "; it fell back to the plain step")
    good = on and off <= bound
    return Found(value, good, f"{bound:g}", {"eager": plain, switch: other, "on": on})


def step_time(place: Place, rows: int, switch: str) -> Found:
    """Time steps with a switch on and plain ones, A B A B, with their batches made as in a run."""
    free_memory(place)
    batch, steps = place.size(rows, 4), place.size(30, 2)
    ready = unswitched_method(place, batch, dropout=None)
    total = 3 * WARM_UP + 2 * (steps + WARM_UP)
    kinds = {}
    for kind in ("eager", switch):
        kinds[kind] = training_with(ready, place, kind, total, is_padded=switch == "unpadded")
        kinds[kind].steps(place.size(3 * WARM_UP, 1))
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(2):
        for kind, training in kinds.items():
            training.steps(place.size(WARM_UP, 1))
            seconds[kind].append(training.seconds_per_step(place, steps))
    on = is_on(kinds[switch], switch)
    for training in kinds.values():
        training.close()
    plain, other = (statistics.median(seconds[kind]) for kind in ("eager", switch))
    value = f"{1000 * other:.1f} ms a step, plain {1000 * plain:.1f}: {plain / other:.2f} x"
    if not on:
        value += "; it fell back to the plain step"
    return Found(value, None, "", {**seconds, "rows": batch, "on": on})
