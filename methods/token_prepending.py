"""Token Prepending: A Training-Free Approach for Eliciting Better Sentence Embeddings from LLMs (Fu
et al., ACL 2025). Untrained.

A placeholder p is put before the sentence:

    This sentence : <PST> "x" means in one word:"

    for layer k = first_layer .. last_layer - 1 (counted from 0):
        h at p := h at the last token, both as they enter layer k; then layer k
    z = h[layer] at the last token

So the sentence sees a summary of itself from the layer below, although attention is causal.

The placeholder is a token of its own, whatever the vocabulary. The authors start its word embedding
from a draw that they do not seed; here it is the mean of all word embeddings, or one fixed draw. It
matters in layers below ``first_layer`` only.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
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
    Value,
    check_choice,
)
from bench.methods.layer_hooks import check_reads_a_layer, encoder_layers, number_of_state
from bench.methods.pooling import last_token
from bench.methods.prompteol import KNOWLEDGE, PromptEOL

CODE = "fuyuchenIfyw/token_prepending"
MARK = "<PST>"
STARTS = ("mean", "normal")
DRAW = 0
"""The seed of the placeholder's draw: one for all runs, for nothing else here is random."""


class TokenPrepending(PromptEOL):
    """Token Prepending: in some layers a placeholder before the sentence gets the last token's
    state.

    Take it on a decoder if nothing can be trained: it costs no more than PromptEOL.

    Example:
        bench run --method token-prepending --setting none --backbone facebook/opt-125m

    Relations: PromptEOL with ``layer=`` is the same prompt and layer without the placeholder, with
    which a gain has to be compared; Contrastive Prompting changes a layer in another way.
    """

    name = "token-prepending"
    code_version = 2
    settings = ("none",)
    by_dropout = ()
    summary = "a placeholder before the sentence gets its summary"
    paper = (
        "Fu, Cheng, Jiang, Wang, Yin, Li, Gu: Token Prepending: A Training-Free Approach for "
        "Eliciting Better Sentence Embeddings from LLMs, ACL 2025, arXiv 2412.11556"
    )
    trains = "nothing"
    variants = {
        "pretended-cot": {
            "template": 'After thinking step by step , this sentence : <PST> "[X]" means in one '
            'word:"'
        },
        "knowledge": {"template": KNOWLEDGE.replace('"[X]"', f'{MARK} "[X]"')},
    }
    defaults = {
        "template": Value(
            'This sentence : <PST> "[X]" means in one word:"',
            CODE + " config.yaml: PromptEOL",
            f"{MARK}: the placeholder",
        ),
        "first_layer": Value(
            1,
            CODE + " config.yaml",
            "the first layer that is changed, from 0; of a backbone with fewer layers: the last "
            "below the state that is read",
        ),
        "last_layer": Value(
            7,
            CODE + " config.yaml: LLaMA2-7B; LLaMA3-8B: 3, Qwen2-7B and Gemma2-9B: 6",
            "the layer before which it ends; of a backbone with fewer layers: its last",
        ),
        "layer": Value(
            -2,
            CODE + " config.yaml: 27 for PromptEOL on LLaMA2-7B: variant h27",
            "number of the hidden states that is read",
        ),
        "placeholder": Value(
            "mean",
            "ours: the authors draw without a seed",
            "its word embedding: mean (of all words) or normal (0.02, one fixed draw)",
        ),
        "clean_at_test": PromptEOL.defaults["clean_at_test"],
    }

    @classmethod
    def check_texts(cls, recipe: Recipe) -> None:
        super().check_texts(recipe)
        check_choice(recipe, "placeholder", STARTS)
        if str(recipe.template).count(MARK) != 1:
            raise BenchError(
                f"template={recipe.template}: {MARK} stands for the placeholder, once",
                f'--set template=\'This sentence : {MARK} "[X]" means in one word:"\'',
            )
        if not 0 <= recipe.first_layer <= recipe.last_layer:
            raise BenchError(
                f"first_layer={recipe.first_layer} and last_layer={recipe.last_layer}: "
                "layers are counted from 0, and the first is not behind the last",
                "--set first_layer=1 --set last_layer=7",
            )

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        tokenizer: Any = copy.deepcopy(backbone.tokenizer)
        tokenizer.add_special_tokens({"additional_special_tokens": [MARK]})
        super().build(replace(backbone, tokenizer=tokenizer), recipe)
        if recipe.first_layer < recipe.last_layer:  # equal: none is changed
            check_reads_a_layer(self.encoder, recipe.layer)
        self.mark = int(tokenizer.convert_tokens_to_ids(MARK))
        words_VH: Tensor = self.encoder.get_input_embeddings().weight.detach()
        start_H = words_VH.float().mean(0)
        if recipe.placeholder == "normal":
            generator = torch.Generator().manual_seed(DRAW)
            start_H = 0.02 * torch.randn(words_VH.shape[1], generator=generator)
        self.register_buffer("start", start_H, persistent=False)

    def assemble(self, ids: Sequence[Ids], max_length: int | None = None) -> Features:
        """Return the features, with the position of each row's placeholder; its id becomes padding,
        for the encoder has no row for it.
        """
        features = super().assemble(ids, max_length)
        is_mark = features["input_ids"] == self.mark
        features["place"] = is_mark.long().argmax(1)
        features["input_ids"] = features["input_ids"].masked_fill(is_mark, self.pad_id)
        return features

    def embed(self, features: Features) -> Tensor:
        mask = features["attention_mask"]
        rows = torch.arange(len(mask), device=mask.device)
        place, last = features["place"], mask.sum(1) - 1
        words = self.encoder.get_input_embeddings()(features["input_ids"])
        start: Any = self.start
        words = words.index_put((rows, place), start.to(words.dtype).expand(len(rows), -1))

        def move(layer: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
            states = inputs[0] if inputs else named["hidden_states"]
            moved = states.index_put((rows, place), states[rows, last])
            if inputs:
                return (moved, *inputs[1:]), named
            return inputs, named | {"hidden_states": moved}

        with ExitStack() as hooks:
            for layer in self.changed_layers():
                handle = layer.register_forward_pre_hook(move, with_kwargs=True)
                hooks.callback(handle.remove)
            states = self.encoder(
                inputs_embeds=words, attention_mask=mask, output_hidden_states=True
            ).hidden_states
        return last_token(states[self.recipe.layer], mask)

    def changed_layers(self) -> list[nn.Module]:
        """Return the layers before which the placeholder gets the last token's state."""
        layers = encoder_layers(self.encoder)
        first, last = self.recipe.first_layer, self.recipe.last_layer
        if first < last:  # equal: none is changed
            read = number_of_state(self.recipe.layer, len(layers))
            first = min(first, read - 1)
        return layers[first:last]

    def portable(self) -> Portable:
        raise BenchError(
            "token-prepending moves states between layers, which an export does not carry"
        )
