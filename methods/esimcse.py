"""ESimCSE: Enhanced Sample Building Method for Contrastive Learning (Wu, Gao, Zang, Han, Wang and
Hu, COLING 2022).

SimCSE learns that length means similarity, for both views of a pair are equally long and most
negatives are not. Two changes:

* word repetition, section 3.2: the second view is the sentence with some word pieces doubled. Drawn
  once for each line of the corpus, as the authors' code does while it tokenises, after the cut to
  the maximum length: the view may be longer than that;
* momentum contrast, section 3.3, eq. 3: sentences of earlier batches join the negatives without
  being encoded again. They are encoded by a copy of the encoder that follows it, theta_m = gamma
  theta_m + (1 - gamma) theta (eq. 2), without dropout, and go through the online head. A step's own
  sentences enter the queue after its loss.

The loss is InfoNCE with cosines and temperature tau over [second views of the batch | queue]. What
is scored is CLS of the last layer without the head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bench.method import (
    Backbone,
    Batch,
    Features,
    Loss,
    Recipe,
    Value,
    check_positive,
    join,
    rng_for,
)
from bench.methods.augment import repeat_tokens
from bench.methods.bounds import check_at_least, check_share
from bench.methods.losses import info_nce
from bench.methods.momentum import FrozenCopy, Queue
from bench.methods.pooling import Head, ScoredFirstToken


class ESimCSE(ScoredFirstToken):
    """ESimCSE: SimCSE with repeated tokens in the second view, and a queue of negatives from a
    momentum copy.

    Take it if sentence length should not tell a pair apart; the copy adds memory of a second
    encoder.

    Example:
        bench run --method esimcse --setting unsupervised --backbone bert-base-uncased

    Relations: SimCSE without repetition and queue; PCL makes many altered copies instead of one.
    """

    name = "esimcse"
    settings = ("unsupervised",)
    summary = "SimCSE with repeated tokens and a queue of negatives"
    paper = (
        "Wu, Gao, Zang, Han, Wang, Hu: ESimCSE: Enhanced Sample Building Method for Contrastive "
        "Learning of Unsupervised Sentence Embedding, COLING 2022, arXiv 2109.04380"
    )
    trains = (
        "the whole encoder and the head; the momentum copy follows the encoder without a gradient"
    )
    training_only = ("head", "momentum", "queue")
    defaults = {
        "temperature": Value(0.05, "ESimCSE run.sh"),
        "repetition": Value(
            0.32,
            "ESimCSE run.sh, bert-base-uncased",
            "how many are doubled is uniform in {0 .. min(10, int(rate x length)) - 1} (train.py); "
            "the paper bounds it by max(2, int(rate x length))",
        ),
        "momentum": Value(0.995, "ESimCSE run.sh", "the paper's gamma"),
        "queue_size": Value(
            160, "ESimCSE run.sh, bert-base-uncased", "the paper: 2.5 times the batch size"
        ),
    }
    # the rows of the paper's ablation: each of the two changes alone
    variants = {"no-repetition": {"repetition": 0.0}, "no-queue": {"queue_size": 0}}

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_positive(recipe, "temperature")
        check_at_least(recipe, 0, "repetition", "queue_size")
        check_share(recipe, "momentum", below_one=False)

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.head = Head(backbone.hidden_size)
        self.momentum = FrozenCopy(self.encoder)
        self.queue = Queue(recipe.queue_size, backbone.hidden_size)

    def collate(
        self, columns: Mapping[str, Sequence[Any]], rows: np.ndarray, epoch: int
    ) -> tuple[Features, ...]:
        (ids,) = columns.values()
        specials = len(self.before) + len(self.after)
        cut = [row[: self.recipe.max_seq_length - specials] for row in ids]
        repeated = []
        for row, number in zip(cut, rows, strict=True):
            rng = rng_for(self.context.seed, "repetition", int(number))
            repeated.append(repeat_tokens(row, self.recipe.repetition, rng, around=specials))
        return self.assemble(cut), self.assemble(repeated)

    def prepare(self, batch: Batch) -> None:
        """Move the copy before it encodes sentences for the queue, as in the authors' code."""
        if self.remembers():
            self.momentum.follow(self.encoder, self.recipe.momentum)

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return both views of a sentence, (n, H) each; while training also the vectors for the
        queue.
        """
        z: Tensor = self.head(self.embed(join(batch.columns, self.pad_id)))  # one encoder pass
        if not self.remembers():
            return z.chunk(2)
        return *z.chunk(2), self.remembered(batch.columns[0])

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        z1, z2, *new = views
        candidates = torch.cat([z2, self.queue.vectors()])
        loss = info_nce(z1, candidates, temperature=self.recipe.temperature)
        for vectors in new:
            self.queue.push(vectors)
        return Loss(loss)

    def remembers(self) -> bool:
        """Say if the queue is used now."""
        return self.training and self.recipe.queue_size > 0

    @torch.no_grad()
    def remembered(self, sentences: Features) -> Tensor:
        """Return the vectors of the copy and the online head, (n, H)."""
        vectors: Tensor = self.head(self.momentum(**sentences).last_hidden_state[:, 0])
        return vectors
