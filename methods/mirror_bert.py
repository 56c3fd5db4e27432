"""Mirror-BERT: Fast, Effective, and Self-Supervised (Liu, Vulic, Korhonen and Collier, EMNLP 2021).

Two views of a sentence, drawn anew each time: the text itself, and the text with one random span of
five characters replaced by " [MASK] " (section 2.2, random span masking; a text under 30 characters
is unchanged). Dropout makes the views differ further. The loss is InfoNCE (eq. 1) over the 2n views
of a batch: each view's mirror against the 2n - 2 others, cosines, temperature tau, the mean over
all 2n anchors. No head, no dev selection: 50 steps of 200 sentences, the last one counts.

The vector that is trained is scored. Every text is padded to exactly 50 tokens and cut to them, at
test too, so that a vector depends on no other sentence. On BERT the authors' "mean" is the mean
over all 50 positions, padding included; on RoBERTa they take [CLS]. Their literal "[MASK]" is kept
on RoBERTa, which has another mask token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from bench.backbones.direction import check_not_causal
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
    rng_for,
)
from bench.method.encoder_values import BOTH_WAYS
from bench.method.features import widened
from bench.methods.augment import DropHead, mask_span
from bench.methods.bounds import check_at_least
from bench.methods.losses import nt_xent
from bench.methods.pooling import masked_mean, portable_of

POOLINGS = ("mean-padded", "mean", "cls")


class MirrorBert(TorchMethod):
    """Mirror-BERT: contrastive learning of a text and its copy with five characters masked, in a
    minute.

    Take it for ten thousand texts and little time; vectors are means over tokens.

    Example:
        bench run --method mirror-bert --corpus target --backbone bert-base-uncased

    Relations: SimCSE has only dropout views; ConSERT cuts embeddings off.
    """

    name = "mirror-bert"
    settings = ("unsupervised",)
    summary = "two views of a text, one with five characters masked"
    paper = (
        "Liu, Vulic, Korhonen, Collier: Fast, Effective, and Self-Supervised: Transforming "
        "Masked Language Models into Universal Lexical and Sentence Encoders, EMNLP 2021, arXiv "
        "2104.08027"
    )
    trains = "the whole encoder; there is nothing else"
    trains_on = "text"
    defaults = {
        "temperature": Value(0.04, "mirror-bert mirror_scripts"),
        "span": Value(
            5, "mirror-bert mirror_scripts", "characters; a span is redrawn at each visit of a line"
        ),
        "shortest": Value(
            30, "mirror-bert src/data_loader.py", "a shorter text, in characters, is not masked"
        ),
        "pooling": Value(
            None,
            "mirror-bert mirror_scripts: mean-padded on BERT, cls on RoBERTa",
            "mean-padded counts the padding up to max_seq_length, mean does not (their mean_std)",
        ),
        "drophead": Value(
            0.0, "mirror-bert mirror_scripts", "share of attention heads dropped while training"
        ),
        "faithful": Value(
            False,
            "any span of the text is masked",
            "true: as src/data_loader.py, where the first occurrence of the drawn characters is "
            "masked, and the last span never",
        ),
        "batch_size": Value(200, "mirror-bert mirror_scripts"),
        "learning_rate": Value(2e-5, "mirror-bert mirror_scripts"),
        "epochs": Value(1, "mirror-bert mirror_scripts"),
        "max_steps": Value(
            50, "mirror-bert: one epoch of 10,000 lines", "holds on a longer corpus as well"
        ),
        "max_seq_length": Value(50, "mirror-bert mirror_scripts", "at test too"),
        "schedule": Value("constant", "mirror-bert train.py"),
        "weight_decay": Value(0.01, "mirror-bert mirror_scripts"),
        "max_grad_norm": Value(None, "mirror-bert train.py: not clipped"),
        "drop_last": Value(True, "mirror-bert train.py"),
        "select_on": Value(
            "last", "mirror-bert train.py: no dev set", "the published scores are means of 3 runs"
        ),
    }
    variants = {
        "masked-mean": {"pooling": "mean"},
        "drophead": {
            "dropout": 0.0,
            "drophead": Value(
                None, "mirror-bert mirror_scripts/*_drophead.sh: 0.2 on BERT, 0.05 on RoBERTa"
            ),
        },
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_positive(recipe, "temperature")
        check_at_least(recipe, 1, "span")
        if recipe.pooling not in (None, *POOLINGS):
            raise BenchError(
                f"pooling={recipe.pooling} is unknown", f"choose from {', '.join(POOLINGS)}"
            )
        if recipe.pooling in (None, "cls") and recipe.get("attention") != BOTH_WAYS:
            check_not_causal(
                backbone,
                "pooling=cls",
                "the first token sees none of the others",
                "--set pooling=mean",
            )
        drophead = 0 if recipe.drophead is None else recipe.drophead
        if not isinstance(drophead, int | float) or not 0 <= drophead < 1:
            raise BenchError(
                f"drophead={recipe.drophead}: expected a share from 0 to below 1",
                "--set drophead=0.05",
            )

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.pooling = recipe.pooling or ("mean-padded" if backbone.family == "bert" else "cls")
        self.length = min(recipe.max_seq_length, backbone.max_tokens)
        self.drophead = recipe.drophead
        if recipe.drophead is None:
            self.drophead = 0.2 if backbone.family == "bert" else 0.05
        if self.drophead:
            DropHead(self.encoder, self.drophead)

    def collate(
        self, columns: Mapping[str, Sequence[Any]], rows: np.ndarray, epoch: int
    ) -> tuple[Features, ...]:
        (texts,) = columns.values()
        recipe = self.recipe
        masked = []
        for text, row in zip(texts, rows, strict=True):
            rng = rng_for(self.context.seed, "span", epoch, int(row))
            masked.append(
                mask_span(
                    text,
                    rng,
                    length=recipe.span,
                    shortest=recipe.shortest,
                    faithful=recipe.faithful,
                )
            )
        return self.assemble(self.token_ids(texts)), self.assemble(self.token_ids(masked))

    def assemble(self, ids: Sequence[Ids], max_length: int | None = None) -> Features:
        """Return features that are always (n, 50): longer texts are cut, shorter ones padded."""
        widened_features = {}
        for key, tensor in super().assemble(ids, self.length).items():
            fill = self.pad_id if key == "input_ids" else 0
            widened_features[key] = widened(tensor, self.length, fill)
        return widened_features

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return the text and its masked copy, (n, H) each."""
        return self.embed(join(batch.columns, self.pad_id)).chunk(2)  # one encoder pass

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        return Loss(nt_xent(*views, temperature=self.recipe.temperature))

    def embed(self, features: Features) -> Tensor:
        states_nTH = self.states(features)  # not `hidden`: its states at padding mean nothing
        if self.pooling == "mean-padded":
            return states_nTH.mean(1)
        if self.pooling == "cls":
            return states_nTH[:, 0]
        return masked_mean(states_nTH, features["attention_mask"])

    def portable(self) -> Portable:
        if self.pooling == "mean-padded":
            raise BenchError("mirror-bert averages over padding, which an export does not carry")
        pooler = "cls" if self.pooling == "cls" else "avg"
        return portable_of(self, pooler, max_tokens=self.length)
