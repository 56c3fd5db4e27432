"""DCLR: Debiased Contrastive Learning of Unsupervised Sentence Representations (Zhou, Zhang, Zhao
and Wen, ACL 2022).

SimCSE's negatives are other sentences of the batch. Some of them mean the same as the anchor, and
none fills the space that the vectors leave free. So, with s_ij = cos(z_i, z_j+) / tau and z =
head(CLS) while training:

* instance weighting: w_ij = 0 if a frozen, trained encoder C finds cos_C(i, j) above phi, else 1,
  and 1 for the positive;
* noise negatives: K = times * B vectors n of N(0, 1), fresh in every step, which take four steps of
  size 1e-3 each along their normalised gradient of the cross-entropy of [s | cos(z, n) / tau]:
  uphill, to hurt most.

``loss`` says how both are used. "code": the authors' code, in which w multiplies the LOGIT, so that
a pair that is dropped stays with logit 0, followed by the mean binary cross-entropy of every one of
the B (B + K) softmax values. "infonce": the paper, in which w multiplies the term exp(s_ij) of
InfoNCE's denominator. "focal": the latter with the logits of Focal-InfoNCE (Hou and Li 2023), which
has no published code. CLS is scored without the head.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bench.method import (
    Backbone,
    Batch,
    BenchError,
    Loss,
    Recipe,
    Value,
    check_choice,
    check_positive,
    join,
)
from bench.methods.bounds import check_at_least
from bench.methods.gather import across_ranks
from bench.methods.losses import cosine_matrix, focal_logits
from bench.methods.momentum import FrozenCopy
from bench.methods.pooling import Head, ScoredFirstToken
from bench.methods.teachers import load_teacher

BASE = 768  # hidden size up to which the authors train a new head (run.sh: --is_base)
LOSSES = ("code", "infonce", "focal")
RUN = "DCLR run.sh, bert-base-uncased"
CODE = "DCLR simcse/models.py"


class DCLR(ScoredFirstToken):
    """DCLR: SimCSE without the negatives that a teacher finds too similar, and with noise vectors
    as further ones.

    Take it if a trained encoder with the same vocabulary is available to judge the negatives.

    Example:
        bench run --method dclr --set teacher=princeton-nlp/unsup-simcse-bert-base-uncased

    Relations: guided-simcse does the same in the supervised setting; Focal-InfoNCE weighs negatives
    by their own cosine, without a teacher.
    """

    name = "dclr"
    settings = ("unsupervised",)
    by_dropout = ("unsupervised",)
    summary = "SimCSE without false negatives, with noise as negatives"
    paper = (
        "Zhou, Zhang, Zhao, Wen: Debiased Contrastive Learning of Unsupervised Sentence "
        "Representations, ACL 2022, arXiv 2205.00656"
    )
    trains = "the whole encoder, and while training the head; the teacher is frozen"
    training_only = ("head", "pooling")
    places = ("teacher",)
    variants = {"infonce": {"loss": "infonce"}, "focal": {"loss": "focal", "temperature": 0.07}}
    defaults = {
        "teacher": Value(
            None,
            "to be given: a run of simcse, or the folder or hub name of a SimCSE model",
            RUN + ": unsup-simcse-bert-base-uncased, for large models too; "
            "by its CLS after its own head; here by CLS",
        ),
        "loss": Value("code", CODE, "the paper's form: variant infonce"),
        "phi": Value(0.9, RUN, "0.85 for RoBERTa"),
        "noise_times": Value(
            1.0,
            RUN,
            "noise vectors for each sentence; RoBERTa-base 2.5, BERT-large 3, RoBERTa-large 5",
        ),
        "noise_steps": Value(4, CODE),
        "noise_step_size": Value(1e-3, CODE),
        "temperature": Value(0.05, RUN, "0.07 with focal on BERT: Focal-InfoNCE table 2"),
        "hardness_m": Value(0.3, "Focal-InfoNCE section 4", "read only with focal"),
        "learning_rate": Value(
            3e-5, RUN, "large models start from SimCSE and take one epoch, RoBERTa-large with 1e-5"
        ),
        "batch_size": Value(128, RUN, "large models: 4 x 64"),
        "epochs": Value(3, RUN),
        "select_on": Value(
            "STS-B dev", "as SimCSE", RUN + ": avg_sts, the mean of STS-B dev and SICK-R dev"
        ),
        "faithful": Value(
            False,
            "the attention mask is used, the head stands on CLS, the teacher judges by CLS",
            "true: as the authors' code, which passes no mask while it trains, to neither model, "
            "so that padding is attended to; the "
            "checkpoint's own pooling layer stands below the head, and alone in large models; "
            "the teacher judges by the head that "
            "its checkpoint keeps; and their gather",
        ),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_choice(recipe, "loss", LOSSES)
        if recipe.teacher is None:
            raise BenchError(
                "dclr needs a finished SimCSE model",
                "--set teacher=RUNS/simcse-..., a folder or a hub name",
            )
        check_at_least(recipe, 0, "noise_times", "noise_steps")
        check_positive(recipe, "temperature")

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        with_head = not recipe.faithful or backbone.hidden_size <= BASE
        self.head = Head(backbone.hidden_size) if with_head else nn.Identity()
        teacher = load_teacher(recipe.teacher, backbone, offline=self.context.offline)
        # in training mode, as the authors have it: two views of it too
        self.teacher = FrozenCopy(teacher.encoder, dropout=True)
        if not recipe.faithful:
            self.pooling: nn.Module = nn.Identity()
            self.judge: nn.Module = nn.Identity()
            return
        # if the checkpoint has none, their library made a new one for the trained model
        self.pooling = Head.kept_by(backbone) or Head(backbone.hidden_size)
        judge = Head.kept_by(teacher)
        if judge is None:
            raise BenchError(
                f"faithful=true: the teacher {teacher.name} keeps no head, "
                "by which the authors' code has it judge",
                "take a run of simcse or a published SimCSE model, or faithful=false",
            )
        self.judge = FrozenCopy(judge)

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return z and z+ of the method, and both of the teacher, (n, H) each."""
        texts = join(batch.columns * 2, self.pad_id)  # (2n, T)
        if self.recipe.faithful:
            del texts["attention_mask"]
        cls = self.states(texts)[:, 0] if self.recipe.faithful else self.embed(texts)
        judged = self.judge(self.teacher(**texts).last_hidden_state[:, 0])
        return *self.head(self.pooling(cls)).chunk(2), *judged.chunk(2)

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        recipe = self.recipe
        z1, z2, *judged = across_ranks(views, recipe.faithful)
        weights_nn = instance_weights(cosine_matrix(*judged), recipe.phi)
        cosines_nn = cosine_matrix(z1, z2)
        loss = partial(debiased, temperature=recipe.temperature, m=recipe.hardness_m)

        # the authors' code climbs without weights; focal's climb is our reading
        def climbed(cosines_nC: Tensor) -> Tensor:
            if recipe.loss == "focal":
                return loss(cosines_nC, weights_nn, form="focal")
            return loss(cosines_nC, torch.ones_like(weights_nn), form="infonce")

        dtype = torch.promote_types(z2.dtype, torch.float32)
        K = int(len(z2) * recipe.noise_times)
        noise_KH = torch.randn(K, z2.shape[1], device=z2.device, dtype=dtype)
        noise_KH = uphill(
            noise_KH, z1, cosines_nn, climbed, recipe.noise_steps, recipe.noise_step_size
        )
        cosines_nC = torch.cat([cosines_nn, cosine_matrix(z1, noise_KH)], dim=1)
        return Loss(loss(cosines_nC, weights_nn, form=recipe.loss))


