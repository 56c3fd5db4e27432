"""ConSERT: A Contrastive Framework for Self-Supervised Sentence Representation Transfer (Yan, Li, Wang, Zhang, Wu and Xu, ACL 2021).

Two views of a sentence are made at the embedding layer, not in its text (section 3.2). With H features and T tokens:

* feature-cutoff: int(rate x H) random features of the embedding layer's output are 0 for all tokens of the sentence;
* token-cutoff: the rows of int(rate x T) random tokens are 0;      * dropout: int(rate x T x H) random entries are 0;
* shuffle: the position ids of the tokens, special ones included, are permuted;      * none: the sentence as it is.

The recipe for base models is a feature cut-off of 0.2 against shuffling, with the encoder's own dropout off. The loss is NT-Xent
(eq. 1): each view's partner against the 2n - 2 other views of the batch, cosines, temperature tau. The authors' code adds the
means of the two directions, which is twice the mean over 2n anchors, and multiplies by 0.15: a factor on gradients that are
clipped after it.

It trains on the very sentences that are scored, without labels: transductive. What is scored is the mean over tokens of the
last two layers. While training the authors' code pools the last one only. Their Adam has no bias correction and eps 1e-6, which
the harness's has not.
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
    BenchError,
    Features,
    Loss,
    Portable,
    Recipe,
    TorchMethod,
    Value,
    check_choice,
    check_placed,
    join,
    rng_for,
)
from methods.augment import kept, shuffled
from methods.losses import nt_xent
from methods.pooling import POOLERS, portable_of

VIEWS = ("none", "feature-cutoff", "token-cutoff", "dropout", "shuffle")
SCRIPT = "ConSERT scripts/unsup-consert-base.sh"


class ConSERT(TorchMethod):
    name = "consert"
    settings = ("unsupervised",)
    summary = "two views made at the embedding layer: cut-off features against shuffled positions; trains on the scored text"
    paper = (
        "Yan, Li, Wang, Zhang, Wu, Xu: ConSERT: A Contrastive Framework for Self-Supervised Sentence Representation Transfer, "
        "ACL 2021, arXiv 2105.11741"
    )
    trains = "the whole encoder; there is nothing else"
    defaults = {
        "view1": Value("feature-cutoff", SCRIPT, f"one of {', '.join(VIEWS)}"),
        "view2": Value("shuffle", SCRIPT, "unsup-consert-large.sh: shuffle against none, dropout on"),
        "rate1": Value(0.2, SCRIPT, "share that view1 cuts"),
        "rate2": Value(0.2, "ours: as rate1", "share that view2 cuts; shuffle and none cut nothing"),
        "temperature": Value(0.1, SCRIPT),
        "loss_weight": Value(0.15, SCRIPT + " (--cl_rate)"),
        "train_pooler": Value("avg", "ConSERT main.py", "the paper: the last two layers (avg_top2), as at test"),
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
        check_choice(recipe, "train_pooler", POOLERS)
        for key in ("rate1", "rate2"):
            if not 0 <= recipe[key] < 1:
                raise BenchError(f"{key}={recipe[key]}: expected a share from 0 to below 1", f"--set {key}=0.2")
        if "shuffle" in (recipe.view1, recipe.view2):
            check_placed(backbone, "shuffling positions", "--set view2=token-cutoff")

    def collate(self, columns: Mapping[str, Sequence[Any]], rows: np.ndarray, epoch: int) -> tuple[Features, ...]:
        (ids,) = columns.values()
        plain = self.assemble(ids, self.recipe.max_seq_length)
        return tuple(self.view(plain, which, epoch, rows) for which in ("1", "2"))

    def view(self, features: Features, which: str, epoch: int, rows: np.ndarray) -> Features:
        """With ``kept`` (n, T, H), what of the embeddings stays, and the position ids (n, T)."""
        kind, rate = self.recipe["view" + which], self.recipe["rate" + which]
        (n, T), H, first = features["input_ids"].shape, self.backbone.embedding_size, self.backbone.first_position
        keep_nTH = np.ones((n, T, H), dtype=bool)
        positions_nT = np.tile(np.arange(first, first + T), (n, 1))
        for i, (row, tokens) in enumerate(zip(rows, features["attention_mask"].sum(1).tolist(), strict=True)):
            rng = rng_for(self.context.seed, "view", which, epoch, int(row))
            if kind == "feature-cutoff":
                keep_nTH[i] = kept(H, rate, rng)
            elif kind == "token-cutoff":
                keep_nTH[i, :tokens] = kept(tokens, rate, rng)[:, None]
            elif kind == "dropout":
                keep_nTH[i, :tokens] = kept(tokens * H, rate, rng).reshape(tokens, H)
            elif kind == "shuffle":
                positions_nT[i] = shuffled(positions_nT[i], tokens, rng)
        return {**features, "kept": torch.from_numpy(keep_nTH), "position_ids": torch.from_numpy(positions_nT)}

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """The vectors of view1 and view2, (n, H) each."""
        texts = join(batch.columns, self.pad_id)  # (2n, T) in one encoder pass
        embeddings = self.encoder.embeddings.register_forward_hook(lambda _module, _inputs, output: output * texts["kept"])
        try:
            return self.pooled(texts, self.recipe.train_pooler).chunk(2)
        finally:
            embeddings.remove()

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        contrast = 2 * nt_xent(*views, temperature=self.recipe.temperature)  # the two directions added
        return Loss(self.recipe.loss_weight * contrast, {"contrast": contrast})

    def embed(self, features: Features) -> Tensor:
        return self.pooled(features, "avg_top2")

    def portable(self) -> Portable:
        return portable_of(self, "avg_top2")

    def pooled(self, features: Features, pooler: str) -> Tensor:
        inputs = {key: tensor for key, tensor in features.items() if key != "kept"}
        states = self.encoder(**inputs, output_hidden_states=True).hidden_states  # L + 1 of (n, T, H)
        return POOLERS[pooler](states, features["attention_mask"])
