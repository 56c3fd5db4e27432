"""ConSERT: A Contrastive Framework for Self-Supervised Sentence Representation Transfer (Yan, Li,
Wang, Zhang, Wu and Xu, ACL 2021).

Two views of a sentence are made at the embedding layer, not in its text (section 3.2). With H
features and T tokens:

* feature-cutoff: int(rate x H) random features of the embedding output are 0 for all tokens;
* token-cutoff: the rows of int(rate x T) random tokens are 0;
* dropout: int(rate x T x H) random entries are 0;
* shuffle: the position ids of the tokens, special ones included, are permuted;
* none: the sentence as it is.

The recipe for base models is a feature cut-off of 0.2 against shuffling, with the encoder's own
dropout off. The loss is NT-Xent (eq. 1): each view's partner against the 2n - 2 other views of the
batch, cosines, temperature tau. The authors' code adds the means of the two directions, which is
twice the mean over 2n anchors, and multiplies by 0.15: a factor on gradients that are clipped after
it.

Supervised ("joint"), on premise a and hypothesis b with their NLI label, SBERT's classification is
added:

    o = softmax( W (u, v, |u - v|, max(u, v)^2) )
    loss = cross-entropy + 0.15 x (NT-Xent of a's views + NT-Xent of b's views)

with u and v the first views of a and b, as they are, W of shape (3, 4H), and the second views with
a tenth of their tokens cut off; dropout is on. Variant `joint-unsup` is the unsupervised training
that follows on such a run: shuffling against the sentence as it is. That is the row "ConSERT" among
the supervised ones of the papers' tables.

Unsupervised it trains on the very sentences that are scored, without labels: transductive. The mean
over tokens of the last two layers is scored. While training the authors' code pools the last one
only. Their Adam has no bias correction and eps 1e-6; the harness's differs in both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bench.method import (
    Backbone,
    Batch,
    BenchError,
    Features,
    Loss,
    Portable,
    Recipe,
    TorchMethod,
    Value,
    check_choice,
    check_placed,
    check_positive,
    join,
    rng_for,
)
from bench.methods.augment import kept, shuffled
from bench.methods.bounds import check_share
from bench.methods.layers import embedding_layer
from bench.methods.losses import nt_xent
from bench.methods.pooling import POOLERS, portable_of

VIEWS = ("none", "feature-cutoff", "token-cutoff", "dropout", "shuffle")
SCRIPT = "ConSERT scripts/unsup-consert-base.sh"
LABELS = 3


class ConSERT(TorchMethod):
    """ConSERT: contrastive learning of two views that are made at the embedding layer.

    Take it unsupervised with the very texts that are scored (``--corpus target``), as its paper
    does, or supervised with NLI labels.

    Example:
        bench run --method consert --setting unsupervised --corpus target --backbone \\
          bert-base-uncased

    Relations: SimCSE's views differ by dropout alone; the classification of the supervised setting
    is SBERT's.
    """

    name = "consert"
    settings = ("unsupervised", "supervised")
    variants = {"joint-unsup": {"view1": "none", "view2": "shuffle", "dropout": None, "epochs": 25}}
    summary = "views by cut-off, shuffling or dropout of the embeddings"
    paper = (
        "Yan, Li, Wang, Zhang, Wu, Xu: ConSERT: A Contrastive Framework for Self-Supervised "
        "Sentence Representation Transfer, ACL 2021, arXiv 2105.11741"
    )
    trains = "the whole encoder, and supervised while training the classifier Linear(4H, 3)"
    training_only = ("classifier",)
    defaults = {
        "view1": Value("feature-cutoff", SCRIPT, f"one of {', '.join(VIEWS)}"),
        "view2": Value(
            "shuffle", SCRIPT, "unsup-consert-large.sh: shuffle against none, dropout on"
        ),
        "rate1": Value(0.2, SCRIPT, "share that view1 cuts"),
        "rate2": Value(
            0.2, "ours: as rate1", "share that view2 cuts; shuffle and none cut nothing"
        ),
        "temperature": Value(0.1, SCRIPT),
        "loss_weight": Value(0.15, SCRIPT + " (--cl_rate)"),
        "train_pooling": Value(
            "avg", "ConSERT main.py", "the paper: the last two layers (avg_top2), as at test"
        ),
        "classifier": Value(False, SCRIPT, "recipes of the supervised setting say true"),
        "dropout": Value(0.0, SCRIPT + " (--no_dropout)"),
        "batch_size": Value(96, SCRIPT),
        "learning_rate": Value(5e-7, SCRIPT),
        "epochs": Value(10, SCRIPT),
        "max_seq_length": Value(64, SCRIPT),
        "warmup_ratio": Value(0.1, "ConSERT main.py"),
        "weight_decay": Value(0.01, "ConSERT sentence_transformers/SentenceTransformer.py"),
        "eval_steps": Value(200, SCRIPT),
        "patience": Value(10, SCRIPT),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_choice(recipe, "view1", VIEWS)
        check_choice(recipe, "view2", VIEWS)
        check_choice(recipe, "train_pooling", POOLERS)
        check_positive(recipe, "temperature")
        check_share(recipe, "rate1")
        check_share(recipe, "rate2")
        if "shuffle" in (recipe.view1, recipe.view2):
            check_placed(backbone, "shuffling positions", "--set view2=token-cutoff")

    @classmethod
    def needs(cls, setting: str, recipe: Recipe) -> tuple[str, ...]:
        if recipe.classifier is not (setting == "supervised"):
            raise BenchError(
                "classifier must be true in the supervised setting and false otherwise, "
                f"not {recipe.classifier}",
                f"--set classifier={str(setting == 'supervised').lower()}",
            )
        return ("labelled",) if setting == "supervised" else ("sentences",)

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        embedding_layer(self.encoder)  # raises BenchError if there is none
        self.classifier = nn.Linear(4 * backbone.hidden_size, LABELS) if recipe.classifier else None

    def collate(
        self, columns: Mapping[str, Sequence[Any]], rows: np.ndarray, epoch: int
    ) -> tuple[Features, ...]:
        """Return view1 and view2 of each text, and the labels (n,) if there are any."""
        given = super().collate(columns, rows, epoch)
        texts = [column for column in given if "labels" not in column]
        labels = [column for column in given if "labels" in column]
        views = []
        for i, text in enumerate(texts):
            views.append(self.view(text, "1", epoch, rows, i))
            views.append(self.view(text, "2", epoch, rows, i))
        return (*views, *labels)

    def view(
        self, features: Features, which: str, epoch: int, rows: np.ndarray, text: int = 0
    ) -> Features:
        """Return one view: features with ``kept`` (n, T, H), the embeddings that stay, and position
        ids (n, T).

        The second ``text`` of a row has its own draws.
        """
        kind = self.recipe["view" + which]
        rate = self.recipe["rate" + which]
        n, T = features["input_ids"].shape
        H = self.backbone.embedding_size
        first = self.backbone.first_position
        keep_nTH = np.ones((n, T, H), dtype=bool)
        positions_nT = np.tile(np.arange(first, first + T), (n, 1))
        lengths = features["attention_mask"].sum(1).tolist()
        name = which if text == 0 else f"{which} of {text}"
        for i, (row, tokens) in enumerate(zip(rows, lengths, strict=True)):
            rng = rng_for(self.context.seed, "view", name, epoch, int(row))
            if kind == "feature-cutoff":
                keep_nTH[i] = kept(H, rate, rng)
            elif kind == "token-cutoff":
                keep_nTH[i, :tokens] = kept(tokens, rate, rng)[:, None]
            elif kind == "dropout":
                keep_nTH[i, :tokens] = kept(tokens * H, rate, rng).reshape(tokens, H)
            elif kind == "shuffle":
                positions_nT[i] = shuffled(positions_nT[i], tokens, rng)
        return {
            **features,
            "kept": torch.from_numpy(keep_nTH),
            "position_ids": torch.from_numpy(positions_nT),
        }

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return the vectors of view1 and view2 of each text, (n, H) each, and the labels (n,) if
        there are any.
        """
        texts = [column for column in batch.columns if "labels" not in column]
        labels = [column["labels"] for column in batch.columns if "labels" in column]
        joined = join(texts, self.pad_id)  # (2n, T), of two texts (4n, T), in one encoder pass
        embeddings = embedding_layer(self.encoder).register_forward_hook(
            lambda _module, _inputs, output: output * joined["kept"]
        )
        try:
            return (*self.pooled(joined, self.recipe.train_pooling).chunk(len(texts)), *labels)
        finally:
            embeddings.remove()

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        if self.classifier is None:
            contrast = self.contrast(*views)
            return Loss(self.recipe.loss_weight * contrast, {"contrast": contrast})
        u, u_cut, v, v_cut, labels_n = views
        contrast = self.contrast(u, u_cut) + self.contrast(v, v_cut)
        surprise = cross_entropy(
            self.classifier(pair_features_with_maximum(u, v)).float(), labels_n
        )
        return Loss(
            surprise + self.recipe.loss_weight * contrast,
            {"contrast": contrast, "classification": surprise},
        )

    def contrast(self, first: Tensor, second: Tensor) -> Tensor:
        # the two directions added
        return 2 * nt_xent(first, second, temperature=self.recipe.temperature)

    def embed(self, features: Features) -> Tensor:
        return self.pooled(features, "avg_top2")

    def portable(self) -> Portable:
        return portable_of(self, "avg_top2")

    def pooled(self, features: Features, pooler: str) -> Tensor:
        inputs = {key: tensor for key, tensor in features.items() if key != "kept"}
        # L + 1 of (n, T, H)
        states = self.encoder(**inputs, output_hidden_states=True).hidden_states
        return POOLERS[pooler](states, features["attention_mask"])


def pair_features_with_maximum(u_nH: Tensor, v_nH: Tensor) -> Tensor:
    """Return (n, 4H): (u, v, |u - v|, max(u, v)^2).

    Source: the authors' --concatenation_sent_max_square, which the paper does not have.
    """
    return torch.cat([u_nH, v_nH, (u_nH - v_nH).abs(), torch.maximum(u_nH, v_nH) ** 2], dim=1)
