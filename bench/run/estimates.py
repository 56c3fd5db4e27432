"""What a run would take, before it is run: steps, seconds and memory, from shapes and the speed of a device or of a card that is not here.

A training does 6 floating point operations for each parameter of the encoder's layers and each token, encoding does 2. ``bench run``,
``bench search`` and ``bench reproduce`` plan with the same functions. Nothing is trained; only :func:`matrix_speed` needs torch.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError
from bench.method.budget import STEPS, budget_of
from bench.training.horizon import total_steps

if TYPE_CHECKING:
    from bench.method import Method, Recipe
    from bench.run.plan import PlannedRun
    from bench.runs import RunsFolder

# How much of a large matrix product's speed a training step reaches: measured on the built-in backbone, two CPU cores (an
# estimate of 140 s and 493 s at 0.35 took 227 s and 437 s). A GPU's share was never measured.
EFFICIENCY = {"fp32": 0.40, "tf32": 0.40, "bf16": 0.22, "fp16": 0.22}
FILLED = (
    0.8  # of the longest sentence that a recipe allows, the length of an average one in its batch
)
DEV_SENTENCES = {
    "STS-B dev": 3_000,
    "sts-dev-clean": 1_698,
    "captions dev": 2_250,
}  # encoded for each dev score
# Bytes of memory while training all of an encoder. Counted by watching every tensor of a step (tests/training/test_memory_estimate.py):
# at the end of the forward pass there are no gradients yet, at the end of the backward pass no activations any more.
VALUE_AND_MOMENTS, GRADIENT = 12, 4  # of a trained parameter, in float32
# Of each token, layer and hidden number, by the bytes of a product's numbers: as such, and for each inner one.
KEPT = {4: (46, 8), 2: (40, 4)}
PROCESS = {"cpu": 4e8, "cuda": 1e8}  # Python and libraries in a process; a GPU's scratch space
USABLE = 0.9  # of a device's memory: the rest is lost between blocks, or belongs to others
CHUNK_TIME = (
    4 / 3
)  # with --chunk every vector is computed twice, forward: 8 operations instead of 6


# --- Cards that one can plan for without having them ---


@dataclass(frozen=True)
class Card:
    """A GPU by its vendor's data sheet."""

    name: str
    gib: int  # memory
    tflops: Mapping[str, float]  # dense peak by precision, without sparsity, accumulated in float32

    def reached(self, precision: str) -> float:
        """Floating point operations a second that a training step is assumed to reach."""
        return SHARE * self.tflops[precision] * 1e12


SHARE = 0.20
"""Of a card's published peak, that a training step reaches. Assumed; no GPU was measured. One report to hold it against: the authors of
SimCSE trained their unsupervised BERT base, in fp16, "for less than 1 hour" on one RTX 3090 (their repository, issue 135), for which
this gives half an hour."""
STEP_SECONDS = 0.015
"""The least that a training step takes on a GPU, however small: starting its kernels. Assumed."""
CARDS = {
    card.name: card
    for card in (
        Card(
            "H100", 80, {"fp32": 67, "tf32": 494, "bf16": 989, "fp16": 989}
        ),  # SXM; the data sheet prints twice that, with sparsity
        Card("A100", 80, {"fp32": 19.5, "tf32": 156, "bf16": 312, "fp16": 312}),
        Card(
            "RTX3090", 24, {"fp32": 35.6, "tf32": 35.6, "bf16": 71, "fp16": 71}
        ),  # GA102 white paper, appendix A
    )
}
DEFAULT_CARD = CARDS["A100"]


def card_named(text: str) -> Card | None:
    """The card that ``--device TEXT`` names: "A100", "cuda:A100", "RTX 3090", "3090"; None for anything else."""
    plain = re.sub("[^a-z0-9]", "", text.lower().removeprefix("cuda:"))
    return next(
        (
            card
            for name, card in CARDS.items()
            if plain in (name.lower(), name.lower().removeprefix("rtx"))
        ),
        None,
    )


def planned_device(text: str) -> str:
    """The device of a plan: one that is here, or "cuda:NAME" of a card that is not. "cuda" where there is none means the default card.

    Raises BenchError for anything else.
    """
    from bench.base.devices import choose_device

    if (card := card_named(text)) is not None:
        return f"cuda:{card.name}"
    try:
        return choose_device(text)
    except BenchError as error:
        if re.fullmatch("cuda(:[0-9]+)?", text):
            return f"cuda:{DEFAULT_CARD.name}"
        raise BenchError(
            error.message, f"{error.hint}; a plan can also be for {', '.join(CARDS)}"
        ) from None


