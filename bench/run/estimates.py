"""Estimate steps, seconds, memory and disk space of planned runs, from shapes and the speed of a
device or a card.

A training does 6 floating point operations for each weight of the encoder's layers and each token,
encoding does 2. The method says which weights train and how many texts it encodes
(:meth:`Method.training_cost`). ``bench run``, ``bench search`` and ``bench reproduce`` plan with
the same functions. Nothing is trained; on a device that is here a few matrix products are timed.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from bench.base import devices
from bench.base.errors import BenchError
from bench.base.paths import recorded_path
from bench.base.text import format_bytes as printed_size
from bench.method.budget import STEPS, budget_of, total_steps
from bench.method.cost import EncoderShape, TrainingCost
from bench.method.recipe import Recipe
from bench.records import RunsFolder
from bench.run.cards import STEP_SECONDS, card_named, memory_here, speed_of
from bench.run.planned import PlannedRun

FILLED = 0.8
"""Length of an average sentence, as a share of the longest one that a recipe allows."""
DEV_SENTENCES = {"STS-B dev": 3_000, "sts-dev-clean": 1_698, "captions dev": 2_250}
"""Sentences that are encoded for each dev score."""
OTHER_DEV_SENTENCES = 3_000
VALUE = 4
"""Bytes of a parameter, in float32."""
HELD = {"bf16": 2, "4bit": 0.52}
"""Bytes of a weight that does not train, by its number format. In 4 bits, 64 weights share a scale,
which is stored in 8 bits, and 256 scales share another one.
"""
VALUE_AND_MOMENTS = 12
"""Bytes of a trained parameter with AdamW's two moments."""
GRADIENT = 4
"""Bytes of a gradient."""
STORED: Mapping[tuple[str, str, str], tuple[float, float, float, float]] = {
    ("plain", "trained", "full"): (46, 0, 0, 8),
    ("plain", "trained", "half"): (40, 0, 0, 4),
    ("plain", "frozen", "full"): (41, 0, 0, 3),
    ("plain", "frozen", "half"): (37, 0, 0, 1),
    ("plain", "adapted", "full"): (75, 0, 0, 12),
    ("plain", "adapted", "half"): (61, 0, 0, 8),
    ("gated", "trained", "full"): (23, 16, 17, 16),
    ("gated", "trained", "half"): (25, 10, 11, 8),
    ("gated", "adapted", "full"): (39, 21, 18, 22),
    ("gated", "adapted", "half"): (33, 15, 12, 13),
}
"""Bytes of activations per token and layer, for each number of a state, of the queries, of the keys
and inside the feed-forward block.

The key says if that block has a gate, as in decoders; if the encoder trains, is frozen, or has
adapters on all layers; and if it computes in full or half precision. Counted by watching every
tensor of a step, on BERT and on Qwen3 (tests/training/test_memory_estimate.py,
test_memory_of_adapters.py): at the end of the forward pass there are no gradients yet, at the end
of the backward pass no activations any more. With as many queries as numbers of a state, a quarter
as many keys, and three times as many inner numbers, that is 92 bytes for each number of a state in
a full training of a decoder, and 128 with adapters, in full precision.
"""
ON_DISK = 2 * VALUE + 3 * VALUE_AND_MOMENTS
"""Bytes of a trained parameter on the disk, at most, while it trains.

Two best checkpoints, two states to resume from, and one that is being written. One checkpoint
stays.
"""
PROCESS = {"cpu": 4e8, "cuda": 1e8}
"""Bytes of Python and libraries in a process; of a GPU's scratch space."""
USABLE = 0.9
"""Usable share of a device's memory: the rest is lost between blocks, or used by other processes.
"""


@dataclass(frozen=True)
class Estimate:
    """The steps, time and memory of a planned run. None: not known."""

    # the source of the seconds
    basis: str
    steps: int | None = None
    seconds: float | None = None
    memory_bytes: int | None = None


def shape_of(run: PlannedRun) -> EncoderShape | None:
    """Return the shape of a run's encoder, or None if its sizes are not known."""
    return EncoderShape.from_sizes(run.backbone.sizes())


def cost_of(run: PlannedRun, shape: EncoderShape) -> TrainingCost:
    """Return the training cost that the method of a run states."""
    columns = len(run.corpus.columns) if run.corpus else 1
    cost = run.plugin.cls.training_cost(run.recipe, shape, columns)
    if not has_adapter(run):
        return cost
    # the encoder is frozen, and adapters train in its place
    recipe = run.recipe
    adapters = shape.adapter_weights(recipe["lora_rank"], str(recipe["lora_targets"]))
    return replace(
        cost,
        trained=cost.trained - shape.weights + adapters,
        frozen=cost.frozen + shape.weights,
    )


def has_adapter(run: PlannedRun) -> bool:
    """Say if a run trains adapters in the place of its encoder."""
    return run.recipe.get("adapter") is not None


