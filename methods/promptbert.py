"""PromptBERT: Improving BERT Sentence Embeddings with Prompts (Jiang et al., EMNLP 2022).

A sentence x is put into a template T (`This sentence of "x" means [MASK].`); h(x, T) is the mask's
state in the last layer, and delta_T(l) the template's bias: the same state of the template with
nothing in it; its tail keeps the positions that it has behind a sentence of l tokens ("template
denoising").

* unsupervised: z1 = head(h(x, T1) - delta_T1(l)), z2 = head(h(x, T2) - delta_T2(l)), two templates
  of one sentence instead of only two dropout masks; InfoNCE of z1 against all z2 of the batch. The
  head is Linear + tanh and serves training only.
* supervised: one template for premise, entailment and contradiction, SimCSE's supervised InfoNCE.
  On BERT the head is the pretrained MLM transform Tr, on both parts: z = Tr(h) - Tr(delta). On
  RoBERTa it is Linear + tanh of the difference.
* none: h(x, T) of a backbone that nobody trained.

h(x, T1) is scored without head in the unsupervised setting, and the debiased vector with head in
the supervised one. Dev vectors are others than test vectors, as in the authors' code: unsupervised
ones are debiased; no full stop is appended; and RoBERTa's first word has no leading blank, as in
training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bench.method import (
    Backbone,
    Batch,
    Features,
    Ids,
    Loss,
    Method,
    Portable,
    Recipe,
    TorchMethod,
    Value,
    check_choice,
    check_mlm_head,
    check_placed,
    check_positive,
    join,
)
from bench.methods.gather import across_ranks
from bench.methods.losses import info_nce
from bench.methods.pooling import Head
from bench.methods.templates import (
    Template,
    TextEnds,
    at_mask,
    blank_before,
    check_text,
    empty,
    gaps,
    portable_template,
    template_ids,
    wrap_sentences,
)

CODE = "Prompt-BERT repository, "
ENDINGS = ".?\"'"  # a sentence that ends in one of these gets no full stop


class PromptBERT(TorchMethod):
    """PromptBERT: the state of [MASK] in a template around the sentence; two templates make two
    views.

    Take it unsupervised with two templates, supervised with one, or with nothing trained.

    Example:
        bench run --method promptbert --setting unsupervised --backbone bert-base-uncased

    Relations: ConPVP learns the template's words; CoT-BERT has two masks; SNCSE adds the negated
    sentence.
    """

    name = "promptbert"
    settings = ("unsupervised", "supervised", "none")
    several_negatives = True
    summary = "[MASK] state of a template; two templates are two views"
    paper = (
        "Jiang et al.: PromptBERT: Improving BERT Sentence Embeddings with Prompts, EMNLP 2022, "
        "arXiv 2201.04337"
    )
    trains = "the whole backbone and the head"
    deterministic = ("none",)
    defaults = {
        "template_1": Value(
            'This sentence of "{s}" means{m}.', CODE + "run.sh unsup-bert and sup-bert"
        ),
        "template_2": Value(
            'This sentence : "{s}" means{m}.',
            CODE + "run.sh unsup-bert",
            "none: one template for all texts",
        ),
        "temperature": Value(0.05, CODE + "run.sh"),
        "head": Value(
            "tanh",
            CODE + "prompt_bert/models.py",
            "mlm-transform: BERT's own, on state and bias (sup-bert)",
        ),
        "head_at_test": Value(False, CODE + "run.sh unsup-*: --mlp_only_train"),
        "debias_train": Value(True, CODE + "run.sh: --mask_embedding_sentence_delta"),
        "debias_at_dev": Value(True, CODE + "prompt_bert/models.py: dev scores in training"),
        "debias_at_test": Value(False, CODE + "run.sh unsup-*: no delta in the evaluation's flags"),
        "append_full_stop_at_test": Value(
            True, CODE + "evaluation.py", "not where the text ends in . ? \" or '; never at dev"
        ),
        "delta_positions": Value(
            "repo",
            CODE + "prompt_bert/models.py: from 0",
            "aligned: from padding_idx + 1, where RoBERTa's sentences begin",
        ),
        "faithful": Value(
            False,
            "ours",
            "true: several processes as in the authors' code, the gradient divided by their number",
        ),
    }
    variants = {
        "one-template": {"template_2": None},
        "no-debias": {"debias_train": False, "debias_at_dev": False, "debias_at_test": False},
        "one-template-no-debias": {
            "template_2": None,
            "debias_train": False,
            "debias_at_dev": False,
            "debias_at_test": False,
        },
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_text(recipe.template_1)
        if recipe.template_2 is not None:
            check_text(recipe.template_2)
        check_positive(recipe, "temperature")
        check_choice(recipe, "head", ("tanh", "mlm-transform"))
        check_choice(recipe, "delta_positions", ("repo", "aligned"))
        if recipe.head == "mlm-transform":
            check_mlm_head(backbone)
        if (
            recipe.debias_train or recipe.debias_at_dev or recipe.debias_at_test
        ):  # the template keeps its positions
            check_placed(backbone, "subtracting a template's bias", "promptbert+no-debias")

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        # without the blank at the end of the first piece: a sentence's first word is bare, or
        # brings the blank along
        texts = [recipe.template_1]
        if recipe.template_2 is not None:
            texts.append(recipe.template_2)
        self.templates = [Template.of(text, backbone, keep_blank=False) for text in texts]
        self.blank = blank_before(recipe.template_1)
        if self.templates[0].filling is not None:  # the text itself is filled in
            self.trains_on = "text"
            self.blank = ""
        self.stop = "." if recipe.append_full_stop_at_test else ""
        self.transforms = recipe.head == "mlm-transform"
        self.head: Any = mlm_transform(backbone) if self.transforms else Head(backbone.hidden_size)
        self.at_dev = False

    def token_ids(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the ids of a sentence inside the filled template; at dev the ids of the sentence
        alone.
        """
        texts = []
        for sentence in sentences:
            text = sentence
            if not self.at_dev:
                text = self.blank + sentence
                if sentence and not sentence.endswith(tuple(ENDINGS)):
                    text += self.stop
            texts.append(text)
        return template_ids(self.templates[0], texts, self.backbone)

    def assemble(
        self, ids: Sequence[Ids], max_length: int | None = None, template: int = 0
    ) -> Features:
        return wrap_sentences(ids, [self.templates[template]] * len(ids), self.backbone, max_length)

    def template_of(self, text: int) -> int:
        """Return a text's template: T1 for the first, T2 (if there is one) for the others."""
        return min(text, len(self.templates) - 1)

    def collate(
        self, columns: Mapping[str, Sequence[Ids]], rows: np.ndarray, epoch: int
    ) -> tuple[Features, ...]:
        texts = list(columns.values())
        # (x, x), or (premise, entailment[, contradiction])
        texts = texts * 2 if len(texts) == 1 else texts
        return tuple(
            self.assemble(ids, self.recipe.max_seq_length, self.template_of(i))
            for i, ids in enumerate(texts)
        )

    def h(self, features: Features) -> Tensor:
        """Return the mask's last state, (n, H)."""
        return at_mask(self.hidden(features), features)

    def delta(self, features: Features, template: int) -> Tensor:
        """Return delta_T(l) of each row, (n, H).

        Sentences of one length share one row of the table, and its dropout mask.
        """
        lengths, row = gaps(features, self.templates[template])
        return self.delta_of(lengths, template)[row]

    def delta_of(self, lengths_K: Tensor, template: int) -> Tensor:
        """Return the template's state behind a sentence of a given number of tokens, without the
        sentence, (K, H).
        """
        first = self.backbone.first_position if self.recipe.delta_positions == "aligned" else 0
        return self.h(empty(self.templates[template], lengths_K, first))

    def z(self, h: Tensor, delta: Tensor | None) -> Tensor:
        """Return head(h - delta), or Tr(h) - Tr(delta), (n, H)."""
        if delta is None:
            return self.head(h)  # type: ignore[no-any-return]
        if self.transforms:
            return self.head(h) - self.head(delta)  # type: ignore[no-any-return]
        return self.head(h - delta)  # type: ignore[no-any-return]

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return z of each text, (n, H)."""
        # all texts in one pass
        states = self.h(join(batch.columns, self.pad_id)).chunk(len(batch.columns))
        z = []
        for text, h in enumerate(states):
            delta = None
            if self.recipe.debias_train:
                delta = self.delta(batch.columns[text], self.template_of(text))
            z.append(self.z(h, delta))
        return tuple(z)

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        z = across_ranks(views, self.recipe.faithful)
        return Loss(info_nce(*z, temperature=self.recipe.temperature))

    def embed(self, features: Features) -> Tensor:
        h = self.h(features)
        debias = self.recipe.debias_at_dev if self.at_dev else self.recipe.debias_at_test
        delta = self.delta(features, 0) if debias else None
        if self.recipe.head_at_test:
            return self.z(h, delta)
        return h if delta is None else h - delta

    def dev_score(self, score: Callable[[Method], float]) -> float:
        self.at_dev = True
        try:
            return score(self)
        finally:
            self.at_dev = False

    def portable(self) -> Portable:
        bias: Tensor | None = None
        if self.recipe.debias_at_test:
            bias = self.delta_by_length()
        transform: Any = None
        head: Head | None = None
        if self.recipe.head_at_test and self.transforms:
            transform = self.head
            # the state goes through the head before the subtraction, so the bias does, too
            if bias is not None:
                bias = self.head(bias)
        elif self.recipe.head_at_test:
            head = self.head
        return portable_template(
            self,
            self.templates[0],
            ends=TextEnds(self.blank, self.stop, ENDINGS),
            transform=transform,
            bias=bias,
            head=head,
        )

    def delta_by_length(self) -> Tensor:
        """Return delta_T1 behind a sentence of 0, 1, ... tokens, (longest sentence + 1, H)."""
        longest = self.backbone.max_tokens - len(self.templates[0])
        device = next(self.encoder.parameters()).device
        lengths = torch.arange(longest + 1, device=device)
        return torch.cat([self.delta_of(some, 0) for some in lengths.split(64)])


def mlm_transform(backbone: Backbone) -> Any:
    """Return a copy of the pretrained dense + GELU + LayerNorm before BERT's decoder."""
    head: Any = backbone.mlm_head()
    if hasattr(head, "transform"):
        return head.transform
    # RoBERTa's head, and heads of its kind
    return nn.Sequential(head.dense, nn.GELU(), head.layer_norm)
