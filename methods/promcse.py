"""PromCSE: Improved Universal Sentence Embeddings with Prompt-based Contrastive Learning and Energy-based Learning
(Jiang, Zhang and Wang, Findings of EMNLP 2022).

The pretrained encoder is frozen; what learns is a prompt and the head over CLS. Three parts:

* the prompt, eq. 1: at every layer the sentence's tokens also attend to P slots of their own keys and values;
* InfoNCE with cosines and temperature tau, as SimCSE: two dropout views of a sentence (dropout of the frozen encoder and of
  the prompt), or NLI triplets whose contradictions join the negatives;
* with `eh` (triplets only), eq. 11 and 12: an energy-based hinge loss. The nearest wrong candidate (positives of others, all hard
  negatives) is to be farther than the own positive by a margin:
  L = InfoNCE + weight * mean_i max(0, margin - cos(h_i, h_i+) + max_j cos(h_i, h_j^)).

What is scored is CLS of the last layer: without the head where training was unsupervised, with it where it was supervised.

Ablations of table 3 in our reading, for the authors' code has none: `layer-shared` (one pair of keys and values for all
layers), `input-layer` (P vectors before the word embeddings).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from bench.method import Backbone, Batch, Features, Ids, Loss, Portable, Recipe, TorchMethod, Value, join
from methods.energy import needs_triplets, with_hinge
from methods.gather import across_ranks
from methods.losses import info_nce
from methods.pooling import Head
from methods.prefix import check_prompt, prompt_for


class PromCSE(TorchMethod):
    name = "promcse"
    settings = ("unsupervised", "supervised")
    variants = {"eh": {"eh": True}, "layer-shared": {"prompt": "layer-shared"}, "input-layer": {"prompt": "input-layer"}}
    by_dropout = ("unsupervised",)
    summary = "contrastive learning of a deep prompt for a frozen encoder; variant eh adds an energy-based hinge loss"
    paper = (
        "Jiang, Zhang, Wang: Improved Universal Sentence Embeddings with Prompt-based Contrastive Learning and Energy-based "
        "Learning, Findings of EMNLP 2022, arXiv 2203.06875"
    )
    trains = "the prompt and the head (the paper names the prompt alone); the encoder is frozen, its dropout stays on"
    defaults = {
        "prompt": Value(
            "deep", "PromCSE promcse/models.py",
            "the paper's eq. 1 puts trainable vectors in the place of hidden states, which the layer projects; the authors' "
            "code, and this, makes keys and values themselves the parameters",
        ),
        "prompt_length": Value(
            16, "PromCSE run_unsup_example.sh, table 6",
            "the sentence starts at position P, as in the authors' code (the paper does not say); with 512 positions 512 - P "
            "tokens are left to it",
        ),
        "prefix_dropout": Value(None, "PromCSE promcse/models.py", "None: the backbone's hidden dropout, 0.1"),
        "temperature": Value(0.05, "PromCSE run_unsup_example.sh; paper appendix A"),
        "head_at_test": Value(
            False, "unsupervised: PromCSE README (pooler_type); recipes of the supervised setting say true",
            "the state of CLS; the averaging poolers of the authors' code fail on the prompt's mask",
        ),
        "hard_negative_weight": Value(0.0, "PromCSE train.py default", "added to the anchor's own contradiction; not part of eh"),
        "eh": Value(False, "PromCSE section 3.3; the rows + EH have it"),
        "eh_margin": Value(0.2, "PromCSE appendix A; run_sup_example.sh", "table 4: the best of 0 to 0.4 on SimCSE"),
        "eh_weight": Value(10.0, "PromCSE section 3.3, eq. 12; train.py default"),
        "faithful": Value(
            False, "exact gradient over several processes",
            "true: the authors' gather, whose gradient is divided by the number of processes",
        ),
    }  # fmt: skip

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_prompt(recipe.prompt, recipe.prompt_length, recipe.prefix_dropout, backbone)

    @classmethod
    def needs(cls, setting: str, recipe: Recipe) -> tuple[str, ...]:
        return needs_triplets(setting) if recipe.eh else super().needs(setting, recipe)

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.encoder.requires_grad_(False)
        self.prompt = prompt_for(backbone, recipe.prompt, recipe.prompt_length, recipe.prefix_dropout)
        self.head = Head(backbone.hidden_size)

    def assemble(self, ids: Sequence[Ids], max_length: int | None = None) -> Features:
        return self.prompt.assemble(self, ids, max_length)

    def states(self, features: Features) -> Tensor:
        return self.prompt.states(self.encoder, features)  # (n, T, H), the prompt not among them

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Anchor, positive[, hard negative], (n, H) each."""
        # one column: the same features twice, each row under dropout masks of its own
        texts = batch.columns if len(batch.columns) > 1 else batch.columns * 2
        cls = self.hidden(join(texts, self.pad_id))[:, 0]  # (texts * n, H) in one encoder pass
        z: Tensor = self.head(cls)
        return z.chunk(len(texts))

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        z = across_ranks(views, self.recipe.faithful)
        contrast = info_nce(*z, temperature=self.recipe.temperature, hard_negative_weight=self.recipe.hard_negative_weight)
        return with_hinge(contrast, z, self.recipe) if self.recipe.eh else Loss(contrast)

    def embed(self, features: Features) -> Tensor:
        cls = self.hidden(features)[:, 0]  # (n, H)
        embedded: Any = self.head(cls) if self.recipe.head_at_test else cls
        return embedded

    def portable(self) -> Portable:
        return self.prompt.portable(self, self.head if self.recipe.head_at_test else None)
