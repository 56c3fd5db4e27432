"""CSE-SFP: unsupervised sentence representation learning via a single forward pass (Zhang et al.,
SIGIR 2025).

One pass of one prompt gives both views of a sentence:

    This sentence : "x" means in one word, it can be summarized as
                                      ^ positive                 ^ anchor
    loss = CE( cos(z1_i, z2_j) / temperature )        over all positives j of the batch

z1 is the last layer's state at the last token, which is scored; z2 the state at the word that
``pivot`` names, behind the sentence. Under a causal mask the positive has seen less than the
anchor. No dropout is needed to make the two differ, and a step costs half of SimCSE's.

The number of tokens behind the pivot is the same for every sentence; it is counted once.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bench.method import Backbone, Batch, BenchError, Features, Recipe, Value
from bench.method.prompts import PLACE
from bench.methods.decoder_prompts import prompt_encodings
from bench.methods.pooling import last_token
from bench.methods.prompteol import PromptEOL

CODE = "ZBWpro/CSE-SFP"
PLAIN = "A dog runs."
"""A sentence with which the tokens behind the pivot are counted."""


class CSESFP(PromptEOL):
    """CSE-SFP: anchor and positive are two tokens of one prompt, read in one pass.

    Take it to train a decoder without labels at half the cost of SimCSE.

    Example:
        bench run --method cse-sfp --setting unsupervised --backbone facebook/opt-125m

    Relations: PromptEOL in the setting "unsupervised" reads a sentence twice and needs dropout.
    """

    name = "cse-sfp"
    settings = ("unsupervised",)
    several_negatives = False
    by_dropout = ()
    deterministic = ()
    summary = "anchor and positive from one pass of one prompt"
    paper = (
        "Zhang, Chen, Qiu, Li: CSE-SFP: Enabling Unsupervised Sentence Representation Learning via "
        "a Single Forward Pass, SIGIR 2025, arXiv 2505.00389"
    )
    variants = {
        "something": {
            "template": Value(
                'This sentence : "[X]" means something, it can also be summarized as',
                CODE + " settings.py:12-19: OPT-6.7B",
                "Mistral-7B: without also",
            ),
            "pivot": Value("something", CODE + " settings.py:12-19"),
        }
    }
    defaults = {
        **PromptEOL.defaults,
        "template": Value(
            'This sentence : "[X]" means in one word, it can be summarized as',
            CODE + " settings.py:12-19: LLaMA2-7B and LLaMA3-8B",
        ),
        "pivot": Value("word", CODE + " settings.py", "the positive's word, behind the sentence"),
        "temperature": Value(0.05, CODE + " train.py"),
        "clean_at_test": Value("prompteol", CODE + " evaluation, as PromptEOL's"),
    }

    @classmethod
    def check_texts(cls, recipe: Recipe) -> None:
        super().check_texts(recipe)
        behind = str(recipe.template).rpartition(PLACE)[2]
        if behind.count(recipe.pivot) != 1:
            raise BenchError(
                f"pivot={recipe.pivot}: the template has to have this word once behind {PLACE}",
                f"its words there are:{behind}",
            )

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.behind = self.tokens_behind_pivot()

    def tokens_behind_pivot(self) -> int:
        """Return the number of tokens behind the pivot's last one, special tokens included.

        Raises BenchError if this token holds more than the pivot.
        """
        (encoding,) = prompt_encodings(self.prompts()[0], [PLAIN], self.backbone)
        filled = self.prompts()[0].replace(PLACE, PLAIN).strip()
        end = filled.rindex(self.recipe.pivot) + len(self.recipe.pivot)
        for number, (first, last) in enumerate(encoding.offsets):
            if first < end <= last:
                if last != end:
                    raise BenchError(
                        f"{self.backbone.name} has one token for '{filled[first:last]}', "
                        f"which is more than the pivot '{self.recipe.pivot}'",
                        "another --set template= and --set pivot=",
                    )
                return len(encoding.ids) - 1 - number
        raise BenchError(
            f"no token of {self.backbone.name} holds the pivot '{self.recipe.pivot}'",
            "another --set template= and --set pivot=",
        )

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return anchor and positive, (n, H) each, from one pass."""
        (features,) = batch.columns
        states = self.read_layer(features)
        return last_token(states, features["attention_mask"]), self.at_pivot(states, features)

    def at_pivot(self, states_nTH: Tensor, features: Features) -> Tensor:
        """Return the state of each row's pivot, (n, H), in rows padded on the right."""
        mask: Any = features["attention_mask"]
        rows = torch.arange(len(mask), device=mask.device)
        return states_nTH[rows, mask.sum(1) - 1 - self.behind]