def basis_of(card: Card, precision: str) -> str:
    """What the time on a card is computed from, in a line."""
    return (
        f"{card.tflops[precision]:g} TFLOP/s, its published dense peak in {precision}, of which a step is assumed to reach "
        f"{100 * SHARE:g} %, and at least {1000 * STEP_SECONDS:g} ms a step: no GPU was measured"
    )


def memory_here(device: str) -> int:
    """Bytes of memory that a device has, or that a card would have; on a CPU and on Apple's GPU the machine's."""
    if (card := card_named(device)) is not None:
        return card.gib * 2**30
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.get_device_properties(device).total_memory)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


# --- The arithmetic ---


def encoder_parameters(sizes: Mapping[str, Any]) -> tuple[int, int]:
    """(in the layers, in the embeddings), from the config's shape; (0, 0) where nobody knows it yet."""
    hidden, layers = sizes.get("hidden_size", 0), sizes.get("num_hidden_layers", 0)
    inner = sizes.get("intermediate_size", 4 * hidden)
    return layers * (4 * hidden * hidden + 2 * hidden * inner), hidden * sizes.get("vocab_size", 0)


def known_steps(recipe: Recipe, rows: int | None) -> int | None:
    """Optimiser steps; None where tokens or a clock decide, or the size of a corpus that nobody knows yet.

    ``rows``: of the corpus, None where that is not known: a limit of steps then tells.
    """
    budget = budget_of(recipe)
    if rows is None:
        limit = (
            budget.amount
            if budget is not None and budget.unit == STEPS
            else recipe.get("max_steps")
        )
        if not limit:
            return None
        rows = int(limit * recipe.batch_size)
    return total_steps(recipe, rows)


def trained_rows(recipe: Recipe, rows: int | None, steps: int) -> int:
    """Rows of the corpus that are seen in so many steps; the last batch of an epoch may be short."""
    most = steps * int(recipe.batch_size)
    return min(most, round(recipe.epochs * rows)) if rows and recipe.epochs is not None else most


def training_seconds(
    cls: type[Method],
    recipe: Recipe,
    sizes: Mapping[str, Any],
    rows: int | None,
    views: int,
    speed: float,
    step_seconds: float = 0.0,
) -> float | None:
    """Of one training with its dev scores; None where the backbone's shape, or how long it trains, is not known.

    ``rows``: of the corpus. ``views``: sentences that are encoded of each. ``speed``: floating point operations a second that a step
    reaches. ``step_seconds``: the least that a step takes.
    """
    parameters, _ = encoder_parameters(sizes)
    if not parameters or "max_seq_length" not in recipe:
        return None
    length = FILLED * recipe.max_seq_length
    if cls.fitted == "pass":
        return None if rows is None else 2 * parameters * rows * views * length / speed
    budget = budget_of(recipe)
    if budget is not None and budget.timed:
        return budget.amount
    if (steps := known_steps(recipe, rows)) is None:
        return None
    training = 6 * parameters * trained_rows(recipe, rows, steps) * views * length / speed
    scores = 0 if recipe.select_on == "last" else steps / recipe.eval_steps
    dev = scores * 2 * parameters * DEV_SENTENCES.get(recipe.select_on, 3_000) * length / speed
    return max(training, steps * step_seconds) + dev


@lru_cache
def matrix_speed(precision: str, device: str) -> float:
    """Floating point operations a second that a matrix product reaches now."""
    import torch

    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision, torch.float32)
    size = 4096 if device.startswith("cuda") else 1024  # a small product does not fill a GPU
    a = torch.ones(size, size, dtype=kind, device=device)
    for _ in range(2):
        a @ a
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < 0.3:
        (a @ a)[0, 0].item()
        count += 1
    return count * 2 * size**3 / (time.perf_counter() - began)


def training_memory(
    sizes: Mapping[str, Any],
    rows: int,
    length: int,
    precision: str,
    device: str,
    chunk: int | None = None,
) -> int | None:
    """Bytes, at most, while all of an encoder is trained; None where its shape is not known.

    ``rows``: sentences of a batch, of at most ``length`` tokens. ``chunk``: so many of them are held at once; while the later ones
    are computed, the gradients of the first are there.
    """
    layers, embeddings = encoder_parameters(sizes)
    if not layers:
        return None
    hidden, width = sizes["hidden_size"], 2 if precision in ("bf16", "fp16") else 4
    of_itself, of_inner = KEPT[width]
    number = of_itself * hidden + of_inner * sizes.get("intermediate_size", 4 * hidden)
    activations = min(rows, chunk or rows) * length * sizes["num_hidden_layers"] * number
    copies = 2 * layers if width == 2 else 0  # autocast's, of the weights
    gradients = GRADIENT * (layers + embeddings)
    together = (
        activations + copies + gradients
        if chunk is not None and chunk < rows
        else max(activations + copies, gradients)
    )
    return int(
        VALUE_AND_MOMENTS * (layers + embeddings)
        + together
        + PROCESS["cuda" if device.startswith("cuda") else "cpu"]
    )


