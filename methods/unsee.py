"""UNSEE: Unsupervised Non-contrastive Sentence Embeddings (Cagatan, EACL 2024): does contrast
matter at all?

No sentence is a negative of another one. There are two dropout views x1, x2 of the encoder, and
t1, t2 of a target: a copy of the encoder that follows it, theta_t = m theta_t + (1 - m) theta, and
gets no gradient; p is a predictor, for training only:

    loss = D(p(x1), t2) + D(p(x2), t1)
    vicreg  D = 25 mse(p, t) + 25 (hinge(p) + hinge(t)) / 2 + cov(p) + cov(t)
            hinge = mean over features of relu(1 - deviation), so that vectors do not collapse
            cov = sum of the squared covariances of different features / H
    barlow  D = sum over d of (c_dd - 1)^2 + 0.0051 sum of the other c^2
            c = BN(p)^T BN(t) / B, one BN for both

(Bardes et al. 2022; Zbontar et al. 2021). Vectors are means over the last layer's tokens. The
predictor has four blocks of Linear(H, 10H), BatchNorm, ReLU, Linear(10H, 10H), ReLU, Linear(10H,
H): 283 million weights at base size, more than BERT. The target's dropout is on. It moves at the
beginning of a step; theirs moves at the end of the one before.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss, relu

from bench.method import (
    Backbone,
    Batch,
    Context,
    Loss,
    Recipe,
    Value,
    check_choice,
    join,
)
from bench.method.checks import check_last_batch
from bench.methods.bounds import check_at_least, check_share
from bench.methods.losses import float32_at_least
from bench.methods.momentum import FrozenCopy
from bench.methods.pooling import ScoredMean, masked_mean

CODE = "UNSEE train.py"
LOSSES = ("vicreg", "barlow")


class UNSEE(ScoredMean):
    """UNSEE: two dropout views are to be alike and their features uncorrelated, without any
    negatives.

    Take it to study learning without negatives (VICReg, variant ``barlow`` for Barlow Twins).

    Example:
        bench run --method unsee --setting unsupervised --backbone bert-base-uncased

    Relations: SimCSE has the same views with negatives.
    """

    name = "unsee"
    settings = ("unsupervised",)
    by_dropout = ("unsupervised",)
    summary = "alike views, unlike features, and no negatives"
    paper = (
        "Cagatan: UNSEE: Unsupervised Non-contrastive Sentence Embeddings, EACL 2024, arXiv "
        "2401.15316"
    )
    trains = (
        "the whole encoder; while training also the predictor; the target follows without a "
        "gradient"
    )
    training_only = ("target", "predictor", "scale")
    variants = {"barlow": {"loss": "barlow"}}
    defaults = {
        "loss": Value("vicreg", CODE, ", ".join(LOSSES)),
        "learning_rate": Value(1e-4, CODE),
        "batch_size": Value(32, CODE),
        "max_seq_length": Value(64, CODE),
        "warmup_ratio": Value(0.1, CODE),
        "weight_decay": Value(
            0.01, "SentenceTransformer.fit default", "none on biases and layer norms"
        ),
        "momentum": Value(0.999, CODE),
        "mse_weight": Value(25.0, "UNSEE VICRegLoss.py", "vicreg"),
        "std_weight": Value(25.0, "UNSEE VICRegLoss.py", "vicreg"),
        "cov_weight": Value(1.0, "UNSEE VICRegLoss.py", "vicreg"),
        "off_weight": Value(0.0051, "UNSEE BarlowLoss.py", "barlow"),
        "predictor_blocks": Value(4, CODE, "0: no predictor"),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_choice(recipe, "loss", LOSSES)
        check_share(recipe, "momentum", below_one=False)
        check_at_least(recipe, 0, "predictor_blocks")

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        H = backbone.hidden_size
        self.target = FrozenCopy(self.encoder, dropout=True)
        self.predictor = nn.Sequential(*(block(H) for _ in range(recipe.predictor_blocks)))
        self.scale = nn.BatchNorm1d(H) if recipe.loss == "barlow" else None

    def fit(self, corpus: Any, context: Context) -> None:
        """Refuse a corpus that leaves a last batch of one row, which has no statistics."""
        check_last_batch(self.name, self.recipe, len(corpus), least=2)

    def prepare(self, batch: Batch) -> None:
        self.target.follow(self.encoder, self.recipe.momentum)

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return x1, x2, t1, t2, (n, H) each."""
        # each row under its own dropout masks, one pass of each encoder
        texts = join(batch.columns * 2, self.pad_id)
        target = self.target(
            input_ids=texts["input_ids"], attention_mask=texts["attention_mask"]
        ).last_hidden_state
        return *self.embed(texts).chunk(2), *masked_mean(target, texts["attention_mask"]).chunk(2)

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        x1, x2, t1, t2 = views
        forth, back = self.distance(self.predictor(x1), t2), self.distance(self.predictor(x2), t1)
        return Loss(forth + back, {"forth": forth, "back": back})

    def distance(self, p_BH: Tensor, t_BH: Tensor) -> Tensor:
        recipe = self.recipe
        if self.scale is not None:
            return barlow(self.scale(p_BH), self.scale(t_BH), off_weight=recipe.off_weight)
        weights = {
            "mse_weight": recipe.mse_weight,
            "std_weight": recipe.std_weight,
            "cov_weight": recipe.cov_weight,
        }
        return vicreg(p_BH, t_BH, **weights)


