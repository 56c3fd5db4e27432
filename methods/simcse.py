"""SimCSE: Simple Contrastive Learning of Sentence Embeddings (Gao, Yao and Chen, EMNLP 2021).

h = head(CLS of the last layer) while training. Two settings share one loss, InfoNCE with cosines
and temperature tau:

* unsupervised, eq. 4: a sentence is encoded twice; the two dropout masks are the whole
  augmentation, h_i^z and h_i^z' the positive pair, the other sentences of the batch the negatives;
* supervised, eq. 5: premise, entailment and contradiction; the contradictions of the whole batch
  join the negatives. Eq. 8's factor alpha on the anchor's own contradiction is
  exp(hard_negative_weight).

CLS is scored: without the head in the unsupervised setting ("MLP only during training", section
6.3) and with it in the supervised one. Confusing the two is the most frequent error in
reproductions: the recipe says which (`head_at_test`).

Table 1 also has an edit of the text in the place of dropout: the second view is the sentence
without some of its words (`edit`). Variant `mlm` adds lambda times the masked language modelling of
a masked copy of the same views (section 3.2). Variant `eh` is another paper's (methods/energy.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
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
    check_choice,
    check_positive,
    join,
    rng_for,
)
from bench.methods.augment import cropped, inside_words, split_words, without_words
from bench.methods.bounds import check_share
from bench.methods.energy import needs_triplets, with_hinge
from bench.methods.gather import across_ranks
from bench.methods.losses import SIMILARITIES, info_nce
from bench.methods.masking import (
    check_guessing,
    split_guesses,
    surprise_of_copies,
    with_mlm,
)
from bench.methods.pooling import POOLERS, Head, pooled, portable_of

EDITS = ("crop", "deletion", "one-word")


class SimCSE(TorchMethod):
    """SimCSE: contrastive learning of two dropout views of a sentence, or of NLI triplets.

    Take it first: it is the baseline of nearly every paper here, and simple and fast.

    Example:
        bench run --method simcse --setting unsupervised --backbone bert-base-uncased

    Relations: Focal-InfoNCE changes its loss, ESimCSE its views, DCLR its negatives; PromCSE trains
    a prompt in the place of the encoder; Matryoshka adds shorter vectors.
    """

    name = "simcse"
    settings = ("unsupervised", "supervised")
    several_negatives = True
    by_dropout = ("unsupervised",)
    summary = "two dropout views, or NLI pairs with hard negatives"
    paper = (
        "Gao, Yao, Chen: SimCSE: Simple Contrastive Learning of Sentence Embeddings, EMNLP "
        "2021, arXiv 2104.08821"
    )
    trains = "the whole encoder and the head; with mlm the LM head too"
    training_only = ("lm_head",)
    variants = {
        "eh": {"eh": True},
        "mlm": {"mlm": True},
        "no-head": {"head": False},
        "fixed-dropout": {"fixed_dropout": True},
        "dot-product": {"similarity": "dot", "temperature": 1.0},
    }
    defaults = {
        "temperature": Value(
            0.05, "SimCSE run_unsup_example.sh and run_sup_example.sh; paper section 3"
        ),
        "similarity": Value(
            "cosine", "SimCSE simcse/models.py", "the ablation 'dot' goes without a temperature: 1"
        ),
        "pooling": Value(
            "cls", "SimCSE run_unsup_example.sh", f"{', '.join(POOLERS)}; none but cls has a head"
        ),
        "head": Value(
            True, "SimCSE simcse/models.py", "a new one: BERT's own pooling layer is not used"
        ),
        "head_at_test": Value(
            False,
            "unsupervised: SimCSE --mlp_only_train; recipes of the supervised setting say true",
        ),
        "fixed_dropout": Value(
            False,
            "SimCSE paper, dropout ablation: 'Fixed 0.1'",
            "true: both views under the same dropout masks",
        ),
        "edit": Value(
            None,
            "SimCSE paper, table 1",
            f"the second view without some words: {', '.join(EDITS)}; drawn anew in each epoch",
        ),
        "edit_share": Value(
            0.1, "SimCSE paper, table 1: 10 to 30 %", "of the words, left out by crop and deletion"
        ),
        "hard_negatives": Value(
            True,
            "SimCSE section 4, eq. 5",
            "false: triplets without their contradictions, 'Hard neg N/A' of table 7",
        ),
        "hard_negative_weight": Value(
            0.0, "SimCSE simcse/models.py", "the paper's alpha is exp of this"
        ),
        "eh": Value(
            False,
            "PromCSE table 1: the rows '+ EH'",
            "the authors have no code for it without a prompt",
        ),
        "eh_margin": Value(
            0.2, "PromCSE table 4, run_sup_example.sh", "0 to 0.4 give 81.4 to 81.9 on BERT-base"
        ),
        "eh_weight": Value(10.0, "PromCSE train.py and section 3.3, eq. 12"),
        "mlm": Value(
            False, "SimCSE --do_mlm", "raises transfer scores and lowers STS, says the paper"
        ),
        "mlm_weight": Value(0.1, "SimCSE train.py; paper: lambda"),
        "mlm_probability": Value(0.15, "SimCSE train.py"),
        "faithful": Value(
            False,
            "an exact gradient over several processes",
            "true: the authors' gather, gradient divided by their number",
        ),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_choice(recipe, "pooling", POOLERS)
        check_choice(recipe, "similarity", SIMILARITIES)
        check_positive(recipe, "temperature")
        if recipe.edit is not None:
            check_choice(recipe, "edit", EDITS)
        check_share(recipe, "edit_share", above_zero=True)
        check_guessing(recipe, backbone)

    @classmethod
    def needs(cls, setting: str, recipe: Recipe) -> tuple[str, ...]:
        for key, off in (("fixed_dropout", "false"), ("edit", "none")):
            if recipe[key] and setting == "supervised":
                raise BenchError(f"{key} is about two views of one sentence", f"--set {key}={off}")
        if recipe.fixed_dropout and recipe.edit:
            raise BenchError(
                "fixed_dropout is about two views of the same words, and edit makes other words",
                "--set fixed_dropout=false --set dropout=0.0 keeps only the edit",
            )
        if recipe.eh and not recipe.hard_negatives:
            raise BenchError(
                "the hinge is about hard negatives, and hard_negatives=false leaves them out",
                "--set hard_negatives=true",
            )
        return needs_triplets(setting) if recipe.eh else super().needs(setting, recipe)

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.head = Head(backbone.hidden_size) if recipe.head and recipe.pooling == "cls" else None
        if recipe.mlm:
            self.lm_head = backbone.mlm_head()
        self.inside = inside_words(backbone.tokenizer) if recipe.edit else frozenset[int]()

    def collate(
        self, columns: Mapping[str, Sequence[Any]], rows: np.ndarray, epoch: int
    ) -> tuple[Features, ...]:
        """Return the sentence, and with `edit` the sentence without some of its words.

        Pairs and triplets keep their columns.
        """
        if not self.recipe.edit:
            kept = columns if self.recipe.hard_negatives else dict(list(columns.items())[:2])
            return super().collate(kept, rows, epoch)
        (ids,) = columns.values()
        cut = [
            row[: self.recipe.max_seq_length - len(self.before) - len(self.after)] for row in ids
        ]
        edited = [
            self.edited(row, rng_for(self.context.seed, "edit", epoch, int(number)))
            for row, number in zip(cut, rows, strict=True)
        ]
        return self.assemble(cut), self.assemble(edited)

    def edited(self, ids: Ids, rng: np.random.Generator) -> Ids:
        """Return a sentence without some of its words, as ``edit`` says."""
        words = split_words(ids, self.inside)
        share = self.recipe.edit_share
        if len(words) < 2:
            return ids
        if self.recipe.edit == "crop":
            return cropped(words, share, rng)
        return without_words(
            words, 1 if self.recipe.edit == "one-word" else round(share * len(words)), rng
        )

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return anchor, positive[, hard negatives], (n, H) each; with mlm also the (n,) sums and
        counts of its guesses.
        """
        # one column: the same features twice, each row under its own dropout masks
        texts = batch.columns if len(batch.columns) > 1 else batch.columns * 2
        z = self.encode_views(texts)
        return z + self.guess(texts) if self.recipe.mlm else z

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        recipe = self.recipe
        vectors, guesses = split_guesses(views, recipe.mlm)
        z = across_ranks(vectors, recipe.faithful)
        contrast = info_nce(
            *z,
            temperature=recipe.temperature,
            hard_negative_weight=recipe.hard_negative_weight,
            similarity=SIMILARITIES[recipe.similarity],
        )
        loss = with_hinge(contrast, z, recipe) if recipe.eh else Loss(contrast)
        return with_mlm(loss, guesses, recipe.mlm_weight) if recipe.mlm else loss

    def encode_views(self, texts: tuple[Features, ...]) -> tuple[Tensor, ...]:
        """Return the vectors that the loss compares, (n, H) for each text."""
        if self.recipe.fixed_dropout:  # the same sentence under the same masks is the same vector
            return (self.vectors(texts[0], with_head=True),) * 2
        # in one encoder pass
        return self.vectors(join(texts, self.pad_id), with_head=True).chunk(len(texts))

    def guess(self, texts: tuple[Features, ...]) -> tuple[Tensor, Tensor]:
        """Return the MLM surprise of masked copies and the number of guessed tokens, both (n,)."""
        share = self.recipe.mlm_probability
        return surprise_of_copies(
            join(texts, self.pad_id), len(texts), self.backbone, self.lm_head, share, self.hidden
        )

    def embed(self, features: Features) -> Tensor:
        return self.vectors(features, with_head=self.recipe.head_at_test)

    def portable(self) -> Portable:
        return portable_of(
            self, self.recipe.pooling, self.head if self.recipe.head_at_test else None
        )

    def vectors(self, features: Features, with_head: bool) -> Tensor:
        found: Any = pooled(self, features, self.recipe.pooling)  # (n, H)
        return self.head(found) if with_head and self.head is not None else found
