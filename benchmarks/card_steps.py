"""Drives the real training step by step, for measurements: its trainer without its checkpoints."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from card_models import (
    Case,
    Place,
    Rows,
    built,
    feed_of,
    methods_of,
    random_backbone,
    sentences,
    shape,
    tokenizer,
)

LENGTH = 32
"""Tokens of a sentence at most, as in the papers."""
WARM_UP = 10
"""Steps before a clock starts."""


@dataclass(frozen=True)
class Found:
    """What a line of the measurement found."""

    value: str
    """One sentence for the table."""

    good: bool | None = None
    """Does it meet what is asked? None: nothing is asked, or this device cannot answer."""

    asked: str = ""

    detail: dict[str, Any] = field(default_factory=dict)
    """Every number of ``value``, and more, for programs."""


def default_precision(place: Place) -> str:
    """Return the precision that ``bench run`` chooses: bf16 on a GPU, float32 on a CPU."""
    return "bf16" if place.on_gpu else "fp32"


def free_memory(place: Place) -> None:
    """Give memory of objects that are gone back to the device."""
    gc.collect()
    if place.on_gpu:
        torch.cuda.empty_cache()


def ready_method(place: Place, name: str, model: str, batch: int, **values: Any) -> Any:
    """Return an unsupervised method on a random model on the device, ready to train."""
    values = {
        "batch_size": batch,
        "max_steps": 10**4,
        "max_seq_length": LENGTH,
        "select_on": "last",
        "eval_steps": 10**6,
    } | values
    case = Case(methods_of(name)[0], "unsupervised", "")
    method = built(case, place, random_backbone(model, place), **values)
    precision = default_precision(place)
    method.context = replace(method.context, device=place.device, precision=precision)
    return method


def full_sentences(count: int) -> list[str]:
    """Return distinct sentences of at least ``LENGTH`` tokens, so that all inputs are equally long.

    Every side of a comparison cuts them to ``LENGTH``.
    """
    found = []
    pieces = iter(sentences(12 * count))
    for row in range(count):
        words = [str(row)]
        while len(words) < LENGTH:  # a word is at least a token
            words += next(pieces).split()
        found.append(" ".join(words))
    return found


def tokenised(method: Any, texts: Sequence[str]) -> Rows:
    """Return sentences as a corpus of token ids, as a method reads it."""
    ids = [np.array(row, dtype=np.uint16) for row in method.token_ids(texts)]
    return Rows(("sentence",), [ids])


def full_rows(count: int) -> Rows:
    """Return ``count`` sentences of exactly ``LENGTH`` tokens with the special ones."""
    ids = tokenizer()(full_sentences(count), add_special_tokens=False)["input_ids"]
    return Rows(("sentence",), [[np.array(row[: LENGTH - 2], dtype=np.uint16) for row in ids]])


class Training:
    """A training that does as many steps as it is asked for."""

    def __init__(self, method: Any, corpus: Rows) -> None:
        from bench.training.trainer import Trainer

        self.method = method
        method.context.folder.mkdir(parents=True, exist_ok=True)
        self.trainer = Trainer(method, corpus, method.context)  # type: ignore[arg-type]
        self.feed = feed_of(method, corpus)

    def steps(self, count: int) -> None:
        """Do ``count`` steps; a GPU may still be at work when this returns."""
        from bench.method.passes import float32_products

        with float32_products(tf32=self.method.context.precision == "tf32"):
            for _ in range(count):
                self.trainer.step(self.feed)

    def seconds_per_step(self, place: Place, count: int) -> float:
        """Return the mean duration of ``count`` steps, waited for at both ends."""
        place.wait()
        began = time.perf_counter()
        self.steps(count)
        place.wait()
        return (time.perf_counter() - began) / count

    def close(self) -> None:
        """End the thread that makes batches."""
        self.feed.close()  # type: ignore[attr-defined]


def operations_of_step(model: str, place: Place, rows: int) -> float:
    """Return the floating point operations of a step on ``rows`` full sentences, seen twice.

    Forward and backward take 6 for each weight of the layers and each token; attention's own
    products and the embeddings are left out.
    """
    values = shape(model, place.tiny)
    hidden, inner = values["hidden_size"], values["intermediate_size"]
    weights = values["num_hidden_layers"] * (4 * hidden * hidden + 2 * hidden * inner)
    return 6.0 * weights * 2 * rows * LENGTH