def held_bytes(run: PlannedRun, shape: EncoderShape, cost: TrainingCost) -> float:
    """Return the bytes of the weights that do not train, in the number format of the recipe."""
    held_in = run.recipe.get("base_dtype")
    if held_in == "bf16":
        return cost.frozen * HELD["bf16"]
    if held_in == "4bit":  # the layers alone; word embeddings are float32
        return (cost.frozen - shape.layer_weights) * VALUE + shape.layer_weights * HELD["4bit"]
    return cost.frozen * VALUE


def estimate(
    run: PlannedRun,
    earlier: Mapping[tuple[str, str, str], float],
    device: str,
    chunk: int | None = None,
) -> Estimate:
    """Estimate a run from the speed of an ``earlier`` one, if there is one, else from arithmetic.

    ``earlier``: (method, setting, backbone) -> sentences per second. ``device``: as
    :func:`planned_device` returns it. ``chunk``: rows of a batch that are held at once.
    """
    if run.corpus is None:
        return Estimate("nothing is trained")
    rows = len(run.corpus) or None
    shape = shape_of(run)
    speed, basis = speed_of(device, run.precision)
    if run.plugin.cls.fitted == "pass":
        if shape is None or rows is None:
            return Estimate(basis)
        sentences = rows * cost_of(run, shape).texts_per_row
        return Estimate(basis, seconds=encoding_seconds(run, shape, sentences, speed))
    steps = known_steps(run.recipe, rows)
    budget = budget_of(run.recipe)
    measured = earlier.get((run.method, run.setting, recorded_path(run.backbone.name)))
    seconds = None
    if budget is not None and budget.timed:
        seconds = budget.amount
    elif steps and measured:
        seconds = trained_rows(run.recipe, rows, steps) / measured
        basis = "time from the speed of an earlier run"
    elif steps and shape:
        seconds = training_seconds(run, shape, rows, steps, speed, chunk)
        if device != "cpu":
            seconds = max(seconds, steps * STEP_SECONDS)
        seconds += dev_seconds(run, shape, steps, speed)
    memory = None if shape is None else memory_of(run, shape, device, chunk)
    return Estimate(basis, steps, seconds, memory)


def known_steps(recipe: Recipe, rows: int | None) -> int | None:
    """Return the optimiser steps for a corpus of ``rows`` (None: not known yet).

    None: tokens or a clock decide, or the rows are not known and no limit of steps is given.
    """
    if rows is not None:
        return total_steps(recipe, rows)
    limit = recipe.get("max_steps")
    budget = budget_of(recipe)
    if budget is not None and budget.unit == STEPS:
        limit = budget.amount
    if not limit:
        return None
    # a corpus that is just long enough, so that the limit decides
    return total_steps(recipe, int(limit * recipe.batch_size))


def trained_rows(recipe: Recipe, rows: int | None, steps: int) -> int:
    """Return the rows of the corpus that ``steps`` steps see; the last batch of an epoch may be
    short.
    """
    most = steps * int(recipe.batch_size)
    if not rows or recipe.epochs is None:
        return most
    return min(most, round(recipe.epochs * rows))


def training_seconds(
    run: PlannedRun,
    shape: EncoderShape,
    rows: int | None,
    steps: int,
    speed: float,
    chunk: int | None = None,
) -> float:
    """Return the seconds of ``steps`` steps, without dev scores.

    For each weight of a layer and each token, forward and backward take 2 operations each, the
    gradient of a weight that trains takes 2 more, and ``chunk`` a second forward pass. ``speed``:
    floating point operations per second.
    """
    operations = 4 if run.plugin.cls.encoder_is_frozen or has_adapter(run) else 6
    if run.recipe.get("gradient_checkpointing"):
        operations += 2
    if chunk is not None and chunk < run.recipe.batch_size:
        operations += 2
    sentences = trained_rows(run.recipe, rows, steps) * cost_of(run, shape).texts_per_row
    return operations / 2 * encoding_seconds(run, shape, sentences, speed)


def dev_seconds(run: PlannedRun, shape: EncoderShape, steps: int, speed: float) -> float:
    """Return the seconds of all dev scores in ``steps`` steps."""
    recipe = run.recipe
    if recipe.select_on == "last":
        return 0.0
    sentences = DEV_SENTENCES.get(recipe.select_on, OTHER_DEV_SENTENCES)
    return encoding_seconds(run, shape, steps / recipe.eval_steps * sentences, speed)


def encoding_seconds(run: PlannedRun, shape: EncoderShape, sentences: float, speed: float) -> float:
    """Return the seconds of one forward pass over sentences of average length.

    It takes 2 operations for each weight of a layer and each token.
    """
    tokens = sentences * FILLED * float(run.recipe.max_seq_length)
    return 2 * shape.layer_weights * tokens / speed