def instance_weights(cosines_nN: Tensor, phi: float) -> Tensor:
    """Return the weights of negatives, (n, N): 0 if the teacher's cosine is above ``phi``, else 1.

    The anchor's own positive (column i) has 1.
    """
    weights = (cosines_nN <= phi).to(cosines_nN.dtype)
    rows = torch.arange(len(weights), device=weights.device)
    weights[rows, rows] = 1
    return weights


def debiased(
    cosines_nC: Tensor,
    weights_nN: Tensor,
    *,
    form: str,
    temperature: float,
    m: float = 0.0,
) -> Tensor:
    """Return the loss of n anchors among C candidates, in nats.

    N candidates come from the batch, with their weights, and C - N are noise vectors, of weight 1.
    """
    n, C = cosines_nC.shape
    weights = nn.functional.pad(weights_nN, (0, C - weights_nN.shape[1]), value=1)
    own = torch.arange(n, device=weights.device)
    if form == "focal":
        logits = focal_logits(cosines_nC, temperature=temperature, m=m)
    else:
        logits = cosines_nC / temperature
    if form != "code":  # weight 0 takes the term out of the denominator
        return cross_entropy(logits.masked_fill(weights == 0, float("-inf")), own)
    log_p = (logits * weights).log_softmax(1)
    is_own = nn.functional.one_hot(own, C).bool()
    # below 0 by float32's step: p = 1 has none
    log_not_p = (-log_p.masked_fill(is_own, -1.0).clamp_max(-1e-7).expm1()).log()
    return -torch.where(is_own, log_p, log_not_p).mean()


def uphill(
    noise_KH: Tensor,
    anchors_nH: Tensor,
    cosines_nN: Tensor,
    climbed: Callable[[Tensor], Tensor],
    steps: int,
    size: float,
) -> Tensor:
    """Move the noise vectors ``steps`` times by ``size`` along their own gradient of ``climbed``.

    No gradient flows back through the moves.
    """
    anchors, cosines = anchors_nH.detach(), cosines_nN.detach()
    for _ in range(steps):
        noise_KH = noise_KH.detach().requires_grad_()
        with torch.enable_grad():
            value = climbed(torch.cat([cosines, cosine_matrix(anchors, noise_KH)], dim=1))
        (gradient,) = torch.autograd.grad(value, noise_KH)
        length = gradient.norm(dim=1, keepdim=True)
        noise_KH = noise_KH + size * torch.where(length > 0, gradient / length, 0)
    return noise_KH.detach()
