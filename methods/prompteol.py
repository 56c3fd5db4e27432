"""PromptEOL: Scaling Sentence Embeddings with Large Language Models (Jiang et al., Findings of
EMNLP 2024).

A decoder reads

    This sentence : "x" means in one word:"

and its state at the last token, which would predict that word, is the vector of x; nothing is put
on top of it. Trained with SimCSE's InfoNCE on two dropout views of a sentence or on premise,
entailment and contradiction; or read as it is (setting "none"), also behind a demonstration.

Two papers changed the words around the sentence (Pretended CoT, Knowledge Enhancement; PromptSTH,
PromptSUM: the variants), the first two also the layer: they read the last but one, which has not
passed the final norm. ``layer`` is the number among the hidden states, 0 the embeddings, -1 the
last behind the final norm: no printed table says what PromptEOL itself gives at the layers that
its successors read.

Text is filled and cleaned by :mod:`methods.decoder_prompts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from bench.method import (
    Backbone,
    Batch,
    BenchError,
    Features,
    Loss,
    ModuleFile,
    Portable,
    Recipe,
    TorchMethod,
    Value,
    check_choice,
    check_positive,
    join,
)
from bench.method.prompts import PLACE
from bench.methods.decoder_prompts import (
    CLEANINGS,
    check_prompt_text,
    clean_text,
    fill_prompt,
    prompt_encodings,
)
from bench.methods.gather import across_ranks
from bench.methods.layer_hooks import freeze_above
from bench.methods.losses import info_nce
from bench.methods.pooling import last_token
from bench.methods.travels import FOLDER

CODE = "kongds/scaling_sentemb"
WORDS = "ZBWpro/PretCoTandKE settings.py:7-17"
KNOWLEDGE = (
    "The essence of a sentence is often captured by its main subjects and actions, while "
    "descriptive terms provide additional but less central details. With this in mind , this "
    'sentence : "[X]" means in one word:"'
)


class PromptEOL(TorchMethod):
    """PromptEOL: a decoder's state at the last token of a prompt that asks for the sentence in one
    word.

    Take it first on a decoder: it needs nothing but a prompt, and most later methods change a part.

    Example:
        bench run --method prompteol --setting none --backbone facebook/opt-125m

    Relations: CSE-SFP gets its positive from the same pass; Token Prepending, Contrastive Prompting
    and MetaEOL read the same decoder in other ways; PromptBERT asks an encoder.
    """

    name = "prompteol"
    settings: ClassVar[tuple[str, ...]] = ("supervised", "unsupervised", "none")
    several_negatives = True
    by_dropout: ClassVar[tuple[str, ...]] = ("unsupervised",)
    deterministic: ClassVar[tuple[str, ...]] = ("none",)
    trains_on = "text"
    summary = "a decoder's last token asks for the sentence in one word"
    paper = (
        "Jiang, Huang, Luan, Wang, Zhuang: Scaling Sentence Embeddings with Large Language Models, "
        "Findings of EMNLP 2024, arXiv 2307.16645"
    )
    trains = "the whole decoder; the authors train adapters"
    # the number of the prompt that is read now
    turn = 0
    variants = {
        "pretended-cot": {
            "template": Value(
                'After thinking step by step , this sentence : "[X]" means in one word:"', WORDS
            ),
            "layer": Value(-2, "ZBWpro/PretCoTandKE evaluation.py:266-269"),
        },
        "knowledge": {
            "template": Value(KNOWLEDGE, WORDS),
            "layer": Value(-2, "ZBWpro/PretCoTandKE evaluation.py:266-269"),
        },
        "sth": {"template": Value('This sentence : "[X]" means something', WORDS)},
        "sum": {"template": Value('This sentence : "[X]" can be summarized as', WORDS)},
        "icl": {
            "demonstration": Value("The man is riding a horse.", CODE + " run_icl.sh: OPT-6.7B"),
            "demonstration_word": Value("Horseback-riding", CODE + " run_icl.sh: OPT-6.7B"),
        },
    }
    defaults = {
        "template": Value(
            'This sentence : "[X]" means in one word:"', CODE + " train_llm.sh:4", "[X]: the text"
        ),
        "layer": Value(
            -1,
            CODE + " evaluation.py",
            "number of the hidden states: 0 the embeddings, -1 the last, behind the final norm",
        ),
        "clean_at_test": Value(
            "prompteol",
            CODE + " evaluation.py:192-201",
            f"{', '.join(CLEANINGS)}: full stop and quotation marks of the text that is scored",
        ),
        "demonstration": Value(
            None,
            CODE + " run_icl.sh: one a model size",
            "a sentence before the text, for "
            "in-context learning; choosing it is selection on the dev set",
        ),
        "demonstration_word": Value(None, CODE + " run_icl.sh", "the word that it means"),
        "temperature": Value(0.05, CODE + " ft_llm.py"),
        "hard_negative_weight": Value(0.0, CODE + " ft_llm.py:213: z3_weight"),
        "faithful": Value(
            False,
            "an exact gradient over several processes",
            "true: the authors' gather, gradient divided by their number",
        ),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_choice(recipe, "clean_at_test", CLEANINGS)
        cls.check_texts(recipe)
        if "temperature" in recipe:
            check_positive(recipe, "temperature")
        if (recipe.get("demonstration") is None) != (recipe.get("demonstration_word") is None):
            raise BenchError(
                "a demonstration is a sentence and its word",
                "--set demonstration='A jockey riding a horse.' "
                "--set demonstration_word=Equestrian",
            )

    @classmethod
    def check_texts(cls, recipe: Recipe) -> None:
        """Raise BenchError for a prompt without a place for the sentence, or with several."""
        check_prompt_text("template", recipe.template)

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        layers = int(self.encoder.config.num_hidden_layers)
        if not -layers - 1 <= recipe.layer <= layers:
            raise BenchError(
                f"layer={recipe.layer}: {backbone.name} has the hidden states 0 to {layers}",
                f"--set layer=-1, or 0 to {layers}",
            )
        if getattr(self.encoder.config, "use_cache", False):
            self.encoder.config.use_cache = False  # of keys and values, which only generating needs
        freeze_above(self.encoder, recipe.layer)

    def prompts(self) -> tuple[str, ...]:
        """Return the prompts that a sentence is read in, one pass each, demonstration included."""
        return (self.demonstration() + self.recipe.template,)

    def demonstration(self) -> str:
        """Return the text before the prompt: the filled template, its word, and the end."""
        if self.recipe.get("demonstration") is None:
            return ""
        shown = fill_prompt(self.recipe.template, self.recipe.demonstration)
        return f'{shown}{self.recipe.demonstration_word}".'

    def token_ids(self, sentences: Sequence[str]) -> list[list[int]]:
        kind = self.recipe.clean_at_test
        return self.filled([clean_text(text, kind) for text in sentences], None)

    def collate(
        self, columns: Mapping[str, Sequence[Any]], rows: np.ndarray, epoch: int
    ) -> tuple[Features, ...]:
        longest = self.recipe.max_seq_length
        return tuple(self.assemble(self.filled(list(texts), longest)) for texts in columns.values())

    def filled(self, sentences: Sequence[str], longest: int | None) -> list[list[int]]:
        """Return the ids of each sentence in the prompt, without special tokens."""
        return [self.inner(one) for one in self.encodings(sentences, longest)]

    def encodings(self, sentences: Sequence[str], longest: int | None) -> list[Any]:
        """Return the encoding of each filled prompt, special tokens included."""
        prompt = self.prompts()[self.turn]
        return prompt_encodings(prompt, sentences, self.backbone, longest)

    def inner(self, encoding: Any) -> list[int]:
        """Return the ids of an encoding without the special tokens around them."""
        return list(encoding.ids[len(self.before) : len(encoding.ids) - len(self.after)])

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return anchor, positive[, hard negatives], (n, H) each, from one pass."""
        texts = batch.columns if len(batch.columns) > 1 else batch.columns * 2
        return self.embed(join(texts, self.pad_id)).chunk(len(texts))

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        recipe = self.recipe
        return Loss(
            info_nce(
                *across_ranks(views, recipe.faithful),
                temperature=recipe.temperature,
                hard_negative_weight=recipe.hard_negative_weight,
            )
        )

    def read_layer(self, features: Features) -> Tensor:
        """Return the states of the layer that is read, (n, T, H)."""
        if self.recipe.layer == -1:
            return self.hidden(features)
        states: Tensor = self.encoder(**features, output_hidden_states=True).hidden_states[
            self.recipe.layer
        ]
        return states

    def embed(self, features: Features) -> Tensor:
        return last_token(self.read_layer(features), features["attention_mask"])

    def portable(self) -> Portable:
        return self.portable_reader({"pooling": "last"})

    def portable_reader(
        self, more: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None
    ) -> Portable:
        """Return the parts of an export: the decoder, and a module that fills the prompts."""
        settings = {
            "prompts": list(self.prompts()),
            "place": PLACE,
            "clean": self.recipe.clean_at_test,
            "layer": self.recipe.layer,
            "max_tokens": self.backbone.max_tokens,
            **more,
        }
        reader = ModuleFile(FOLDER / "readers.py", "Worded", settings, tensors or {})
        tokenizer = self.backbone.tokenizer
        return Portable(self.encoder, tokenizer, self.backbone.max_tokens, None, reader=reader)