def block(H: int) -> nn.Sequential:
    """Return H -> 10 H -> 10 H -> H."""
    wide = 10 * H
    return nn.Sequential(
        nn.Linear(H, wide),
        nn.BatchNorm1d(wide),
        nn.ReLU(),
        nn.Linear(wide, wide),
        nn.ReLU(),
        nn.Linear(wide, H),
    )


def vicreg(
    x_BH: Tensor,
    y_BH: Tensor,
    *,
    mse_weight: float = 25,
    std_weight: float = 25,
    cov_weight: float = 1,
) -> Tensor:
    """Return the mean squared difference, plus terms that keep the vectors from collapsing.

    Features are to vary, and not together.

    Source: VICReg (Bardes et al. 2022), vicreg_loss of UNSEE's code.
    """
    with torch.autocast(x_BH.device.type, enabled=False):
        x = float32_at_least(x_BH)
        y = float32_at_least(y_BH)
        deviation = (_hinge(x) + _hinge(y)) / 2
        return (
            mse_weight * mse_loss(x, y)
            + std_weight * deviation
            + cov_weight * (_covariance(x) + _covariance(y))
        )


def _hinge(z_BH: Tensor) -> Tensor:
    """Return how much the features' standard deviations lack to 1: mean over the features."""
    return relu(1 - (z_BH.var(0) + 1e-4).sqrt()).mean()


def _covariance(z_BH: Tensor) -> Tensor:
    """Return the sum of the squared covariances of different features, divided by H."""
    centred = z_BH - z_BH.mean(0)
    covariance_HH = centred.T @ centred / (len(z_BH) - 1)
    return (covariance_HH.square().sum() - covariance_HH.diagonal().square().sum()) / z_BH.shape[1]


def barlow(x_BH: Tensor, y_BH: Tensor, *, off_weight: float) -> Tensor:
    """Return how far the correlations of two standardised views' features are from the unit matrix.

    Source: Barlow Twins (Zbontar et al. 2021), barlow_loss of UNSEE's code.
    """
    with torch.autocast(x_BH.device.type, enabled=False):
        x = float32_at_least(x_BH)
        y = float32_at_least(y_BH)
        c_HH = x.T @ y / len(x)
        own = c_HH.diagonal()
        return (own - 1).square().sum() + off_weight * (c_HH.square().sum() - own.square().sum())
