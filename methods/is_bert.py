"""IS-BERT: An Unsupervised Sentence Embedding Method by Mutual Information Maximization (Zhang, He,
Liu, Lim and Bing, EMNLP 2020).

Three one-dimensional convolutions of width 1, 3 and 5 over BERT's token states give every token a
local feature, the three results in a row; a sentence's global feature is their mean over its tokens
(section 3.2, Figure 1). Training makes the two tell of each other: it maximises a Jensen-Shannon
estimate of their mutual information (eq. 4),

    I = mean over own tokens of (log 2 - softplus(-r))
        - mean over all others of (softplus(r) - log 2),        r = local . global

where "own" pairs a token with its own sentence and "others" a token with every other sentence of
the batch. The loss is -I.

The global feature is scored: 3 x 256 = 768 numbers, for any width of the backbone. States at
padding are set to 0 before the convolutions, so that a vector depends on no other sentence; the
authors' code lets the last tokens see them.
"""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from bench.method import (
    Backbone,
    Batch,
    Features,
    Loss,
    Recipe,
    TorchMethod,
    Value,
    adamw,
)
from bench.methods.bounds import check_at_least
from bench.methods.losses import float32_at_least
from bench.methods.pooling import masked_mean

FIT = "IS-BERT sentence_transformers/SentenceTransformer.py, defaults of fit()"
WIDTHS = (1, 3, 5)  # of the convolutions; odd, so that a token's feature is centred on it


def information_loss(local_nTD: Tensor, mask_nT: Tensor, sentences_nD: Tensor) -> Tensor:
    """Return minus the mutual information of token and sentence vectors, estimated on a batch, in
    nats.

    It is computed in at least float32. The means run over pairs, so that long sentences count more.
    With one sentence there is no foreign pair, and that term is 0.

    Source: Zhang et al. 2020, eq. 4, after Nowozin et al. 2016.
    """
    with torch.autocast(local_nTD.device.type, enabled=False):
        local = float32_at_least(local_nTD)
        sentences = float32_at_least(sentences_nD)
        scores_nTn = local @ sentences.T
        n = len(sentences)
        weights_nT = mask_nT.to(local.dtype)
        # softplus(x) = -logsigmoid(-x); torch's own softplus is cut to x above 20
        own_nT = math.log(2) + logsigmoid(scores_nTn.diagonal(dim1=0, dim2=2).T)
        foreign_nTn = -logsigmoid(-scores_nTn) - math.log(2)
        foreign_nT = foreign_nTn.sum(2) - foreign_nTn.diagonal(dim1=0, dim2=2).T
        tokens = weights_nT.sum()
        foreign = (foreign_nT * weights_nT).sum() / (tokens * max(1, n - 1))
        own = (own_nT * weights_nT).sum() / tokens
        return foreign - own


class ISBert(TorchMethod):
    """IS-BERT: a sentence's vector shares as much information with its own tokens as possible.

    Take it as a baseline without augmentation and dropout views.

    Example:
        bench run --method is-bert --setting unsupervised --backbone bert-base-uncased

    Relations: RankCSE has another Jensen-Shannon term; SG-OPT contrasts the vector with the
    encoder's layers.
    """

    name = "is-bert"
    settings = ("unsupervised",)
    summary = "mutual information of a sentence's vector and its tokens"
    paper = (
        "Zhang, He, Liu, Lim, Bing: An Unsupervised Sentence Embedding Method by Mutual "
        "Information Maximization, EMNLP 2020, arXiv 2009.12061"
    )
    trains = "the whole encoder and the three convolutions"
    defaults = {
        "channels": Value(
            256,
            "IS-BERT unsupervised_training_nli.py",
            "of each convolution: the vectors have 3 x channels numbers",
        ),
        "batch_size": Value(32, "IS-BERT unsupervised_training_nli.py"),
        "learning_rate": Value(
            2e-6,
            FIT,
            "the training script passes none; sentence-transformers' own default was 2e-5",
        ),
        "adam_eps": Value(1e-7, FIT, "of AdamW"),
        "bias_correction": Value(
            False, FIT + ": correct_bias=False", "of AdamW; true: as Adam's paper has it"
        ),
        "weight_decay": Value(0.01, FIT),
        "epochs": Value(1, "IS-BERT unsupervised_training_nli.py"),
        "max_seq_length": Value(128, "IS-BERT sentence_transformers/models/Transformer.py"),
        "warmup_ratio": Value(0.1, "IS-BERT unsupervised_training_nli.py"),
        "eval_steps": Value(1000, "IS-BERT unsupervised_training_nli.py"),
        "corpus_column": Value(
            "all", "IS-BERT: NLI sentences without their labels", "of a corpus with several columns"
        ),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_at_least(recipe, 1, "channels")

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        hidden = backbone.hidden_size
        self.convolutions = nn.ModuleList(
            nn.Conv1d(hidden, recipe.channels, k, padding=k // 2) for k in WIDTHS
        )

    def local_features(self, features: Features) -> Tensor:
        """Return the tokens' local features, (n, T, 3 x channels), meaningless at padding."""
        mask_nT1 = features["attention_mask"].unsqueeze(-1)
        states_nHT = self.hidden(features).masked_fill(mask_nT1 == 0, 0).transpose(1, 2)
        return torch.cat(
            [convolution(states_nHT) for convolution in self.convolutions], dim=1
        ).transpose(1, 2)

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return local features (n, T, D) and the tokens' mask (n, T)."""
        (sentences,) = batch.columns
        return self.local_features(sentences), sentences["attention_mask"]

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        local_nTD, mask_nT = views
        return Loss(information_loss(local_nTD, mask_nT, masked_mean(local_nTD, mask_nT)))

    def embed(self, features: Features) -> Tensor:
        return masked_mean(self.local_features(features), features["attention_mask"])

    def optimizer(self) -> torch.optim.Optimizer:
        return adamw(self, eps=self.recipe.adam_eps, bias_correction=self.recipe.bias_correction)
