"""Supervised SimCSE with a guide: a frozen, trained encoder says which negatives are false
(MultiCSR, GIST).

z = head(CLS) of premise, entailment and contradiction while training; the logits are cosines / tau,
as in SimCSE's eq. 5. A candidate of anchor i that the guide finds too near is left out of the
denominator; the own positive never is.

* ``multicsr`` (Wang et al., NAACL 2024, arXiv 2310.10962): candidates are all positives and all
  contradictions; left out are those that the guide rates above ``phi``, the own contradiction as
  well. The authors' code keeps such a pair with the logit 0 and takes the binary cross-entropy of
  every entry, as DCLR's does (``faithful``), with the guide's dropout on.
* ``gist`` (Solatorio 2024, arXiv 2402.16829): candidates are also the other anchors and, seen from
  the own positive, the other positives; left out are those that the guide rates above the own pair
  minus ``margin``. The authors fine-tuned trained encoders with it; no recipe of theirs starts from
  BERT.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor
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
from bench.methods.dclr import debiased, instance_weights
from bench.methods.losses import cosine_matrix
from bench.methods.pooling import Head, ScoredFirstToken
from bench.methods.teachers import Teacher

RUN = "MultiCSR README.md:122"
GIST = "sentence-transformers GISTEmbedLoss"


class GuidedSimCSE(ScoredFirstToken):
    """Guided SimCSE: supervised SimCSE without the negatives that a trained encoder finds too
    similar.

    Take it for noisy hard negatives, with a trained encoder of the same vocabulary as the guide.

    Example:
        bench run --method guided-simcse --set guide=princeton-nlp/sup-simcse-bert-base-uncased

    Relations: DCLR does it without supervision; SimCSE is the loss without a mask.
    """

    name = "guided-simcse"
    settings = ("supervised",)
    several_negatives = True
    summary = "supervised SimCSE; a model removes false negatives"
    paper = (
        "Wang et al.: MultiCSR, NAACL 2024, arXiv 2310.10962; Solatorio: GISTEmbed, 2024, arXiv "
        "2402.16829"
    )
    trains = "the whole encoder and the head; the guide is frozen"
    places = ("guide",)
    variants = {"gist": {"mask": "gist"}}
    defaults = {
        "guide": Value(
            None,
            "to be given: a run, a folder or a hub name of a trained encoder",
            RUN + ": unsup-simcse of the same size; GIST: WhereIsAI/UAE-Large-V1, "
            "which has BERT's vocabulary",
        ),
        "mask": Value("multicsr", RUN, "multicsr or gist"),
        "phi": Value(
            0.95, RUN, "cosine of the guide above which a candidate is left out; read by multicsr"
        ),
        "margin": Value(0.0, GIST + " default", "read by gist"),
        "contrast_anchors": Value(
            True, GIST + " default", "the other anchors are candidates; read by gist"
        ),
        "contrast_positives": Value(
            True, GIST + " default", "the positives are compared, too; read by gist"
        ),
        "temperature": Value(0.05, "MultiCSR run.sh:35", GIST + " default: 0.01"),
        "head_at_test": Value(True, "as SimCSE supervised", "MultiCSR run.sh prints both"),
        "batch_size": Value(128, RUN),
        "learning_rate": Value(5e-5, RUN),
        "epochs": Value(3, "MultiCSR run.sh"),
        "eval_steps": Value(25, RUN),
        "faithful": Value(
            False,
            "left out of the denominator, as MultiCSR's README says",
            "true: multicsr as the authors' code",
        ),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_choice(recipe, "mask", ("multicsr", "gist"))
        check_positive(recipe, "temperature")
        if recipe.guide is None:
            raise BenchError(
                "guided-simcse needs a trained encoder",
                "--set guide=RUNS/simcse-..., a folder or a hub name",
            )
        if recipe.faithful and recipe.mask == "gist":
            raise BenchError("faithful=true is about mask=multicsr", "--set faithful=false")

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.head = Head(backbone.hidden_size)
        self.guide = Teacher(
            recipe.guide, backbone, offline=self.context.offline, dropout=recipe.faithful
        )

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return anchor, positive[, hard negatives] of the method, (n, H) each, then of the guide,
        (n, its H) each.
        """
        texts = join(batch.columns, self.pad_id)  # in one pass of each encoder
        columns = len(batch.columns)
        z = self.head(self.cls(texts)).chunk(columns)
        guides = self.guide(texts).chunk(columns)
        return *z, *guides

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        recipe = self.recipe
        half = len(views) // 2
        z = views[:half]
        guides = views[half:]
        if recipe.mask == "gist":
            anchors, positives = recipe.contrast_anchors, recipe.contrast_positives
            kept = kept_by_gist(guides, recipe.margin, anchors, positives)
            logits = candidates(z, anchors, positives) / recipe.temperature
            own = torch.arange(len(logits), device=logits.device)
            return Loss(cross_entropy(logits.masked_fill(~kept, float("-inf")), own))
        weights = instance_weights(candidates(guides), recipe.phi)
        form = "code" if recipe.faithful else "infonce"
        return Loss(debiased(candidates(z), weights, form=form, temperature=recipe.temperature))


def candidates(z: tuple[Tensor, ...], anchors: bool = False, positives: bool = False) -> Tensor:
    """Return the cosines of each anchor with its candidates, (B, C).

    Candidates: positives, [anchors, positives of the own positive,] hard negatives.
    """
    first, positive, *hard = z
    blocks = [cosine_matrix(first, positive)]
    if anchors:
        blocks.append(cosine_matrix(first, first))
    if positives:
        blocks.append(cosine_matrix(positive, positive))
    for negative in hard:
        blocks.append(cosine_matrix(first, negative))
    return torch.cat(blocks, dim=1)


def kept_by_gist(
    guides: tuple[Tensor, ...], margin: float, anchors: bool = True, positives: bool = True
) -> Tensor:
    """Return (B, C), as :func:`candidates`: False if the guide rates a candidate too similar.

    That is more similar than the anchor's own positive minus ``margin``; the positive itself is
    always kept. No sentence is its own negative, even if anchor and positive are the same text.

    Source: sentence-transformers GISTEmbedLoss; the authors' code, with a strict sign that spares a
    sentence that is its own positive.
    """
    guide_BC = candidates(guides, anchors, positives)
    B = len(guide_BC)
    own = torch.arange(B, device=guide_BC.device)
    kept = guide_BC <= guide_BC[own, own][:, None] - margin
    own_blocks = int(anchors) + int(positives)  # in which a sentence meets itself
    for block in range(1, 1 + own_blocks):
        kept[own, own + block * B] = False
    kept[own, own] = True
    return kept
