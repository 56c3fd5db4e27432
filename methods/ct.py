"""CT, Contrastive Tension: Semantic Re-tuning with Contrastive Tension (Carlsson et al., ICLR
2021).

Two copies f1, f2 of one pretrained encoder, with nothing shared, are trained to agree on a sentence
and to differ on two:

    z = f1(s) . f2(s')           the DOT product of means over the last layer's tokens, not divided
    loss = mean of -log sigmoid(z) if s' = s, and of -log(1 - sigmoid(z)) if s' is another sentence

(section 3). There is one positive for 7 negatives; dropout is off. Dev scores both copies, and the
better one is the result: the checkpoint holds only that, as ``encoder``, so that another method can
start from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from bench.method import (
    Backbone,
    Batch,
    Features,
    Loss,
    Method,
    Portable,
    Recipe,
    TorchMethod,
    Value,
    rng_for,
)
from bench.methods.bounds import check_at_least, check_usual_schedule
from bench.methods.losses import float32_at_least
from bench.methods.pooling import masked_mean, portable_of

CODE = "Contrastive-Tension ContrastiveTension/Training.py"
RATES = (1.0, 0.8, 0.6, 0.4, 0.2)  # of the recipe's learning rate: 1e-5, 8e-6, 6e-6, 4e-6, 2e-6


class CT(TorchMethod):
    """Contrastive Tension: two copies of the encoder give a sentence a large dot product, two
    sentences a small one.

    Take it as a baseline that uses neither dropout nor cosines; it needs the memory of two
    encoders.

    Example:
        bench run --method ct --setting unsupervised --backbone bert-base-uncased

    Relations: SimCSE needs one encoder and negatives of the batch; SG-OPT keeps the second copy
    frozen.
    """

    name = "ct"
    settings = ("unsupervised",)
    summary = "two encoders agree on equal sentences only"
    paper = (
        "Carlsson, Gyllensten, Gogoulou, Hellqvist, Sahlgren: Semantic Re-tuning with "
        "Contrastive Tension, ICLR 2021"
    )
    trains = "two whole copies of the encoder; the better one on dev is kept"
    training_only = ("second",)
    defaults = {
        "batch_size": Value(
            16,
            CODE,
            "2 positives and 14 negatives; the authors draw 30 sentences for it, "
            "ours are the batch's own",
        ),
        "group": Value(8, CODE, "1 positive and 7 negatives"),
        "learning_rate": Value(
            1e-5,
            CODE,
            "the first rate of the table; the tables' 72.05 is a checkpoint with other values",
        ),
        "rate_steps": Value(
            500, CODE, "the rate falls to 0.8, 0.6, 0.4, 0.2 of the first after so many steps each"
        ),
        "max_grad_norm": Value(None, CODE + ": no clipping"),
        "max_seq_length": Value(75, CODE),
        "dropout": Value(0.0, CODE + ": training=False"),
        "max_steps": Value(
            5000, CODE + ": 10 rounds of 500", "the paper's own number of steps was not checked"
        ),
        "eval_steps": Value(500, CODE + ": after each round, both copies on STS-B dev"),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_at_least(recipe, 2, "group")
        check_at_least(recipe, 1, "rate_steps")
        check_usual_schedule(cls.name, recipe)

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.check(recipe, backbone.path)
        self.second = deepcopy(self.encoder)
        # "encoder" or "second": the copy that is scored and saved
        self.better = "encoder"

    def collate(
        self, columns: Mapping[str, Sequence[Any]], rows: np.ndarray, epoch: int
    ) -> tuple[Features, ...]:
        """Return (sentences of the first copy, sentences of the second, labels): each row once for
        the first copy.

        The first of every ``group`` rows is paired with itself, each other one with a random other
        sentence of the batch.
        """
        ids = [tuple(row) for row in columns["sentence"]]
        others = []
        labels = []
        for i, row in enumerate(rows.tolist()):
            foreign = [j for j in range(len(ids)) if ids[j] != ids[i]]
            # a batch of one sentence has no negatives
            if i % self.recipe.group == 0 or not foreign:
                others.append(ids[i])
                labels.append(1.0)
                continue
            rng = rng_for(self.context.seed, "ct pair", epoch, row)
            others.append(ids[foreign[rng.integers(len(foreign))]])
            labels.append(0.0)
        length = self.recipe.max_seq_length
        return (
            self.assemble(ids, length),
            self.assemble(others, length),
            {"labels": torch.tensor(labels)},
        )

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return the vector of each copy for its sentence, (n, H) each, and the labels (n,)."""
        first, second, labels = batch.columns
        u_nH = self.mean_of(self.encoder, first)
        v_nH = self.mean_of(self.second, second)
        return u_nH, v_nH, labels["labels"]

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        return Loss(tension(*views))

    def embed(self, features: Features) -> Tensor:
        return self.mean_of(self.better_copy(), features)

    def portable(self) -> Portable:
        return replace(portable_of(self, "avg"), encoder=self.better_copy())

    def better_copy(self) -> Any:
        """Return the copy that is scored and saved."""
        return self.encoder if self.better == "encoder" else self.second

    def mean_of(self, copy: Any, features: Features) -> Tensor:
        return masked_mean(copy(**features).last_hidden_state, features["attention_mask"])  # (n, H)

    def optimizer(self) -> torch.optim.Optimizer:
        """Return Keras's RMSprop: decay 0.9 and eps 1e-7 (torch's own defaults: 0.99 and 1e-8)."""
        trained = [p for p in self.parameters() if p.requires_grad]
        return torch.optim.RMSprop(
            trained,
            lr=self.recipe.learning_rate,
            alpha=0.9,
            eps=1e-7,
            weight_decay=self.recipe.weight_decay,
        )

    def learning_rate(self, step: int, steps: int) -> float:
        """Return the rate of the table; at its edges, as in Keras, the earlier rate holds for one
        more update.
        """
        passed = max(0, step - 1) // self.recipe.rate_steps
        return float(self.recipe.learning_rate) * RATES[min(passed, len(RATES) - 1)]

    def dev_score(self, score: Callable[[Method], float]) -> float:
        scores = {}
        for self.better in ("encoder", "second"):
            scores[self.better] = score(self)
        self.better = "encoder" if scores["encoder"] > scores["second"] else "second"
        return scores[self.better]

    def save(self, folder: Path) -> None:
        """Write the better copy, under the name ``encoder``."""
        copies = self.encoder, self.second
        self.encoder = self.better_copy()
        try:
            super().save(folder)
        finally:
            self.encoder, self.second = copies

    def load(self, folder: Path) -> None:
        super().load(folder)
        self.better = "encoder"


def tension(first_nH: Tensor, second_nH: Tensor, labels_n: Tensor) -> Tensor:
    """Return the mean binary cross-entropy of the dot products, in nats.

    The label is 1 for one sentence twice and 0 for two sentences.
    """
    with torch.autocast(first_nH.device.type, enabled=False):
        first = float32_at_least(first_nH)
        second = float32_at_least(second_nH)
        return binary_cross_entropy_with_logits((first * second).sum(-1), labels_n.to(first.dtype))
