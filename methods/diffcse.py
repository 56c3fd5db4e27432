"""DiffCSE: Difference-based Contrastive Learning for Sentence Embeddings (Chuang et al., NAACL
2022).

Two dropout views are to be alike, as in SimCSE, and an EDITED sentence is to be told from the
original by its vector. h = head(CLS of the last layer), with a head of two layers and batch
normalisation, while training only.

* contrastive, eq. 1: InfoNCE with cosines of h and h+, temperature tau;
* replaced-token detection, eq. 2 and 3: a share of x is masked, a frozen generator G fills in all
  of it, x'' = G(x'), each position with its likeliest token. A discriminator D reads x'' with h in
  the place of its CLS embedding, and says for each token whether it differs from x: binary
  cross-entropy. Its gradient reaches the encoder through h alone.

loss = contrastive + lambda * detection. D is a second full copy of the backbone, which is trained
too and thrown away. What is scored is CLS of the encoder without the head. Variant ``focal``:
Focal-InfoNCE (Hou and Li 2023) in the contrastive part; no code for that was published, and the
rest stays as it is.
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bench.backbones.folder import read_config
from bench.method import (
    Backbone,
    Batch,
    BenchError,
    Features,
    Loss,
    Recipe,
    Value,
    check_mlm_head,
    check_positive,
    join,
    load_backbone,
)
from bench.methods.bounds import check_share
from bench.methods.gather import across_ranks
from bench.methods.layers import embedding_layer
from bench.methods.losses import float32_at_least, focal_info_nce, info_nce
from bench.methods.masking import mask_tokens, special_positions
from bench.methods.pooling import ScoredFirstToken

RUN = "DiffCSE run_diffcse.sh"
ROBERTA = "what RoBERTa and transfer tasks were trained with is not in the repository"


class DiffCSE(ScoredFirstToken):
    """DiffCSE: SimCSE, and a discriminator that finds edited tokens with the help of the sentence's
    vector.

    Take it if vectors should notice small edits; it trains a second encoder and reads a generator.

    Example:
        bench run --method diffcse --set generator=distilbert-base-uncased --backbone \\
          bert-base-uncased

    Relations: InfoCSE guesses masked words from the vector in the place of finding edited ones.
    """

    name = "diffcse"
    settings = ("unsupervised",)
    summary = "SimCSE, and a discriminator that finds edited tokens"
    by_dropout = ("unsupervised",)
    paper = (
        "Chuang et al.: DiffCSE: Difference-based Contrastive Learning for Sentence Embeddings, "
        "NAACL 2022, arXiv 2204.10298"
    )
    trains = (
        "the whole encoder; while training also the head, and the discriminator: a second whole "
        "encoder and Linear(H, 2)"
    )
    training_only = ("head", "discriminator", "classifier")
    places = ("generator",)
    variants = {"focal": {"focal": True, "temperature": 0.07}}
    defaults = {
        "learning_rate": Value(7e-6, RUN, ROBERTA),
        "batch_size": Value(64, RUN),
        "epochs": Value(2, RUN),
        "temperature": Value(0.05, RUN, "0.07 with focal on BERT: Focal-InfoNCE table 2"),
        "detection_weight": Value(0.005, RUN, "the paper's lambda"),
        "masking": Value(
            0.30, RUN, "share of the tokens; of these 80 % masked, 10 % random, 10 % kept"
        ),
        "generator": Value(
            None,
            "the backbone's own masked language model",
            RUN + ": distilbert-base-uncased; distilroberta-base for RoBERTa",
        ),
        "focal": Value(False, "DiffCSE", "true: Focal-InfoNCE table 3, for which no code exists"),
        "hardness_m": Value(0.3, "Focal-InfoNCE section 4", "read only with focal"),
        "faithful": Value(
            False,
            "an exact gradient over several processes",
            "true: the authors' gather, gradient divided by their number",
        ),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_positive(recipe, "temperature")
        check_share(recipe, "masking", above_zero=True, below_one=False)
        if backbone is not None and (backbone / "config.json").is_file():
            config = read_config(backbone)
            if config.get("embedding_size", config.get("hidden_size")) != config.get("hidden_size"):
                raise BenchError(
                    "diffcse puts a sentence's vector in the place of a word's, "
                    "and the words of this backbone are narrower than its states",
                    "take a backbone whose embedding_size is its hidden_size",
                )
        if recipe.generator is None:
            check_mlm_head(backbone)

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        embedding_layer(self.encoder)  # raises BenchError if there is none
        self.head = batch_norm_head(backbone.hidden_size)
        self.discriminator = deepcopy(self.encoder)
        self.classifier = nn.Linear(backbone.hidden_size, 2)
        other = None
        if recipe.generator is not None:
            other = load_backbone(recipe.generator, offline=self.context.offline)
        self.generator = backbone.masked_lm(other)  # frozen; its dropout is on, as theirs

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return CLS of both views, (n, H) each, both texts as the generator edits them, the edits,
        and the mask.

        The latter are (n, T).
        """
        # (2n, T): each row under its own dropout masks, one encoder pass
        texts = join(batch.columns * 2, self.pad_id)
        cls = self.embed(texts)
        edited, replaced = self.edit(texts)
        return (
            *cls.chunk(2),
            *edited.chunk(2),
            *replaced.chunk(2),
            batch.columns[0]["attention_mask"],
        )

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        cls1, cls2, edited1, edited2, replaced1, replaced2, mask = views
        h = self.head(torch.cat([cls1, cls2]))  # (2n, H): batch statistics over both views
        edited = {
            "input_ids": torch.cat([edited1, edited2]),
            "attention_mask": torch.cat([mask, mask]),
        }
        (each,) = self.by_rows(self.detect, edited, torch.cat([replaced1, replaced2]), h)
        detection = each.mean()
        contrastive = self.contrast(*across_ranks(h.chunk(2), self.recipe.faithful))
        total = contrastive + self.recipe.detection_weight * detection
        return Loss(total, {"contrastive": contrastive, "detection": detection})

    def contrast(self, h1: Tensor, h2: Tensor) -> Tensor:
        """Return equation 1."""
        recipe = self.recipe
        if recipe.focal:
            return focal_info_nce(h1, h2, temperature=recipe.temperature, m=recipe.hardness_m)
        return info_nce(h1, h2, temperature=recipe.temperature)

    @torch.no_grad()
    def edit(self, texts: Features) -> tuple[Tensor, Tensor]:
        """Return x'' = G(x'): ids that the generator wrote, and 1 at those that differ, both (n,
        T).

        The first token and padding stay.
        """
        ids = texts["input_ids"]
        mask = texts["attention_mask"]
        tokenizer = self.backbone.tokenizer
        spared = special_positions(ids, tokenizer.all_special_ids)
        masked, _ = mask_tokens(
            ids, spared, self.backbone.mask_id, len(tokenizer), self.recipe.masking
        )
        written = self.generator(masked, mask).argmax(-1)
        keep = mask == 0
        keep[:, 0] = True
        edited = torch.where(keep, ids, written)
        return edited, (edited != ids).long()

    def detect(self, edited: Features, replaced_nT: Tensor, h_nH: Tensor) -> tuple[Tensor]:
        """Return equations 2 and 3, D(x'', h): the mean cross-entropy over ALL positions, (n,).

        As the authors have it, padding and CLS count, with label 0.
        """
        states = read_with(self.discriminator, edited, h_nH)
        return (detection_loss(self.classifier(states), replaced_nT),)


