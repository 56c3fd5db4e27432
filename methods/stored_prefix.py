"""A ready-made encoder behind the prefix that its own checkpoint holds, nothing trained: PromCSE's
and DCPCSE's models as their authors released them (class BertForCL or RobertaForCL of their
repository).

Such a checkpoint has three parts: the encoder; ``prefix_encoder.embedding.weight``, a (P, 2LH)
table; its row p holds, layer by layer, H numbers of a key and H of a value, as
:class:`bench.methods.prefix.DeepPrefix` has it; and the head over CLS, ``mlp.dense``. CLS of the
last layer is scored: without the head if training was unsupervised, with it if it was supervised
(PromCSE README, pooler_type). The checkpoint does not say which, so the recipe has to.

P positions, L layers, H hidden size.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from bench.method import (
    Backbone,
    BenchError,
    Features,
    Ids,
    Portable,
    Recipe,
    TorchMethod,
    Value,
    check_choice,
)
from bench.method.finished import FinishedEncoder
from bench.methods.pooling import Head
from bench.methods.prefix import check_prompt, prompt_for

PREFIX = "prefix_encoder."
TABLE = "embedding.weight"
HEAD = "mlp."


class StoredPrefix(FinishedEncoder, TorchMethod):
    """A released PromCSE or DCPCSE checkpoint, encoded behind its own prefix.

    Take it to score a checkpoint of these papers' authors; ``--set pooling=mlp`` adds the stored
    head.

    Example:
        bench evaluate YuxinJiang/sup-promcse-roberta-large --suite sts

    Relations: PromCSE and DCPCSE train such checkpoints.
    """

    name = "stored-prefix"
    settings = ("none",)
    summary = "a released PromCSE or DCPCSE checkpoint with its prefix"
    deterministic = ("none",)
    reads = (PREFIX,)
    defaults = {
        "pooling": Value(
            None,
            "PromCSE README (pooler_type)",
            "cls: trained without supervision; mlp, the stored head on it: with. "
            "The checkpoint does not say",
        ),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        if recipe.pooling is None:
            raise BenchError(
                "stored-prefix: the checkpoint does not say whether it is scored with its head",
                "--set pooling=cls (unsupervised PromCSE), mlp (supervised PromCSE)",
            )
        check_choice(recipe, "pooling", ("cls", "mlp"))
        check_prompt("deep", 1, None, backbone)

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.check(recipe, backbone.path)
        stored = backbone.stored(PREFIX)
        if set(stored) != {TABLE}:
            problem = f"has no {PREFIX}{TABLE}"
            if more := min(set(stored) - {TABLE}, default=""):
                problem = f"passes its prefix through a network ({PREFIX}{more})"
            raise BenchError(
                f"{backbone.name} {problem}",
                "take a checkpoint of PromCSE: bench papers checkpoints",
            )
        self.prompt = prompt_for(backbone, "deep", len(stored[TABLE]))
        copy_into(self.prompt.table, stored[TABLE], f"{backbone.name}: {PREFIX}{TABLE}")
        self.head = stored_head(backbone) if recipe.pooling == "mlp" else None

    def assemble(self, ids: Sequence[Ids], max_length: int | None = None) -> Features:
        return self.prompt.assemble(self, ids, max_length)

    def embed(self, features: Features) -> Tensor:
        cls = self.prompt.states(self.encoder, features)[:, 0]  # (n, H)
        return cls if self.head is None else self.head(cls)

    def portable(self) -> Portable:
        return self.prompt.portable(self, self.head)


def stored_head(backbone: Backbone) -> Head:
    """Return the head over CLS that a checkpoint holds. Raises BenchError if it holds none."""
    stored = backbone.stored(HEAD)
    head = Head(backbone.hidden_size)
    for name, parameter in head.named_parameters():
        if name not in stored:
            raise BenchError(
                f"{backbone.name} has no {HEAD}{name}, which pooling=mlp needs", "--set pooling=cls"
            )
        copy_into(parameter, stored[name], f"{backbone.name}: {HEAD}{name}")
    return head


def copy_into(parameter: Tensor, stored: Tensor, name: str) -> None:
    """Copy a stored tensor into a parameter. Raises BenchError for another shape."""
    if parameter.shape != stored.shape:
        raise BenchError(
            f"{name} has the shape {tuple(stored.shape)}; its encoder needs "
            f"{tuple(parameter.shape)}",
            "take the config.json that belongs to these weights",
        )
    with torch.no_grad():
        parameter.copy_(stored)
