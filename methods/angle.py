"""AnglE: angle-optimized text embeddings (Li and Li, ACL 2024, arXiv 2309.12871).

Pairs with a score; three terms, each with its own weight and scale:

    CoSENT(cos(x, y))  +  an in-batch contrast  +  CoSENT(d(x, y))
    d = | x.y + b.c - a.d | / (|x| |y|)

with the halves x = (a, b) and y = (c, d) of a vector as the real and imaginary parts of complex
numbers. d is no angle: it grows with similarity, it equals sqrt(2) |cos(R x, y)| with
R x = (a + b, b - a) / sqrt(2), and d(x, y) is not d(y, x). The paper puts the difference of two
angles into the exponent, a higher pair's minus a lower one's; with d in their place that trains
backwards. Here it is as in the authors' code: the lower one's d minus the higher one's.

The contrast is over all 2n sentences of a batch: each sentence of a pair with the highest score, 1,
is to find its partner among the 2n - 1 others. Sentences of other pairs are candidates only, and
add 0 to the mean.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from bench.method import (
    Affine,
    Batch,
    Features,
    Ids,
    Loss,
    Portable,
    Recipe,
    Value,
    check_choice,
    check_positive,
)
from bench.methods.cosent import CoSENT, normalized, order_loss, pair_cosines
from bench.methods.losses import cosine_matrix
from bench.methods.pooling import POOLERS, first_token, masked_mean, pooled, portable_of
from bench.methods.prefixes import check_prefixes

BOTH = "cls_avg"
IDENTICAL = ("positive", "drop")
CODE = "AnglE examples/NLI/README.md"


class AnglE(CoSENT):
    """AnglE: three losses of scored pairs, one of them on the angle of complex vectors.

    Take it if pairs have graded scores and cosines near 1 or -1 saturate, or for NLI pairs scored 0
    or 1.

    Example:
        bench run --method angle --setting supervised --corpus pairs.csv --backbone \\
          bert-base-uncased

    Relations: adds a contrast and the complex similarity to :class:`CoSENT`, which is one of its
    three terms; CLAIF regresses the scores themselves.
    """

    name = "angle"
    summary = "CoSENT on a complex similarity, with an in-batch contrast"
    paper = (
        "Li, Li: AoE: Angle-optimized Embeddings for Semantic Textual Similarity, ACL 2024, "
        "arXiv 2309.12871"
    )
    variants = {
        "stsb": {
            "cosine_weight": Value(1.0, "AnglE README.md: STS-B"),
            "contrast_weight": Value(1.0, "AnglE README.md: STS-B"),
            "angle_weight": Value(0.02, "AnglE README.md: STS-B"),
            "batch_size": Value(32, "AnglE README.md: STS-B"),
            "epochs": Value(5, "AnglE README.md: STS-B"),
            "learning_rate": Value(2e-5, "AnglE README.md: STS-B"),
            "warmup_steps": Value(0, "AnglE README.md: STS-B"),
        },
        "matryoshka": {"matryoshka": "512 256 128 64"},
    }
    defaults = {
        "cosine_weight": Value(0.0, CODE + ":57"),
        "contrast_weight": Value(30.0, CODE + ":56"),
        "angle_weight": Value(1.0, CODE + ":58"),
        "cosine_scale": Value(
            20.0, "AnglE AngleLoss default", "multiplies, where the paper divides by a temperature"
        ),
        "contrast_scale": Value(20.0, "AnglE AngleLoss default"),
        "angle_scale": Value(20.0, CODE + ":59", "AngleLoss default until 2024: 1"),
        "identical": Value(
            "positive",
            "AnglE 0.1.1, of the released checkpoint: every copy of a sentence in the batch is "
            "one more positive",
            "drop: as AnglE does today, pairs with a sentence that stood earlier in the batch "
            "are left out",
        ),
        "pooling": Value("cls", CODE + ":54"),
        "pooling_at_test": Value(
            BOTH,
            CODE + ":77: the mean of CLS and the mean over all tokens",
            "the authors' mean counts padding, so that a vector depends on its batch: not here",
        ),
        "batch_size": Value(
            128,
            CODE + ":50",
            "8 processes of 128 with 2 accumulated: 2,048 a step, negatives within 128",
        ),
        "epochs": Value(10, CODE + ":68"),
        "learning_rate": Value(5e-5, CODE + ":60"),
        "warmup_steps": Value(50, CODE + ":64"),
        "max_seq_length": Value(128, CODE + ":55"),
        "select_on": Value(
            "last",
            CODE,
            "the 2023 trainer's default keeps the best epoch on the seven test sets together",
        ),
        "matryoshka": CoSENT.defaults["matryoshka"],
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_choice(recipe, "pooling", POOLERS)
        check_choice(recipe, "pooling_at_test", (BOTH, *POOLERS))
        check_choice(recipe, "identical", IDENTICAL)
        check_scales(recipe)
        check_prefixes(recipe)

    def collate(
        self, columns: Mapping[str, Sequence[Any]], rows: np.ndarray, epoch: int
    ) -> tuple[Features, ...]:
        first, second, scores = super().collate(columns, rows, epoch)
        numbers = [
            [text_number(ids) for ids in pair]
            for pair in zip(columns["sent0"], columns["sent1"], strict=True)
        ]
        return first, second, scores | {"texts": torch.tensor(numbers)}

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return x and y, (n, H) each, the scores (n,), and the sentences' numbers (n, 2)."""
        return *super().views(batch), batch.columns[2]["texts"]

    def loss_of_pairs(self, x_nH: Tensor, y_nH: Tensor, scores_n: Tensor, *others: Tensor) -> Loss:
        recipe = self.recipe
        (texts_n2,) = others
        if recipe.identical == "drop":
            first = first_of_batch(texts_n2)
            x_nH = x_nH[first]
            y_nH = y_nH[first]
            scores_n = scores_n[first]
            texts_n2 = texts_n2[first]
        return three_losses(x_nH, y_nH, scores_n, texts_n2, recipe)

    def embed(self, features: Features) -> Tensor:
        if self.recipe.pooling_at_test != BOTH:
            return pooled(self, features, self.recipe.pooling_at_test)
        states = self.hidden(features)
        mask = features["attention_mask"]
        return (first_token(states, mask) + masked_mean(states, mask)) / 2

    def portable(self) -> Portable:
        if self.recipe.pooling_at_test != BOTH:
            return portable_of(self, self.recipe.pooling_at_test)
        half = torch.eye(self.backbone.hidden_size) / 2
        layer = Affine(torch.cat([half, half], dim=1))
        return replace(portable_of(self, "cls", layer), pooling="cls+mean")


