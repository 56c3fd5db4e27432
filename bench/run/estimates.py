"""What a command runs on, and what a run takes there: the device, the precision and the number of processes are settled before anything is
planned; steps, seconds and memory are estimated from shapes and the speed of a device, or of a card that is not here.

A training does 6 floating point operations for each trained parameter of the encoder's layers and each token, encoding does 2. ``bench run``,
``bench search`` and ``bench reproduce`` plan with the same functions. Nothing is trained; on a device that is here a few matrix products are timed.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from bench.base import devices
from bench.base.errors import BenchError
from bench.base.launched import launched
from bench.base.paths import recorded_path
from bench.base.text import format_bytes as printed_size
from bench.method.contract import STEPS, Recipe, budget_of, total_steps
from bench.records import RunsFolder
from bench.run.config import RunConfig, Target, series
from bench.run.plan import PlannedRun

if TYPE_CHECKING:
    from bench.method.ranks import Ranks


def settled(config: RunConfig, *, only_look: bool = False, ranks: Ranks | None = None) -> RunConfig:
    """The config with a device, a precision and a number of processes. Raises BenchError for what this machine cannot do.

    ``only_look``: for a plan, which may be for a card that is not here. ``ranks``: those of this process, which agree on one precision.
    """
    config = (
        _settled_elsewhere(config) if config.target.elsewhere else _here(config, only_look, ranks)
    )
    for values in series(config.values):
        budget = values.get("budget", "")
        if "gpu" in budget and not config.device.startswith("cuda"):
            raise BenchError(
                f"--budget {budget}: this run is on {config.device}, which is not a GPU",
                f"--budget {budget.replace('gpu-', '')}, or --device cuda",
            )
    return config


def _here(config: RunConfig, only_look: bool, ranks: Ranks | None) -> RunConfig:
    device = planned_device(config.device) if only_look else devices.choose_device(config.device)
    if card_named(device) is not None:
        precision = "bf16" if config.precision == "auto" else config.precision
        return replace(config, device=device, precision=precision)
    choose = partial(devices.choose_precision, config.precision, device)
    precision = ranks.first(choose) if ranks else choose()  # the ranks of a run agree
    count = process_count(config.target, device)
    return replace(
        config,
        device=device,
        precision=precision,
        on="here" if count == 1 else f"torchrun:{count}",
    )


def _settled_elsewhere(config: RunConfig) -> RunConfig:
    """From the options alone, never from this machine."""
    if config.device not in ("auto", "cuda"):
        raise BenchError(
            f"--device {config.device} is about this machine",
            "use --device cuda, or gpus=N in --on, to request GPUs; otherwise the runs use the CPU",
        )
    gpus, on = config.target.gpus or int(config.device == "cuda"), config.on
    if gpus and not config.target.gpus:
        on += f"{',' if ':' in on else ':'}gpus={gpus}"
    device, precision = ("cuda", "bf16") if gpus else ("cpu", "fp32")
    if config.precision != "auto":
        precision = devices.choose_precision(config.precision, device)
    return replace(config, device=device, precision=precision, on=on)


def is_launched() -> bool:
    """Was this process started as one of several, by torchrun or a similar launcher?"""
    return launched() is not None


def process_count(target: Target, device: str) -> int:
    """How many processes train together. Raises BenchError for a number that is missing or too large."""
    if (process := launched()) is not None:
        return process.count
    if target.name != "torchrun":
        return 1
    if device == "cpu" and target.gpus is not None:
        return target.gpus
    if device != "cuda":
        raise BenchError(
            f"--on torchrun on {device}: how many processes?",
            "--device cuda --on torchrun:N, or --device cpu --on torchrun:2",
        )
    import torch

    count = torch.cuda.device_count()
    if (target.gpus or 0) > count:
        raise BenchError(
            f"--on torchrun:{target.gpus}: more processes than the {count} GPUs here",
            f"--on torchrun:{count}",
        )
    return target.gpus or count


def check_chunks(planned: Sequence[PlannedRun], chunk: int | str | None) -> None:
    """Raises BenchError if a method that trains cannot split a batch."""
    from bench.training.gradient import check_chunk

    for run in planned:
        if isinstance(chunk, int) and run.corpus is not None and run.plugin.cls.fitted != "pass":
            check_chunk(run.plugin.cls, chunk)


FILLED = 0.8  # of the longest sentence that a recipe allows, the length of an average one
# encoded for each dev score
DEV_SENTENCES = {"STS-B dev": 3_000, "sts-dev-clean": 1_698, "captions dev": 2_250}
# Bytes of memory while training all of an encoder. Counted by watching every tensor of a step (tests/training/test_memory_estimate.py):
# at the end of the forward pass there are no gradients yet, at the end of the backward pass no activations any more.
VALUE, VALUE_AND_MOMENTS, GRADIENT = 4, 12, 4  # of a frozen or a trained parameter, in float32
# Per token and layer, for each hidden and each inner number: of an encoder that trains or is frozen, in full or half precision.
STORED = {
    ("trained", "full"): (46, 8),
    ("trained", "half"): (40, 4),
    ("frozen", "full"): (41, 3),
    ("frozen", "half"): (37, 1),
}
ON_DISK = 2 * VALUE + 3 * VALUE_AND_MOMENTS
"""Bytes of a trained parameter on the disk, at most, while it trains: two best checkpoints, two states to resume from, and one that is
being written. One checkpoint stays."""
FROZEN = "the encoder is frozen"  # in ``Method.trains``
PROCESS = {"cpu": 4e8, "cuda": 1e8}  # Python and libraries in a process; a GPU's scratch space
USABLE = 0.9  # of a device's memory: the rest is lost between blocks, or used by other processes


# --- devices, and cards that a plan can be made for without having them ---


@dataclass(frozen=True)
class Card:
    """A GPU, from its vendor's data sheet."""

    name: str
    gib: int  # memory
    tflops: Mapping[str, float]  # dense peak by precision, without sparsity, accumulated in float32


