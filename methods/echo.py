"""Echo embeddings: Repetition Improves Language Model Embeddings (Springer et al., arXiv
2402.15449). Untrained.

    Rewrite the sentence: x, rewritten sentence: x
                                                 ^ pooled

The text is written twice; only the second copy is pooled, by its mean or its last token. There a
causal model has seen the whole sentence. Twice the tokens. The words of the untrained form are
recalled from the paper, not read in code: the authors published code only for trained checkpoints.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bench.method import BenchError, Features, Ids, Portable, Recipe, Value, check_choice
from bench.method.prompts import PLACE
from bench.methods.decoder_prompts import (
    check_prompt_text,
    clean_text,
    fill_prompt,
)
from bench.methods.filled import sentence_tokens
from bench.methods.prompteol import PromptEOL

POOLINGS = ("mean", "last")


class Echo(PromptEOL):
    """Echo: a decoder reads the sentence twice, and its second copy is pooled; nothing is trained.

    Take it if the vector should be a mean over the tokens of a causal model.

    Example:
        bench run --method echo --setting none --backbone facebook/opt-125m

    Relations: last-avg pools the only copy; Token Prepending lets a sentence see its summary.
    """

    name = "echo"
    settings = ("none",)
    by_dropout = ()
    summary = "the sentence twice, its second copy pooled"
    paper = (
        "Springer, Kotha, Fried, Neubig, Raghunathan: Repetition Improves Language Model "
        "Embeddings, arXiv 2402.15449"
    )
    trains = "nothing"
    variants = {"last": {"pooling": "last"}}
    defaults = {
        "template": Value(
            "Rewrite the sentence: [X], rewritten sentence: [X]",
            "recalled from the paper, not read again",
            "[X] twice: the second copy is pooled",
        ),
        "pooling": Value("mean", "Echo README: mean or last token", ", ".join(POOLINGS)),
        "layer": Value(-1, "Echo README"),
        "clean_at_test": Value("none", "the authors clean nothing"),
    }

    @classmethod
    def check_texts(cls, recipe: Recipe) -> None:
        check_choice(recipe, "pooling", POOLINGS)
        check_prompt_text("template", recipe.template, places=2)

    def token_ids(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return start and stop of the second copy, then the ids of the prompt, for each text."""
        rows = []
        for text in sentences:
            rows.append(self.row(clean_text(text, self.recipe.clean_at_test)))
        return rows

    def row(self, sentence: str) -> list[int]:
        """Return one row; a sentence that is too long loses its end in both copies."""
        template = self.recipe.template
        while True:
            (encoding,) = self.backbone.encodings([fill_prompt(template, sentence)])
            too_many = len(encoding.ids) - self.backbone.max_tokens
            if too_many <= 0:
                break
            if not sentence:
                raise BenchError(f"the template {template} has no room for a sentence twice")
            sentence = self.without_end(sentence, -(-too_many // 2))
        first = template.rpartition(PLACE)[0].replace(PLACE, sentence)
        begin = len(first.lstrip())
        start, stop = sentence_tokens(encoding, begin, begin + len(sentence))
        opening = len(self.before)
        return [start - opening, stop - opening, *self.inner(encoding)]

    def without_end(self, sentence: str, tokens: int) -> str:
        """Return a sentence without so many of its last tokens, and shorter by one character."""
        (own,) = self.backbone.encodings([sentence])
        start, stop = sentence_tokens(own, 0, len(sentence))
        left = stop - start - tokens
        end = own.offsets[start + left - 1][1] if left > 0 else 0
        return sentence[: min(end, len(sentence) - 1)]

    def assemble(self, ids: Sequence[Ids], max_length: int | None = None) -> Features:
        features = super().assemble([row[2:] for row in ids], max_length)
        opening = len(self.before)
        spans = [[int(row[0]) + opening, int(row[1]) + opening] for row in ids]
        return features | {"span": torch.tensor(spans, dtype=torch.int64).reshape(-1, 2)}

    def embed(self, features: Features) -> Tensor:
        span_n2 = features["span"]
        inputs = {key: value for key, value in features.items() if key != "span"}
        states_nTH = self.read_layer(inputs)
        start_n, stop_n = span_n2.T
        place_T = torch.arange(states_nTH.shape[1], device=states_nTH.device)
        inside_nT = (place_T >= start_n[:, None]) & (place_T < stop_n[:, None])
        if self.recipe.pooling == "last":
            inside_nT = inside_nT & (place_T == stop_n[:, None] - 1)
        weights = inside_nT.unsqueeze(-1).to(states_nTH.dtype)
        return (states_nTH * weights).sum(1) / weights.sum(1).clamp_min(1)

    def portable(self) -> Portable:
        return self.portable_reader({"pooling": f"{self.recipe.pooling}-span"})
