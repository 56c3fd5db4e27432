"""The parameters that a planned run trains, and the memory that it takes while it does.

Parameters are counted in the method itself, built on torch's meta device: there a parameter has a
shape and no numbers. The memory of a step is one formula:

    16 bytes for each parameter that trains: its value, its gradient, and AdamW's two moments
  +  4 bytes for each that does not; 2 in bf16, 0.52 in 4 bits (64 weights share a scale of 8 bits)
  +  5 bytes (3.5 if the encoder computes in bf16 or fp16) for each number that goes into or comes
     out of a matrix of the encoder's layers, for each token of a chunk of rows

A row is encoded once for each column of text, and twice if it has one; every text is as long as the
recipe allows. BERT's layer has six matrices: 18 numbers a token for each of its hidden size. In two
bytes these are 36 bytes, where Korthikanti et al. 2022 (Reducing Activation Recomputation in Large
Transformer Models, section 4.1) count 34. What norms, dropout and autocast's mixed formats keep
besides is measured: with 5 and 3.5 the formula is within a factor of two of the bytes that autograd
saves at 32 tokens for BERT, ModernBERT, T5 and Qwen3, trained, frozen or adapted
(tests/run/test_memory.py).

It does not count attention's scores, which a GPU's kernels compute again; on a CPU they are 12
bytes a layer for each head and pair of tokens. Nor masked copies, or more views than columns.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.method.config import RunConfig
from bench.method.context import Context
from bench.method.contract import how_fitted
from bench.method.encoder_values import adapter_settings
from bench.method.own_vectors import own_backbone
from bench.run.planned import PlannedRun

if TYPE_CHECKING:
    from bench.backbones.outline import Outline

TRAINED = 16
FROZEN = 4
NARROW = {"bf16": 2, "4bit": 0.52}
KEPT = 5
KEPT_IN_HALF = 3.5
USABLE = 0.9
"""Usable share of a device's memory: the rest is lost between blocks, or used by other processes.
"""


@dataclass(frozen=True)
class Held:
    """The numbers that a method holds while it trains, counted in its modules."""

    # part of the method (prompt, head, encoder, ...) -> how many of its parameters train
    trained: Mapping[str, int]
    # how many do not train, and how many of these are in matrices of the encoder's layers
    frozen: int
    frozen_in_layers: int
    # numbers that go into and come out of the matrices of all layers, for each token
    numbers: int
    layers: int
    hidden: int

    @property
    def parameters(self) -> int:
        """How many parameters train."""
        return sum(self.trained.values())


def held_by(run: PlannedRun) -> Held | None:
    """Count the numbers that a run holds.

    None: it trains nothing in steps, or it cannot be built without something that is missing: a
    model of unknown sizes, another model that it learns from, word vectors.
    """
    cls = run.plugin.cls
    if run.corpus is None or how_fitted(cls) == "pass" or own_backbone(cls) is not None:
        return None
    from bench.backbones.outline import outline

    with suppress(Exception):  # what a run really lacks it says itself
        return _count(_built(run, outline(run.backbone)))
    return None


def _built(run: PlannedRun, backbone: Outline) -> Any:
    """Build a run's method without weights."""
    import torch

    from bench.backbones.adapters import add_adapters

    recipe = run.recipe
    if recipe.get("adapter") is not None:
        add_adapters(backbone.encoder, adapter_settings(recipe), seed=0)
    method: Any = run.plugin.cls()
    method.context = Context(RunConfig(device="meta", precision=run.precision, offline=True))
    with torch.device("meta"):
        method.build(backbone, recipe)
    return method


def _count(method: Any) -> Held:
    from bench.run.record_of import parameter_counts

    counts = parameter_counts(method, trained=True)
    encoder = method.encoder
    in_layers = _matrices_of_layers(encoder)
    frozen_in_layers = 0
    numbers = 0
    for matrix in in_layers:
        numbers += sum(matrix.shape)
        if not matrix.requires_grad:
            frozen_in_layers += matrix.numel()
    total = counts["total_parameters"] + sum(buffer.numel() for buffer in method.buffers())
    return Held(
        trained=counts["trainable_parts"],
        frozen=total - counts["trainable_parameters"],
        frozen_in_layers=frozen_in_layers,
        numbers=numbers,
        layers=encoder.config.num_hidden_layers,
        hidden=encoder.config.hidden_size,
    )


def _matrices_of_layers(encoder: Any) -> list[Any]:
    """Return the matrices that every token is multiplied with: all but the tables of embeddings."""
    from torch import nn

    tables = set()
    for module in encoder.modules():
        if isinstance(module, nn.Embedding):
            tables.add(id(module.weight))
    matrices = []
    for parameter in encoder.parameters():
        if parameter.ndim == 2 and id(parameter) not in tables:
            matrices.append(parameter)
    return matrices


def memory_of(run: PlannedRun, held: Held, chunk: int | None = None) -> int:
    """Return the bytes that a run takes while it trains, as the formula above has it.

    ``chunk``: rows of a batch that are held at once; None: all.
    """
    rows = min(run.recipe.batch_size, chunk or run.recipe.batch_size)
    tokens = rows * texts_of_row(run) * run.recipe.max_seq_length
    activations = tokens * _bytes_of_token(run, held)
    return int(TRAINED * held.parameters + _bytes_of_frozen(run, held) + activations)


def texts_of_row(run: PlannedRun) -> int:
    """Return how many texts of a row of the corpus are encoded."""
    assert run.corpus is not None
    columns = [column for column in run.corpus.columns if column not in ("label", "score")]
    return max(2, len(columns))


def _bytes_of_token(run: PlannedRun, held: Held) -> float:
    of_number = KEPT_IN_HALF if run.precision in ("bf16", "fp16") else KEPT
    if run.recipe.get("gradient_checkpointing"):
        # the input of every layer, and all of the one that is computed again
        return FROZEN * held.layers * held.hidden + of_number * held.numbers / held.layers
    return of_number * held.numbers


def _bytes_of_frozen(run: PlannedRun, held: Held) -> float:
    held_in = run.recipe.get("base_dtype")
    if held_in == "bf16":
        return NARROW["bf16"] * held.frozen
    if held_in == "4bit":  # the layers alone; tables of embeddings are float32
        tables = held.frozen - held.frozen_in_layers
        return FROZEN * tables + NARROW["4bit"] * held.frozen_in_layers
    return FROZEN * held.frozen


def fitting_chunk(run: PlannedRun, held: Held, room: float) -> int | None:
    """Return the largest power of two for ``--chunk`` with which a run takes at most ``room``
    bytes.

    None: not even one row fits, or the method's batch cannot be split.
    """
    from bench.method.torch_method import is_split

    if not is_split(run.plugin.cls):
        return None
    chunk = 2 ** (int(run.recipe.batch_size).bit_length() - 1)
    while chunk and memory_of(run, held, chunk) > room:
        chunk //= 2
    return chunk or None


def usable_memory(device: str) -> float:
    """Return a device's usable memory in bytes; for a CPU and Apple's GPU, the machine's memory."""
    if device.startswith("cuda"):
        import torch

        return USABLE * int(torch.cuda.get_device_properties(device).total_memory)
    return USABLE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
