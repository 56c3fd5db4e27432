"""PromCSE: Improved Universal Sentence Embeddings with Prompt-based Contrastive Learning and
Energy-based Learning (Jiang, Zhang and Wang, Findings of EMNLP 2022).

The pretrained encoder is frozen; a prompt and the head over CLS learn. Three parts:

* the prompt, eq. 1: at every layer the sentence's tokens also attend to P slots. As in the authors'
  code their keys and values are the parameters; `prompt=hidden` is the equation as it is printed:
  the parameters are the slots' states, which the layer's W_k and W_v project (P L H of them);
* InfoNCE with cosines and temperature tau, as SimCSE: two dropout views of a sentence (dropout of
  the frozen encoder and of the prompt), or NLI triplets; their contradictions join the negatives;
* with `eh` (triplets only), eq. 11 and 12: an energy-based hinge loss. The nearest wrong candidate
  (positives of others, all hard negatives) is to be farther than the own positive by a margin:

    L = InfoNCE + weight * mean_i max(0, margin - cos(h_i, h_i+) + max_j cos(h_i, h_j^))

With `mlm`, which the authors' README has for unsupervised RoBERTa, L also has a weight times the
loss of guessing masked tokens behind the very same prompt; the weight falls while training (DCPCSE,
section 2.2).

CLS of the last layer is scored: without the head if training was unsupervised, with it if it was
supervised.

Ablations of table 3 in our reading, because the authors' code has none: `layer-shared` (one pair of
keys and values for all layers), `input-layer` (P vectors before the word embeddings).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from bench.method import (
    Backbone,
    Batch,
    BenchError,
    Features,
    Ids,
    Loss,
    Portable,
    Recipe,
    TorchMethod,
    Value,
    check_positive,
    join,
)
from bench.methods.energy import needs_triplets, with_hinge
from bench.methods.gather import across_ranks
from bench.methods.losses import info_nce
from bench.methods.masking import (
    check_guessing,
    decayed_weight,
    split_guesses,
    surprise_of_copies,
    with_mlm,
)
from bench.methods.pooling import Head
from bench.methods.prefix import (
    Prefix,
    behind_one_draw,
    check_gradients,
    check_prompt,
    prompt_for,
)


class PromCSE(TorchMethod):
    """PromCSE: contrastive learning of a deep prompt and a head; the encoder is frozen.

    Take it if one encoder is to serve several tasks, or memory for gradients is short: few
    weights train.

    Example:
        bench run --method promcse+eh --setting supervised --backbone roberta-large

    Relations: DCPCSE is its first version; SimCSE trains the whole encoder with the same loss;
    ``eh`` is also a variant of SimCSE.
    """

    name = "promcse"
    settings = ("unsupervised", "supervised")
    several_negatives = True
    first_token = True
    variants = {
        "eh": {"eh": True},
        "mlm": {"mlm": True},
        "layer-shared": {"prompt": "layer-shared"},
        "input-layer": {"prompt": "input-layer"},
    }
    by_dropout = ("unsupervised",)
    summary = "trains a prompt per layer, encoder frozen; eh adds a hinge"
    paper = (
        "Jiang, Zhang, Wang: Improved Universal Sentence Embeddings with Prompt-based "
        "Contrastive Learning and Energy-based Learning, Findings of EMNLP 2022, arXiv "
        "2203.06875"
    )
    trains = (
        "the prompt and the head (the paper names the prompt alone), with mlm the LM head; the "
        "encoder is frozen, its dropout stays on"
    )
    encoder_is_frozen = True
    training_only = ("lm_head",)
    prompt: Any  # a Prefix, an InputPrompt, or DCPCSE's template
    defaults = {
        "prompt": Value(
            "deep",
            "PromCSE promcse/models.py",
            "deep: keys and values are the parameters, as in the authors' code; hidden: eq. 1 of "
            "the paper, the states of P positions at the input of each layer, which its W_k and "
            "W_v project: half as many parameters; layer-shared, input-layer: table 3",
        ),
        "prompt_length": Value(
            16,
            "PromCSE run_unsup_example.sh, table 6",
            "the sentence starts at position P, as in the authors' code (the paper does not "
            "say); with 512 positions 512 - P "
            "tokens are left to it",
        ),
        "prefix_dropout": Value(
            None, "PromCSE promcse/models.py", "None: the backbone's hidden dropout, 0.1"
        ),
        "temperature": Value(0.05, "PromCSE run_unsup_example.sh; paper appendix A"),
        "head_at_test": Value(
            False,
            "unsupervised: PromCSE README (pooler_type); recipes of the supervised setting say "
            "true",
            "the state of CLS; the averaging poolers of the authors' code fail on the prompt's "
            "mask",
        ),
        "hard_negative_weight": Value(
            0.0,
            "PromCSE train.py default",
            "added to the anchor's own contradiction; not part of eh",
        ),
        "eh": Value(False, "PromCSE section 3.3; the rows + EH have it"),
        "eh_margin": Value(
            0.2, "PromCSE appendix A; run_sup_example.sh", "table 4: the best of 0 to 0.4 on SimCSE"
        ),
        "eh_weight": Value(10.0, "PromCSE section 3.3, eq. 12; train.py default"),
        "mlm": Value(False, "PromCSE README (do_mlm): unsupervised RoBERTa with, all else without"),
        "mlm_weight": Value(
            0.1, "PromCSE train.py default; DCPCSE section 2.2", "before the first update"
        ),
        "mlm_decay_rate": Value(0.95, "PromCSE promcse/trainers.py; DCPCSE section 2.2"),
        "mlm_decay_steps": Value(
            100, "PromCSE promcse/trainers.py; DCPCSE section 2.2", "updates; no staircase"
        ),
        "mlm_probability": Value(0.15, "PromCSE train.py; DCPCSE section 2.2"),
        "freeze_lm_head": Value(
            False,
            "PromCSE promcse/models.py: made after the freeze",
            "true keeps it as it was pretrained",
        ),
        "faithful": Value(
            False,
            "exact gradient over several processes",
            "true: the authors' gather, whose gradient is divided by the number of processes",
        ),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_positive(recipe, "temperature")
        check_prompt(recipe.prompt, recipe.prompt_length, recipe.prefix_dropout, backbone)
        check_gradients(recipe, recipe.prompt)
        check_guessing(recipe, backbone)
        if recipe.mlm and recipe.prompt == "input-layer":
            raise BenchError(
                "mlm reads masked copies behind keys and values, "
                "which the input-layer prompt has none of",
                "--set mlm=false, or a deep or layer-shared prompt",
            )

    @classmethod
    def needs(cls, setting: str, recipe: Recipe) -> tuple[str, ...]:
        return needs_triplets(setting) if recipe.get("eh") else super().needs(setting, recipe)

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.encoder.requires_grad_(False)
        self.prompt = self.new_prompt()
        self.head = Head(backbone.hidden_size)
        if recipe.mlm:
            self.lm_head = backbone.mlm_head().requires_grad_(not recipe.freeze_lm_head)

    def new_prompt(self) -> Any:
        """Return the prompt, untrained."""
        recipe = self.recipe
        return prompt_for(self.backbone, recipe.prompt, recipe.prompt_length, recipe.prefix_dropout)

    def assemble(self, ids: Sequence[Ids], max_length: int | None = None) -> Features:
        return self.prompt.assemble(self, ids, max_length)

    def states(self, features: Features) -> Tensor:
        return self.prompt.states(self.encoder, features)  # (n, T, H), the prompt not among them

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return anchor, positive[, hard negatives], (n, H) each; with mlm also the (n,) sums and
        counts of its guesses.
        """
        # one column: the same features twice, each row under its own dropout masks
        texts = batch.columns if len(batch.columns) > 1 else batch.columns * 2
        features = join(texts, self.pad_id)  # (texts * n, T) in one encoder pass
        if not self.recipe.mlm:
            return self.head(self.prompt.pooled(self.hidden(features), features)).chunk(len(texts))
        # checked before: no other kind can be read twice behind one draw
        assert isinstance(self.prompt, Prefix)
        behind = behind_one_draw(self.encoder, self.prompt, features)
        z = self.head(self.prompt.pooled(behind(features), features))
        share = self.recipe.mlm_probability
        guesses = surprise_of_copies(
            features, len(texts), self.backbone, self.lm_head, share, behind
        )
        return *z.chunk(len(texts)), *guesses

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        recipe = self.recipe
        vectors, guesses = split_guesses(views, recipe.mlm)
        z = across_ranks(vectors, recipe.faithful)
        contrast = info_nce(
            *z,
            temperature=recipe.temperature,
            hard_negative_weight=recipe.hard_negative_weight,
        )
        loss = with_hinge(contrast, z, recipe) if recipe.get("eh") else Loss(contrast)
        if recipe.mlm:
            return with_mlm(loss, guesses, decayed_weight(recipe, batch.step))
        return loss

    def embed(self, features: Features) -> Tensor:
        vectors: Any = self.prompt.pooled(self.hidden(features), features)  # (n, H)
        return self.head(vectors) if self.recipe.head_at_test else vectors

    def portable(self) -> Portable:
        return self.prompt.portable(self, self.head if self.recipe.head_at_test else None)
