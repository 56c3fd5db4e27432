"""Pcc-tuning: Breaking the Contrastive Learning Ceiling in Semantic Textual Similarity (Zhang and
Li, EMNLP 2024), its second stage.

    c_k = cos(x_k, y_k), g_k = score of pair k
    loss = 1 - r(c, g)            Pearson's correlation over the WHOLE batch

x and y are PromptEOL's vectors. The first stage is PromptEOL on NLI triplets; the second goes on
from its run (``--backbone RUN``). The authors' data are the training pairs of STS-B and SICK-R:
in-domain for two of the seven STS sets, so its rows do not compare with rows of NLI models.

The authors divide by deviations with n - 1, which makes (n - 1) / n of the correlation:
``faithful``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bench.method import Batch, Features, Loss, Recipe, Value, join
from bench.methods.cosent import pair_cosines
from bench.methods.prompteol import PromptEOL

CODE = "ZBWpro/Pcc-tuning tune.py"
FLAT = 1e-12
"""The spread below which numbers have no correlation."""


class PccTuning(PromptEOL):
    """Pcc-tuning: the cosines of scored pairs are trained to correlate with the scores.

    Take it for graded pairs on a decoder, and say that it has seen them.

    Example:
        bench run --method pcc-tuning --setting supervised --corpus stsb-train --backbone \\
          facebook/opt-125m

    Relations: CoSENT trains the order of the scores, CLAIF the scores; PromptEOL is its first
    stage.
    """

    name = "pcc-tuning"
    settings = ("supervised",)
    several_negatives = False
    by_dropout = ()
    deterministic = ()
    summary = "cosines of rated pairs correlate with the ratings"
    paper = (
        "Zhang, Li: Pcc-tuning: Breaking the Contrastive Learning Ceiling in Semantic Textual "
        "Similarity, EMNLP 2024, arXiv 2406.09790"
    )
    variants = {
        "sth": PromptEOL.variants["sth"],
        "sum": PromptEOL.variants["sum"],
    }
    defaults = {
        "template": PromptEOL.defaults["template"],
        "layer": PromptEOL.defaults["layer"],
        "clean_at_test": PromptEOL.defaults["clean_at_test"],
        "faithful": Value(
            False, CODE + ":98-107", "true: the authors' correlation, (n - 1) / n of Pearson's"
        ),
        "learning_rate": Value(5e-4, CODE + ":446-600"),
        "warmup_steps": Value(100, CODE),
        "max_seq_length": Value(64, CODE, "of the sentence, without the prompt"),
        "eval_steps": Value(25, CODE + ": save_steps"),
        "batch_size": Value(232, CODE + ": OPT-6.7B, eol"),
        "epochs": Value(10, CODE + ": OPT-6.7B, eol"),
    }

    @classmethod
    def needs(cls, setting: str, recipe: Recipe) -> tuple[str, ...]:
        return ("graded",)

    def collate(
        self, columns: Mapping[str, Sequence[Any]], rows: np.ndarray, epoch: int
    ) -> tuple[Features, ...]:
        *texts, scores = columns.values()
        texts_of = dict(zip(list(columns)[:2], texts, strict=True))
        pairs = super().collate(texts_of, rows, epoch)
        numbers = torch.tensor([float(score[0]) for score in scores])
        return (*pairs, {"scores": numbers})

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return x and y, (n, H) each, from one pass, and the scores (n,)."""
        first, second, scores = batch.columns
        x, y = self.embed(join([first, second], self.pad_id)).chunk(2)
        return x, y, scores["scores"]

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        x, y, scores_n = views
        r = correlation(pair_cosines(x, y), scores_n)
        if self.recipe.faithful:
            r = r * (len(scores_n) - 1) / len(scores_n)
        return Loss(1 - r)


def correlation(a_n: Tensor, b_n: Tensor) -> Tensor:
    """Return Pearson's correlation of two lists of numbers; 0 with a gradient of 0 if the numbers
    of one are all equal.
    """
    a = a_n - a_n.mean()
    b = (b_n - b_n.mean()).to(a.dtype)
    spread = a.square().sum() * b.square().sum()
    if spread <= FLAT:
        return (a * 0).sum()
    return (a * b).sum() / spread.sqrt()
