"""CoSENT: a ranking loss on pairs of sentences with a score (Su, kexue.fm/archives/8847, 2022;
Huang et al., IEEE/ACM TASLP 2024).

    s_k = cos(x_k, y_k)
    loss = log( 1 + sum over (i, j) with g_i < g_j of exp(scale (s_i - s_j)) )

x_k, y_k are the two sentences of pair k, g_k is its score; only the order of the scores counts. It
is one number for the whole batch, not a mean: it grows with the number of ordered pairs, and is 0
without a gradient if all scores of a batch are equal.

The pooled vector without a head trains and is scored. AnglE and CLAIF put other losses on the same
vectors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bench.method import (
    Batch,
    Features,
    Loss,
    Portable,
    Recipe,
    TorchMethod,
    Value,
    check_choice,
    check_positive,
    join,
)
from bench.methods.losses import float32_at_least, unit_vectors
from bench.methods.pooling import POOLERS, pooled, portable_of
from bench.methods.prefixes import check_prefixes, on_prefixes

CODE = "CoSENT cosent.py"


class CoSENT(TorchMethod):
    """CoSENT: the cosines of scored pairs are trained to have the order of the scores.

    Take it for pairs with graded scores, such as STS-B's training set.

    Example:
        bench run --method cosent --setting supervised --corpus stsb-train.csv --backbone \\
          bert-base-uncased

    Relations: AnglE adds an in-batch contrast and a complex similarity; CLAIF regresses the scores
    themselves.
    """

    name = "cosent"
    settings = ("supervised",)
    summary = "a pair with a higher score gets the higher cosine"
    paper = (
        "Huang, Peng, Zou, Liu, Su, Shen, Lin: CoSENT, IEEE/ACM TASLP 2024, doi "
        "10.1109/TASLP.2024.3402087"
    )
    trains = "the whole encoder"
    variants = {"matryoshka": {"matryoshka": "512 256 128 64"}}
    defaults = {
        "scale": Value(
            20.0, CODE + ":86", "1 / temperature; sentence-transformers' CoSENTLoss has the same"
        ),
        "pooling": Value(
            "cls", CODE + ":95", f"{', '.join(POOLERS)}; sentence-transformers' example trains avg"
        ),
        "batch_size": Value(32, CODE + ":34", "NLI: 64"),
        "epochs": Value(5, CODE + ":35"),
        "learning_rate": Value(2e-5, CODE + ":100"),
        "schedule": Value("constant", CODE + ":100"),
        "max_seq_length": Value(64, CODE + ":33", "128 for PAWSX"),
        "matryoshka": Value(
            None,
            "not in the paper",
            "sizes of prefixes that the loss is computed on too, as '256 64'",
        ),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_choice(recipe, "pooling", POOLERS)
        if "scale" in recipe:
            check_positive(recipe, "scale")
        check_prefixes(recipe)

    @classmethod
    def needs(cls, setting: str, recipe: Recipe) -> tuple[str, ...]:
        return ("graded",)

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return the views that the loss compares: x and y, (n, H) each, and the scores (n,)."""
        first, second, scores_n = *batch.columns[:2], batch.columns[2]["scores"]
        # in one encoder pass
        x, y = pooled(self, join([first, second], self.pad_id), self.recipe.pooling).chunk(2)
        return x, y, scores_n

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        x, y, *others = views
        return on_prefixes(
            lambda x, y: self.loss_of_pairs(x, y, *others), (x, y), self.recipe.matryoshka
        )

    def loss_of_pairs(self, x_nH: Tensor, y_nH: Tensor, scores_n: Tensor) -> Loss:
        return Loss(order_loss(pair_cosines(x_nH, y_nH), scores_n, self.recipe.scale))

    def embed(self, features: Features) -> Tensor:
        return pooled(self, features, self.recipe.pooling)  # (n, H)

    def portable(self) -> Portable:
        return portable_of(self, self.recipe.pooling)


def normalized(x_nH: Tensor) -> Tensor:
    """Scale vectors to length 1, in at least float32."""
    return unit_vectors(float32_at_least(x_nH))


def pair_cosines(x_nH: Tensor, y_nH: Tensor) -> Tensor:
    """Return the cosine of row i of x with row i of y, (n,)."""
    return (normalized(x_nH) * normalized(y_nH)).sum(1)


def order_loss(similarities_n: Tensor, scores_n: Tensor, scale: float) -> Tensor:
    """Return how far the similarities of n pairs are from the order of their scores.

    Pairs with equal scores are not compared.

    Source: CoSENT cosent.py; AnglE loss.py cosine_loss; sentence-transformers CoSENTLoss.
    """
    excess_nn: Any = scale * (similarities_n[:, None] - similarities_n[None, :])  # of i over j
    wrong_if_positive = scores_n[:, None] < scores_n[None, :]
    terms = excess_nn.masked_fill(~wrong_if_positive, float("-inf")).flatten()
    return torch.cat([terms.new_zeros(1), terms]).logsumexp(0)
