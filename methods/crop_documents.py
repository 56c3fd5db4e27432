"""Crops of documents as pairs (arXiv 2508.03453, 2025): two pieces of one text are to be nearer
than pieces of two texts.

A text is cut at its full stops; a sentence counts if it has 100 to 250 characters. A pack is two
counting sentences, the first ones from some sentence on, so that two packs may share one. Two
different packs of a text, drawn anew in each epoch, are anchor and positive, and the positives of
the batch's other texts are the negatives: InfoNCE with cosines and temperature 0.05 over masked
means of the last layer, no head.

The corpus has to have documents, one a line, such as abstracts: wiki1m's lines are single
sentences. A text with fewer than two packs is a pair with itself under two dropout masks, as in
SimCSE; the authors leave it out. SimCSE's own `edit = "crop"` cuts words off a sentence and is
another thing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bench.method import (
    Batch,
    Features,
    Loss,
    Recipe,
    Value,
    check_positive,
    join,
    rng_for,
)
from bench.methods.losses import info_nce
from bench.methods.pooling import ScoredMean

CODE = "text-embed-augm text_embeddings_src/train_stuff.py"
SHORTEST, LONGEST = 100, 250  # characters of a sentence that counts
SENTENCES = 2  # in a pack


class CropDocuments(ScoredMean):
    """Cropped documents: two pieces of one document are a positive pair, pieces of others are
    negatives.

    Take it if the corpus has whole documents, one a row, and no sentence pairs.

    Example:
        bench run --method crop-documents --corpus documents.csv --backbone bert-base-uncased

    Relations: unsupervised SimCSE is the case of one sentence a document.
    """

    name = "crop-documents"
    settings = ("unsupervised",)
    by_dropout = ("unsupervised",)
    summary = "two pieces of a document are a positive pair"
    paper = "text-embed-augm, arXiv 2508.03453 (2025): crops of a text as contrastive pairs"
    trains = "the whole encoder"
    trains_on = "text"
    defaults = {
        "temperature": Value(0.05, CODE, "a scale of 20"),
        "learning_rate": Value(2e-5, CODE),
        "batch_size": Value(
            64, "text-embed-augm scripts/11, scripts/03", "32 in scripts/15 (MTEB sets)"
        ),
        "max_seq_length": Value(512, "text-embed-augm data_stuff.py"),
        "warmup_ratio": Value(0.1, CODE, "of one epoch"),
        "max_grad_norm": Value(None, CODE + ": no clipping"),
        "select_on": Value("last", CODE + ": no dev set"),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_positive(recipe, "temperature")

    def collate(
        self, columns: Mapping[str, Sequence[Any]], rows: np.ndarray, epoch: int
    ) -> tuple[Features, ...]:
        """Draw two packs of each text."""
        (texts,) = columns.values()
        pairs = [
            pair_of(text, rng_for(self.context.seed, "crop", epoch, int(row)))
            for text, row in zip(texts, rows, strict=True)
        ]
        longest = min(self.recipe.max_seq_length, self.backbone.max_tokens)
        return tuple(
            self.assemble(self.backbone.ids(column), longest) for column in zip(*pairs, strict=True)
        )

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return the views that the loss compares: anchor and positive, (n, H) each."""
        return self.embed(join(batch.columns, self.pad_id)).chunk(2)  # one encoder pass

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        return Loss(info_nce(*views, temperature=self.recipe.temperature))

    def optimizer(self) -> torch.optim.Optimizer:
        trained = [p for p in self.parameters() if p.requires_grad]
        return torch.optim.Adam(
            trained, lr=self.recipe.learning_rate, weight_decay=self.recipe.weight_decay, fused=True
        )


def packs(text: str) -> list[tuple[int, ...]]:
    """Return the packs of a text, each as the numbers of its sentences.

    A pack begins at every sentence that counts and has another one behind it.
    """
    counts = [SHORTEST <= len(sentence) <= LONGEST for sentence in text.split(".")]
    starts = [i for i, counted in enumerate(counts[: len(counts) - SENTENCES + 1]) if counted]
    found = []
    for start in starts:
        pack = [i for i in range(start, len(counts)) if counts[i]][:SENTENCES]
        if len(pack) == SENTENCES:
            found.append(tuple(pack))
    return found


def pair_of(text: str, rng: np.random.Generator) -> tuple[str, str]:
    """Draw two different packs uniformly; a text with fewer than two packs is returned twice."""
    every = packs(text)
    if len(every) < 2:
        return text, text
    sentences = text.split(".")
    texts = []
    for number in rng.choice(len(every), 2, replace=False):
        texts.append("".join(sentences[i].strip() + ". " for i in every[number]))
    return texts[0], texts[1]