SHARE = 0.20
"""The share of a card's published peak that a training step reaches. Assumed; no GPU was measured. One report to compare with: the
authors of SimCSE trained their unsupervised BERT base, in fp16, "for less than 1 hour" on one RTX 3090 (their repository, issue 135);
this share gives half an hour."""
STEP_SECONDS = 0.015
"""The shortest training step on a GPU, however small the batch: the time to start its kernels. Assumed."""
EFFICIENCY = {"fp32": 0.40, "tf32": 0.40, "bf16": 0.22, "fp16": 0.22}
"""The share of the measured speed of large matrix products that a training step reaches: from the built-in backbone on two CPU cores (at
0.35, runs estimated at 140 s and 493 s took 227 s and 437 s). A GPU's share was never measured."""
CARDS = {
    # SXM; the data sheet prints twice that, with sparsity
    "H100": Card("H100", 80, {"fp32": 67, "tf32": 494, "bf16": 989, "fp16": 989}),
    "A100": Card("A100", 80, {"fp32": 19.5, "tf32": 156, "bf16": 312, "fp16": 312}),
    # GA102 white paper, appendix A
    "RTX3090": Card("RTX3090", 24, {"fp32": 35.6, "tf32": 35.6, "bf16": 71, "fp16": 71}),
}


def card_named(text: str) -> Card | None:
    """The card that ``--device TEXT`` names: "A100", "cuda:A100", "RTX 3090", "3090"; None for anything else."""
    plain = re.sub("[^A-Z0-9]", "", text.removeprefix("cuda:").upper())
    return CARDS.get(plain) or CARDS.get(f"RTX{plain}")


def planned_device(text: str) -> str:
    """The device of a plan: one that is here, or "cuda:NAME" of a card that is not; "cuda" where there is none means an A100.

    Raises BenchError for anything else.
    """
    if (card := card_named(text)) is not None:
        return f"cuda:{card.name}"
    try:
        return devices.choose_device(text)
    except BenchError as error:
        if not re.fullmatch("cuda(:[0-9]+)?", text):
            raise BenchError(
                error.message, f"{error.hint}; a plan can also be for {', '.join(CARDS)}"
            ) from None
    return "cuda:A100"


def speed_of(device: str, precision: str) -> tuple[float, str]:
    """Floating point operations per second that a training step reaches, and the source of that number."""
    if (card := card_named(device)) is not None:
        return SHARE * card.tflops[precision] * 1e12, "time from its published speed"
    return EFFICIENCY[precision] * matrix_speed(
        precision, device
    ), "time from arithmetic and measured matrix products"


