"""DCPCSE: Deep Continuous Prompt for Contrastive Learning of Sentence Embeddings (Jiang and Wang
2022, arXiv 2203.06875v1).

PromCSE's first version: a deep prompt for a frozen encoder (P slots of keys and values at every
layer; `prompt=hidden`: of states, as the paper has it) and the head over CLS, trained with InfoNCE
as SimCSE. Two variants:

* `mlm`: loss = InfoNCE + lambda(s) * MLM, lambda(s) = 0.1 * 0.95^(s / 100) after s updates. A
  second pass reads the same sentences with 15 % of their tokens masked, behind the very same
  prompt: one draw of its dropout serves both passes.
* `shallow` (the paper's SCPCSE): the prompt is six vectors in the place of a template's words,
  [CLS] p1 p2 p3 p4 sentence p5 p6 [MASK] . [SEP], which start as the word embeddings of ``This
  sentence : "`` and ``" means`` and pass through all layers as ordinary tokens. The sentence's
  vector is the state of [MASK].

The paper names no head. The authors' code has one while training, and at test where training was
supervised; so has this.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bench.method import (
    Backbone,
    BenchError,
    Features,
    Ids,
    Portable,
    Recipe,
    TorchMethod,
    Value,
    check_choice,
    check_positive,
)
from bench.methods.masking import check_guessing
from bench.methods.pooling import Head
from bench.methods.prefix import check_gradients, check_prompt, prompt_for
from bench.methods.promcse import PromCSE
from bench.methods.templates import (
    LearnedTokens,
    Template,
    at_mask,
    portable_template,
    template_ids,
    wrap_sentences,
)

# no blank before the mask: a byte-level vocabulary could make it a token
TEMPLATE = 'This sentence : "{s}" means{m}.'
DEEP = "deep"
SHALLOW = {
    "shallow": True,
    "learning_rate": Value(1e-3, "DCPCSE appendix A"),
    "epochs": Value(5, "DCPCSE appendix A"),
}


class TemplatePrompt(nn.Module):
    """The prompt of `shallow`: a template with trainable vectors in the place of its words before
    the mask.

    Mask and full stop are unchanged. It has the interface of the deep prompt (methods/prefix.py).
    """

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.template = Template.of(TEMPLATE, backbone)
        opening, _ = self.template.specials
        words = (self.template.before + self.template.after)[opening : self.template.mask]
        # (6, H)
        embeddings = backbone.encoder.get_input_embeddings()
        self.table = nn.Parameter(embeddings(torch.tensor(words)).detach().clone())

    def assemble(self, method: TorchMethod, ids: Sequence[Ids], max_length: int | None) -> Features:
        """Return the features of sentences in the template.

        A sentence is cut as it would be without a template, which is added to that: 32 + 8 tokens.
        """
        longest = None if max_length is None else max_length - sum(self.template.specials)
        return wrap_sentences(
            ids, [self.template] * len(ids), method.backbone, longest, whole_template=True
        )

    def states(self, encoder: Any, features: Features) -> Tensor:
        words = encoder.get_input_embeddings()(features["input_ids"])  # (n, T, H)
        inside = features["prompt_mask"]
        # (n, T): 1, 2, ... on the template's tokens, 0 elsewhere
        number = inside.cumsum(1) * inside
        trained = (number > 0) & (number <= len(self.table))
        vectors = self.table.to(words.dtype)[(number - 1).clamp(0, len(self.table) - 1)]
        states: Tensor = encoder(
            inputs_embeds=torch.where(trained.unsqueeze(-1), vectors, words),
            attention_mask=features["attention_mask"],
            position_ids=features["position_ids"],
        ).last_hidden_state
        return states

    def pooled(self, states_nTH: Tensor, features: Features) -> Tensor:
        return at_mask(states_nTH, features)  # (n, H)

    def portable(self, method: TorchMethod, head: Head | None) -> Portable:
        first = self.template.specials[0]
        places = range(first, first + len(self.table))
        learned = LearnedTokens(self.table, places)
        return portable_template(method, self.template, learned=learned, head=head)


class DCPCSE(PromCSE):
    """DCPCSE: PromCSE's first version; a deep prompt and a head are trained, the encoder is frozen.

    Take it for the paper's own variants ``mlm`` and ``shallow``; else take PromCSE.

    Example:
        bench run --method dcpcse+mlm --setting unsupervised --backbone roberta-base

    Relations: PromCSE is the same method with an energy-based hinge and other recipes.
    """

    name = "dcpcse"
    variants = {"mlm": {"mlm": True}, "shallow": SHALLOW}
    summary = "trains a prompt per layer, encoder frozen; mlm hides words"
    paper = (
        "Jiang, Wang: Deep Continuous Prompt for Contrastive Learning of Sentence Embeddings, "
        "arXiv 2203.06875v1, 2022"
    )
    trains = (
        "the prompt and the head (the paper names the prompt alone), with mlm the LM head; the "
        "encoder is frozen"
    )
    defaults = {
        "prompt_length": Value(
            16,
            "DCPCSE table 3",
            "the sentence starts at position P; the template decides for `shallow`",
        ),
        "prefix_dropout": Value(
            None, "PromCSE promcse/models.py", "None: the backbone's hidden dropout, 0.1"
        ),
        "temperature": Value(0.05, "DCPCSE appendix A; PromCSE run_unsup_example.sh"),
        "head_at_test": Value(
            False,
            "unsupervised: PromCSE README (pooler_type); recipes of the supervised setting say "
            "true",
            "the paper names no head; the authors' code has one while training in both settings",
        ),
        "hard_negative_weight": Value(
            0.0, "PromCSE train.py default", "added to the logit of the anchor's own contradiction"
        ),
        "mlm": Value(False, "DCPCSE table 3: RoBERTa with, BERT without"),
        "mlm_weight": Value(
            0.1, "DCPCSE section 2.2; PromCSE train.py default", "before the first update"
        ),
        "mlm_decay_rate": Value(0.95, "DCPCSE section 2.2; PromCSE promcse/trainers.py"),
        "mlm_decay_steps": Value(
            100, "DCPCSE section 2.2; PromCSE promcse/trainers.py", "updates; no staircase"
        ),
        "mlm_probability": Value(0.15, "DCPCSE section 2.2; PromCSE train.py"),
        "freeze_lm_head": Value(
            False,
            "PromCSE promcse/models.py: made after the freeze, tied to nothing",
            "the paper (section 2.1): only prompts are optimised; "
            "true keeps the LM head as it was pretrained",
        ),
        "shallow": Value(
            False,
            "DCPCSE section 3.3 and appendix A; its code was not published",
            "open in the paper: the head (here: while training), the full stop (here: fixed), "
            "32 tokens (here: the template on top)",
        ),
        "faithful": Value(
            False,
            "exact gradient over several processes",
            "true: the authors' gather, whose gradient is divided by the number of processes",
        ),
    }

    optional = {
        "prompt": Value(
            DEEP,
            "PromCSE promcse/models.py",
            "deep: keys and values are the parameters, as in the authors' code; hidden: as in the "
            "paper, the states of P positions at the input of each layer, which its W_k and W_v "
            "project: half as many parameters",
        ),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_positive(recipe, "temperature")
        if "prompt" in recipe:
            check_choice(recipe, "prompt", (DEEP, "hidden"))
            if recipe.shallow:
                raise BenchError(
                    f"prompt={recipe.prompt} and shallow do not go together: the prompt of shallow "
                    "is the words of a template",
                    "choose one of them",
                )
        kind = "input-layer" if recipe.shallow else recipe.get("prompt", DEEP)
        check_prompt(kind, recipe.prompt_length, recipe.prefix_dropout, backbone)
        check_gradients(recipe, kind)
        if recipe.mlm and recipe.shallow:
            raise BenchError(
                "mlm and shallow do not go together: the template is no text to be guessed",
                "choose one of them",
            )
        check_guessing(recipe, backbone)

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        if recipe.shallow and self.prompt.template.filling is not None:
            self.trains_on = "text"

    def new_prompt(self) -> Any:
        recipe = self.recipe
        if recipe.shallow:
            return TemplatePrompt(self.backbone)
        kind = recipe.get("prompt", DEEP)
        return prompt_for(self.backbone, kind, recipe.prompt_length, recipe.prefix_dropout)

    def token_ids(self, sentences: Sequence[str]) -> list[list[int]]:
        if isinstance(self.prompt, TemplatePrompt):
            return template_ids(self.prompt.template, sentences, self.backbone, whole_template=True)
        return super().token_ids(sentences)
