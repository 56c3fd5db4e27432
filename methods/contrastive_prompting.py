"""Contrastive Prompting Enhances Sentence Embeddings in LLMs through Inference-Time Steering (Cheng
et al., ACL 2025). Untrained.

A second prompt asks for what does not matter:

    The irrelevant information of this sentence : "x" means in one word:"

    A, B = joined heads of layer `steered_layer` at the last token, under the main and the second
           prompt
    norm=scaled:    A' = strength (A - B)
    norm=restored:  A' = (A - B) |A| / |A - B|
    the layer goes on with A' at the last token; z = h[layer] at the last token

Layers are counted from 1, as in the paper. The authors' code has another strength (0.5 for
Llama-2-7B, 0.25 for Llama-3-8B) and, as committed, runs nothing; here are the paper's.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from bench.methods.decoder_prompts import check_prompt_text, clean_text, prompt_encodings
from bench.methods.layer_hooks import (
    check_reads_a_layer,
    encoder_layers,
    number_of_state,
    output_projection,
)
from bench.methods.pooling import last_token
from bench.methods.prompteol import PromptEOL

CODE = "zifengcheng/CP"
PAPER = "the paper, through a conversion"
NORMS = ("scaled", "restored")
EXTRA = "extra_"
"""Before the names of the features of the second prompt."""


class ContrastivePrompting(PromptEOL):
    """Contrastive Prompting: a second prompt's attention is subtracted from the main prompt's.

    Take it on a decoder if nothing can be trained; a sentence costs one and a part of another pass.

    Example:
        bench run --method contrastive-prompting --setting none --backbone facebook/opt-125m

    Relations: PromptEOL with ``layer=`` is the same prompt and layer without the second prompt,
    with which a gain has to be compared; Token Prepending changes layers in another way.
    """

    name = "contrastive-prompting"
    code_version = 2
    settings = ("none",)
    by_dropout = ()
    summary = "a layer's attention minus that of an irrelevant prompt"
    paper = (
        "Cheng, Wang, Fu, Jiang, Yin, Wang, Gu: Contrastive Prompting Enhances Sentence Embeddings "
        "in LLMs through Inference-Time Steering, ACL 2025, arXiv 2505.12831"
    )
    trains = "nothing"
    variants = {
        "restored": {"norm": "restored"},
        "pretended-cot": {
            **PromptEOL.variants["pretended-cot"],
            "steered_layer": Value(7, PAPER),
            "strength": Value(3.0, PAPER),
        },
        "knowledge": {
            **PromptEOL.variants["knowledge"],
            "steered_layer": Value(7, PAPER),
            "strength": Value(3.0, PAPER),
        },
    }
    defaults = {
        "template": PromptEOL.defaults["template"],
        "second_template": Value(
            'The irrelevant information of this sentence : "[X]" means in one word:"', PAPER
        ),
        "steered_layer": Value(
            5,
            PAPER,
            "counted from 1; of a backbone with fewer layers: the last below the one that is read",
        ),
        "norm": Value("scaled", PAPER, ", ".join(NORMS)),
        "strength": Value(2.0, PAPER, CODE + " run_intervention_eval.sh: 0.5"),
        "layer": Value(
            -2, CODE + " run_intervention_eval.sh", "27 of 32 for PromptEOL on LLaMA2-7B"
        ),
        "clean_at_test": PromptEOL.defaults["clean_at_test"],
    }

    @classmethod
    def check_texts(cls, recipe: Recipe) -> None:
        check_prompt_text("template", recipe.template)
        check_prompt_text("second_template", recipe.second_template)
        check_choice(recipe, "norm", NORMS)
        if recipe.steered_layer < 1:
            raise BenchError(
                f"steered_layer={recipe.steered_layer}: layers are counted from 1",
                "--set steered_layer=5",
            )
        if 0 <= recipe.layer < recipe.steered_layer:
            raise BenchError(
                f"layer={recipe.layer} is read before steered_layer={recipe.steered_layer} "
                "changes anything",
                "read a later layer, or steer an earlier one",
            )

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        check_reads_a_layer(self.encoder, recipe.layer)
        self.output_projection()  # raises BenchError if it is not known

    def output_projection(self) -> nn.Module:
        """Return the map that the steered layer applies to its joined heads."""
        layers = encoder_layers(self.encoder)
        read = number_of_state(self.recipe.layer, len(layers))
        number = min(self.recipe.steered_layer, read)
        return output_projection(layers[number - 1])

    def token_ids(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return for each text: the number of the main prompt's ids, these, the second's ids."""
        cleaned = [clean_text(text, self.recipe.clean_at_test) for text in sentences]
        main = self.filled(cleaned, None)
        second = prompt_encodings(self.recipe.second_template, cleaned, self.backbone)
        rows = []
        for ids, encoding in zip(main, second, strict=True):
            rows.append([len(ids), *ids, *self.inner(encoding)])
        return rows

    def assemble(self, ids: Sequence[Ids], max_length: int | None = None) -> Features:
        """Return the features of the main prompt, and the second's under other names."""
        main = [row[1 : 1 + int(row[0])] for row in ids]
        second = [row[1 + int(row[0]) :] for row in ids]
        features = dict(super().assemble(main, max_length))
        for key, value in super().assemble(second, max_length).items():
            features[EXTRA + key] = value
        return features

    def embed(self, features: Features) -> Tensor:
        second = {}
        main = {}
        for key, value in features.items():
            if key.startswith(EXTRA):
                second[key.removeprefix(EXTRA)] = value
            else:
                main[key] = value
        taken_nH = self.joined_heads(second)
        mask = main["attention_mask"]
        rows, last = torch.arange(len(mask), device=mask.device), mask.sum(1) - 1

        def steer(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            heads_nTH = inputs[0]
            steered_nH = self.steered(heads_nTH[rows, last], taken_nH)
            return (heads_nTH.index_put((rows, last), steered_nH), *inputs[1:])

        handle = self.output_projection().register_forward_pre_hook(steer)
        try:
            states = self.encoder(**main, output_hidden_states=True).hidden_states
        finally:
            handle.remove()
        return last_token(states[self.recipe.layer], mask)

    def joined_heads(self, features: Features) -> Tensor:
        """Return the joined heads of the steered layer at each row's last token."""
        found: list[Tensor] = []
        handle = self.output_projection().register_forward_pre_hook(
            lambda module, inputs: found.append(inputs[0])
        )
        try:
            self.encoder(**features)
        finally:
            handle.remove()
        return last_token(found[0], features["attention_mask"])

    def steered(self, main_nH: Tensor, second_nH: Tensor) -> Tensor:
        """Return A' of A and B, as ``norm`` says."""
        difference_nH = main_nH - second_nH
        if self.recipe.norm == "scaled":
            return difference_nH * self.recipe.strength
        size_n = main_nH.norm(dim=-1, keepdim=True)
        return difference_nH * size_n / difference_nH.norm(dim=-1, keepdim=True).clamp_min(1e-12)

    def portable(self) -> Portable:
        raise BenchError(
            "contrastive-prompting changes a layer by a second pass, which an export does not carry"
        )