@lru_cache
def matrix_speed(precision: str, device: str) -> float:
    """Floating point operations per second of matrix products in a precision. A GPU's are queued before the wait, so that it is not idle
    between them; a CPU's stop after half a second, since some compute bf16 and fp16 a hundred times slower than float32."""
    import torch

    from bench.method.torch_method import float32_products

    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision, torch.float32)
    queued = device.startswith("cuda")
    size, most = (8192, 20) if queued else (512, 100)
    a = torch.ones(size, size, dtype=kind, device=device)
    with float32_products(tf32=precision == "tf32"):
        (a @ a)[0, 0].item()
        began, count = time.perf_counter(), 0
        while count < most and (queued or time.perf_counter() - began < 0.5):
            product, count = a @ a, count + 1
        product[0, 0].item()
    return count * 2 * size**3 / (time.perf_counter() - began)


def memory_here(device: str) -> int:
    """Bytes of memory of a device or a card; for a CPU and for Apple's GPU, of the machine."""
    if (card := card_named(device)) is not None:
        return card.gib * 2**30
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.get_device_properties(device).total_memory)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


# --- a planned run ---


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

    A method whose ``trains`` says that the encoder is frozen trains a prompt and a head. With ``mlm`` it holds an LM head, whose decoder is
    as large as the word embeddings.
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
    """From the speed of an ``earlier`` run of the same method, setting and backbone, if there is one; else from arithmetic.

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
    """For ``steps`` without dev scores; ``speed``: floating point operations per second. For each parameter of a layer and each token,
    forward and backward take 2 operations each, the gradient of a trained parameter 2 more, and ``chunk`` a second forward pass."""
    operations = 4 if FROZEN in run.plugin.cls.trains else 6
    if chunk is not None and chunk < run.recipe.batch_size:
        operations += 2
    sentences = trained_rows(run.recipe, rows, steps) * _views(run)
    return operations / 2 * encoding_seconds(run, weights, sentences, speed)


def encoding_seconds(run: PlannedRun, weights: Weights, sentences: float, speed: float) -> float:
    """One forward pass over sentences of average length: 2 operations for each parameter of a layer and each token."""
    return 2 * weights.layers * sentences * FILLED * float(run.recipe.max_seq_length) / speed


def memory_of(run: PlannedRun, weights: Weights, device: str, chunk: int | None = None) -> int:
    """Bytes, at most, while a method trains.

    ``chunk``: the rows of a batch that are held at once; while later ones are computed, the gradients of earlier ones are held, too.
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
    """The most disk space that training these runs one after the other takes; 0 for those whose shape is not known."""
    trained = [
        weights.trained
        for run in runs
        if run.corpus is not None and run.plugin.cls.fitted != "pass"
        if (weights := weights_of(run))
    ]
    return VALUE * sum(trained) + (ON_DISK - VALUE) * max(trained, default=0)


def check_disk(runs: Sequence[PlannedRun], store: RunsFolder) -> None:
    """Raises BenchError if training needs more space than the disk of the runs folder has; saved states of these runs count as there."""
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
    """The largest power of two for --chunk on a device; None if not even one row fits, or the method's batch cannot be split."""
    weights = weights_of(run)
    if weights is None or not run.plugin.cls.is_split():
        return None
    room, size = USABLE * memory_here(device), 2 ** (int(run.recipe.batch_size).bit_length() - 1)
    while size and memory_of(run, weights, device, size) > room:
        size //= 2
    return size or None


def _views(run: PlannedRun) -> int:
    """Sentences that a step encodes for each row: as many as the method says, else two views of one or the columns of a wider corpus; with
    ``mlm`` also a masked copy of each."""
    if run.plugin.cls.texts_per_row is not None:
        return run.plugin.cls.texts_per_row
    columns = max(2, len(run.corpus.columns)) if run.corpus else 2
    return columns * 2 if run.recipe.get("mlm") else columns


def speeds_of_earlier_runs(store: RunsFolder, device: str) -> dict[tuple[str, str, str], float]:
    """(method, setting, backbone) -> sentences per second of a training on this device or card; every record is read once."""
    card, speeds = card_named(device), dict[tuple[str, str, str], float]()
    name = "" if card else devices.device_name(device)
    for record in store.records()[0]:
        used = record.cost.device or ""
        fits = card.name in used.replace(" ", "") if card else used == name
        if fits and (speed := record.cost.train_sentences_per_second):
            speeds.setdefault((record.method, record.setting, record.backbone), speed)
    return speeds