# --- Of a planned run ---


@dataclass(frozen=True)
class Estimate:
    """What a run would take. Seconds and bytes are estimates; ``basis`` says of what kind."""

    steps: int | None
    seconds: float | None
    memory_bytes: int | None
    basis: str


def corpus_rows(run: PlannedRun) -> int | None:
    """Of the corpus; of one that is only fetched later what its source says, None where nobody knows."""
    if run.corpus is None:
        return None
    return len(run.corpus) or None


def estimate(
    run: PlannedRun,
    earlier: Mapping[tuple[str, str, str], float],
    device: str,
    chunk: int | None = None,
) -> Estimate:
    """From the speed of an ``earlier`` run of the same method, setting and backbone where there is one; else from arithmetic.

    ``device``: as :func:`planned_device` says. ``chunk``: rows of a batch that are held at once.
    """
    if run.corpus is None:
        return Estimate(None, None, None, "nothing is trained")
    rows = corpus_rows(run)
    seconds = seconds_on(run, device, chunk)
    if run.plugin.cls.fitted == "pass":
        encoded = f"one pass over the corpus, {'all' if rows is None else f'{rows:,}'} sentences are encoded"
        return Estimate(None, seconds, None, encoded)
    memory, steps, budget = (
        memory_of(run, device, chunk),
        known_steps(run.recipe, rows),
        budget_of(run.recipe),
    )
    if budget is not None and steps is None and (budget.timed or rows is not None):
        return Estimate(None, seconds, memory, f"trained until {budget} are spent")
    if steps is None:
        return Estimate(None, None, memory, f"steps are known when {run.corpus.name} is here")
    card = card_named(device)
    if speed := earlier.get((run.method, run.setting, run.backbone.name)):
        return Estimate(
            steps,
            trained_rows(run.recipe, rows, steps) / speed,
            memory,
            f"time from the speed of an earlier run {_on(card)}",
        )
    if seconds is None:
        return Estimate(
            steps,
            None,
            memory,
            "the backbone's sizes are not known yet, so neither are time and memory",
        )
    source = basis_of(card, run.precision) if card else "arithmetic and this machine's matrix speed"
    return Estimate(steps, seconds, memory, f"time from {source}")


def _on(card: Card | None) -> str:
    return f"on {card.name}" if card else "here"


def seconds_on(run: PlannedRun, device: str, chunk: int | None = None) -> float | None:
    """Of one training, by arithmetic alone."""
    sizes = run.backbone.sizes()
    if run.corpus is None or not encoder_parameters(sizes)[0]:
        return None
    card = card_named(device)
    speed = (
        card.reached(run.precision)
        if card
        else EFFICIENCY[run.precision] * matrix_speed(run.precision, device)
    )
    if chunk is not None and chunk < run.recipe.get("batch_size", 0):
        speed /= CHUNK_TIME
    step_seconds = STEP_SECONDS if card else 0.0
    return training_seconds(
        run.plugin.cls, run.recipe, sizes, corpus_rows(run), _views(run), speed, step_seconds
    )


def memory_of(run: PlannedRun, device: str, chunk: int | None = None) -> int | None:
    """Bytes, at most, while a run trains with so many rows of a batch at once."""
    rows, views = run.recipe.batch_size, _views(run)
    held = None if chunk is None else chunk * views
    return training_memory(
        run.backbone.sizes(), rows * views, run.recipe.max_seq_length, run.precision, device, held
    )


def fitting_chunk(run: PlannedRun, device: str) -> int | None:
    """The largest power of two that --chunk can be on a device; None where not even one row fits, or the method's batch cannot be cut."""
    if not run.plugin.cls.is_split():
        return None
    room, size = USABLE * memory_here(device), 2 ** math.floor(math.log2(run.recipe.batch_size))
    while size and (memory_of(run, device, size) or 0) > room:
        size //= 2
    return size or None


def _views(run: PlannedRun) -> int:
    """Sentences that a step encodes of each row: two views of one, or the columns of a wider corpus."""
    return max(2, len(run.corpus.columns)) if run.corpus else 2


def speeds_of_earlier_runs(store: RunsFolder, device: str) -> dict[tuple[str, str, str], float]:
    """(method, setting, backbone) -> sentences a second that a run of them trained on this device or card; every record is read once."""
    from bench.base.devices import device_name

    card, speeds = card_named(device), dict[tuple[str, str, str], float]()
    name = "" if card else device_name(device)
    for record in store.records()[0]:
        used = record.cost.device or ""
        fits = card.name in used.replace(" ", "") if card else used == name
        if fits and (speed := record.cost.train_sentences_per_second):
            speeds.setdefault((record.method, record.setting, record.backbone), speed)
    return speeds
