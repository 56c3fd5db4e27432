"""SG-OPT: Self-Guided Contrastive Learning for BERT Sentence Representations (Kim, Yoo and Lee, ACL
2021).

There are two copies of BERT; one stays as it was. The trained one gives CLS of the last layer, c_i.
The frozen one gives the mean over tokens of every layer k = 0 .. L, h_ik: L + 1 positives, so that
a sentence is its own guide and nothing is augmented. Both go through one head f, H - 4096 - GELU -
4096 - GELU. The loss is the paper's L^opt3 (section 3.3), for every item i and layer k

    -log( e^(c_i, h_ik) / (e^(c_i, h_ik) + sum over j != i and all m of e^(c_i, h_jm)) )
    e^(a, b) = exp(cos(f(a), f(b)) / tau)

averaged, plus lambda times the squared distance of BERT's parameters from their start (eq. 2). The
embedding layer is frozen. CLS of the trained copy is scored, without the head.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from bench.method import (
    Backbone,
    Batch,
    Loss,
    Recipe,
    Value,
    adamw,
    check_positive,
)
from bench.methods.bounds import check_at_least, check_share
from bench.methods.layers import embedding_layer
from bench.methods.losses import cosine_matrix
from bench.methods.momentum import FrozenCopy
from bench.methods.pooling import ScoredFirstToken, masked_mean


def self_guided(cls_BD: Tensor, layers_BKD: Tensor, *, temperature: float) -> Tensor:
    """Return the surprise of each of an item's K layers, against all layers of all other items.

    The mean is over items and layers, in nats; 0 if there is no other item.

    Source: Kim et al. 2021, section 3.3, the last of its objectives.
    """
    B, K, _ = layers_BKD.shape
    logits_BBK = cosine_matrix(cls_BD, layers_BKD.flatten(0, 1)).view(B, B, K) / temperature
    if B == 1:
        return logits_BBK.sum() * 0.0
    own_BK = logits_BBK.diagonal().T
    same_BB1 = torch.eye(B, dtype=torch.bool, device=logits_BBK.device).unsqueeze(-1)
    foreign_BBK = logits_BBK.masked_fill(same_BB1, float("-inf"))
    foreign_B1 = foreign_BBK.flatten(1).logsumexp(1, keepdim=True)
    return (torch.logaddexp(own_BK, foreign_B1) - own_BK).mean()


def squared_distance(module: nn.Module, start: nn.Module) -> Tensor:
    """Return the squared change since ``start``, summed over all parameters."""
    pairs = zip(module.parameters(), start.parameters(), strict=True)
    changes = [(now - then).square().sum() for now, then in pairs if now.requires_grad]
    return torch.stack(changes).sum()


class SGOpt(ScoredFirstToken):
    """SG-OPT: CLS is pulled towards the layers of a frozen copy of the same encoder; nothing is
    augmented.

    Take it as a baseline without augmentation; it needs the memory of two encoders.

    Example:
        bench run --method sg-opt --setting unsupervised --backbone bert-base-uncased

    Relations: CT trains both copies; IS-BERT contrasts with token states.
    """

    name = "sg-opt"
    settings = ("unsupervised",)
    summary = "CLS is pulled towards the layers of a frozen copy"
    paper = (
        "Kim, Yoo, Lee: Self-Guided Contrastive Learning for BERT Sentence Representations, ACL "
        "2021, arXiv 2106.07345"
    )
    trains = "the encoder's layers and the head; the embedding layer and the copy are frozen"
    # the copy is in neither state: it is the backbone, which build() has again
    training_only = ("head",)
    defaults = {
        "temperature": Value(0.01, "SG-BERT training.py (--T)"),
        "head_width": Value(4096, "SG-BERT loss.py"),
        "distance_weight": Value(
            0.1, "SG-BERT training.py (--lamb)", "of the squared distance from the start"
        ),
        "faithful": Value(
            False,
            "ours: the frozen copy without dropout",
            "true as the authors' code runs: its train() switches dropout on in the frozen copy "
            "too",
        ),
        "beta2": Value(0.9, "SG-BERT training.py: betas (0.9, 0.9)"),
        "batch_size": Value(16, "SG-BERT training.py"),
        "learning_rate": Value(5e-5, "SG-BERT training.py"),
        "epochs": Value(1, "SG-BERT training.py", "over the 17,256 sentences of STS-B, all splits"),
        "max_seq_length": Value(128, "SG-BERT modules.py"),
        "warmup_ratio": Value(0.1, "SG-BERT training.py"),
        "eval_steps": Value(50, "SG-BERT training.py"),
        "patience": Value(
            10,
            "SG-BERT training.py (--es)",
            "there: after ten scores in all that are lower than the one before; here: "
            "ten in a row without a new best",
        ),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_positive(recipe, "temperature")
        check_at_least(recipe, 1, "head_width")
        check_share(recipe, "beta2")

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.start = FrozenCopy(self.encoder, dropout=recipe.faithful)
        embedding_layer(self.encoder).requires_grad_(False)
        layers = (
            nn.Linear(backbone.hidden_size, recipe.head_width),
            nn.Linear(recipe.head_width, recipe.head_width),
        )
        for layer in layers:
            nn.init.normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)
        self.head = nn.Sequential(layers[0], nn.GELU(), layers[1], nn.GELU())

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return f of the trained copy's CLS (n, D) and of the frozen copy's layers (n, K, D)."""
        (sentences,) = batch.columns
        # L + 1 of (n, T, H)
        layers = self.start(**sentences, output_hidden_states=True).hidden_states
        means = [masked_mean(layer, sentences["attention_mask"]) for layer in layers]
        positives_nKH = torch.stack(means, dim=1)
        return self.head(self.embed(sentences)), self.head(positives_nKH)

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        contrast = self_guided(*views, temperature=self.recipe.temperature)
        distance = squared_distance(self.encoder, self.start.module)
        return Loss(
            contrast + self.recipe.distance_weight * distance,
            {"contrast": contrast, "distance": distance},
        )

    def optimizer(self) -> torch.optim.Optimizer:
        return adamw(self, betas=(0.9, self.recipe.beta2))
