"""MetaEOL: Meta-Task Prompting Elicits Embeddings from Large Language Models (Lei et al., ACL
2024). Untrained.

    z = mean over eight prompts p of h(p(x)) at the last token

Two prompts for each of four tasks: text classification, sentiment analysis, paraphrase
identification, information extraction. Eight passes a sentence. The prompts are in
``methods/metaeol_prompts.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.method import Backbone, BenchError, Recipe, Value
from bench.methods.decoder_prompts import check_prompt_text
from bench.methods.metaeol_prompts import META_PROMPTS
from bench.methods.prompteol import PromptEOL

CODE = "Yibin-Lei/MetaEOL evaluation.py:117-124"


class MetaEOL(PromptEOL):
    """MetaEOL: the mean of a decoder's vectors under eight prompts, nothing trained.

    Take it if nothing can be trained and eight passes a sentence are cheap enough.

    Example:
        bench run --method metaeol --setting none --backbone facebook/opt-125m

    Relations: PromptEOL reads one prompt; Contrastive Prompting subtracts a second.
    """

    name = "metaeol"
    settings = ("none",)
    by_dropout = ()
    summary = "mean of a decoder's vectors under eight prompts"
    paper = (
        "Lei, Wu, Zhou, Shen, Cao, Tao, Yates: Meta-Task Prompting Elicits Embeddings from Large "
        "Language Models, ACL 2024, arXiv 2402.18458"
    )
    trains = "nothing"
    variants = dict[str, Any]()
    defaults = {
        "tasks": Value(
            "all", CODE, "or some names of methods/metaeol_prompts.py, with + between them"
        ),
        "layer": Value(-1, CODE, "the paper's middle layers are better for some models"),
        "clean_at_test": PromptEOL.defaults["clean_at_test"],
    }

    @classmethod
    def check_texts(cls, recipe: Recipe) -> None:
        for name in chosen_names(recipe):
            check_prompt_text(name, META_PROMPTS[name])

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.chosen = tuple(META_PROMPTS[name] for name in chosen_names(recipe))

    def prompts(self) -> tuple[str, ...]:
        return self.chosen

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        parts = []
        try:
            for turn in range(len(self.chosen)):
                self.turn = turn
                parts.append(super().encode(sentences))
        finally:
            self.turn = 0
        mean: np.ndarray = np.mean(parts, axis=0, dtype=np.float32)  # type: ignore[assignment]
        return mean


def chosen_names(recipe: Recipe) -> list[str]:
    """Return the names of the prompts that are read. Raises BenchError for an unknown one."""
    if recipe.tasks == "all":
        return list(META_PROMPTS)
    names = str(recipe.tasks).split("+")
    for name in names:
        if name not in META_PROMPTS:
            raise BenchError(
                f"tasks={recipe.tasks}: there is no prompt '{name}'",
                f"all, or some of {', '.join(META_PROMPTS)}, with + between them",
            )
    return names
