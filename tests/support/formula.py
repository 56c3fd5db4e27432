"""The tiny BERT of the reference vectors: every weight follows from a formula, and a text is a list
of ids. And the real vocabularies of two models without their weights.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from bench.method import Backbone, Features
from bench.methods.templates import Template, at_mask


class Formula:
    """The encoder in float64, and its mask states; vectors of the prompt replace the embeddings in
    the slots of the features.
    """

    def __init__(self, known: dict[str, Any]) -> None:
        from transformers import BertConfig, BertModel

        self.encoder = (
            BertModel(BertConfig(**known["config"]), add_pooling_layer=False).double().eval()
        )
        with torch.no_grad():
            for p, (name, parameter) in enumerate(sorted(self.encoder.named_parameters())):
                base = torch.sin(
                    0.7 * torch.arange(parameter.numel(), dtype=torch.float64) + 1.3 * p
                ).reshape(parameter.shape)
                norm = "LayerNorm" in name and name.endswith("weight")
                parameter.copy_(
                    1 + 0.1 * base if norm else (0.1 if name.endswith("bias") else 0.35) * base
                )
        self.prompt = torch.tensor(known["continuous_prompt"], dtype=torch.float64)

    def __call__(self, features: Features) -> Tensor:
        words = self.encoder.embeddings.word_embeddings(features["input_ids"])
        if "slot" in features:
            slot = features["slot"]
            words = torch.where(slot.unsqueeze(-1) > 0, self.prompt[(slot - 1).clamp_min(0)], words)
        with torch.no_grad():
            out = self.encoder(
                inputs_embeds=words,
                attention_mask=features["attention_mask"],
                position_ids=features["position_ids"],
            )
        return at_mask(out.last_hidden_state, features)


TEMPLATES = {
    "anchor": Template((1,), (0, 0, 0, 0, 3, 4, 2), 5, 4, (1, 1)),
    "positive": Template((1, 5), (5, 6, 3, 4, 2), 4, 0, (1, 1)),
    "negative": Template((1, 20, 5), (5, 21, 3, 4, 2), 5, 0, (1, 1)),
}
NUMBERED = SimpleNamespace(
    max_tokens=24, first_position=0, tokenizer=SimpleNamespace(pad_token_id=0)
)


@cache
def vocabulary(name: str, shared: Path) -> Backbone:
    """Make a real tokenizer, with a model of its positions and weights that take no memory."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    folder = shared / "models" / f"{name}-tokenizer"
    config = AutoConfig.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with torch.device("meta"):
        encoder = AutoModel.from_config(config)
    return Backbone(
        name=name,
        revision="0",
        family=config.model_type,
        encoder=encoder,
        tokenizer=tokenizer,
        path=folder,
    )


def tokens(backbone: Backbone, features: Features) -> list[str]:
    return backbone.tokenizer.convert_ids_to_tokens(features["input_ids"][0].tolist())
