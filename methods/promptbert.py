"""PromptBERT: Improving BERT Sentence Embeddings with Prompts (Jiang et al., EMNLP 2022).

A sentence x is put into a template T (`This sentence of "x" means [MASK].`); h(x, T) is the mask's state in the last layer,
and delta_T(l) the template's bias: the same state of the template with nothing in it, whose tail keeps the positions that it
has behind a sentence of l tokens ("template denoising").

* unsupervised: z1 = head(h(x, T1) - delta_T1(l)), z2 = head(h(x, T2) - delta_T2(l)), two templates of one sentence instead of
  two dropout masks alone; InfoNCE of z1 against all z2 of the batch. The head is Linear + tanh and serves training only.
* supervised: one template for premise, entailment and contradiction, SimCSE's supervised InfoNCE. On BERT the head is the
  pretrained MLM transform Tr, on both parts: z = Tr(h) - Tr(delta). On RoBERTa it is Linear + tanh of the difference.
* none: h(x, T) of a backbone that nobody trained.

What is scored is h(x, T1) without head in the unsupervised setting, and the debiased vector with head in the supervised one.
Dev vectors are others than test vectors, as in the authors' code: unsupervised ones are debiased; no full stop is appended;
and RoBERTa's first word has no leading blank, as in training.
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
    at_mask,
    blank_before,
    check_text,
    empty,
    gaps,
    portable_template,
    template_ids,
    wrap,
)

CODE = "Prompt-BERT repository, "
ENDINGS = ".?\"'"  # a sentence that ends in one of these gets no full stop


class PromptBERT(TorchMethod):
    name = "promptbert"
    settings = ("unsupervised", "supervised", "none")
    several_negatives = True
    summary = "the [MASK] state of a template around the sentence; two templates are two views, their bias is subtracted"
    paper = "Jiang et al.: PromptBERT: Improving BERT Sentence Embeddings with Prompts, EMNLP 2022, arXiv 2201.04337"
    trains = "the whole backbone and the head"
    deterministic = ("none",)
    defaults = {
        "template_1": Value('This sentence of "{s}" means{m}.', CODE + "run.sh unsup-bert and sup-bert"),
        "template_2": Value('This sentence : "{s}" means{m}.', CODE + "run.sh unsup-bert", "none: one template for all texts"),
        "temperature": Value(0.05, CODE + "run.sh"),
        "head": Value("tanh", CODE + "prompt_bert/models.py", "mlm-transform: BERT's own, on state and bias (sup-bert)"),
        "head_at_test": Value(False, CODE + "run.sh unsup-*: --mlp_only_train"),
        "debias_train": Value(True, CODE + "run.sh: --mask_embedding_sentence_delta"),
        "debias_at_dev": Value(True, CODE + "prompt_bert/models.py: dev scores in training"),
        "debias_at_test": Value(False, CODE + "run.sh unsup-*: no delta in the evaluation's flags"),
        "append_full_stop_at_test": Value(True, CODE + "evaluation.py", "not where the text ends in . ? \" or '; never at dev"),
        "delta_positions": Value(
            "repo", CODE + "prompt_bert/models.py: from 0", "aligned: from padding_idx + 1, where RoBERTa's sentences begin"
        ),
        "faithful": Value(False, "ours", "true: several processes as in the authors' code, the gradient divided by their number"),
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
        if recipe.debias_train or recipe.debias_at_dev or recipe.debias_at_test:  # the template keeps its positions
            check_placed(backbone, "subtracting a template's bias", "promptbert+no-debias")

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        # without the blank at the end of the first piece: a sentence's first word is bare, or brings the blank along
        texts = [recipe.template_1] if recipe.template_2 is None else [recipe.template_1, recipe.template_2]
        self.templates = [Template.of(text, backbone, keep_blank=False) for text in texts]
        self.blank = blank_before(recipe.template_1)
        if self.templates[0].filling is not None:  # the text itself is filled in
            self.trains_on, self.blank = "text", ""
        self.stop = "." if recipe.append_full_stop_at_test else ""
        self.transforms = recipe.head == "mlm-transform"
        self.head: Any = mlm_transform(backbone) if self.transforms else Head(backbone.hidden_size)
        self.at_dev = False

    # the texts in their templates

    def token_ids(self, sentences: Sequence[str]) -> list[list[int]]:
        """What is scored: the ids that a sentence has inside the filled template; at dev those of the sentence alone."""
        texts = list(sentences)
        if not self.at_dev:
            texts = [self.blank + s + ("" if s.endswith(tuple(ENDINGS)) or not s else self.stop) for s in sentences]
        return template_ids(self.templates[0], texts, self.backbone)

    def assemble(self, ids: Sequence[Ids], max_length: int | None = None, template: int = 0) -> Features:
        return wrap(ids, [self.templates[template]] * len(ids), self.backbone, max_length)

    def template_of(self, text: int) -> int:
        """The first text stands in T1, the others in T2 if there is one."""
        return min(text, len(self.templates) - 1)

    def collate(self, columns: Mapping[str, Sequence[Ids]], rows: np.ndarray, epoch: int) -> tuple[Features, ...]:
        texts = list(columns.values())
        texts = texts * 2 if len(texts) == 1 else texts  # (x, x), or (premise, entailment[, contradiction])
        return tuple(self.assemble(ids, self.recipe.max_seq_length, self.template_of(i)) for i, ids in enumerate(texts))

    # h(x, T), delta_T(l) and z

    def h(self, features: Features) -> Tensor:
        """(n, H): the mask's last state."""
        return at_mask(self.hidden(features), features)

    def delta(self, features: Features, template: int) -> Tensor:
        """(n, H): delta_T(l) of each row. Sentences of one length share one row of the table, and its dropout mask."""
        lengths, row = gaps(features, self.templates[template])
        return self.delta_of(lengths, template)[row]

    def delta_of(self, lengths_K: Tensor, template: int) -> Tensor:
        """(K, H): the template's state behind a sentence of so many tokens, without the sentence."""
        first = self.backbone.first_position if self.recipe.delta_positions == "aligned" else 0
        return self.h(empty(self.templates[template], lengths_K, first))

    def z(self, h: Tensor, delta: Tensor | None) -> Tensor:
        """(n, H): head(h - delta), or Tr(h) - Tr(delta)."""
        if delta is None:
            return self.head(h)  # type: ignore[no-any-return]
        z: Tensor = self.head(h) - self.head(delta) if self.transforms else self.head(h - delta)
        return z

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """z of each text, (n, H)."""
        z = []
        for i, h in enumerate(self.h(join(batch.columns, self.pad_id)).chunk(len(batch.columns))):  # of all texts in one pass
            z.append(self.z(h, self.delta(batch.columns[i], self.template_of(i)) if self.recipe.debias_train else None))
        return tuple(z)

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        return Loss(info_nce(*across_ranks(views, self.recipe.faithful), temperature=self.recipe.temperature))

    # what is scored

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
        bias = self.delta_by_length() if self.recipe.debias_at_test else None
        parts: dict[str, Any] = {"bias": bias}
        if self.recipe.head_at_test and self.transforms:  # which stands before the subtraction
            parts = {"transform": self.head, "bias": None if bias is None else self.head(bias)}
        elif self.recipe.head_at_test:
            parts["head"] = self.head
        return portable_template(self, self.templates[0], blank=self.blank, stop=self.stop, endings=ENDINGS, **parts)

    def delta_by_length(self) -> Tensor:
        """(longest sentence + 1, H): delta_T1 behind a sentence of 0, 1, ... tokens."""
        longest, device = self.backbone.max_tokens - len(self.templates[0]), next(self.encoder.parameters()).device
        return torch.cat([self.delta_of(lengths, 0) for lengths in torch.arange(longest + 1, device=device).split(64)])


def mlm_transform(backbone: Backbone) -> Any:
    """A copy of the pretrained dense + GELU + LayerNorm before BERT's decoder."""
    head: Any = backbone.mlm_head()
    if hasattr(head, "transform"):
        return head.transform
    return nn.Sequential(head.dense, nn.GELU(), head.layer_norm)  # RoBERTa's head, and those of its kind
