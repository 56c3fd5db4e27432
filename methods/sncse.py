"""SNCSE: Contrastive Learning for Unsupervised Sentence Embedding with Soft Negative Samples (Wang
et al., 2022).

Three texts of one sentence x, each in a template; the mask's last state goes through a head (Linear
+ tanh, training only): z1 of T1(x), z2 of T2(x), and z3 of T2(not x), the soft negative: nearly the
same words, another meaning.

* InfoNCE of z1 with z2 against the batch; the negation is in no denominator;
* bidirectional margin loss: with d = cos(z1, z3) - cos(z1, z2), mean of relu(d + alpha) + relu(-d -
  beta), which keeps d between -beta and -alpha: the negation is less similar than the positive, but
  not much less;
* loss = InfoNCE + lambda * margin loss.

The mask's state in T1 is scored, without head. The authors negate with a dependency parser; here a
rule without one does (`negate`), so that scores need not be theirs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import punctuation

import numpy as np
from torch import Tensor
from torch.nn.functional import cosine_similarity

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
from bench.methods.gather import across_ranks
from bench.methods.losses import float32_at_least, info_nce
from bench.methods.pooling import Head
from bench.methods.templates import (
    Template,
    TextEnds,
    at_mask,
    blank_before,
    check_text,
    portable_template,
    template_ids,
    wrap_sentences,
)

CODE = "SNCSE repository, "


def margin_loss(
    z1_BD: Tensor, z2_BD: Tensor, z3_BD: Tensor, *, alpha: float, beta: float
) -> Tensor:
    """Return how far d = cos(z1, z3) - cos(z1, z2) is outside [-beta, -alpha].

    The mean is over the rows, in cosines.
    """
    z1, z2, z3 = (float32_at_least(z) for z in (z1_BD, z2_BD, z3_BD))
    d_B = cosine_similarity(z1, z3) - cosine_similarity(z1, z2)
    return ((d_B + alpha).relu() + (-d_B - beta).relu()).mean()


class SNCSE(TorchMethod):
    """SNCSE: two templates are views; the sentence's negation is kept a little less similar than
    the positive.

    Take it to study negation: a rule without a parser negates here; the authors used spaCy.

    Example:
        bench run --method sncse --setting unsupervised --backbone bert-base-uncased

    Relations: PromptBERT has the templates without negation; CoT-BERT negates the template.
    """

    name = "sncse"
    settings = ("unsupervised",)
    summary = "two templates as views, and the negation as soft negative"
    paper = (
        "Wang et al.: SNCSE: Contrastive Learning for Unsupervised Sentence Embedding with Soft "
        "Negative Samples, 2022, arXiv 2201.05979"
    )
    trains = "the whole backbone and the head"
    trains_on = "text"  # negation is made of words
    defaults = {
        "template_1": Value('This sentence : " {s} " means {m} .', CODE + "SNCSE/train_SNCSE.py"),
        "template_2": Value('This sentence of " {s} " means {m} .', CODE + "SNCSE/train_SNCSE.py"),
        "temperature": Value(0.05, CODE + "train_SNCSE.sh"),
        "alpha": Value(0.1, CODE + "SNCSE/train_SNCSE.py"),
        "beta": Value(0.3, CODE + "SNCSE/train_SNCSE.py"),
        "margin_weight": Value(1e-3, CODE + "SNCSE/train_SNCSE.py: BERT", "RoBERTa: 5e-4"),
        "head_at_test": Value(False, CODE + "bert_evaluation.py"),
        "faithful": Value(
            False,
            "ours",
            "true: several processes as in the authors' code, the gradient divided by their number",
        ),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        for key in ("template_1", "template_2"):
            check_text(recipe[key])
        check_positive(recipe, "temperature")
        if not recipe.alpha <= recipe.beta:
            raise BenchError(
                f"alpha = {recipe.alpha} is above beta = {recipe.beta}",
                "d is kept between -beta and -alpha",
            )

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.templates = [
            Template.of(text, backbone) for text in (recipe.template_1, recipe.template_2)
        ]
        # in training, the text before the sentence is tokenised with its last blank; for scores,
        # the template is filled first
        self.scored = Template.of(recipe.template_1, backbone, keep_blank=False)
        # a filled template has its blanks in its text
        self.blank = "" if self.scored.filling is not None else blank_before(recipe.template_1)
        self.head = Head(backbone.hidden_size)
        longest = max(len(template) for template in self.templates)
        if recipe.max_seq_length <= longest:
            raise BenchError(
                f"max_seq_length = {recipe.max_seq_length} leaves a template of {longest} tokens "
                "no room for a sentence"
            )

    def token_ids(self, sentences: Sequence[str]) -> list[list[int]]:
        return template_ids(
            self.scored, [self.blank + ended(sentence) for sentence in sentences], self.backbone
        )

    def assemble(self, ids: Sequence[Ids], max_length: int | None = None) -> Features:
        longest = None if max_length is None else max_length - len(self.scored)
        return wrap_sentences(ids, [self.scored] * len(ids), self.backbone, longest)

    def collate(
        self, columns: Mapping[str, Sequence[str]], rows: np.ndarray, epoch: int
    ) -> tuple[Features, ...]:
        (texts,) = columns.values()
        first, second = self.templates
        same: Sequence[Ids | str] = [ended(text) for text in texts]
        opposite: Sequence[Ids | str] = [ended(negate(text)) for text in texts]
        if first.filling is None:
            same = self.backbone.ids(list(map(str, same)))
            opposite = self.backbone.ids(list(map(str, opposite)))

        # the length counts the template, and cuts the sentence
        def view(ids: Sequence[Ids | str], template: Template) -> Features:
            longest = self.recipe.max_seq_length - len(template)
            return wrap_sentences(ids, [template] * len(ids), self.backbone, longest)

        return view(same, first), view(same, second), view(opposite, second)

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return the views that the loss compares: z1, z2 and z3, (n, H) each."""
        texts = join(batch.columns, self.pad_id)
        z: Tensor = self.head(at_mask(self.hidden(texts), texts))
        return z.chunk(3)

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        z1, z2, z3 = views
        both = across_ranks([z1, z2], self.recipe.faithful)
        contrast = info_nce(*both, temperature=self.recipe.temperature)
        margin = margin_loss(z1, z2, z3, alpha=self.recipe.alpha, beta=self.recipe.beta)
        return Loss(
            contrast + self.recipe.margin_weight * margin, {"contrast": contrast, "margin": margin}
        )

    def embed(self, features: Features) -> Tensor:
        h = at_mask(self.hidden(features), features)
        z: Tensor = self.head(h) if self.recipe.head_at_test else h
        return z

    def portable(self) -> Portable:
        head = self.head if self.recipe.head_at_test else None
        # as in `ended`
        return portable_template(
            self,
            self.scored,
            ends=TextEnds(self.blank, stop=" .", endings=punctuation, trimmed=True),
            head=head,
        )


