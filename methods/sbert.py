"""SBERT: Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks (Reimers and Gurevych,
EMNLP 2019).

The classification objective of section 3, on premise and hypothesis with their NLI label:

    u, v = mean over the tokens of the last layer, one shared encoder
    o = softmax( W (u, v, |u - v|) )

with W of shape (3, 3H) and cross-entropy over entailment, neutral, contradiction. W is thrown away;
u is scored, by its cosines. The rows "SBERT-flow", "SBERT-whitening" and "CT-SBERT" start from a
run of this as their backbone.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bench.method import (
    Backbone,
    Batch,
    Loss,
    Recipe,
    Value,
    adamw,
    join,
)
from bench.methods.pooling import ScoredMean

LABELS = 3
CODE = "sentence-transformers examples/training/nli/training_nli.py"
FIT = "sentence-transformers 2019-08 to 2021-02, defaults of fit() in SentenceTransformer.py"


class SBERT(ScoredMean):
    """SBERT: a shared encoder with mean pooling, trained to classify NLI pairs from (u, v, |u -
    v|).

    Take it as the supervised baseline before contrastive learning.

    Example:
        bench run --method sbert --setting supervised --corpus nli.csv --backbone bert-base-uncased

    Relations: supervised SimCSE uses the same data as triplets; InferSent is its predecessor with
    an LSTM.
    """

    name = "sbert"
    settings = ("supervised",)
    summary = "NLI classification from (u, v, |u - v|), mean pooling"
    paper = (
        "Reimers, Gurevych: Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks, "
        "EMNLP 2019, arXiv 1908.10084"
    )
    trains = "the whole encoder, and while training the classifier Linear(3H, 3)"
    training_only = ("classifier",)
    defaults = {
        "batch_size": Value(16, CODE + "; paper section 3.1"),
        "learning_rate": Value(2e-5, CODE + "; paper section 3.1"),
        "epochs": Value(
            1,
            CODE + "; paper section 3.1",
            "all 942k pairs of SNLI and MNLI; today's example takes 10k rows",
        ),
        "warmup_ratio": Value(0.1, CODE + "; paper section 3.1"),
        "max_seq_length": Value(
            128, "sentence-transformers' default for BERT when the tables were made"
        ),
        "weight_decay": Value(0.01, FIT, "the paper says Adam and no decay"),
        "adam_eps": Value(1e-6, FIT, "of AdamW"),
        "bias_correction": Value(
            False,
            FIT + ": correct_bias=False",
            "of AdamW; true: as Adam's paper has it, and the library today",
        ),
        "eval_steps": Value(1000, CODE, "STS-B dev; the best is kept"),
    }

    @classmethod
    def needs(cls, setting: str, recipe: Recipe) -> tuple[str, ...]:
        return ("labelled",)

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.classifier = nn.Linear(3 * backbone.hidden_size, LABELS)

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return u and v, (n, H) each, and the labels (n,)."""
        premise, hypothesis, labels = batch.columns
        u, v = self.embed(join([premise, hypothesis], self.pad_id)).chunk(2)  # in one encoder pass
        return u, v, labels["labels"]

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        u, v, labels_n = views
        return Loss(cross_entropy(self.classifier(pair_features(u, v)).float(), labels_n))

    def optimizer(self) -> torch.optim.Optimizer:
        return adamw(self, eps=self.recipe.adam_eps, bias_correction=self.recipe.bias_correction)


def pair_features(u_nH: Tensor, v_nH: Tensor) -> Tensor:
    """Return (n, 3H): (u, v, |u - v|), the best of the paper's table 6."""
    return torch.cat([u_nH, v_nH, (u_nH - v_nH).abs()], dim=1)
