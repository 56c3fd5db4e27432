"""CoT-BERT: Enhancing Unsupervised Sentence Representation through Chain-of-Thought (Zhang et al.,
ICANN 2024).

A template has two masks, one for each stage of a chain of thought: `The sentence of "x" means
[MASK] , so it can be summarized as [MASK] .` The last layer's state h(x, T) at the SECOND one is
the sentence's vector. Three templates of one sentence make an anchor, a positive and, by a negated
template, a negative:

    z_k = head(h(x, T_k) - n_k(l))              k = 1 anchor, 2 positive, 3 negative
    row i of the logits: [ cos(z1_i, z2_j) | cos(z1_i, z3_j) | cos(z2_i, z3_j) ] / tau
                                                j over the batch; the target is column i

n_k(l) is the template's own part ("denoising"): the same state with l tokens of padding, which can
be attended to, in the place of a sentence of l tokens. RoBERTa counts no position at padding, so
that the text behind it is not shifted there; `position` is PromptBERT's way, which leaves the gap
empty and shifts the positions.

The authors compute n_k for every length up to 80 tokens in every step; here sentences of one length
share a row, which is the same distribution. h(x, T_1) is scored without head and denoising, with a
full stop behind the sentence; dev has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from bench.method import (
    Backbone,
    Batch,
    BenchError,
    Features,
    Ids,
    Loss,
    Method,
    Portable,
    Recipe,
    TorchMethod,
    Value,
    check_choice,
    check_placed,
    check_positive,
    join,
)
from bench.methods.filled import keeps_pieces
from bench.methods.losses import cosine_matrix
from bench.methods.pooling import Head
from bench.methods.promptbert import ENDINGS
from bench.methods.templates import (
    Template,
    TextEnds,
    at_mask,
    empty,
    gaps,
    portable_template,
    template_ids,
    wrap_sentences,
)

CODE = "CoT-BERT code-for-BERT/train.py"
MEANS = "means{m} , so it can be summarized as{m} ."
TEMPLATES = ("anchor", "positive", "negative")  # recipe keys
DENOISE = ("pad", "position", "none")


class CoTBERT(TorchMethod):
    """CoT-BERT: the last [MASK] of a template with two stages; a negated template gives hard
    negatives.

    Take it for a template with hard negatives by negation; it encodes three texts for each row.

    Example:
        bench run --method cot-bert --setting unsupervised --backbone bert-base-uncased

    Relations: PromptBERT has one mask and no negated template; SNCSE negates the sentence in its
    place.
    """

    name = "cot-bert"
    settings = ("unsupervised",)
    summary = "second [MASK] of a two-stage template, negation as negative"
    paper = (
        "Zhang et al.: CoT-BERT: Enhancing Unsupervised Sentence Representation through "
        "Chain-of-Thought, ICANN 2024, arXiv 2309.11143"
    )
    trains = "the whole encoder and the head"
    training_only = ("head",)
    defaults = {
        "anchor": Value(
            f'The sentence of "{{s}}" {MEANS}', CODE, "the template of what is scored, too"
        ),
        "positive": Value(f'The sentence : "{{s}}" {MEANS}', CODE),
        "negative": Value(
            'The sentence : "{s}" does not mean{m} , so it cannot be summarized as{m} .', CODE
        ),
        "temperature": Value(0.05, CODE),
        "denoise": Value(
            "pad", "CoT-BERT models.py; the paper's table 6 has all three", ", ".join(DENOISE)
        ),
        "positive_to_negative": Value(
            True, "CoT-BERT models.py; the paper's table 4", "false: the logits have no third block"
        ),
        "append_full_stop_at_test": Value(
            True, "CoT-BERT evaluation.py", "not where the text ends in . ? \" or '; never at dev"
        ),
    }
    variants = {
        "without-positive-negative": {"positive_to_negative": False},
        "no-denoise": {"denoise": "none"},
        "position-denoise": {"denoise": "position"},
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_positive(recipe, "temperature")
        check_choice(recipe, "denoise", DENOISE)
        for key in TEMPLATES:
            if str(recipe[key]).count("{s}") != 1 or "{m}" not in str(recipe[key]):
                raise BenchError(
                    f"{key}={recipe[key]}: no template",
                    "write {s} for the sentence, once, and {m} for a mask token: "
                    "the last one is read",
                )
        if recipe.denoise == "position":
            check_placed(backbone, "subtracting a template's state", "cot-bert+no-denoise")

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.templates = [two_stage(recipe[key], backbone) for key in TEMPLATES]
        # RoBERTa: a blank at a template's end is a token of the training's templates, and not of
        # the test's; if a blank precedes the sentence, its first word has it at test only
        self.scored = two_stage(recipe.anchor.rstrip(" "), backbone)
        before, _, _ = recipe.anchor.partition("{s}")
        self.blank = " " if before.endswith(" ") else ""
        if self.scored.filling is not None:  # the text itself is filled in
            self.trains_on = "text"
            self.blank = ""
        self.stop = "." if recipe.append_full_stop_at_test else ""
        self.head = Head(backbone.hidden_size)
        self.at_dev = False

    def token_ids(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the ids that a sentence has inside the filled template."""
        texts = []
        for sentence in sentences:
            text = self.blank + sentence
            if sentence and not sentence.endswith(tuple(ENDINGS)) and not self.at_dev:
                text += self.stop
            texts.append(text)
        return template_ids(self.scored, texts, self.backbone)

    def assemble(self, ids: Sequence[Ids], max_length: int | None = None) -> Features:
        return wrap_sentences(ids, [self.scored] * len(ids), self.backbone, max_length)

    def collate(
        self, columns: Mapping[str, Sequence[Any]], rows: np.ndarray, epoch: int
    ) -> tuple[Features, ...]:
        """Put the sentence into each of the three templates."""
        (ids,) = columns.values()
        length = self.recipe.max_seq_length
        return tuple(
            wrap_sentences(ids, [template] * len(ids), self.backbone, length)
            for template in self.templates
        )

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return the views that the loss compares: z1, z2, z3, (n, H) each."""
        h = self.h(join(batch.columns, self.pad_id)).chunk(len(self.templates))  # one encoder pass
        if self.recipe.denoise == "none":
            return tuple(self.head(h_nH) for h_nH in h)
        z = []
        for h_nH, features, template in zip(h, batch.columns, self.templates, strict=True):
            z.append(self.head(h_nH - self.noise(features, template)))
        return tuple(z)

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        recipe = self.recipe
        third = recipe.positive_to_negative
        return Loss(two_stage_loss(*views, temperature=recipe.temperature, third=third))

    def h(self, features: Features) -> Tensor:
        """Return the last state of the last mask, (n, H)."""
        return at_mask(self.hidden(features), features)

    def noise(self, features: Features, template: Template) -> Tensor:
        """Return n_k(l) of each row, (n, H), with a gradient.

        Sentences of one length share one row, and its dropout mask.
        """
        lengths, row = gaps(features, template)
        first = self.backbone.first_position
        around_nothing = empty(template, lengths, first)
        if self.recipe.denoise == "pad":
            around_nothing = padded(template, lengths, self.pad_id, first)
        return self.h(around_nothing)[row]

    def embed(self, features: Features) -> Tensor:
        return self.h(features)

    def dev_score(self, score: Callable[[Method], float]) -> float:
        self.at_dev = True
        try:
            return score(self)
        finally:
            self.at_dev = False

    def portable(self) -> Portable:
        ends = TextEnds(self.blank, self.stop, ENDINGS)
        return portable_template(self, self.scored, ends=ends)


def two_stage(text: str, backbone: Backbone) -> Template:
    """Read a template and make its LAST mask the one that gives the vector.

    Raises BenchError if it leaves the sentence no room.
    """
    if not keeps_pieces(backbone):
        made = Template.filled(text, backbone)
        check_two_stage(text, made, backbone)
        return made
    first, _, last = text.partition("{s}")
    opening, closing = backbone.special_tokens()
    before = (*opening, *backbone.ids([first.rstrip(" ")])[0])
    after = (*backbone.ids([last.replace("{m}", str(backbone.tokenizer.mask_token))])[0], *closing)
    specials = len(opening), len(closing)
    check_two_stage(text, Template(before, after, 0, 0, specials), backbone)
    mask = len(before) + len(after) - 1 - after[::-1].index(backbone.mask_id)
    return Template(before, after, mask, 0, specials)


def check_two_stage(text: str, template: Template, backbone: Backbone) -> None:
    """Raise BenchError for a template without room for a sentence, or no mask behind it."""
    if len(template) >= backbone.max_tokens or backbone.mask_id not in template.after:
        raise BenchError(
            f"the template {text} has {len(template)} tokens, "
            f"and {backbone.name} takes {backbone.max_tokens}",
            "take a shorter one, with a mask behind the sentence",
        )


def padded(template: Template, lengths_K: Tensor, pad_id: int, first_position: int) -> Features:
    """Return the template around padding tokens that can be attended to, one row for each length.

    If positions begin behind the padding's (RoBERTa), padding has that one position and counts no
    further.
    """
    whole = torch.tensor(template.before + template.after, device=lengths_K.device)
    start = len(template.before)
    lengths = lengths_K.unsqueeze(1)  # (K, 1)
    place = torch.arange(len(template) + int(lengths_K.max()), device=lengths_K.device)  # (T,)
    gap = (place >= start) & (place < start + lengths)  # (K, T)
    token = torch.where(place < start, place, place - lengths).clamp(0, len(template) - 1)
    positions = (first_position + place).expand_as(gap)
    if first_position > 0:
        positions = torch.where(gap, first_position - 1, first_position + token)
    return {
        "input_ids": whole[token].masked_fill(gap, pad_id),
        "attention_mask": (place < len(template) + lengths).long(),
        "position_ids": positions.contiguous(),
        "mask_position": template.mask + lengths_K,
    }


def two_stage_loss(
    z1_BH: Tensor, z2_BH: Tensor, z3_BH: Tensor, *, temperature: float, third: bool = True
) -> Tensor:
    """Return the surprise of each anchor's own positive among all positives and negatives: mean, in
    nats.

    ``third``: the positives' similarities to all negatives are in the denominator, too.

    Source: CoT-BERT (Zhang et al. 2024), cl_forward of the authors' models.py.
    """
    blocks = [cosine_matrix(z1_BH, z2_BH), cosine_matrix(z1_BH, z3_BH)]
    if third:
        blocks.append(cosine_matrix(z2_BH, z3_BH))
    own_B = torch.arange(len(z1_BH), device=z1_BH.device)
    return cross_entropy(torch.cat(blocks, dim=1) / temperature, own_B)