def check_scales(recipe: Recipe) -> None:
    """Raise BenchError for a scale with which a loss would train backwards, or nothing."""
    for key in ("cosine_scale", "contrast_scale", "angle_scale"):
        check_positive(recipe, key)


def three_losses(
    x_nH: Tensor, y_nH: Tensor, scores_n: Tensor, texts_n2: Tensor, recipe: Recipe
) -> Loss:
    """Return the weighted sum of the three losses of pairs; ``texts_n2``: as in :func:`in_batch`."""
    parts = {
        "cosine": order_loss(pair_cosines(x_nH, y_nH), scores_n, recipe.cosine_scale),
        "contrast": in_batch(x_nH, y_nH, scores_n >= 1, recipe.contrast_scale, texts_n2),
        "angle": order_loss(complex_similarity(x_nH, y_nH), scores_n, recipe.angle_scale),
    }
    weighted = [recipe[f"{name}_weight"] * part for name, part in parts.items()]
    return Loss(torch.stack(weighted).sum(), parts)


def complex_similarity(x_nH: Tensor, y_nH: Tensor) -> Tensor:
    """Return d of row i of x and row i of y, (n,), from 0 to sqrt(2); an odd H gets one more 0.

    Source: AnglE loss.py angle_loss.
    """
    odd = x_nH.shape[1] % 2
    x = pad(normalized(x_nH), (0, odd))
    y = pad(normalized(y_nH), (0, odd))
    a, b = x.chunk(2, dim=1)
    c, d = y.chunk(2, dim=1)
    return ((x * y).sum(1) + (b * c - a * d).sum(1)).abs()


def in_batch(
    x_nH: Tensor, y_nH: Tensor, positive_n: Tensor, scale: float, texts_n2: Tensor | None = None
) -> Tensor:
    """Return the surprise of each sentence's partner in its positive pair among all other
    sentences.

    The mean is over all 2n sentences, in nats. ``texts_n2``: sentences with the same number are
    further positives of each other, each with the weight 1, so that the surprise of several
    positives is summed.

    Source: AnglE loss.py in_batch_negative_loss; 0.1.1 angle.py for the copies.
    """
    z = torch.stack([x_nH, y_nH], dim=1).flatten(0, 1)  # (2n, H): a pair after the other
    number = torch.arange(len(z), device=z.device)
    itself = number[:, None] == number[None, :]
    partner = number[:, None] == (number ^ 1)[None, :]
    wanted = (partner & positive_n.repeat_interleave(2)[:, None]).to(torch.int64)
    if texts_n2 is not None:
        texts = texts_n2.flatten()
        wanted = wanted + ((texts[:, None] == texts[None, :]) & ~itself)
    log_p = (scale * cosine_matrix(z, z)).masked_fill(itself, float("-inf")).log_softmax(1)
    return -(wanted * log_p.masked_fill(itself, 0)).sum(1).mean()


def first_of_batch(texts_n2: Tensor) -> Tensor:
    """Return True, (n,), for each pair of two sentences that are new in the batch.

    Source: AnglE angle.py, filter_duplicate.
    """
    texts = texts_n2.flatten()
    again = (texts[:, None] == texts[None, :]).tril(-1).any(1)
    return ~again.view(-1, 2).any(1)


def text_number(ids: Ids) -> int:
    """Return a number of 63 bits that identifies a sentence by its ids."""
    digest = hashlib.blake2b(np.asarray(ids, dtype=np.int64).tobytes(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