def ended(sentence: str) -> str:
    """Add a full stop, as a separate word, if the sentence does not end in a punctuation mark."""
    text = sentence.strip()
    if not text or text[-1] in punctuation:
        return sentence
    return sentence + " ."


WORD = r"(?<![\w'’-])(?:{})(?![\w'’-])"  # a word by itself: not "can-do", not the is of "isn't"
NOT = re.compile(WORD.format("not") + r"\s*")
CANNOT = re.compile(WORD.format("cannot"))
# lower case only: May, Will and Might are names more often than auxiliaries; have is one before a
# participle
AUXILIARY = re.compile(
    WORD.format(
        "am|is|are|was|were|can|could|will|would|shall|should|may|must|might|(?:has|have|had)(?= "
        "(?:been|[a-z]+(?:ed|en))\\b)"
    )
)


def negate(sentence: str) -> str:
    """Negate a sentence by a rule that needs no parser. An empty one is unchanged.

    SNCSE's authors parse each sentence with spaCy: an existing "not" goes; else "not" follows the
    first auxiliary; else a main verb that is a form of "be" or a modal; else any other main verb
    gets do, does or did not and its base form; else "Not" leads. Without a parser the first step is
    the same, auxiliaries are told by their form, and the step that needs a verb's base form falls
    through to the last: "He plays the piano." becomes "Not He plays the piano." (theirs: "He does
    not play ...").
    """
    if not sentence.strip():
        return sentence
    without, dropped = NOT.subn("", sentence, count=1)
    if dropped and without.strip():
        return without
    positive, dropped = CANNOT.subn("can", sentence, count=1)
    if dropped:
        return positive
    found = AUXILIARY.search(sentence)
    if found is None:
        return "Not " + sentence
    return f"{sentence[: found.end()]} not{sentence[found.end() :]}"
