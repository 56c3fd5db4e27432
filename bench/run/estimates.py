"""What a command runs on, and what a run takes there: the device, the precision and the number of
processes are settled before anything is planned; steps, seconds and memory are estimated from
shapes and the speed of a device, or of a card that is not here.

A training does 6 floating point operations for each trained parameter of the encoder's layers and
each token, encoding does 2. ``bench run``, ``bench search`` and ``bench reproduce`` plan with the
same functions. Nothing is trained; on a device that is here a few matrix products are timed.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from bench.base import devices
from bench.base.errors import BenchError
from bench.base.paths import recorded_path
from bench.base.text import size as printed_size
from bench.method.contract import STEPS, Recipe, budget_of, total_steps
from bench.records import RunsFolder
from bench.run.cards import STEP_SECONDS, card_named, memory_here, speed_of
from bench.run.planned import PlannedRun

FILLED = 0.8  # of the longest sentence that a recipe allows, the length of an average one
# encoded for each dev score
DEV_SENTENCES = {"STS-B dev": 3_000, "sts-dev-clean": 1_698, "captions dev": 2_250}
# Bytes of memory while training all of an encoder. Counted by watching every tensor of a step
# (tests/training/test_memory_estimate.py): at the end of the forward pass there are no gradients
# yet, at the end of the backward pass no activations any more.
VALUE, VALUE_AND_MOMENTS, GRADIENT = 4, 12, 4  # of a frozen or a trained parameter, in float32
# Per token and layer, for each hidden and each inner number: of an encoder that trains or is
# frozen, in full or half precision.
STORED = {
    ("trained", "full"): (46, 8),
    ("trained", "half"): (40, 4),
    ("frozen", "full"): (41, 3),
    ("frozen", "half"): (37, 1),
}
ON_DISK = 2 * VALUE + 3 * VALUE_AND_MOMENTS
"""Bytes of a trained parameter on the disk, at most, while it trains: two best checkpoints, two
states to resume from, and one that is being written. One checkpoint stays.
"""
FROZEN = "the encoder is frozen"  # in ``Method.trains``
PROCESS = {"cpu": 4e8, "cuda": 1e8}  # Python and libraries in a process; a GPU's scratch space
USABLE = 0.9  # of a device's memory: the rest is lost between blocks, or used by other processes


@dataclass(frozen=True)
class Estimate:
    """What a run takes. ``basis`` is the source of the seconds; None: not known."""

    basis: str
    steps: int | None = None
    seconds: float | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True)
class Weights:
    """How many numbers a method holds, by what training does with them."""

    layers: int  # of the encoder's layers: each is multiplied with every token
    trained: int
    frozen: int


def weights_of(run: PlannedRun) -> Weights | None:
    """From the shape of the backbone; None if that is not known.

    A method whose ``trains`` says that the encoder is frozen trains a prompt and a head. With
    ``mlm`` it holds an LM head, whose decoder is as large as the word embeddings.
    """
    sizes, recipe = run.backbone.sizes(), run.recipe
    hidden, depth = sizes.get("hidden_size", 0), sizes.get("num_hidden_layers", 0)
    if not hidden or not depth:
        return None
    vocabulary = hidden * sizes.get("vocab_size", 0)
    layers = depth * (4 * hidden**2 + 2 * hidden * sizes.get("intermediate_size", 4 * hidden))
    trained, frozen = layers + vocabulary, 0
    if FROZEN in run.plugin.cls.trains:
        trained, frozen = 2 * depth * hidden * recipe.get("prompt_length", 0) + hidden**2, trained
    head = vocabulary + hidden**2 if recipe.get("mlm") else 0
    return (
        Weights(layers, trained, frozen + head)
        if recipe.get("freeze_lm_head")
        else Weights(layers, trained + head, frozen)
    )


def estimate(
    run: PlannedRun,
    earlier: Mapping[tuple[str, str, str], float],
    device: str,
    chunk: int | None = None,
) -> Estimate:
    """From the speed of an ``earlier`` run of the same method, setting and backbone, if there is
    one; else from arithmetic.

    ``device``: as :func:`planned_device` says. ``chunk``: rows of a batch that are held at once.
    """
    if run.corpus is None:
        return Estimate("nothing is trained")
    recipe, rows, weights = run.recipe, len(run.corpus) or None, weights_of(run)
    speed, basis = speed_of(device, run.precision)
    if run.plugin.cls.fitted == "pass":
        if weights is None or rows is None:
            return Estimate(basis)
        return Estimate(basis, seconds=encoding_seconds(run, weights, rows * _views(run), speed))
    steps, budget = known_steps(recipe, rows), budget_of(recipe)
    seconds, measured = (
        None,
        earlier.get((run.method, run.setting, recorded_path(run.backbone.name))),
    )
    if budget is not None and budget.timed:
        seconds = budget.amount
    elif steps and measured:
        seconds = trained_rows(recipe, rows, steps) / measured
        basis = "time from the speed of an earlier run"
    elif steps and weights:
        seconds = max(
            training_seconds(run, weights, rows, steps, speed, chunk),
            0.0 if device == "cpu" else steps * STEP_SECONDS,
        )
        if recipe.select_on != "last":
            seconds += encoding_seconds(
                run,
                weights,
                steps / recipe.eval_steps * DEV_SENTENCES.get(recipe.select_on, 3_000),
                speed,
            )
    return Estimate(
        basis,
        steps,
        seconds,
        memory_bytes=memory_of(run, weights, device, chunk) if weights else None,
    )


def known_steps(recipe: Recipe, rows: int | None) -> int | None:
    """Optimiser steps; None if tokens or a clock decide, or a corpus whose size is not known yet.

    ``rows``: of the corpus. If they are not known (None), only a limit of steps gives a number.
    """
    if rows is None:
        budget = budget_of(recipe)
        limit = budget.amount if budget and budget.unit == STEPS else recipe.get("max_steps")
        return total_steps(recipe, int(limit * recipe.batch_size)) if limit else None
    return total_steps(recipe, rows)


def trained_rows(recipe: Recipe, rows: int | None, steps: int) -> int:
    """Rows of the corpus that this many steps see; the last batch of an epoch may be short."""
    most = steps * int(recipe.batch_size)
    return min(most, round(recipe.epochs * rows)) if rows and recipe.epochs is not None else most


def training_seconds(
    run: PlannedRun,
    weights: Weights,
    rows: int | None,
    steps: int,
    speed: float,
    chunk: int | None = None,
) -> float:
    """For ``steps`` without dev scores; ``speed``: floating point operations per second.

    For each parameter of a layer and each token, forward and backward take 2 operations each, the
    gradient of a trained parameter 2 more, and ``chunk`` a second forward pass.
    """
    operations = 4 if FROZEN in run.plugin.cls.trains else 6
    if chunk is not None and chunk < run.recipe.batch_size:
        operations += 2
    sentences = trained_rows(run.recipe, rows, steps) * _views(run)
    return operations / 2 * encoding_seconds(run, weights, sentences, speed)


def encoding_seconds(run: PlannedRun, weights: Weights, sentences: float, speed: float) -> float:
    """One forward pass over sentences of average length: 2 operations for each parameter of a layer
    and each token.
    """
    return 2 * weights.layers * sentences * FILLED * float(run.recipe.max_seq_length) / speed


def memory_of(run: PlannedRun, weights: Weights, device: str, chunk: int | None = None) -> int:
    """Bytes, at most, while a method trains.

    ``chunk``: the rows of a batch that are held at once; while later ones are computed, the
    gradients of earlier ones are held, too.
    """
    sizes, rows = run.backbone.sizes(), run.recipe.batch_size
    hidden, half = sizes["hidden_size"], run.precision in ("bf16", "fp16")
    frozen = FROZEN in run.plugin.cls.trains
    of_hidden, of_inner = STORED["frozen" if frozen else "trained", "half" if half else "full"]
    tokens = min(rows, chunk or rows) * _views(run) * run.recipe.max_seq_length
    forward = (
        tokens
        * sizes["num_hidden_layers"]
        * (of_hidden * hidden + of_inner * sizes.get("intermediate_size", 4 * hidden))
    )
    if half:  # autocast's copies of the weights: of trained ones once, of frozen ones in each pass
        forward += 2 * weights.layers * (2 if frozen and run.recipe.get("mlm") else 1)
    gradients = GRADIENT * weights.trained
    return int(
        VALUE_AND_MOMENTS * weights.trained
        + VALUE * weights.frozen
        + (forward + gradients if chunk and chunk < rows else max(forward, gradients))
        + PROCESS["cuda" if device.startswith("cuda") else "cpu"]
    )


def disk_bytes(runs: Sequence[PlannedRun]) -> int:
    """The most disk space that training these runs one after the other takes; 0 for those whose
    shape is not known.
    """
    trained = [
        weights.trained
        for run in runs
        if run.corpus is not None and run.plugin.cls.fitted != "pass"
        if (weights := weights_of(run))
    ]
    return VALUE * sum(trained) + (ON_DISK - VALUE) * max(trained, default=0)


def check_disk(runs: Sequence[PlannedRun], store: RunsFolder) -> None:
    """Raises BenchError if training needs more space than the disk of the runs folder has; saved
    states of these runs count as there.
    """
    pending = [run for run in runs if not is_trained(run, store)]
    needed, folder = disk_bytes(pending), store.path.absolute()
    for run in pending:
        for file in (store.folder(run.run_id) / "state").rglob("*"):
            with suppress(OSError):  # another process may be at work there
                needed -= file.stat().st_size
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if (free := shutil.disk_usage(existing).free) < needed:
        raise BenchError(
            f"training takes up to {printed_size(needed)} in {store.path}, whose disk has {printed_size(free)} free",
            "free disk space, or --runs FOLDER on another disk",
        )


def is_trained(run: PlannedRun, store: RunsFolder) -> bool:
    """Is there a finished record, of whatever suites?"""
    record = store.get(run.run_id, run.fingerprint)
    return record is not None and record.status == "finished"


def fitting_chunk(run: PlannedRun, device: str) -> int | None:
    """The largest power of two for --chunk on a device; None if not even one row fits, or the
    method's batch cannot be split.
    """
    weights = weights_of(run)
    if weights is None or not run.plugin.cls.is_split():
        return None
    room, size = USABLE * memory_here(device), 2 ** (int(run.recipe.batch_size).bit_length() - 1)
    while size and memory_of(run, weights, device, size) > room:
        size //= 2
    return size or None


def _views(run: PlannedRun) -> int:
    """Sentences that a step encodes for each row: as many as the method says, else two views of one
    or the columns of a wider corpus; with ``mlm`` also a masked copy of each.
    """
    if run.plugin.cls.texts_per_row is not None:
        return run.plugin.cls.texts_per_row
    columns = max(2, len(run.corpus.columns)) if run.corpus else 2
    return columns * 2 if run.recipe.get("mlm") else columns


def speeds_of_earlier_runs(store: RunsFolder, device: str) -> dict[tuple[str, str, str], float]:
    """(method, setting, backbone) -> sentences per second of a training on this device or card;
    every record is read once.
    """
    card, speeds = card_named(device), dict[tuple[str, str, str], float]()
    name = "" if card else devices.device_name(device)
    for record in store.records()[0]:
        used = record.cost.device or ""
        fits = card.name in used.replace(" ", "") if card else used == name
        if fits and (speed := record.cost.train_sentences_per_second):
            speeds.setdefault((record.method, record.setting, record.backbone), speed)
    return speeds
