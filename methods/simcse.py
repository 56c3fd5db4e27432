"""SimCSE: Simple Contrastive Learning of Sentence Embeddings (Gao, Yao and Chen, EMNLP 2021).

h = head(CLS of the last layer) while training. Two settings share one loss, InfoNCE with cosines and temperature tau:

* unsupervised, eq. 4: a sentence is encoded twice; the two dropout masks are the whole augmentation, h_i^z and h_i^z' the
  positive pair, the other sentences of the batch the negatives;
* supervised, eq. 5: premise, entailment and contradiction; the contradictions of the whole batch join the negatives. Eq. 8's
  factor alpha on the anchor's own contradiction is exp(hard_negative_weight).

What is scored is CLS without the head in the unsupervised setting ("MLP only during training", section 6.3) and with it in
the supervised one. Confusing the two is the most frequent error in reproductions: the recipe says which (`head_at_test`).
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from bench.method import Backbone, Batch, Features, Loss, Recipe, TorchMethod, Value, join
from methods.losses import info_nce
from methods.pooling import Head


class SimCSE(TorchMethod):
    name = "simcse"
    settings = ("unsupervised", "supervised")
    summary = "contrastive learning: two dropout views of a sentence, or NLI pairs with hard negatives"
    paper = "Gao, Yao, Chen: SimCSE: Simple Contrastive Learning of Sentence Embeddings, EMNLP 2021, arXiv 2104.08821"
    defaults = {
        "temperature": Value(0.05, "SimCSE run_unsup_example.sh and run_sup_example.sh; paper section 3"),
        "head_at_test": Value(False, "unsupervised: SimCSE --mlp_only_train; recipes of the supervised setting say true"),
        "hard_negative_weight": Value(0.0, "SimCSE simcse/models.py", "the paper's alpha is exp of this"),
    }

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.head = Head(backbone.hidden_size)

    def forward(self, batch: Batch) -> Loss:
        # one column: the same features twice, each row under dropout masks of its own
        views = batch.columns if len(batch.columns) > 1 else batch.columns * 2
        cls = self.cls(join(views, self.pad_id))  # (views * n, H) in one encoder pass
        z = self.head(cls).chunk(len(views))  # anchor, positive[, hard negative], each (n, H)
        loss = info_nce(*z, temperature=self.recipe.temperature, hard_negative_weight=self.recipe.hard_negative_weight)
        return Loss(loss)

    def embed(self, features: Features) -> Tensor:
        cls = self.cls(features)
        embedded: Any = self.head(cls) if self.recipe.head_at_test else cls
        return embedded

    def cls(self, features: Features) -> Tensor:
        return self.hidden(features)[:, 0]  # (n, H)