def memory_of(run: PlannedRun, shape: EncoderShape, device: str, chunk: int | None = None) -> int:
    """Return the bytes, at most, that a method takes while it trains.

    ``chunk``: number of rows of a batch in memory at once. While later chunks are computed, the
    gradients of earlier ones are in memory, too.
    """
    rows = run.recipe.batch_size
    half = run.precision in ("bf16", "fp16")
    frozen = run.plugin.cls.encoder_is_frozen or has_adapter(run)
    cost = cost_of(run, shape)
    tokens = min(rows, chunk or rows) * cost.texts_per_row * run.recipe.max_seq_length
    forward = tokens * activation_bytes(run, shape, half=half)
    if half and run.recipe.get("base_dtype") is None:
        # autocast copies trained weights once, frozen ones in each pass
        copies = cost.passes if frozen else 1
        forward += 2 * shape.layer_weights * copies
    gradients = GRADIENT * cost.trained
    peak = max(forward, gradients)
    if chunk and chunk < rows:
        peak = forward + gradients
    weights = VALUE_AND_MOMENTS * cost.trained + held_bytes(run, shape, cost)
    process = PROCESS["cuda" if device.startswith("cuda") else "cpu"]
    return int(weights + peak + process)


def activation_bytes(run: PlannedRun, shape: EncoderShape, *, half: bool) -> float:
    """Return the bytes of activations that one token keeps until the backward pass."""
    if run.recipe.get("gradient_checkpointing"):
        # the input of every layer, and all that a single layer keeps while it is computed again
        return VALUE * shape.layers * shape.hidden + layer_bytes(run, shape, half=half)
    return shape.layers * layer_bytes(run, shape, half=half)


def layer_bytes(run: PlannedRun, shape: EncoderShape, *, half: bool) -> float:
    """Return the bytes of activations that one token keeps in one layer."""
    precision = "half" if half else "full"
    kind = "gated" if shape.gated else "plain"
    state = "trained"
    if has_adapter(run):
        state = "adapted"
    elif run.plugin.cls.encoder_is_frozen:
        state = "frozen"
    # a gated encoder that is frozen keeps no more than one that trains
    stored = STORED.get((kind, state, precision)) or STORED[kind, "trained", precision]
    of_state, of_query, of_key, of_inner = stored
    queries = shape.queries or shape.hidden
    keys = shape.keys or shape.hidden
    return of_state * shape.hidden + of_query * queries + of_key * keys + of_inner * shape.inner


def disk_bytes(runs: Sequence[PlannedRun]) -> int:
    """Return the most disk space that training these runs one after the other takes.

    A run with an encoder of unknown size counts as 0.
    """
    trained = []
    for run in runs:
        shape = shape_of(run)
        if run.corpus is None or run.plugin.cls.fitted == "pass" or shape is None:
            continue
        trained.append(cost_of(run, shape).trained)
    return VALUE * sum(trained) + (ON_DISK - VALUE) * max(trained, default=0)


def check_disk(runs: Sequence[PlannedRun], store: RunsFolder) -> None:
    """Raise BenchError if training needs more space than the disk of the runs folder has.

    Saved states of these runs are there already and do not count again.
    """
    pending = [run for run in runs if not is_trained(run, store)]
    needed = disk_bytes(pending)
    folder = store.path.absolute()
    for run in pending:
        for file in (store.folder(run.run_id) / "state").rglob("*"):
            with suppress(OSError):  # another process may be at work there
                needed -= file.stat().st_size
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise BenchError(
            f"training takes up to {printed_size(needed)} in {store.path}, "
            f"whose disk has {printed_size(free)} free",
            "free disk space, or --runs FOLDER on another disk",
        )


def is_trained(run: PlannedRun, store: RunsFolder) -> bool:
    """Say if there is a finished record, with any suites."""
    record = store.get(run.run_id, run.fingerprint)
    return record is not None and record.status == "finished"


def fitting_chunk(run: PlannedRun, device: str) -> int | None:
    """Return the largest power of two for ``--chunk`` that makes a run fit on a device.

    None: not even one row fits, the method's batch cannot be split, or the encoder's sizes are not
    known.
    """
    shape = shape_of(run)
    if shape is None or not run.plugin.cls.is_split():
        return None
    room = USABLE * memory_here(device)
    chunk = 2 ** (int(run.recipe.batch_size).bit_length() - 1)
    while chunk and memory_of(run, shape, device, chunk) > room:
        chunk //= 2
    return chunk or None


def speeds_of_earlier_runs(store: RunsFolder, device: str) -> dict[tuple[str, str, str], float]:
    """Return (method, setting, backbone) -> sentences per second of trainings on this device or
    card.
    """
    card = card_named(device)
    name = "" if card else devices.device_name(device)
    speeds: dict[tuple[str, str, str], float] = {}
    for record in store.records()[0]:
        used = record.cost.device or ""
        fits = card.name in used.replace(" ", "") if card else used == name
        speed = record.cost.train_sentences_per_second
        if fits and speed:
            speeds.setdefault((record.method, record.setting, record.backbone), speed)
    return speeds