def read_with(encoder: Any, features: Features, vectors_nH: Tensor) -> Tensor:
    """Return the last states, (n, T, H), of an encoder that finds ``vectors`` in the place of its
    first token.

    They replace the output of the embedding layer there: word, position, type, layer norm and
    dropout together.
    """

    def replaced(_module: nn.Module, _given: Any, embedded_nTH: Tensor) -> Tensor:
        first_n1H = vectors_nH.unsqueeze(1).to(embedded_nTH.dtype)
        return torch.cat([first_n1H, embedded_nTH[:, 1:]], dim=1)

    hook = embedding_layer(encoder).register_forward_hook(replaced)
    try:
        states: Tensor = encoder(**features).last_hidden_state
    finally:
        hook.remove()
    return states


def detection_loss(logits_nT2: Tensor, replaced_nT: Tensor) -> Tensor:
    """Return the mean cross-entropy over every position of a row, (n,), in nats."""
    logits = float32_at_least(logits_nT2)
    return cross_entropy(logits.transpose(1, 2), replaced_nT, reduction="none").mean(1)


def batch_norm_head(hidden: int) -> nn.Sequential:
    """Return H -> 2H -> H, each with batch normalisation, the last without its own scale.

    Weights start as N(0, 0.02).
    """
    layers = (
        nn.Linear(hidden, 2 * hidden, bias=False),
        nn.BatchNorm1d(2 * hidden),
        nn.ReLU(),
        nn.Linear(2 * hidden, hidden, bias=False),
        nn.BatchNorm1d(hidden, affine=False),
    )
    for layer in layers:
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=0.02)
    return nn.Sequential(*layers)
