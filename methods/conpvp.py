"""ConPVP: Contrastive Learning with Prompt-derived Virtual Semantic Prototypes (Zeng et al.,
Findings of EMNLP 2022).

Three texts of one sentence x, one encoder f, the mask's state of the last layer:

* anchor: x t1 .. tP [MASK] . with t (P, H) learned vectors in the place of word embeddings;
* positive prototype: T+(x), a template drawn from those that keep the meaning;
* negative prototype: T-(x), drawn independently from those that turn it round.

v, c+, c- = head(f(text) - b(text)), where b is the state of the same sequence when only the
template's tokens can be attended to (the paper's footnote points to PromptBERT's denoising; the
code, which is followed, does this: `debias`). Eq. 1: InfoNCE of v_i with c+_i; its denominator has
the cosines with the positive AND the negative prototypes of the whole batch. Nothing is detached:
gradient reaches f and t through all three texts and all three biases.

The anchor's mask state is scored, not debiased and without head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

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
    check_placed,
    check_positive,
    join,
    rng_for,
)
from bench.methods.gather import across_ranks
from bench.methods.losses import info_nce
from bench.methods.pooling import Head
from bench.methods.templates import (
    LearnedTokens,
    Template,
    at_mask,
    check_text,
    keep_tokens,
    portable_template,
    template_ids,
    wrap_sentences,
)

CODE = "ConPVP's released archive, "
CHOICES = {
    "templates": ("repo", "paper"),
    "anchor_layout": ("repo", "clean"),
    "debias": ("prompt-mask", "empty-template", "none"),
    "prototypes": ("both", "positive", "none"),
}


# templates for positive and negative prototypes: the authors' code ("repo") next to the paper's
# Table 1 The two lists differ: the code has nine positive templates (the third is not in the
# paper), words four opposite ones otherwise, and five more differ in a comma, a capital or an
# article. Where the paper's print has lost a quotation mark, it is restored after the code.
POSITIVE = {
    "repo": (
        'Given " {s} " , we assume that " {m} "',
        '" {s} " , Is this review positive ? {m} .',
        '" {s} " , is related to " {m} "',
        '" {s} " is a {m} news',
        '" {s} " is a {m} one',
        '" {s} " . In summary : " {m} "',
        'By " {s} " they mean {m} .',
        'Article " {s} " belongs to a {m} topic',
        'This sentence : " {s} " means {m} .',
    ),
    "paper": (
        'Given " {s} " , we assume that " {m} "',
        '" {s} " , is this review positive ? {m} .',
        '" {s} " , is {m} news',
        '" {s} " , is a {m} one',
        '" {s} " . In summary : " {m} "',
        'By " {s} " they mean {m} .',
        'Article " {s} " belongs to a {m} topic',
        'This sentence : " {s} " means {m} .',
    ),
}
NEGATIVE = {
    "repo": (
        '" {s} " , Is this review negative ? {m} .',
        'Without " {s} " they mean {m} .',
        '" {s} " is inconsistent to " {m} "',
        '" {s} " is totally different to : " {m} "',
        '" {s} " which not denotes {m} .',
        '" {s} " is not a {m} one',
        'This sentence : " {s} " not means {m} .',
        'Article " {s} " is definitely not about the {m} topic',
    ),
    "paper": (
        '" {s} " , is this review negative ? {m} .',
        'Without " {s} " , they mean {m} .',
        '" {s} " is inconsistent with " {m} "',
        '" {s} " is totally different from : " {m} "',
        '" {s} " which does not denote {m}',
        '" {s} " is not a {m} one',
        'This sentence : " {s} " does not mean {m} .',
        'Article " {s} " is definitely not about the {m} topic',
    ),
}
# PromptBERT's first template for each family, in the place of ConPVP's learned vectors (ablation
# "manual")
MANUAL = {
    "bert": 'This sentence of "{s}" means{m}.',
    "roberta": "This sentence : ' {s} ' means{m}.",
}


def anchor(length: int, layout: str) -> str:
    """Return the anchor's template: ``length`` learned vectors between the sentence and the mask.

    "repo" has the code's blanks, which become tokens in RoBERTa's vocabulary; "clean" has none, and
    gives with every vocabulary the tokens that BERT's gives for both.
    """
    if layout == "clean":
        return "{s}" + "{p}" * length + "{m} ."
    return "{s}  " + "{p} " * length + "{m} ."


def chosen(value: object) -> str:
    """Read the value of ``debias``; ``--set debias=none`` arrives as None."""
    return "none" if value is None else str(value)


class ConPVP(TorchMethod):
    """ConPVP: a learned prompt's [MASK] state, contrasted with prototypes that other templates
    give.

    Take it to study learned prompts in an encoder that trains as well.

    Example:
        bench run --method conpvp --setting unsupervised --backbone bert-base-uncased

    Relations: PromptBERT uses manual templates for both views; PromCSE's prompt is keys and values
    of a frozen encoder.
    """

    name = "conpvp"
    settings = ("unsupervised",)
    summary = "prompt state against prototypes of meaning and negation"
    paper = (
        "Zeng et al.: Contrastive Learning with Prompt-derived Virtual Semantic Prototypes for "
        "Unsupervised Sentence Embedding, Findings of EMNLP 2022, arXiv 2211.03348"
    )
    trains = "the whole backbone, P prompt vectors (P x H) and the head"
    defaults = {
        "prompt_length": Value(
            4, "ConPVP section 4.1; the archive's evaluation.py", "train.py's default is 0"
        ),
        "temperature": Value(0.05, CODE + "train.py default", "the paper gives no value"),
        "templates": Value(
            "repo",
            CODE + "train.py: 9 and 8",
            "paper: Table 1, 8 and 8, several worded differently",
        ),
        "anchor": Value(
            "continuous",
            "ConPVP section 3.1",
            "manual: PromptBERT's first template; or a text with {s} for the sentence, {m} for the "
            "mask and, directly before it, {p} for each trained vector, whose number it decides. "
            "The paper's own, without the code's full stop: {s}{p}{p}{p}{p}{m}",
        ),
        "anchor_layout": Value(
            "repo",
            CODE + "train.py",
            "clean: without the five tokens that its blanks become on RoBERTa",
        ),
        "prototypes": Value(
            "both", "ConPVP eq. 1", "positive: without c-; none: two dropout views of the anchor"
        ),
        "debias": Value(
            "prompt-mask",
            CODE + "simcse/models.py",
            "empty-template: as PromptBERT, which the paper cites",
        ),
        "head_at_test": Value(
            False,
            CODE + "evaluation.py, pooler 'mask'; which one was scored is not stated",
            "true: its pooler 'smask'",
        ),
        "faithful": Value(
            False,
            "ours",
            "true: several processes as in the authors' code, the gradient divided by their number",
        ),
    }
    variants = {
        "manual": {"anchor": "manual"},
        "no-negative-prototypes": {"prototypes": "positive"},
        "no-prototypes": {"prototypes": "none"},
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_positive(recipe, "temperature")
        for key, known in CHOICES.items():
            if chosen(recipe[key]) not in known:
                raise BenchError(
                    f"{key} = {recipe[key]}: not one of {', '.join(known)}",
                    f"for example --set {key}={known[0]}",
                )
        if recipe.anchor not in ("continuous", "manual"):
            check_text(recipe.anchor)
        if chosen(recipe.debias) != "none":
            # the template without its sentence keeps the positions that it had
            check_placed(backbone, f"debias={recipe.debias}", "--set debias=none")
        if recipe.anchor == "continuous" and recipe.prompt_length < 1:
            raise BenchError(
                f"prompt_length = {recipe.prompt_length}: at least 1",
                "without learned vectors: --set anchor=manual",
            )

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        text = recipe.anchor
        if recipe.anchor == "continuous":
            text = anchor(recipe.prompt_length, recipe.anchor_layout)
        elif recipe.anchor == "manual":
            text = MANUAL.get(backbone.family, MANUAL["bert"])
        self.anchor = Template.of(text, backbone)
        self.positive = [Template.of(text, backbone) for text in POSITIVE[recipe.templates]]
        self.negative = [Template.of(text, backbone) for text in NEGATIVE[recipe.templates]]
        if self.anchor.filling is not None:
            self.trains_on = "text"
        if self.anchor.slots:
            # t (P, H), uniform in [0, 1)
            self.prompt = nn.Parameter(torch.rand(self.anchor.slots, backbone.embedding_size))
        self.head = Head(backbone.hidden_size)

    def token_ids(self, sentences: Sequence[str]) -> list[list[int]]:
        return template_ids(self.anchor, sentences, self.backbone)

    def assemble(self, ids: Sequence[Ids], max_length: int | None = None) -> Features:
        return wrap_sentences(ids, [self.anchor] * len(ids), self.backbone, max_length)

    def collate(
        self, columns: Mapping[str, Sequence[Ids]], rows: np.ndarray, epoch: int
    ) -> tuple[Features, ...]:
        (ids,) = columns.values()
        length = self.recipe.max_seq_length
        anchors = self.assemble(ids, length)
        if chosen(self.recipe.prototypes) == "none":
            return anchors, anchors
        draws = [rng_for(self.context.seed, "prototypes", epoch, int(row)) for row in rows]
        positives = [self.positive[rng.integers(len(self.positive))] for rng in draws]
        negatives = [self.negative[rng.integers(len(self.negative))] for rng in draws]
        kept = wrap_sentences(ids, positives, self.backbone, length)
        if self.recipe.prototypes != "both":
            return anchors, kept
        turned = wrap_sentences(ids, negatives, self.backbone, length)
        return anchors, kept, turned

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return the views that the loss compares: v, c+[, c-], (n, H) each."""
        texts = join(batch.columns, self.pad_id)  # (2 or 3 times n, T)
        h = at_mask(self.hidden(texts), texts)
        if chosen(self.recipe.debias) != "none":
            h = h - self.bias(texts)
        z: Tensor = self.head(h)
        return z.chunk(len(batch.columns))

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        z = across_ranks(views, self.recipe.faithful)
        return Loss(info_nce(*z, temperature=self.recipe.temperature))

    def bias(self, features: Features) -> Tensor:
        """Return the mask's state without sight of the sentence, (n, H), under a separate dropout
        mask.

        The tokens that can be seen never see the others, so that a pass over them alone is the
        masked pass.
        """
        if self.recipe.debias == "prompt-mask":
            seen = features["prompt_mask"]
            unseen = sum(self.anchor.specials)
        else:  # the empty template between [CLS] and [SEP]
            seen = features["attention_mask"] - features["sentence_mask"]
            unseen = 0
        bare = keep_tokens(features, seen, int(features["template_tokens"]) - unseen)
        return at_mask(self.hidden(bare), bare)

    def states(self, features: Features) -> Tensor:
        """Return the states of features with learned vectors t in the place of word embeddings.

        Positions are explicit, because RoBERTa would give none to the padding token inside the
        text.
        """
        words = self.encoder.get_input_embeddings()(features["input_ids"])  # (n, T, H)
        if self.anchor.slots:
            slot = features["slot"]  # (n, T): k at t_k, else 0
            words = torch.where(
                slot.unsqueeze(-1) > 0, self.prompt[(slot - 1).clamp_min(0)].to(words.dtype), words
            )
        return super().states({**features, "inputs_embeds": words})

    def embed(self, features: Features) -> Tensor:
        h = at_mask(self.hidden(features), features)
        z: Tensor = self.head(h) if self.recipe.head_at_test else h
        return z

    def portable(self) -> Portable:
        head = self.head if self.recipe.head_at_test else None
        if not self.anchor.slots:
            return portable_template(self, self.anchor, head=head)
        places = range(self.anchor.mask - self.anchor.slots, self.anchor.mask)
        learned = LearnedTokens(self.prompt, places)
        return portable_template(self, self.anchor, learned=learned, head=head)
